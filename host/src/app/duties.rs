//! Duties of whoever begins to own the control database: work that a crash of the owner before may have left unfinished, done before
//! anybody else writes.

use anyhow::Context as _;

use super::App;

impl App {
    /// Does the duties of an owner, and lets everybody write then. A start does them, and a node of several that has become the owner
    /// in the running process: before that, all writes but these are refused there.
    ///
    /// # Errors
    /// Those of the databases, of the content, and of the disk.
    pub async fn begin_owning(&self) -> anyhow::Result<()> {
        let duties = Box::pin(self.do_owner_duties());
        self.control.open_for_writes(duties).await?;
        if let Some(node) = &self.cluster {
            node.note_owning();
        }
        Ok(())
    }

    /// Reads what a machine that follows keeps in memory. It changes nothing.
    pub(super) async fn begin_following(&self) {
        if let Err(error) = self.backends.update_owners().await {
            // It is read again every minute.
            tracing::warn!(%error, "whom databases count for is not known yet");
        }
    }

    async fn do_owner_duties(&self) -> anyhow::Result<()> {
        let deleting = self.collector.expect_unfinished_deletions().await;
        deleting.context("looking for content that may be under deletion")?;
        let burnt = self.shares.finish_burning().await;
        burnt.context("removing burnt shares")?;
        let ended = self.frontends.remove_unfinished().await;
        ended.context("ending interrupted creations")?;
        let settled = self.backends.load_owners().await;
        settled.context("removing databases that no backend owns")?;
        let forgotten = self.workspaces.forget_earlier_console_codes().await;
        forgotten.context("ending links into the console of an earlier start")?;
        let settled = self.payments.mark_interrupted_checkouts().await;
        settled.context("settling interrupted checkouts")
    }
}
