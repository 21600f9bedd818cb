//! Creates, finds and changes projects.

use std::sync::Arc;

use svc_base::names::{append_suffix_within_limit, numbered_slugs};

use super::label::{host_label, is_reserved_label};
use super::model::{NewProject, Project, ProjectChanges, ProjectError};
use super::scope::AuthorizedProject;
use super::store;
use crate::access::{AuthorizedCaller, MinimumRole};
use crate::config::Config;
use crate::control::audit::AuditAction;
use crate::control::kept_answers::AnswerRecorder;
use crate::control::{Error, Tx};
use crate::infra::Infra;
use crate::workspaces::{Caller, Principal, WorkspaceError, WorkspaceRef, Workspaces};
use svc_base::clock::Timestamp;
use svc_base::ids::{ProjectId, WorkspaceId};

/// The projects of an installation.
#[derive(Clone, Debug)]
pub struct Projects {
    infra: Infra,
    workspaces: Workspaces,
}

impl Projects {
    /// Creates the service on a control database.
    pub fn new(infra: Infra, workspaces: Workspaces) -> Self {
        Self { infra, workspaces }
    }

    pub fn config(&self) -> &Arc<Config> {
        &self.infra.config
    }

    pub fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    /// Creates a project in a workspace.
    ///
    /// # Errors
    /// [`ProjectError`].
    pub async fn create(
        &self,
        workspace: WorkspaceId,
        new: NewProject,
        keep: AnswerRecorder<Project>,
    ) -> Result<Project, ProjectError> {
        let owner = self
            .workspaces
            .find_by_id(workspace)
            .await?
            .ok_or(ProjectError::Forbidden)?;
        let most = owner.plan.max_projects(&self.infra.config.limits);
        let now = self.infra.clock.now();
        let workspace = WorkspaceRef {
            id: owner.id,
            slug: owner.slug,
        };
        let id = ProjectId::new(&self.infra.clock, &self.infra.random)?;
        let mut project = Project::new(id, workspace, new, now);
        let spare = self.infra.random.slug(6)?;
        self.infra
            .control
            .write(move |tx| {
                let count = store::count(tx, &project.workspace.id, now).map_err(Error::from)?;
                if count >= most {
                    return Err(ProjectError::PlanLimit(most));
                }
                let wanted = host_label(&project.name, &project.workspace.slug);
                let candidates = std::iter::once(wanted.clone())
                    .chain(numbered_slugs(&wanted))
                    .chain([append_suffix_within_limit(&wanted, &spare)]);
                for label in candidates.filter(|label| !is_reserved_label(label)) {
                    let workspace = &project.workspace.id;
                    if !store::label_taken(tx, &label, workspace, now).map_err(Error::from)? {
                        project.host_label = label;
                        break;
                    }
                }
                store::insert(tx, &project)?;
                store::record_audit(
                    tx,
                    &project.id,
                    AuditAction::ProjectCreate,
                    &project.id,
                    now,
                )?;
                keep.store(tx, &project)?;
                Ok(project)
            })
            .await
    }

    /// Returns a live project, for a caller whose role in its workspace suffices.
    ///
    /// # Errors
    /// `NotFound` if there is no such project, `Forbidden` if it belongs to another workspace or to none, `Workspace` if the role does not suffice.
    pub async fn scoped<F: MinimumRole>(
        &self,
        caller: &Caller,
        id: ProjectId,
    ) -> Result<AuthorizedProject<F>, ProjectError> {
        if id == ProjectId::QUICK_SHARES {
            return Err(ProjectError::Forbidden);
        }
        let now = self.infra.clock.now();
        let found = self
            .infra
            .control
            .read(move |c| store::find_by_id(c, &id, now))
            .await?;
        let project = found.ok_or(ProjectError::NotFound)?;
        let owner = project.workspace.id;
        match AuthorizedCaller::in_workspace(
            &self.workspaces,
            caller,
            owner,
            &project.workspace.slug,
        )
        .await
        {
            Ok(authority) => Ok(AuthorizedProject { authority, project }),
            Err(WorkspaceError::Foreign(_)) => Err(ProjectError::Forbidden),
            Err(error) => Err(ProjectError::Workspace(error)),
        }
    }

    /// Returns a live project by its id, as the caller wrote it.
    ///
    /// # Errors
    /// Like [`Projects::scoped`], and `InvalidId`.
    pub async fn find_scoped<F: MinimumRole>(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<AuthorizedProject<F>, ProjectError> {
        let id = id.parse().map_err(|_| ProjectError::InvalidId)?;
        self.scoped(caller, id).await
    }

    /// Returns a project that a caller wants to delete; `None` if it does not exist.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn scoped_for_deletion<F: MinimumRole>(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Option<AuthorizedProject<F>>, ProjectError> {
        match self.find_scoped(caller, id).await {
            Ok(scope) => Ok(Some(scope)),
            Err(ProjectError::NotFound | ProjectError::InvalidId) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Finds the live project with a host label.
    pub async fn find_by_label(&self, label: &str) -> Result<Option<Project>, ProjectError> {
        let (label, now) = (label.to_owned(), self.infra.clock.now());
        Ok(self
            .infra
            .control
            .read(move |c| store::find_by_label(c, &label, now))
            .await?)
    }

    /// Returns the principal that owns the live project with a host label.
    pub async fn owner_of_label(&self, label: String) -> Result<Option<Principal>, ProjectError> {
        let now = self.infra.clock.now();
        let owner = self.infra.control.read(move |c| {
            let Some(project) = store::find_by_label(c, &label, now)? else {
                return Ok(None);
            };
            Principal::of_workspace(c, &project.workspace.id).map(Some)
        });
        Ok(owner.await?)
    }

    /// Lists the live projects of workspaces, oldest first.
    pub async fn list(&self, workspaces: Vec<WorkspaceId>) -> Result<Vec<Project>, ProjectError> {
        let now = self.infra.clock.now();
        Ok(self
            .infra
            .control
            .read(move |c| store::list_by_workspaces(c, &workspaces, now))
            .await?)
    }

    /// Checks that the operator has set up the providers that a change names.
    ///
    /// # Errors
    /// `UnknownProvider`.
    pub fn check(&self, changes: &ProjectChanges) -> Result<(), ProjectError> {
        let known = &self.infra.config.providers;
        let is_known = |name: &&String| known.iter().any(|provider| provider.name == **name);
        let mut named = changes.allowed_providers.iter().flatten();
        if let Some(name) = named.find(|name| !is_known(name)) {
            let known = known.iter().map(|provider| provider.name.clone()).collect();
            return Err(ProjectError::UnknownProvider(name.clone(), known));
        }
        Ok(())
    }

    /// Lists projects that are in deletion, or expired.
    pub async fn list_ending(&self) -> Result<Vec<ProjectId>, Error> {
        let now = self.infra.clock.now();
        self.infra
            .control
            .read(move |c| store::list_ending(c, now))
            .await
    }

    /// Whether a project has a frontend at a slug, in any state.
    pub async fn has_frontend(&self, id: ProjectId, slug: String) -> Result<bool, Error> {
        self.infra
            .control
            .read(move |c| store::has_frontend(c, &id, &slug))
            .await
    }

    /// Removes the row of a project whose contents are removed.
    pub async fn remove(&self, id: ProjectId) -> Result<(), Error> {
        self.infra
            .control
            .write(move |tx| store::remove(tx, &id))
            .await
    }
}

/// Changes a project, in the transaction of the caller, who changes its contents.
///
/// # Errors
/// [`ProjectError`].
pub fn apply_changes(
    tx: &Tx<'_>,
    id: &ProjectId,
    changes: ProjectChanges,
    now: Timestamp,
) -> Result<Project, ProjectError> {
    let found = store::find_by_id(tx, id, now).map_err(Error::from)?;
    let mut project = found.ok_or(ProjectError::NotFound)?;
    if let Some(name) = changes.name {
        project.name = name;
    }
    if let Some(text) = changes.description {
        project.description = Some(text).filter(|text| !text.is_empty());
    }
    if let Some(mut list) = changes.allowed_providers {
        let mut seen = std::collections::HashSet::new();
        list.retain(|name| seen.insert(name.clone()));
        project.allowed_providers = Some(list).filter(|list| !list.is_empty());
    }
    if let Some(slug) = changes.home {
        if !slug.is_empty() && !store::has_frontend(tx, id, &slug).map_err(Error::from)? {
            return Err(ProjectError::NoSuchHome(slug));
        }
        project.home = Some(slug).filter(|slug| !slug.is_empty());
    }
    project.updated_at = now;
    store::update(tx, &project)?;
    store::record_audit(tx, id, AuditAction::ProjectUpdate, id, now)?;
    Ok(project)
}
