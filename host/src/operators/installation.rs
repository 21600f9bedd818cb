//! The installation that operations work on, and their answers.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::app::SharedApp;
use crate::backup::BackupStage;
use crate::content::{ContentLocation, ContentStore};
use crate::control::events::{self, OperatorCommandRecord};
use crate::control::{ControlDatabase, Error};
use crate::guests::watch::GuestWatcherHandle;
use crate::overview;
use crate::workspaces::Workspaces;
use svc_base::clock::Clock;
use svc_base::ids::ProjectId;
use svc_base::random::Random;

/// An installation: that of the server in this process, or the files of one without a running server.
#[derive(Debug)]
pub struct Installation {
    /// The data directory.
    pub data: PathBuf,
    /// The control database.
    pub control: ControlDatabase,
    pub clock: Clock,
    /// Source of ids and secrets.
    pub random: Random,
    /// The server, if one runs.
    pub server: Option<SharedApp>,
    /// Signal that the server is stopping.
    pub(super) stopped: Option<watch::Receiver<bool>>,
    /// Sender of requests to look at the guests.
    pub(super) watcher: Option<GuestWatcherHandle>,
    /// Receiver of the operation's progress.
    pub(super) progress: OperationProgressSink,
}

/// Progress of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationProgressStep {
    /// Stage of the work.
    pub stage: BackupStage,
    /// Finished amount of the stage.
    pub done: u64,
    /// Total amount of the stage.
    pub all: u64,
}

/// Callback for the progress of an operation, or none.
#[derive(Clone, Default)]
pub struct OperationProgressSink(Option<Arc<dyn Fn(OperationProgressStep) + Send + Sync>>);

impl OperationProgressSink {
    /// Makes a sink that calls `told` for every step.
    pub fn new(told: impl Fn(OperationProgressStep) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }

    /// Reports a step.
    pub fn report(&self, stage: BackupStage, done: u64, all: u64) {
        if let Some(told) = &self.0 {
            told(OperationProgressStep { stage, done, all });
        }
    }
}

impl std::fmt::Debug for OperationProgressSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperationProgressSink")
            .finish_non_exhaustive()
    }
}

impl Installation {
    /// Makes the installation of the server in this process.
    pub(super) fn of_server(
        app: &SharedApp,
        stopped: watch::Receiver<bool>,
        watcher: GuestWatcherHandle,
        progress: OperationProgressSink,
    ) -> Self {
        Self {
            data: app.config.data.clone(),
            control: app.control.clone(),
            clock: app.clock.clone(),
            random: app.infra.random.clone(),
            server: Some(app.clone()),
            stopped: Some(stopped),
            watcher: Some(watcher),
            progress,
        }
    }

    /// Returns the service of workspaces and their keys.
    pub(super) fn workspaces(&self) -> Workspaces {
        Workspaces::new(
            self.control.clone(),
            self.clock.clone(),
            self.random.clone(),
        )
    }

    /// Returns the content store: the server's, or that of the files.
    ///
    /// # Errors
    /// A store that only its server reads, or a directory that cannot be opened.
    pub(super) fn content(&self) -> anyhow::Result<ContentStore> {
        if let Some(app) = &self.server {
            return Ok(app.content.clone());
        }
        let place = ContentLocation::read_recorded(&self.data)?;
        ContentStore::open(&place.require_directory()?)
    }

    /// Finds the project that an operator names.
    pub(super) async fn project(&self, named: &str) -> anyhow::Result<ProjectId> {
        let projects = overview::projects(&self.control, self.clock.now(), None).await?;
        let mut projects = projects.into_iter();
        let found = projects.find(|one| one.id.to_string() == named || one.host_label == named);
        let found = found
            .with_context(|| format!("there is no project `{named}`: name its id or its label"))?;
        Ok(found.id)
    }

    /// Writes an operator's command into the server's log; without a running server, at its next start.
    pub(super) async fn log(&self, deed: OperatorCommandRecord) -> anyhow::Result<()> {
        if self.server.is_some() {
            events::log_command(&deed);
            return Ok(());
        }
        let now = self.clock.now();
        let told: Result<(), Error> = self
            .control
            .write(move |tx| events::record(tx, &events::StartupEvent::CommandRun(deed), now))
            .await;
        Ok(told?)
    }
}

/// Answer of an operation.
#[derive(Debug, Serialize, Deserialize)]
pub struct OperationAnswer {
    /// The answer as a JSON document.
    pub document: String,
    /// The answer for people; empty where there is nothing to list.
    pub text: String,
    /// Command for the log, if it changed something; without secrets.
    pub deed: Option<String>,
}

impl OperationAnswer {
    /// Makes the answer of an operation that changed nothing.
    ///
    /// # Errors
    /// A document that cannot be written as JSON.
    pub fn new(document: &impl Serialize, text: impl AsRef<str>) -> anyhow::Result<Self> {
        Ok(Self {
            document: serde_json::to_string(document)?,
            text: text.as_ref().trim_end().to_owned(),
            deed: None,
        })
    }

    /// Has the command be written into the log.
    #[must_use]
    pub fn logged_as(self, command: String) -> Self {
        Self {
            deed: Some(command),
            ..self
        }
    }
}
