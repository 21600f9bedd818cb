//! Making, finding and deleting frontends.

use std::sync::Arc;

use super::model::{
    Frontend, FrontendError, FrontendSelector, FrontendState, FrontendSummary, NewFrontend,
    NewSiteFrontend,
};
use super::store;
use crate::config::Config;
use crate::control::audit::AuditAction;
use crate::control::kept_answers::AnswerRecorder;
use crate::control::{self, Tx};
use crate::deployments::address::{PageAddress, announce_change, announce_origin_end};
use crate::deployments::files::{PreparedSite, ProjectFiles, SiteTarget, SiteTitle};
use crate::deployments::model::DeploymentType;
use crate::deployments::publication::{
    CapUsageChecker, CapacityChecker, PageSource, PublicationPipeline, PublishError,
    PublishedDigests, ReservedSlug, SlugReservations,
};
use crate::deployments::store as rows;
use crate::infra::Infra;
use crate::projects::{self, Project};
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::{DeploymentId, ProjectId};
use svc_sandbox::ContentType;

/// Frontends that one transaction removes at most, so that none holds the writer for long.
const FRONTENDS_PER_STEP: u32 = 500;

/// Frontends of all projects.
#[derive(Debug)]
pub struct Frontends {
    infra: Infra,
    pipeline: Arc<PublicationPipeline>,
    files: Arc<ProjectFiles>,
    capacity: CapacityChecker,
    slugs: SlugReservations,
}

impl Frontends {
    /// Makes the service of a server.
    pub fn new(
        infra: Infra,
        pipeline: Arc<PublicationPipeline>,
        files: Arc<ProjectFiles>,
        capacity: CapacityChecker,
        slugs: SlugReservations,
    ) -> Self {
        Self {
            infra,
            pipeline,
            files,
            capacity,
            slugs,
        }
    }

    /// Returns the settings.
    pub(super) fn config(&self) -> &Arc<Config> {
        &self.infra.config
    }

    /// Publishes a frontend. Durable when it returns.
    ///
    /// # Errors
    /// [`FrontendError`]; nothing is left of the attempt then.
    pub async fn create(
        &self,
        project: Project,
        new: NewFrontend,
        keep: AnswerRecorder<Frontend>,
    ) -> Result<Frontend, FrontendError> {
        self.capacity.check_frontend(project.workspace.id).await?;
        let slug = self.slugs.reserve(new.requested_slug.as_deref()).await?;
        let now = self.infra.clock.now();
        let id = DeploymentId::new(&self.infra.clock, &self.infra.random)?;
        let title = new.title.unwrap_or_default();
        let frontend = Frontend::new_creating(
            id,
            slug.as_str().to_owned(),
            new.content_type.into(),
            title,
            now,
        );
        self.take_slug(&project, &frontend).await?;
        // The row holds the slug from here on, so that a deletion of the row frees it.
        drop(slug);
        fault::point("create.claimed");
        let made = self
            .publish_first(
                project,
                frontend,
                (new.content_type, new.requested_slug),
                new.content,
                keep,
            )
            .await;
        if made.is_err() {
            self.infra
                .control
                .write(move |tx| store::remove_unfinished(tx, &id))
                .await?;
        }
        made
    }

    /// Inserts the row that takes the slug: from here on the frontend is listed as being created.
    async fn take_slug(&self, project: &Project, frontend: &Frontend) -> Result<(), FrontendError> {
        let (project, frontend) = (project.clone(), frontend.clone());
        let caps = self.capacity.cap_check();
        self.infra
            .control
            .write(move |tx| claim_in(tx, &project, &frontend, &caps))
            .await
    }

    /// Renders and stores the page of a claimed frontend, and makes it answer.
    async fn publish_first(
        &self,
        project: Project,
        mut frontend: Frontend,
        (content_type, name): (ContentType, Option<String>),
        content: String,
        keep: AnswerRecorder<Frontend>,
    ) -> Result<Frontend, FrontendError> {
        let source = PageSource {
            content_type,
            title: &frontend.title,
            name: name.as_deref(),
            text: &content,
        };
        let (stored, page) = self
            .pipeline
            .render_and_store_live(source, &frontend.slug, project.expires_at)
            .await?;
        frontend.title = page.title;
        frontend.warnings = page.warnings;
        let hidden = self.files.hidden_by_slug(&project, &frontend.slug);
        frontend.warnings.extend(hidden.await?);
        fault::point("create.stored");
        let now = frontend.created_at;
        let address = address_of(&frontend, &project);
        let frontend = self
            .pipeline
            .publish(stored, address, now, move |tx, published| {
                activate_in(tx, &project, &mut frontend, published)?;
                keep.store(tx, &frontend)?;
                Ok::<_, FrontendError>(frontend)
            })
            .await?;
        fault::point("create.committed");
        Ok(frontend)
    }

    /// Publishes a site. Durable when it returns. No slug is taken before its files are there.
    ///
    /// # Errors
    /// [`FrontendError`]; nothing is left of the attempt then.
    pub async fn create_site(
        &self,
        project: Project,
        new: NewSiteFrontend,
        keep: AnswerRecorder<Frontend>,
    ) -> Result<Frontend, FrontendError> {
        self.capacity.check_frontend(project.workspace.id).await?;
        let title = match (new.title, &new.requested_slug) {
            (Some(title), _) => SiteTitle::Given(title),
            (None, slug) => SiteTitle::OfStartPage(slug.clone().unwrap_or_default()),
        };
        let target = SiteTarget {
            slug: new.requested_slug.as_deref(),
            deployment: None,
        };
        let site = self.files.prepare(&project, target, new.site, title);
        let site = site.await?;
        let files = site.files();
        let made = self
            .publish_site(project, site, new.requested_slug, keep)
            .await;
        if made.is_err() {
            self.files.give_up(&files).await?;
        }
        made
    }

    /// Takes a slug for a prepared site, and makes it answer.
    async fn publish_site(
        &self,
        project: Project,
        site: PreparedSite,
        requested_slug: Option<String>,
        keep: AnswerRecorder<Frontend>,
    ) -> Result<Frontend, FrontendError> {
        let slug = self.slugs.reserve(requested_slug.as_deref()).await?;
        let now = self.infra.clock.now();
        let id = DeploymentId::new(&self.infra.clock, &self.infra.random)?;
        let (caps, files) = (self.capacity.cap_check(), site.files());
        let mut frontend = Frontend::new_creating(
            id,
            slug.as_str().to_owned(),
            DeploymentType::Site,
            site.title,
            now,
        );
        frontend.warnings = site.warnings;
        let hidden = self.files.hidden_by_slug(&project, slug.as_str());
        frontend.warnings.extend(hidden.await?);
        fault::point("create.stored");
        let address = address_of(&frontend, &project);
        // One transaction takes the slug and answers at it, because nothing is left to be made.
        let made = self
            .pipeline
            .publish(site.publication, address, now, move |tx, published| {
                claim_in(tx, &project, &frontend, &caps)?;
                files.adopt_live(tx, &frontend.id, now)?;
                activate_in(tx, &project, &mut frontend, published)?;
                keep.store(tx, &frontend)?;
                Ok::<_, FrontendError>(frontend)
            })
            .await?;
        // The row holds the slug.
        drop(slug);
        fault::point("create.committed");
        Ok(made)
    }

    /// Lists the frontends of a project in short, oldest first, whatever their state.
    pub async fn summaries(
        &self,
        project: ProjectId,
    ) -> Result<Vec<FrontendSummary>, control::Error> {
        let counters = self.infra.control.counters();
        self.infra
            .control
            .read(move |c| store::summaries(c, &counters, &project))
            .await
    }

    /// Lists the frontends of a project, oldest first, whatever their state.
    pub async fn list(&self, project: ProjectId) -> Result<Vec<Frontend>, control::Error> {
        let counters = self.infra.control.counters();
        self.infra
            .control
            .read(move |c| store::list(c, &counters, &project))
            .await
    }

    /// Finds an active frontend of a project.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn find_active(
        &self,
        project: ProjectId,
        target: &FrontendSelector,
    ) -> Result<Frontend, FrontendError> {
        let (target, counters) = (target.clone(), self.infra.control.counters());
        let found = self
            .infra
            .control
            .read(move |c| store::find(c, &counters, &project, &target))
            .await?;
        found
            .filter(Frontend::is_active)
            .ok_or(FrontendError::NotFound)
    }

    /// Finds the active frontends at slugs of a project.
    ///
    /// # Errors
    /// The database's.
    pub async fn find_active_at(
        &self,
        project: ProjectId,
        slugs: Vec<String>,
    ) -> Result<Vec<Frontend>, control::Error> {
        let counters = self.infra.control.counters();
        let find = move |c: &_| {
            let mut found = Vec::with_capacity(slugs.len());
            for slug in slugs {
                let slug = FrontendSelector::Slug(slug);
                found.extend(store::find(c, &counters, &project, &slug)?);
            }
            found.retain(Frontend::is_active);
            Ok(found)
        };
        self.infra.control.read(find).await
    }

    /// Reserves exactly this slug for a publication; `None` where it is taken, or the service's own.
    pub(in crate::deployments) async fn reserve_slug(
        &self,
        slug: &str,
    ) -> Result<Option<ReservedSlug>, PublishError> {
        self.slugs.reserve_exactly(slug).await
    }

    /// Whether a publication could have exactly this slug, but for those under way.
    pub(in crate::deployments) async fn is_slug_free(
        &self,
        slug: &str,
    ) -> Result<bool, PublishError> {
        self.slugs.is_free(slug).await
    }

    /// Removes a frontend with its history; returns whether it was there. Its slug is free when this answers.
    pub async fn delete(
        &self,
        project: Project,
        target: FrontendSelector,
    ) -> Result<bool, FrontendError> {
        let (config, now) = (Arc::clone(&self.infra.config), self.infra.clock.now());
        let removed = self
            .infra
            .control
            .write(move |tx| {
                let found = store::find(tx, tx.counters(), &project.id, &target);
                let Some(frontend) = found.map_err(control::Error::from)? else {
                    return Ok(false);
                };
                // A frontend that is being created is removed, too: its creation then ends with `NotFound`.
                remove_in(tx, &config, &project, &frontend, now)?;
                Ok::<_, FrontendError>(true)
            })
            .await?;
        fault::point("delete.committed");
        Ok(removed)
    }

    /// Makes a project and its frontends stop resolving; durable when it answers. `act` is the act that ends it, if that is not its time.
    pub async fn begin_project_end(
        &self,
        project: ProjectId,
        act: Option<AuditAction>,
    ) -> Result<(), control::Error> {
        let (config, now) = (Arc::clone(&self.infra.config), self.infra.clock.now());
        self.infra
            .control
            .write(move |tx| {
                // Of two requests that end it at once, one is noted in the audit.
                if let Some(act) = act
                    && projects::is_live(tx, &project, now)?
                {
                    projects::record_audit(tx, &project, act, &project, now)?;
                }
                let Some(label) = projects::begin_deletion(tx, &config, &project, now)? else {
                    return Ok(());
                };
                announce_origin_end(tx, &config, (&project, &label), now)?;
                for slug in store::mark_deleting(tx, &project)? {
                    let address = PageAddress {
                        slug,
                        host_label: Some(label.clone()),
                    };
                    announce_change(tx, &config, &address, now)?;
                }
                Ok(())
            })
            .await
    }

    /// Removes some frontends of a project whose end has begun; returns whether there were any.
    pub async fn remove_deleting(&self, project: ProjectId) -> Result<bool, control::Error> {
        let members = self
            .infra
            .control
            .read(move |c| store::list_deleting(c, &project, FRONTENDS_PER_STEP))
            .await?;
        let (some, now) = (!members.is_empty(), self.infra.clock.now());
        if some {
            self.infra
                .control
                .write(move |tx| {
                    members
                        .iter()
                        .try_for_each(|id| rows::remove(tx, id, now).map(|_| ()))
                })
                .await?;
        }
        Ok(some)
    }

    /// Ends creations that a crash interrupted. Runs before serving, when none is under way.
    pub async fn remove_unfinished(&self) -> Result<(), control::Error> {
        self.infra.control.write(store::remove_all_unfinished).await
    }
}

/// Returns the address of a frontend.
pub(in crate::deployments) fn address_of(frontend: &Frontend, project: &Project) -> PageAddress {
    PageAddress {
        slug: frontend.slug.clone(),
        host_label: Some(project.host_label.clone()),
    }
}

/// Takes the slug of a frontend by its row, inside a transaction, if the caps have room for it.
pub(in crate::deployments) fn claim_in(
    tx: &Tx<'_>,
    project: &Project,
    frontend: &Frontend,
    caps: &CapUsageChecker,
) -> Result<(), FrontendError> {
    if !projects::is_live(tx, &project.id, frontend.created_at)? {
        return Err(FrontendError::NotFound);
    }
    caps.check_frontend(tx, &project.workspace.id)?;
    Ok(store::insert(
        tx,
        &project.id,
        project.expires_at,
        frontend,
    )?)
}

/// Makes a claimed frontend answer with its first page, inside a transaction that announces the change.
pub(in crate::deployments) fn activate_in(
    tx: &Tx<'_>,
    project: &Project,
    frontend: &mut Frontend,
    published: &PublishedDigests,
) -> Result<(), FrontendError> {
    let now = frontend.created_at;
    let warnings = match published.site {
        Some(_) => frontend.warnings.as_slice(),
        // Those of a page are found whenever it is rendered.
        None => &[],
    };
    if !projects::is_live(tx, &project.id, now)?
        || !store::activate(tx, &frontend.id, &frontend.title, published, warnings)?
    {
        return Err(FrontendError::NotFound);
    }
    frontend.state = FrontendState::Active;
    frontend.source = Some(published.source);
    frontend.site = published.site;
    frontend.at_root = store::answers_at_root(tx, frontend).map_err(control::Error::from)?;
    let act = AuditAction::FrontendCreate;
    Ok(projects::record_audit(
        tx,
        &project.id,
        act,
        &frontend.id,
        now,
    )?)
}

/// Removes a frontend with its history, inside a transaction.
pub(in crate::deployments) fn remove_in(
    tx: &Tx<'_>,
    config: &Config,
    project: &Project,
    frontend: &Frontend,
    now: Timestamp,
) -> Result<(), control::Error> {
    rows::remove(tx, &frontend.id, now)?;
    announce_change(tx, config, &address_of(frontend, project), now)?;
    let act = AuditAction::FrontendDelete;
    projects::record_audit(tx, &project.id, act, &frontend.id, now)
}

/// Finds the active frontend at a slug of a project, inside a transaction.
pub(in crate::deployments) fn find_active_in(
    tx: &Tx<'_>,
    project: &ProjectId,
    slug: &str,
) -> Result<Option<Frontend>, control::Error> {
    let target = FrontendSelector::Slug(slug.to_owned());
    let found = store::find(tx, tx.counters(), project, &target)?;
    Ok(found.filter(Frontend::is_active))
}

/// Finds an active frontend of a project, inside a transaction.
pub(in crate::deployments) fn active_in(
    tx: &Tx<'_>,
    project: &ProjectId,
    id: &DeploymentId,
) -> Result<Frontend, FrontendError> {
    let found = store::find(tx, tx.counters(), project, &FrontendSelector::Id(*id));
    found
        .map_err(control::Error::from)?
        .filter(Frontend::is_active)
        .ok_or(FrontendError::NotFound)
}
