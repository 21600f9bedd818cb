//! Making, finding, republishing and deleting frontends.

use std::sync::Arc;

use bytes::Bytes;

use super::model::{
    Frontend, FrontendError, FrontendState, MemberSummary, NewContent, NewFrontend, Target,
};
use super::store;
use crate::clock::Timestamp;
use crate::config::Config;
use crate::control::answers::{self, AnswerKey};
use crate::control::events::{self, OperatorEvent};
use crate::control::{self, Tx};
use crate::deployments::publish::{Address, PageSource};
use crate::deployments::revisions::{self, NewRevision, Released, RevisionKind};
use crate::deployments::{self, Deployments};
use crate::edge;
use crate::fault;
use crate::ids::{DeploymentId, ProjectId};
use crate::projects::{self, Project};

/// The URL prefixes of a frontend that the edge may hold.
fn prefixes(config: &Config, host_label: &str, slug: &str) -> Vec<String> {
    let mut prefixes = vec![format!("{}/{slug}", edge::host_of(&config.sites_url))];
    if let Some(domain) = &config.sites_domain {
        prefixes.push(format!("{host_label}.{domain}/{slug}"));
    }
    prefixes
}

impl Deployments {
    /// Queues what the edge holds of a frontend for purging, in the transaction that changes it.
    pub(in crate::deployments) fn purge(
        tx: &Tx<'_>,
        config: &Config,
        host_label: &str,
        slug: &str,
        now: Timestamp,
    ) -> Result<(), control::Error> {
        if config.edge.is_none() {
            return Ok(());
        }
        prefixes(config, host_label, slug)
            .iter()
            .try_for_each(|p| edge::enqueue(tx, p, now))
    }

    /// Acts on an operator's event, once: what the edge holds of the slug is queued for purging, and the event is
    /// gone. Quick shares never purge.
    ///
    /// # Errors
    /// The database's; the event is there still, then.
    pub async fn handle_event(&self, event: OperatorEvent) -> Result<(), control::Error> {
        let (config, now) = (Arc::clone(&self.config), self.clock.now());
        self.control
            .write(move |tx| {
                if event.kind == events::SLUG_CHANGED {
                    let slug = &event.subject;
                    let found = deployments::store::by_slug(tx, slug)?;
                    if let Some(label) = found.and_then(|d| d.host_label) {
                        Self::purge(tx, &config, &label, slug, now)?;
                    }
                }
                events::handled(tx, &event)
            })
            .await
    }

    /// Publishes a frontend; `answer` keeps what `body` makes of it for an idempotency key. Durable when it answers.
    ///
    /// # Errors
    /// [`FrontendError`]; nothing is left of the attempt then.
    pub async fn create_frontend(
        &self,
        project: Project,
        new: NewFrontend,
        answer: Option<AnswerKey>,
        body: fn(&Frontend, &Project, &Config) -> String,
    ) -> Result<Frontend, FrontendError> {
        self.check_room().await?;
        let slug = self.reserve_slug(new.requested_slug.as_deref()).await?;
        let now = self.clock.now();
        let frontend = Frontend {
            id: DeploymentId::new(&self.clock, &self.random)?,
            slug: slug.as_str().to_owned(),
            content_type: new.content_type,
            title: new.title.unwrap_or_default(),
            warnings: Vec::new(),
            state: FrontendState::Creating,
            source: None,
            visits: 0,
            created_at: now,
            updated_at: now,
            active_revision: None,
            revision_count: 0,
        };
        self.claim(&project, &frontend).await?;
        // The row holds the slug from here on, so that a deletion of the row frees it.
        drop(slug);
        fault::point("create.claimed");
        let id = frontend.id;
        let made = self
            .fill(
                project,
                frontend,
                new.requested_slug,
                new.content,
                answer,
                body,
            )
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
        let most = self.config.limits.active_deployments;
        self.control
            .write(move |tx| {
                if !projects::is_live(tx, &project.id, frontend.created_at)? {
                    return Err(FrontendError::NotFound);
                }
                Self::check_room_in(tx, frontend.created_at, most)?;
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
        answer: Option<AnswerKey>,
        body: fn(&Frontend, &Project, &Config) -> String,
    ) -> Result<Frontend, FrontendError> {
        let page = self
            .render_live(
                PageSource {
                    content_type: frontend.content_type,
                    title: &frontend.title,
                    name: name.as_deref(),
                    text: &content,
                },
                Address::open(&frontend.slug, project.expires_at),
            )
            .await?;
        frontend.title = page.title;
        frontend.warnings = page.warnings;
        let (source, artifact) = self.store_page(Bytes::from(content), page.html).await?;
        fault::point("create.stored");
        frontend.state = FrontendState::Active;
        frontend.source = Some(source.digest());
        let (config, slug) = (Arc::clone(&self.config), frontend.slug.clone());
        let now = frontend.created_at;
        let artifact_digest = artifact.digest();
        let frontend = self
            .control
            .write(move |tx| {
                let live = projects::is_live(tx, &project.id, now)?
                    && store::activate(
                        tx,
                        &frontend.id,
                        &frontend.title,
                        frontend.source.as_ref(),
                        &artifact_digest,
                        &page.by,
                    )?;
                if !live {
                    return Err(FrontendError::NotFound);
                }
                Self::purge(tx, &config, &project.host_label, &frontend.slug, now)?;
                if let Some(key) = answer {
                    answers::keep(tx, &key, 201, &body(&frontend, &project, &config), now)?;
                }
                Ok(frontend)
            })
            .await?;
        fault::point("create.committed");
        self.pages.forget(&slug);
        Ok(frontend)
    }

    /// The frontends of a project in short, oldest first, whatever their state.
    ///
    /// # Errors
    /// The database's.
    pub async fn members(&self, project: ProjectId) -> Result<Vec<MemberSummary>, control::Error> {
        self.control
            .read(move |c| store::members(c, &project))
            .await
    }

    /// The frontends of a project, oldest first, whatever their state.
    ///
    /// # Errors
    /// The database's.
    pub async fn frontends(&self, project: ProjectId) -> Result<Vec<Frontend>, control::Error> {
        self.control
            .read(move |c| store::frontends(c, &project))
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
        let target = target.clone();
        let found = self
            .control
            .read(move |c| store::frontend(c, &project, &target))
            .await?;
        found
            .filter(|f| f.state == FrontendState::Active)
            .ok_or(FrontendError::NotFound)
    }

    /// The slug of a project's only active frontend.
    ///
    /// # Errors
    /// The database's.
    pub async fn only_frontend(
        &self,
        project: ProjectId,
    ) -> Result<Option<String>, control::Error> {
        let members = self.members(project).await?;
        let mut active = members
            .into_iter()
            .filter(|m| m.state == FrontendState::Active);
        Ok(match (active.next(), active.next()) {
            (Some(only), None) => Some(only.slug),
            _ => None,
        })
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
        self.check_disk()?;
        let title = title.unwrap_or_else(|| frontend.title.clone());
        let page = self
            .render_live(
                PageSource::titled(frontend.content_type, &title, &content),
                Address::open(&frontend.slug, project.expires_at),
            )
            .await?;
        let (title, warnings) = (page.title, page.warnings);
        let (source, artifact) = self.store_page(Bytes::from(content), page.html).await?;
        fault::point("republish.stored");
        let (baseline, revision) = (self.new_revision_id()?, self.new_revision_id()?);
        let (config, now) = (Arc::clone(&self.config), self.clock.now());
        let (source_digest, artifact_digest) = (source.digest(), artifact.digest());
        let (slug, id, label) = (frontend.slug, frontend.id, project.host_label);
        let forget = slug.clone();
        let frontend = self
            .control
            .write(move |tx| {
                let mut frontend = Self::active_in(tx, &project.id, &id)?;
                Self::ensure_workflow(tx, &mut frontend, baseline, now)?;
                let kind = RevisionKind::Publish;
                let made = NewRevision {
                    id: revision,
                    title: &title,
                    source: source_digest,
                    preview: None,
                    message: None,
                    kind,
                };
                revisions::insert(tx, &id, &made, now)?;
                let released = Released {
                    revision,
                    kind,
                    message: None,
                    title: &title,
                    source: source_digest,
                    artifact: artifact_digest,
                    made_by: &page.by,
                };
                revisions::release(tx, &frontend, &released, now)?;
                Self::purge(tx, &config, &label, &slug, now)?;
                Self::active_in(tx, &project.id, &id)
            })
            .await?;
        let frontend = Frontend {
            warnings,
            ..frontend
        };
        fault::point("republish.committed");
        self.pages.forget(&forget);
        Ok(frontend)
    }

    /// An active frontend of a project, inside a transaction.
    pub(in crate::deployments) fn active_in(
        tx: &Tx<'_>,
        project: &ProjectId,
        id: &DeploymentId,
    ) -> Result<Frontend, FrontendError> {
        let found = store::frontend(tx, project, &Target::Id(*id)).map_err(control::Error::from)?;
        found
            .filter(|f| f.state == FrontendState::Active)
            .ok_or(FrontendError::NotFound)
    }

    /// Removes a frontend with its history; answers whether it was there. Its slug is free when this answers.
    ///
    /// # Errors
    /// The database's.
    pub async fn delete_frontend(
        &self,
        project: Project,
        target: Target,
    ) -> Result<bool, FrontendError> {
        let (config, now) = (Arc::clone(&self.config), self.clock.now());
        let slug: Option<String> = self
            .control
            .write(move |tx| {
                let found = store::frontend(tx, &project.id, &target);
                let Some(frontend) = found.map_err(control::Error::from)? else {
                    return Ok(None);
                };
                // One that is being created goes too: its creator will not find it any more.
                deployments::store::remove(tx, &frontend.id, now)?;
                Self::purge(tx, &config, &project.host_label, &frontend.slug, now)?;
                Ok::<_, FrontendError>(Some(frontend.slug))
            })
            .await?;
        fault::point("delete.committed");
        if let Some(slug) = &slug {
            self.pages.forget(slug);
        }
        Ok(slug.is_some())
    }
}
