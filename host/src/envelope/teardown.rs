//! Deletes projects and workspaces: their addresses stop resolving at once, and their contents are then removed step by step.
//!
//! The order: frontends, backend, visitors, payments, the row of the project, and after all of its projects the row of the workspace.
//! Each step is a transaction that begins by looking at what is left, so that an interrupted teardown continues where it was.

use std::sync::Arc;

use crate::backends::Backends;
use crate::control::audit::AuditAction;
use crate::deployments::Deployments;
use crate::payments::Payments;
use crate::projects::{ProjectError, Projects};
use crate::visitors::Visitors;
use crate::workspaces::Workspaces;
use svc_base::fault;
use svc_base::ids::ProjectId;

/// Deletes projects, with all services that hold parts of them.
#[derive(Clone, Debug)]
pub struct Teardown {
    workspaces: Workspaces,
    projects: Projects,
    deployments: Arc<Deployments>,
    backends: Arc<Backends>,
    visitors: Arc<Visitors>,
    payments: Arc<Payments>,
}

impl Teardown {
    pub fn new(
        workspaces: Workspaces,
        projects: Projects,
        deployments: Arc<Deployments>,
        backends: Arc<Backends>,
        visitors: Arc<Visitors>,
        payments: Arc<Payments>,
    ) -> Self {
        Self {
            workspaces,
            projects,
            deployments,
            backends,
            visitors,
            payments,
        }
    }

    pub fn projects(&self) -> &Projects {
        &self.projects
    }

    pub fn deployments(&self) -> &Deployments {
        &self.deployments
    }

    /// Makes a project and its contents unreachable; durable when it returns.
    pub async fn make_unreachable(&self, project: ProjectId) -> anyhow::Result<()> {
        self.make_unreachable_as(project, None).await
    }

    async fn make_unreachable_as(
        &self,
        project: ProjectId,
        act: Option<AuditAction>,
    ) -> anyhow::Result<()> {
        self.deployments.begin_project_end(project, act).await?;
        fault::point("teardown.begun");
        Ok(())
    }

    /// Makes a project unreachable, as an action of the current actor; the rest of the deletion follows in the background.
    pub async fn delete_project(&self, project: ProjectId) -> Result<(), ProjectError> {
        self.make_unreachable_as(project, Some(AuditAction::ProjectDelete))
            .await?;
        let teardown = self.clone();
        tokio::spawn(async move {
            if let Err(error) = teardown.finish(project).await {
                // The background task will continue.
                tracing::warn!(%project, error = format!("{error:#}"), "a teardown was interrupted");
            }
        });
        Ok(())
    }

    /// Makes every project unreachable that is in deletion or expired, or whose workspace is in deletion.
    pub async fn make_all_unreachable(&self) -> anyhow::Result<()> {
        for project in self.projects.list_ending().await? {
            self.make_unreachable(project).await?;
        }
        Ok(())
    }

    /// Removes the contents and the row of a project in deletion.
    ///
    /// # Errors
    /// Errors of the database; calling again continues.
    pub async fn finish(&self, project: ProjectId) -> anyhow::Result<()> {
        while self.deployments.remove_members(project).await? {
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

    /// Deletes every expired project, continues interrupted deletions, and then removes workspaces in deletion.
    ///
    /// # Errors
    /// Errors of the database; calling again continues.
    pub async fn run(&self) -> anyhow::Result<()> {
        for project in self.projects.list_ending().await? {
            self.make_unreachable(project).await?;
            self.finish(project).await?;
        }
        self.workspaces.remove_ended().await?;
        Ok(())
    }
}
