//! Service of visitors' files.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ring::hmac;

use super::keys::UploadKeys;
use super::quotas::UploadQuotas;
use crate::backends::Backends;
use crate::backends::calls::ActionCalls;
use crate::deployments::files::{FileError, ProjectFiles};
use crate::infra::Infra;
use crate::projects::Project;
use svc_sandbox::Sandbox;

/// Files that visitors bring, of all projects.
#[derive(Debug)]
pub struct VisitorFiles {
    pub(super) infra: Infra,
    pub(super) backends: Arc<Backends>,
    pub(super) actions: Arc<ActionCalls>,
    pub(super) files: Arc<ProjectFiles>,
    pub(super) sandbox: Sandbox,
    pub(super) quotas: Arc<UploadQuotas>,
    pub(super) keys: UploadKeys,
    /// Held by the one look at databases that is under way.
    pub(super) following: tokio::sync::Mutex<()>,
    /// Time of the last look at all of them.
    pub(super) followed_all: Mutex<Option<Duration>>,
}

impl VisitorFiles {
    /// Makes the service of a server.
    pub fn new(
        infra: Infra,
        (backends, actions): (Arc<Backends>, Arc<ActionCalls>),
        files: Arc<ProjectFiles>,
        sandbox: Sandbox,
        secret: hmac::Key,
    ) -> Self {
        Self {
            quotas: UploadQuotas::new(&infra.config.limits, infra.clock.clone()),
            following: tokio::sync::Mutex::default(),
            followed_all: Mutex::default(),
            infra,
            backends,
            actions,
            files,
            sandbox,
            keys: UploadKeys::new(secret),
        }
    }

    /// Returns the most bytes of a file of a project.
    pub(super) async fn most_bytes(&self, project: &Project) -> Result<u64, FileError> {
        Ok(self.files.limits_of(project).await?.file_bytes)
    }

    /// Forgets quotas that are over.
    pub fn tidy(&self) {
        self.quotas.tidy();
    }

    /// Returns the directory of temporary files.
    pub(super) fn temporary(&self) -> PathBuf {
        self.infra.config.data.join("tmp")
    }
}
