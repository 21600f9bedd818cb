//! The service of visitors: its state, lists of visitors, and their erasure.

use std::sync::Arc;

use ring::hmac;

use super::model::{Visitor, VisitorError};
use super::passkey::model::CHALLENGE_LIFETIME_MS;
use super::providers::SignInProviders;
use super::sessions::SessionCache;
use super::state::SignInStateSealer;
use super::store;
use super::tickets::SignInTickets;
use super::used_ids::UsedIds;
use crate::control::{self, Tx};
use crate::deployments::serving::PageService;
use crate::deployments::serving::pages::{PageKind, ServedPage};
use crate::http::hosts::{HostKind, ServerHostNames};
use crate::infra::Infra;
use crate::outbound::OutboundClient;
use crate::projects::{Project, Projects};
use svc_base::ids::ProjectId;

/// Maximum number of rows that one transaction removes, so that other transactions are not delayed.
const REMOVAL_BATCH: u32 = 500;

/// Service of visitors.
#[derive(Debug)]
pub struct Visitors {
    pub(super) infra: Infra,
    pub(super) serving: Arc<PageService>,
    pub(super) projects: Projects,
    pub(super) providers: SignInProviders,
    pub(super) states: SignInStateSealer,
    pub(super) tickets: SignInTickets,
    pub(super) used_challenges: UsedIds,
    /// Random name of this process.
    pub(super) process: [u8; 16],
    pub(super) session_cache: Arc<SessionCache>,
    /// Hosts of the server, the domains among them.
    pub(super) hosts: Arc<ServerHostNames>,
}

impl Visitors {
    /// Creates the service on the control database.
    ///
    /// # Errors
    /// When the settings of a provider are not valid.
    pub fn new(
        infra: Infra,
        secret: &hmac::Key,
        projects: Projects,
        serving: Arc<PageService>,
        hosts: Arc<ServerHostNames>,
        outbound: &OutboundClient,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            providers: SignInProviders::new(&infra.config, outbound, &infra.clock, &infra.random)?,
            states: SignInStateSealer::new(secret)?,
            tickets: SignInTickets::default(),
            used_challenges: UsedIds::new(CHALLENGE_LIFETIME_MS),
            process: infra.random.bytes()?,
            session_cache: SessionCache::following(&infra.control),
            infra,
            serving,
            projects,
            hosts,
        })
    }

    /// Whether visitors use https, so that only a page's own host can set its cookies.
    pub fn uses_https(&self) -> bool {
        self.infra.config.secure
    }

    /// Returns the frontend's own origin for a visitor of a host: the domain that they are on, else the project's; a quick share has
    /// none.
    pub(super) fn origin(&self, host: &HostKind, page: &ServedPage) -> Option<String> {
        match &page.kind {
            PageKind::Frontend { host_label } => {
                Some(host.project_origin(&self.infra.config, host_label))
            }
            _ => None,
        }
    }

    /// Returns the live project of a frontend.
    pub(super) async fn project_of(
        &self,
        page: &ServedPage,
    ) -> Result<Option<Project>, crate::projects::ProjectError> {
        match &page.kind {
            PageKind::Frontend { host_label } => self.projects.find_by_label(host_label).await,
            _ => Ok(None),
        }
    }

    /// Lists visitors of a project with numbers below `before`, newest first.
    pub(super) async fn list(
        &self,
        project: ProjectId,
        before: Option<i64>,
        most: u32,
    ) -> Result<Vec<Visitor>, VisitorError> {
        let read = self
            .infra
            .control
            .read(move |c| store::list_of_project(c, &project, before, most));
        Ok(read.await?)
    }

    /// Erases a visitor's profile and sessions; returns whether there was one.
    ///
    /// # Errors
    /// Errors of the database; then nothing is erased.
    pub async fn forget(&self, project: ProjectId, id: String) -> Result<bool, VisitorError> {
        let now = self.infra.clock.now();
        let forgotten = self
            .infra
            .control
            .write(move |tx| store::forget(tx, &project, &id, now));
        Ok(forgotten.await.map_err(|error: control::Error| error)?)
    }

    /// Erases all visitors of a deleted project.
    ///
    /// # Errors
    /// Errors of the database; calling again continues.
    pub async fn forget_project(&self, project: ProjectId) -> Result<(), control::Error> {
        while self
            .infra
            .control
            .write(move |tx| store::forget_batch(tx, &project, REMOVAL_BATCH))
            .await?
            > 0
        {}
        Ok(())
    }

    /// Removes old tickets and codes, which are in memory.
    pub fn forget_old_tickets(&self) {
        let now = self.infra.clock.now();
        self.tickets.remove_old(now);
        if let Some(email) = self.providers.email() {
            email.forget_old(now);
        }
    }

    /// Removes expired sessions, and sessions of deleted frontends.
    pub async fn sweep(&self) -> anyhow::Result<()> {
        let now = self.infra.clock.now();
        while self
            .infra
            .control
            .write(move |tx| store::sweep(tx, now, REMOVAL_BATCH))
            .await?
            > 0
        {}
        for frontend in self
            .infra
            .control
            .read(store::frontends_with_sessions)
            .await?
        {
            if !self.serving.exists(frontend).await? {
                self.infra
                    .control
                    .write(move |tx| store::end_frontend_sessions(tx, &frontend))
                    .await?;
            }
        }
        Ok(())
    }
}

/// Ends the sessions of a project's visitors at providers that are no longer allowed, in the transaction that changes the list.
pub fn end_disallowed_sessions(
    tx: &Tx<'_>,
    project: &ProjectId,
    allowed: Option<&[String]>,
) -> Result<(), control::Error> {
    match allowed {
        Some(allowed) => store::end_other_providers(tx, project, allowed),
        None => Ok(()),
    }
}
