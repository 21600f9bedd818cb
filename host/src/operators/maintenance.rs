//! Operations on all stored data, a backup and a check, which the server runs beside its other work.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::installation::{Installation, OperationAnswer};
use crate::backup::{self, BackupStage, last};
use crate::check::InstallationStores;
use crate::cluster::found;
use crate::content::OneTimeFileDirectory;
use svc_database::DatabasesDirectory;

/// Refuses a node of several: what it has is in the ledger and in the bucket, and only a part of it on its disk.
///
/// # Errors
/// The directory is one of a node, or cannot be read.
pub fn check_one_machine(data: &Path) -> anyhow::Result<()> {
    if found::installation_id(data)?.is_some() {
        bail!(
            "{} is the data directory of a node of several, and a cluster has no backup and no check by this command: copy the cluster into an empty directory by `svc restore --from BUCKET --ledger URL --data DIR`, while it runs, and back up or check that directory",
            data.display()
        );
    }
    Ok(())
}

/// Operation of `svc backup`.
#[derive(Debug, Serialize, Deserialize)]
pub struct MakeBackup {
    /// Target directory: an absolute path.
    pub directory: PathBuf,
}

impl MakeBackup {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        check_one_machine(&at.data)?;
        let (data, control) = (at.data.clone(), at.control.clone());
        let (clock, progress) = (at.clock.clone(), at.progress.clone());
        let directory = self.directory.clone();
        let served = at.server.as_ref();
        let served = served.map(|app| app.content.clone());
        let made = run_on_thread(at, "backup", async move || {
            let watch = |stage, done, all| progress.report(stage, done, all);
            backup::make((&data, &control), served, &directory, &clock, &watch).await
        })
        .await;
        let noted = last::record(
            &at.data,
            &self.directory,
            made.as_ref().ok(),
            at.clock.now(),
        );
        if let Err(error) = noted {
            tracing::warn!(%error, "`svc status` does not know of the last backup");
        }
        let made = made.map_err(|error| match at.server.is_some() && is_forbidden(&error) {
            true => error.context("the server makes the backup, and may not write there: name a directory that it may write to (under systemd those of StateDirectory= and ReadWritePaths=)"),
            false => error,
        });
        OperationAnswer::new(&made?, "")
    }
}

/// Whether an error is a missing permission.
fn is_forbidden(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(
        kind,
        Some(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
    )
}

/// Operation of `svc check`.
#[derive(Debug, Serialize, Deserialize)]
pub struct CheckInstallation {}

impl CheckInstallation {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        check_one_machine(&at.data)?;
        let stores = InstallationStores {
            control: at.control.clone(),
            content: at.content()?,
            once: Some(OneTimeFileDirectory::open(&at.data.join("once"))?),
            files: DatabasesDirectory::open(&at.data.join("backends"))?,
        };
        let progress = at.progress.clone();
        let found = run_on_thread(at, "check", async move || {
            let watch = |done, all| progress.report(BackupStage::Check, done, all);
            stores.check(watch).await
        })
        .await?;
        OperationAnswer::new(&found, "")
    }
}

/// Runs long and blocking work on a thread of its own. A server that stops does not wait for it, so the work must survive a crash.
async fn run_on_thread<T: Send + 'static>(
    at: &Installation,
    name: &str,
    work: impl AsyncFnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let (answer, answered) = oneshot::channel();
    let job = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let done = runtime
            .context("starting a runtime")
            .and_then(|runtime| runtime.block_on(work()));
        // Fails if the server has stopped.
        let _ = answer.send(done);
    };
    let thread = thread::Builder::new().name(format!("operators-{name}"));
    thread.spawn(job).context("starting a thread")?;
    let mut stopped = at.stopped.clone();
    let stop = async {
        match &mut stopped {
            Some(stopped) => drop(stopped.wait_for(|stopped| *stopped).await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        done = answered => done.context("it failed: the log says why")?,
        () = stop => bail!("the server is stopping: run this again"),
    }
}
