//! Replay of everything stored, with the installed guest and with a new one: the pages and verdicts that would differ, and the
//! cost.
//!
//! A replay only reads, and a server may run meanwhile: a hold keeps the collector from removing sources. Protected and one-time
//! shares are compared in memory and counted, and never written. A one-time share has no source except for HTML, where the page
//! is the source; others cannot be replayed.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde::Serialize;

use super::check::CorpusProgressFn;
use crate::backends::stored_sql;
use crate::content::{ContentLock, ContentStore, OneTimeFileDirectory};
use crate::control::ControlDatabase;
use crate::deployments::operators::{self, ReplayedPage};
use crate::deployments::publication::runtime;
use svc_base::clock::Timestamp;
use svc_sandbox::{
    AllowedStatement, CallTotals, ContentType, GateFailure, GuestDigest, RenderFailure,
    RenderSource, RuntimeScript, Sandbox, SandboxConfig, World,
};

pub use differences::DifferencesFolder;

mod differences;

/// Number of rows that are read at once.
const ROWS_PER_BATCH: u32 = 200;

/// Result of a replay with two guests.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayResult {
    /// Digest of the installed guest.
    pub installed: GuestDigest,
    /// Counts of public pages and of SQL.
    pub open: ComparisonCounts,
    /// Counts of protected and one-time shares.
    pub private: ComparisonCounts,
    /// Number of one-time shares without a source.
    pub without_source: u64,
    /// Budgets that the calls used.
    pub used: ComparedBudgetUse,
}

impl ReplayResult {
    /// Returns how often the new guest fails where the installed one does not.
    pub fn newly_failing(&self) -> u64 {
        self.open.newly_failing + self.private.newly_failing
    }
}

/// Counts of comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ComparisonCounts {
    /// Both answers are equal, byte for byte.
    pub identical: u64,
    /// Both succeed with different answers.
    pub differing: u64,
    /// Only the installed guest succeeds.
    pub newly_failing: u64,
    /// Only the new guest succeeds.
    pub newly_working: u64,
    /// Both fail.
    pub failing: u64,
}

/// Budgets that two guests used on the same input.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ComparedBudgetUse {
    /// The installed guest.
    pub installed: CallTotals,
    /// The new guest.
    pub new: CallTotals,
}

/// Comparison of two answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerComparison {
    Identical,
    Differing,
    NewlyFailing,
    NewlyWorking,
    Failing,
}

impl ComparisonCounts {
    fn add(&mut self, compared: AnswerComparison) {
        *match compared {
            AnswerComparison::Identical => &mut self.identical,
            AnswerComparison::Differing => &mut self.differing,
            AnswerComparison::NewlyFailing => &mut self.newly_failing,
            AnswerComparison::NewlyWorking => &mut self.newly_working,
            AnswerComparison::Failing => &mut self.failing,
        } += 1;
    }
}

fn compare<T: PartialEq, E>(old: &Result<T, E>, new: &Result<T, E>) -> AnswerComparison {
    match (old, new) {
        (Ok(old), Ok(new)) if old == new => AnswerComparison::Identical,
        (Ok(_), Ok(_)) => AnswerComparison::Differing,
        (Ok(_), Err(_)) => AnswerComparison::NewlyFailing,
        (Err(_), Ok(_)) => AnswerComparison::NewlyWorking,
        (Err(_), Err(_)) => AnswerComparison::Failing,
    }
}

/// Installation and guests of a replay.
#[derive(Debug)]
pub struct ReplaySetup {
    /// Control database.
    pub control: ControlDatabase,
    /// Content store with the sources.
    pub content: ContentStore,
    /// One-time shares.
    pub once: OneTimeFileDirectory,
    /// Current time: expired pages are left out.
    pub now: Timestamp,
    /// The installed guest and the new one.
    pub guests: [Sandbox; 2],
    /// Size limit of a page, in bytes.
    pub page_bytes: usize,
}

impl ReplaySetup {
    /// Replays everything stored for a world with both guests. The hold keeps it there meanwhile.
    ///
    /// # Errors
    /// Errors of the database, the store or the disk; or a guest that cannot be called.
    pub async fn run(
        &self,
        world: World,
        _hold: &ContentLock,
        differences: &mut DifferencesFolder,
        watch: CorpusProgressFn<'_>,
    ) -> anyhow::Result<ReplayResult> {
        let mut found = ReplayResult {
            installed: GuestDigest::from_bytes([0; 32]),
            open: ComparisonCounts::default(),
            private: ComparisonCounts::default(),
            without_source: 0,
            used: ComparedBudgetUse {
                installed: CallTotals::default(),
                new: CallTotals::default(),
            },
        };
        match world {
            World::Render => self.replay_pages(&mut found, differences, watch).await?,
            World::Gate => self.replay_verdicts(&mut found, differences, watch).await?,
        }
        let [installed, new] = &self.guests;
        found.used = ComparedBudgetUse {
            installed: installed.total(world),
            new: new.total(world),
        };
        if let Some((digest, _)) = installed.usage(world) {
            found.installed = digest;
        }
        Ok(found)
    }

    async fn replay_pages(
        &self,
        found: &mut ReplayResult,
        differences: &mut DifferencesFolder,
        watch: CorpusProgressFn<'_>,
    ) -> anyhow::Result<()> {
        let now = self.now;
        let all = operators::count_pages(&self.control, now).await?;
        let (mut done, mut after) = (0, None);
        watch(done, all);
        loop {
            let step = operators::stored_pages(&self.control, now, after, ROWS_PER_BATCH).await?;
            let Some(last) = step.last() else {
                return Ok(());
            };
            after = Some(last.id);
            let mut answers = stream::iter(step)
                .map(|page| self.render_with_both(page))
                .buffer_unordered(SandboxConfig::default_threads());
            while let Some(answer) = answers.next().await {
                done += 1;
                watch(done.min(all), all);
                let Some((page, old, new)) = answer? else {
                    found.without_source += 1;
                    continue;
                };
                let compared = compare(&old, &new);
                if page.is_private() {
                    found.private.add(compared);
                    continue;
                }
                found.open.add(compared);
                if compared != AnswerComparison::Identical {
                    differences.write_page(&page, &old, &new)?;
                }
            }
        }
    }

    /// Renders the source of a page with both guests; `None` if there is no source.
    async fn render_with_both(
        &self,
        page: ReplayedPage,
    ) -> anyhow::Result<Option<(ReplayedPage, PageResult, PageResult)>> {
        let Some(text) = self.read_source(&page).await? else {
            return Ok(None);
        };
        let runtime = page.is_frontend.then(|| RuntimeScript {
            src: runtime::newest_path(),
            slug: page.slug.clone(),
        });
        let source = RenderSource {
            content_type: page.content_type,
            title: Some(page.title.clone()).filter(|title| !title.is_empty()),
            name: None,
            text,
            runtime,
            page_bytes: self.page_bytes,
            foot: None,
            is_private: page.is_private(),
        };
        let old = render_page(&self.guests[0], source.clone()).await?;
        let new = render_page(&self.guests[1], source).await?;
        Ok(Some((page, old, new)))
    }

    async fn read_source(&self, page: &ReplayedPage) -> anyhow::Result<Option<String>> {
        let bytes = match page.source {
            Some(digest) => self.content.get(&digest).await?.map(Vec::from),
            None if page.content_type == ContentType::Html => {
                let (files, id) = (self.once.clone(), page.id);
                tokio::task::spawn_blocking(move || files.read(&id)).await??
            }
            None => None,
        };
        // A page that was deleted or read meanwhile has no source either.
        Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    async fn replay_verdicts(
        &self,
        found: &mut ReplayResult,
        differences: &mut DifferencesFolder,
        watch: CorpusProgressFn<'_>,
    ) -> anyhow::Result<()> {
        let backends = stored_sql::list_backend_ids(&self.control).await?;
        let all = backends.len() as u64;
        for (done, id) in (0..).zip(backends) {
            watch(done, all);
            let stored = stored_sql::list_backend_sql(&self.control, id).await?;
            let mut answers = stream::iter(stored)
                .map(async |piece| {
                    let old = judge_sql(&self.guests[0], &piece).await?;
                    let new = judge_sql(&self.guests[1], &piece).await?;
                    anyhow::Ok((piece, old, new))
                })
                .buffered(SandboxConfig::default_threads());
            while let Some(answer) = answers.next().await {
                let (piece, old, new) = answer?;
                let compared = compare(&old, &new);
                found.open.add(compared);
                if compared != AnswerComparison::Identical {
                    differences.write_verdict(id, &piece, &old, &new)?;
                }
            }
        }
        watch(all, all);
        Ok(())
    }
}

/// A page, or the reason why there is none.
type PageResult = Result<Bytes, String>;
/// The allowed statements, or the reason for a refusal.
type VerdictResult = Result<Vec<AllowedStatement>, String>;

async fn render_page(guest: &Sandbox, source: RenderSource) -> anyhow::Result<PageResult> {
    match guest.render(source).await {
        Ok(page) => Ok(Ok(page.html)),
        Err(failure @ (RenderFailure::Busy | RenderFailure::Preparing)) => bail!("{failure}"),
        Err(failure) => Ok(Err(failure.to_string())),
    }
}

async fn judge_sql(
    guest: &Sandbox,
    piece: &stored_sql::AllowedStoredSql,
) -> anyhow::Result<VerdictResult> {
    match guest.check_sql(piece.sql.as_str(), piece.purpose).await {
        Ok(statements) => Ok(Ok(statements)),
        Err(failure @ (GateFailure::Busy | GateFailure::Preparing)) => bail!("{failure}"),
        Err(failure) => Ok(Err(failure.to_string())),
    }
}

/// Holds the content of a data directory, so that the collector removes nothing. Blocks.
///
/// # Errors
/// The disk's errors, or a running restore.
pub fn hold_content(data: &std::path::Path) -> anyhow::Result<Arc<ContentLock>> {
    let hold = ContentLock::shared(data)?;
    hold.map(Arc::new)
        .context("the content is being restored: try again when that is done")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let (one, two): (Result<_, ()>, _) = (Ok("a"), Ok("b"));
        let none = Err(());
        let mut counts = ComparisonCounts::default();
        for (old, new, expected) in [
            (&one, &one, AnswerComparison::Identical),
            (&one, &two, AnswerComparison::Differing),
            (&one, &none, AnswerComparison::NewlyFailing),
            (&none, &one, AnswerComparison::NewlyWorking),
            (&none, &none, AnswerComparison::Failing),
        ] {
            let compared = compare(old, new);
            assert_eq!(compared, expected);
            counts.add(compared);
        }
        let one_each = ComparisonCounts {
            identical: 1,
            differing: 1,
            newly_failing: 1,
            newly_working: 1,
            failing: 1,
        };
        assert_eq!(counts, one_each);
    }
}
