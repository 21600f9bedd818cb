//! Changes a project with its contents, and deletes projects and workspaces: their addresses stop resolving at once, and the contents are
//! then removed step by step.
//!
//! The order: frontends, backend, visitors, payments, activity, the row of the project, and after all of its projects the row of the workspace.
//! Each step is a transaction that begins by reading the remaining contents, so that an interrupted teardown continues.

use std::sync::Arc;

use crate::activity::Activity;
use crate::backends::Backends;
use crate::control::ControlDatabase;
use crate::control::audit::AuditAction;
use crate::deployments::announce_home;
use crate::deployments::files::ProjectFiles;
use crate::deployments::frontends::Frontends;
use crate::infra::Infra;
use crate::payments::Payments;
use crate::projects::model::ProjectChanges;
use crate::projects::{self, Project, ProjectError, Projects};
use crate::visitors::{self, Visitors};
use crate::workspaces::Workspaces;
use svc_base::clock::Clock;
use svc_base::fault;
use svc_base::ids::ProjectId;

/// Changes and deletes projects with their contents.
#[derive(Clone, Debug)]
pub struct ProjectLifecycle {
    control: ControlDatabase,
    clock: Clock,
    workspaces: Workspaces,
    projects: Projects,
    frontends: Arc<Frontends>,
    files: Arc<ProjectFiles>,
    backends: Arc<Backends>,
    visitors: Arc<Visitors>,
    payments: Arc<Payments>,
    activity: Arc<Activity>,
}

impl ProjectLifecycle {
    pub fn new(
        (infra, activity): (&Infra, Arc<Activity>),
        workspaces: Workspaces,
        projects: Projects,
        (frontends, files): (Arc<Frontends>, Arc<ProjectFiles>),
        backends: Arc<Backends>,
        visitors: Arc<Visitors>,
        payments: Arc<Payments>,
    ) -> Self {
        Self {
            control: infra.control.clone(),
            clock: infra.clock.clone(),
            workspaces,
            projects,
            frontends,
            files,
            backends,
            visitors,
            payments,
            activity,
        }
    }

    pub fn projects(&self) -> &Projects {
        &self.projects
    }

    /// Returns the service of the pages that are published in projects.
    pub fn frontends(&self) -> &Frontends {
        &self.frontends
    }

    pub fn files(&self) -> &ProjectFiles {
        &self.files
    }

    /// Changes a project. The sessions of its visitors whose provider it no longer offers end in the same transaction.
    ///
    /// # Errors
    /// [`ProjectError`].
    pub async fn update(
        &self,
        project: ProjectId,
        changes: ProjectChanges,
    ) -> Result<Project, ProjectError> {
        self.projects.check(&changes)?;
        let (now, has_providers) = (self.clock.now(), changes.allowed_providers.is_some());
        let (config, has_home) = (Arc::clone(self.projects.config()), changes.home.is_some());
        self.control
            .write(move |tx| {
                let changed = projects::apply_changes(tx, &project, changes, now)?;
                if has_home {
                    announce_home(tx, &config, &changed.host_label, now)?;
                }
                if has_providers {
                    let allowed = changed.allowed_providers.as_deref();
                    visitors::end_disallowed_sessions(tx, &project, allowed)?;
                }
                Ok(changed)
            })
            .await
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
        self.frontends.begin_project_end(project, act).await?;
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
        self.activity.remove(project).await?;
        fault::point("teardown.activity");
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
