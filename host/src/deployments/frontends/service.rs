//! Making, finding, republishing and deleting frontends.

use std::sync::Arc;

use super::model::{
    Frontend, FrontendError, FrontendState, MemberSummary, NewContent, NewFrontend, Target,
};
use super::store;
use crate::control::audit::AuditAction;
use crate::control::events::{self, Event};
use crate::control::kept_answers::AnswerKeeper;
use crate::control::{self, Tx};
use crate::deployments::publication::{Address, announce, announce_slug};
use crate::deployments::publish::PageSource;
use crate::deployments::revisions::{self, NewRevision, Released, RevisionKind};
use crate::deployments::room::Room;
use crate::deployments::{self, Deployments};
use crate::projects::{self, Project};
use svc_base::fault;
use svc_base::ids::{DeploymentId, ProjectId};

impl Deployments {
    /// Follows what operators did while no server ran: each event once.
    ///
    /// # Errors
    /// The database's; the events that it did not follow are there still, then.
    pub async fn follow_operators(&self) -> Result<(), control::Error> {
        for (id, event) in self.control.read(events::unhandled).await? {
            if let Some(Event::CommandRun(record)) = &event {
                events::log_command(record);
            }
            let (config, now) = (Arc::clone(&self.config), self.clock.now());
            let followed: Result<(), control::Error> = self
                .control
                .write(move |tx| {
                    if let Some(Event::SlugChanged(slug)) = event {
                        announce_slug(tx, &config, &slug, now)?;
                    }
                    events::delete(tx, id)
                })
                .await;
            followed?;
        }
        Ok(())
    }

    /// Publishes a frontend. Durable when it returns.
    ///
    /// # Errors
    /// [`FrontendError`]; nothing is left of the attempt then.
    pub async fn create_frontend(
        &self,
        project: Project,
        new: NewFrontend,
        keep: AnswerKeeper<Frontend>,
    ) -> Result<Frontend, FrontendError> {
        self.check_room(project.workspace.id, Room::for_frontend)
            .await?;
        let slug = self.reserve_slug(new.requested_slug.as_deref()).await?;
        let now = self.clock.now();
        let id = DeploymentId::new(&self.clock, &self.random)?;
        let title = new.title.unwrap_or_default();
        let frontend = Frontend::begun(id, slug.as_str().to_owned(), new.content_type, title, now);
        self.claim(&project, &frontend).await?;
        // The row holds the slug from here on, so that a deletion of the row frees it.
        drop(slug);
        fault::point("create.claimed");
        let made = self
            .fill(project, frontend, new.requested_slug, new.content, keep)
            .await;
        if made.is_err() {
            self.control
                .write(move |tx| store::remove_unfinished(tx, &id))
                .await?;
        }
        made
    }

    /// Takes the slug for good: from here on the frontend is listed as being created.
    async fn claim(&self, project: &Project, frontend: &Frontend) -> Result<(), FrontendError> {
        let (project, frontend) = (project.clone(), frontend.clone());
        let room = self.room();
        self.control
            .write(move |tx| {
                if !projects::is_live(tx, &project.id, frontend.created_at)? {
                    return Err(FrontendError::NotFound);
                }
                room.for_frontend(tx, &project.workspace.id)?;
                store::insert_frontend(tx, &project.id, project.expires_at, &frontend)?;
                Ok(())
            })
            .await
    }

    /// Renders and stores the page of a claimed frontend, and makes it answer.
    async fn fill(
        &self,
        project: Project,
        mut frontend: Frontend,
        name: Option<String>,
        content: String,
        keep: AnswerKeeper<Frontend>,
    ) -> Result<Frontend, FrontendError> {
        let source = PageSource {
            content_type: frontend.content_type,
            title: &frontend.title,
            name: name.as_deref(),
            text: &content,
        };
        let (stored, page) = self
            .make_live(source, &frontend.slug, project.expires_at)
            .await?;
        frontend.title = page.title;
        frontend.warnings = page.warnings;
        fault::point("create.stored");
        let now = frontend.created_at;
        let address = address_of(&frontend, &project);
        let frontend = self
            .publish(stored, address, now, move |tx, published| {
                if !projects::is_live(tx, &project.id, now)?
                    || !store::activate(tx, &frontend.id, &frontend.title, published)?
                {
                    return Err(FrontendError::NotFound);
                }
                frontend.state = FrontendState::Active;
                frontend.source = Some(published.source);
                projects::record_audit(
                    tx,
                    &project.id,
                    AuditAction::FrontendCreate,
                    &frontend.id,
                    now,
                )?;
                keep.store(tx, &frontend)?;
                Ok(frontend)
            })
            .await?;
        fault::point("create.committed");
        Ok(frontend)
    }

    /// The frontends of a project in short, oldest first, whatever their state.
    pub async fn members(&self, project: ProjectId) -> Result<Vec<MemberSummary>, control::Error> {
        let counters = self.control.counters();
        self.control
            .read(move |c| store::members(c, &counters, &project))
            .await
    }

    /// The frontends of a project, oldest first, whatever their state.
    pub async fn frontends(&self, project: ProjectId) -> Result<Vec<Frontend>, control::Error> {
        let counters = self.control.counters();
        self.control
            .read(move |c| store::frontends(c, &counters, &project))
            .await
    }

    /// An active frontend of a project.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn frontend(
        &self,
        project: ProjectId,
        target: &Target,
    ) -> Result<Frontend, FrontendError> {
        let (target, counters) = (target.clone(), self.control.counters());
        let found = self
            .control
            .read(move |c| store::frontend(c, &counters, &project, &target))
            .await?;
        found
            .filter(|f| f.state == FrontendState::Active)
            .ok_or(FrontendError::NotFound)
    }

    /// The slug of the frontend that a project's origin leads to: its home where that is active, else its oldest.
    pub async fn home(&self, project: Project) -> Result<Option<String>, control::Error> {
        self.control
            .read(move |c| store::home(c, &project.id, project.home.as_deref()))
            .await
    }

    /// Publishes new content at once, whatever is live: a revision that is made and released in one.
    ///
    /// # Errors
    /// [`FrontendError`].
    pub async fn republish(
        &self,
        project: Project,
        target: Target,
        new: NewContent,
    ) -> Result<Frontend, FrontendError> {
        let NewContent {
            content_type,
            content,
            title,
        } = new;
        let frontend = self.frontend(project.id, &target).await?;
        if content_type.is_some_and(|named| named != frontend.content_type) {
            return Err(FrontendError::TypeMismatch(frontend.content_type));
        }
        self.check_room(project.workspace.id, Room::for_content)
            .await?;
        let title = title.unwrap_or_else(|| frontend.title.clone());
        let source = PageSource::titled(frontend.content_type, &title, &content);
        let (stored, page) = self
            .make_live(source, &frontend.slug, project.expires_at)
            .await?;
        let (title, warnings) = (page.title, page.warnings);
        fault::point("republish.stored");
        let (baseline, revision) = (self.new_revision_id()?, self.new_revision_id()?);
        let (id, now) = (frontend.id, self.clock.now());
        let (address, room) = (address_of(&frontend, &project), self.room());
        let mut frontend = self
            .publish(stored, address, now, move |tx, published| {
                let mut frontend = Self::active_in(tx, &project.id, &id)?;
                room.for_content(tx, &project.workspace.id)?;
                Self::ensure_workflow(tx, &mut frontend, baseline, now)?;
                let kind = RevisionKind::Publish;
                let made = NewRevision {
                    id: revision,
                    title: &title,
                    source: published.source,
                    preview: None,
                    // Of the page as well: the first look at the revision's preview makes one of its own.
                    bytes: published.bytes,
                    message: None,
                    kind,
                };
                revisions::insert(tx, &id, &made, now)?;
                let released = Released {
                    revision,
                    kind,
                    message: None,
                    title: &title,
                    published,
                };
                revisions::release(tx, &frontend, &released, now)?;
                projects::record_audit(tx, &project.id, AuditAction::FrontendPublish, &id, now)?;
                Self::active_in(tx, &project.id, &id)
            })
            .await?;
        frontend.warnings = warnings;
        fault::point("republish.committed");
        Ok(frontend)
    }

    /// An active frontend of a project, inside a transaction.
    pub(in crate::deployments) fn active_in(
        tx: &Tx<'_>,
        project: &ProjectId,
        id: &DeploymentId,
    ) -> Result<Frontend, FrontendError> {
        let found = store::frontend(tx, tx.counters(), project, &Target::Id(*id));
        found
            .map_err(control::Error::from)?
            .filter(|f| f.state == FrontendState::Active)
            .ok_or(FrontendError::NotFound)
    }

    /// Removes a frontend with its history; returns whether it was there. Its slug is free when this answers.
    pub async fn delete_frontend(
        &self,
        project: Project,
        target: Target,
    ) -> Result<bool, FrontendError> {
        let (config, now) = (Arc::clone(&self.config), self.clock.now());
        let removed = self
            .control
            .write(move |tx| {
                let found = store::frontend(tx, tx.counters(), &project.id, &target);
                let Some(frontend) = found.map_err(control::Error::from)? else {
                    return Ok(false);
                };
                // One that is being created goes too: its creator will not find it any more.
                deployments::store::remove(tx, &frontend.id, now)?;
                announce(tx, &config, &address_of(&frontend, &project), now)?;
                projects::record_audit(
                    tx,
                    &project.id,
                    AuditAction::FrontendDelete,
                    &frontend.id,
                    now,
                )?;
                Ok::<_, FrontendError>(true)
            })
            .await?;
        fault::point("delete.committed");
        Ok(removed)
    }
}

/// Where a frontend of a project answers.
pub(in crate::deployments) fn address_of(frontend: &Frontend, project: &Project) -> Address {
    Address {
        slug: frontend.slug.clone(),
        host_label: Some(project.host_label.clone()),
    }
}
