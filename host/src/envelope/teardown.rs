//! The end of a project, and of a workspace with all of its own: what it has stops to resolve at once, and is then removed step by step.
//!
//! The order is frontends, then the backend, then its visitors and payments, then the project's row, and a workspace's after all of its projects'. Each step is a transaction, and each begins by looking at
//! what is left, so that a teardown which a crash interrupts goes on where it was.

use std::sync::Arc;

use crate::backends::Backends;
use crate::control::audit::AuditAction;
use crate::deployments::frontends::Frontends;
use crate::payments::Payments;
use crate::projects::{ProjectError, Projects};
use crate::visitors::Visitors;
use crate::workspaces::Workspaces;
use svc_base::fault;
use svc_base::ids::ProjectId;

/// Ends projects.
#[derive(Clone, Debug)]
pub struct Teardown {
    workspaces: Workspaces,
    projects: Projects,
    frontends: Arc<Frontends>,
    backends: Arc<Backends>,
    visitors: Arc<Visitors>,
    payments: Arc<Payments>,
}

impl Teardown {
    /// Of these services.
    pub fn new(
        workspaces: Workspaces,
        projects: Projects,
        frontends: Arc<Frontends>,
        backends: Arc<Backends>,
        visitors: Arc<Visitors>,
        payments: Arc<Payments>,
    ) -> Self {
        Self {
            workspaces,
            projects,
            frontends,
            backends,
            visitors,
            payments,
        }
    }

    /// The projects.
    pub fn projects(&self) -> &Projects {
        &self.projects
    }

    /// Returns the service of the pages that are published in projects.
    pub fn frontends(&self) -> &Frontends {
        &self.frontends
    }

    /// Makes a project and all that is in it unreachable; durable when it answers.
    pub async fn make_unreachable(&self, project: ProjectId) -> anyhow::Result<()> {
        self.make_unreachable_as(project, None).await
    }

    async fn make_unreachable_as(
        &self,
        project: ProjectId,
        act: Option<AuditAction>,
    ) -> anyhow::Result<()> {
        self.frontends.begin_project_end(project, act).await?;
        fault::point("teardown.begun");
        Ok(())
    }

    /// Makes a project unreachable now, for whoever acts, and lets the rest of its end follow behind the answer.
    pub async fn delete_project(&self, project: ProjectId) -> Result<(), ProjectError> {
        self.make_unreachable_as(project, Some(AuditAction::ProjectDelete))
            .await?;
        let teardown = self.clone();
        tokio::spawn(async move {
            if let Err(error) = teardown.finish(project).await {
                // The background task goes on with it.
                tracing::warn!(%project, error = format!("{error:#}"), "a teardown was interrupted");
            }
        });
        Ok(())
    }

    /// Makes every project unreachable whose end has begun, or should: of a workspace that is being deleted, too.
    pub async fn make_all_unreachable(&self) -> anyhow::Result<()> {
        for project in self.projects.list_ending().await? {
            self.make_unreachable(project).await?;
        }
        Ok(())
    }

    /// Removes what is left of a project whose end has begun.
    ///
    /// # Errors
    /// The database's; calling again goes on.
    pub async fn finish(&self, project: ProjectId) -> anyhow::Result<()> {
        while self.frontends.remove_deleting(project).await? {
            fault::point("teardown.step");
        }
        fault::point("teardown.members");
        self.backends.delete(project).await?;
        fault::point("teardown.backend");
        self.visitors.forget_project(project).await?;
        fault::point("teardown.visitors");
        self.payments.remove(project).await?;
        fault::point("teardown.payments");
        self.projects.remove(project).await?;
        fault::point("teardown.removed");
        Ok(())
    }

    /// Begins and finishes the end of every project whose time is over, and finishes those that a crash interrupted; then that of workspaces.
    ///
    /// # Errors
    /// The database's; calling again goes on.
    pub async fn run(&self) -> anyhow::Result<()> {
        for project in self.projects.list_ending().await? {
            self.make_unreachable(project).await?;
            self.finish(project).await?;
        }
        self.workspaces.remove_ended().await?;
        Ok(())
    }
}
