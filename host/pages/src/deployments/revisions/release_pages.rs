//! Pages of a project's release: each is rendered and stored while nothing answers it, and one transaction of the caller's makes them
//! all live.

use std::collections::HashMap;
use std::sync::Arc;

use super::line_changes::LineChanges;
use super::model::RevisionError;
use super::service::{NewLiveRevision, Revisions, page_type, publish_in};
use super::sites::ReleasedSite;
use crate::config::Config;
use crate::content::Digest;
use crate::control::audit::AuditAction;
use crate::control::{self, Tx};
use crate::deployments::address::{announce_change, announce_home};
use crate::deployments::files::PublishedFiles;
use crate::deployments::frontends::{
    Frontend, FrontendError, FrontendSelector, activate_in, active_in, address_of, claim_in,
    find_active_in, rebind_backend, remove_in,
};
use crate::deployments::model::DeploymentType;
use crate::deployments::open_tabs::OpenTabs;
use crate::deployments::publication::{
    CapUsageChecker, FrontendsToCount, PagePlacement, PageSource, PublishError, ReservedSlug,
    StoredPublication,
};
use crate::deployments::requests::slug_fault;
use crate::deployments::store;
use crate::deployments::views::Warning;
use crate::http::byte_budget::BytePermit;
use crate::projects::{self, Project};
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, RevisionId};

/// Content that a release gives to the page at a slug.
#[derive(Debug)]
pub struct PageToRelease {
    /// Slug at which the page answers, or will answer.
    pub slug: String,
    /// Type: a new page needs one, and a page that is there keeps its own.
    pub content_type: Option<DeploymentType>,
    /// The content.
    pub content: ReleasedContent,
    /// The page's title; as it is, or its content's, if there is none.
    pub title: Option<String>,
}

/// Content of a page of a release.
#[derive(Debug)]
pub enum ReleasedContent {
    /// The source of a page.
    Text(String),
    /// The files of a site.
    Site(ReleasedSite),
}

/// Effect that a release would have on a page.
#[derive(Clone, Copy, Debug)]
pub struct TriedPageChange {
    /// Whether another revision would be live.
    pub is_other: bool,
    /// Lines by which its source would differ; of a site, files.
    pub lines: LineChanges,
}

/// Revision that a caller believes is live at a slug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedRevision {
    /// No page is there yet.
    NoPage,
    /// This revision is live.
    Live(RevisionId),
    /// Text that is not the id of a revision, so that no page has it.
    NotAnId(String),
}

/// Slug with the revision that a caller believes is live there.
#[derive(Clone, Debug)]
pub struct ExpectedPage {
    /// Slug at which the page answers.
    pub slug: String,
    /// Revision that is believed to be live.
    pub expected: ExpectedRevision,
}

/// Page at which something else is live than the caller believes.
#[derive(Clone, Debug)]
pub struct PageConflict {
    /// Belief of the caller.
    pub page: ExpectedPage,
    /// Live revision; none where no page is.
    pub found: Option<RevisionId>,
}

/// Active frontends of a project, by slug. Each has a history.
pub type LivePages = HashMap<String, Frontend>;

/// Page of a release, rendered and stored. While this lives the collector keeps its content, and nobody else takes a new page's slug.
#[derive(Debug)]
pub struct PreparedPage {
    frontend: Frontend,
    /// Title and warnings are those of the page that was rendered.
    pub(super) rendered: RenderedParts,
    /// The stored page; none where the live revision has this content and title already.
    pub(super) stored: Option<StoredPublication>,
    /// Files of a site that is stored.
    pub(super) files: Option<Arc<PublishedFiles>>,
    /// Whether files of the site are deleted by name.
    pub(super) deletes_files: bool,
    /// Revision that will be live.
    pub(super) revision: RevisionId,
    /// Slug of a new page.
    reserved: Option<ReservedSlug>,
}

/// Title and warnings of a rendered page.
#[derive(Debug, Default)]
pub(super) struct RenderedParts {
    pub(super) title: String,
    pub(super) warnings: Vec<Warning>,
}

/// Page that a release has made live, or found to be live already.
#[derive(Clone, Debug)]
pub struct ReleasedPage {
    /// Slug at which it answers.
    pub slug: String,
    /// Identifier of the frontend.
    pub deployment: DeploymentId,
    /// Live revision.
    pub revision: RevisionId,
    /// Whether it is a site that the project's origin leads to.
    pub at_root: bool,
    /// Warnings for the author.
    pub warnings: Vec<Warning>,
}

/// Reason why a page cannot be released.
#[derive(Debug, thiserror::Error)]
pub enum PageReleaseError {
    /// Another deployment has the slug, or the service keeps it for itself.
    #[error("the slug `{0}` is taken")]
    SlugTaken(String),
    /// The page is not there yet, and the release names no type.
    #[error("there is no page at `{0}` yet")]
    TypeRequired(String),
    /// The slug cannot be that of a new page.
    #[error("{0}")]
    Slug(&'static str),
    /// The revision's.
    #[error(transparent)]
    Revision(#[from] RevisionError),
}

impl PageReleaseError {
    /// Whether there was no room for the page.
    pub fn is_capacity(&self) -> bool {
        matches!(
            self,
            Self::Revision(RevisionError::Frontend(FrontendError::Publish(
                PublishError::Capacity(_)
            )))
        )
    }
}

impl From<PublishError> for PageReleaseError {
    fn from(error: PublishError) -> Self {
        Self::Revision(error.into())
    }
}

impl From<FrontendError> for PageReleaseError {
    fn from(error: FrontendError) -> Self {
        Self::Revision(error.into())
    }
}

impl From<control::Error> for PageReleaseError {
    fn from(error: control::Error) -> Self {
        Self::Revision(error.into())
    }
}

impl ExpectedPage {
    /// Whether a caller's belief is true of what is at the slug. A page whose history has not begun has no revision that could be named.
    fn is_met_by(&self, live: Option<&Frontend>) -> bool {
        match (&self.expected, live) {
            (ExpectedRevision::NoPage, None) => true,
            (ExpectedRevision::Live(expected), Some(live)) => {
                live.active_revision == Some(*expected)
            }
            _ => false,
        }
    }

    fn conflict_with(&self, live: Option<&Frontend>) -> Option<PageConflict> {
        (!self.is_met_by(live)).then(|| PageConflict {
            page: self.clone(),
            found: live.and_then(|live| live.active_revision),
        })
    }
}

/// Lists the pages at which something else is live than the caller believes.
pub fn page_conflicts(expected: &[ExpectedPage], live: &LivePages) -> Vec<PageConflict> {
    let conflicts = expected
        .iter()
        .map(|page| page.conflict_with(live.get(&page.slug)));
    conflicts.flatten().collect()
}

impl Revisions {
    /// Finds the active frontends at slugs of a project. The history of one that has none begins, as when its revisions are listed:
    /// without it the page has no revision by which it could be told from no page at all.
    ///
    /// # Errors
    /// The database's.
    pub async fn live_pages(
        &self,
        project: &Project,
        slugs: Vec<String>,
    ) -> Result<LivePages, RevisionError> {
        let mut pages = LivePages::new();
        for mut frontend in self.frontends.find_active_at(project.id, slugs).await? {
            if frontend.active_revision.is_none() {
                let target = FrontendSelector::Id(frontend.id);
                match self.frontend_with_history(project, &target).await {
                    Ok((found, active)) => {
                        frontend = found;
                        frontend.active_revision = Some(active);
                    }
                    // It was removed meanwhile.
                    Err(RevisionError::Frontend(FrontendError::NotFound)) => continue,
                    Err(error) => return Err(error),
                }
            }
            pages.insert(frontend.slug.clone(), frontend);
        }
        Ok(pages)
    }

    /// Refuses a release for whose pages there is no room: so many are new, so many end, and some are published if `publishes`.
    ///
    /// # Errors
    /// `Capacity`, `Cap`.
    pub async fn check_release_capacity(
        &self,
        project: &Project,
        (new, ending): (usize, usize),
        publishes: bool,
    ) -> Result<(), PublishError> {
        let count = |number| u64::try_from(number).unwrap_or(u64::MAX);
        let workspace = project.workspace.id;
        if new > 0 {
            let (new, ending) = (count(new), count(ending));
            let counted = FrontendsToCount { new, ending };
            return self.capacity.check_frontends(workspace, counted).await;
        }
        if publishes {
            return self.capacity.check_content(workspace).await;
        }
        self.capacity.check_disk()
    }

    /// Counts the bytes of a release's body against `page_work_bytes` until the permit is dropped.
    ///
    /// # Errors
    /// `Capacity` if there is no room for them in time.
    pub async fn reserve(&self, bytes: usize) -> Result<BytePermit, PublishError> {
        self.pipeline.reserve(bytes).await
    }

    /// Renders and stores the page of a release; nothing answers it yet. `live` is what is at its slug.
    ///
    /// # Errors
    /// [`PageReleaseError`]; nothing refers to what was stored by then, and the collector removes it.
    pub async fn prepare_page(
        &self,
        project: &Project,
        page: &PageToRelease,
        live: Option<&Frontend>,
    ) -> Result<PreparedPage, PageReleaseError> {
        let frontend = self.release_target(page, live)?;
        let mut prepared = PreparedPage {
            frontend,
            rendered: RenderedParts::default(),
            stored: None,
            files: None,
            deletes_files: false,
            revision: self.new_revision_id()?,
            reserved: match live {
                Some(_) => None,
                None => Some(self.reserve_for_release(&page.slug).await?),
            },
        };
        let text = match &page.content {
            ReleasedContent::Text(text) => text,
            ReleasedContent::Site(site) => {
                let content = (site.clone(), page.title.clone());
                let place = (page.slug.as_str(), live);
                let stored = self.store_released_site(project, place, content, prepared);
                return Ok(stored.await?);
            }
        };
        let named = (page.slug.as_str(), page.title.as_deref());
        if let Some(revision) = unchanged_revision(text, page.title.as_ref(), live) {
            prepared.revision = revision;
            return Ok(prepared);
        }
        let (stored, rendered) = self
            .pipeline
            .render_and_store_live(
                source_of(text, named, &prepared.frontend, live)?,
                &page.slug,
                project.expires_at,
            )
            .await?;
        prepared.rendered = RenderedParts {
            title: rendered.title,
            warnings: rendered.warnings,
        };
        prepared.stored = Some(stored);
        Ok(prepared)
    }

    /// Tries the page of a release: it is rendered or prepared like it, and nothing of it is kept.
    ///
    /// # Errors
    /// [`PageReleaseError`], as for the release.
    pub async fn try_page(
        &self,
        project: &Project,
        page: &PageToRelease,
        live: Option<&Frontend>,
    ) -> Result<TriedPageChange, PageReleaseError> {
        let frontend = self.release_target(page, live)?;
        // Nobody else is kept from the slug while this is only a trial.
        if live.is_none() && !self.frontends.is_slug_free(&page.slug).await? {
            return Err(PageReleaseError::SlugTaken(page.slug.clone()));
        }
        let text = match &page.content {
            ReleasedContent::Text(text) => text,
            ReleasedContent::Site(site) => {
                let content = (site.clone(), page.title.clone());
                let place = (page.slug.as_str(), live);
                let tried = self.try_released_site(project, place, content).await?;
                return Ok(TriedPageChange {
                    is_other: tried.is_other,
                    lines: tried.files,
                });
            }
        };
        let is_other = unchanged_revision(text, page.title.as_ref(), live).is_none();
        if is_other {
            let named = (page.slug.as_str(), page.title.as_deref());
            let placement = PagePlacement::public(&page.slug, project.expires_at);
            self.pipeline
                .render_live(source_of(text, named, &frontend, live)?, placement)
                .await?;
        }
        Ok(TriedPageChange {
            is_other,
            lines: self.line_changes(live, Some(text)).await?,
        })
    }

    /// Returns the frontend that a page of a release is for.
    fn release_target(
        &self,
        page: &PageToRelease,
        live: Option<&Frontend>,
    ) -> Result<Frontend, PageReleaseError> {
        if let Some(live) = live {
            let own = live.content_type;
            if page.content_type.is_some_and(|named| named != own) {
                return Err(RevisionError::TypeMismatch(own).into());
            }
            check_kind(&page.content, own)?;
            return Ok(live.clone());
        }
        let slug = &page.slug;
        let content_type = page
            .content_type
            .ok_or_else(|| PageReleaseError::TypeRequired(slug.clone()))?;
        if let Some(fault) = slug_fault(slug) {
            return Err(PageReleaseError::Slug(fault));
        }
        check_kind(&page.content, content_type)?;
        let id =
            DeploymentId::new(&self.infra.clock, &self.infra.random).map_err(PublishError::from)?;
        let title = page.title.clone().unwrap_or_default();
        Ok(Frontend::new_creating(
            id,
            slug.clone(),
            content_type,
            title,
            self.now(),
        ))
    }

    async fn reserve_for_release(&self, slug: &str) -> Result<ReservedSlug, PageReleaseError> {
        let reserved = self.frontends.reserve_slug(slug).await?;
        reserved.ok_or_else(|| PageReleaseError::SlugTaken(slug.to_owned()))
    }

    /// Makes what changes the pages of a release in its transaction.
    pub fn page_release(&self, project: &Project, message: Option<String>) -> PageRelease {
        PageRelease {
            config: Arc::clone(self.config()),
            caps: self.capacity.cap_check(),
            project: project.clone(),
            message,
            now: self.now(),
        }
    }
}

/// Refuses a text for a site, and files for a page.
fn check_kind(content: &ReleasedContent, own: DeploymentType) -> Result<(), RevisionError> {
    match (content, own) {
        (ReleasedContent::Text(_), DeploymentType::Site) => Err(RevisionError::Content(
            "A site is sent as `files`, or as `changes` of them, in place of `content`. Nothing was changed.",
        )),
        (ReleasedContent::Site(_), DeploymentType::Page(_)) => Err(RevisionError::Content(
            "A page of one source is sent as `content`: only one of the type `site` has files. Nothing was changed.",
        )),
        _ => Ok(()),
    }
}

/// Returns the live revision if it has the content and the title of a release's page already.
fn unchanged_revision(
    text: &str,
    title: Option<&String>,
    live: Option<&Frontend>,
) -> Option<RevisionId> {
    let live = live?;
    let has_title = title.is_none_or(|title| *title == live.title);
    let has_content = live.source == Some(Digest::of(text.as_bytes()));
    live.active_revision.filter(|_| has_title && has_content)
}

/// Returns the source of a release's page, as it is rendered.
fn source_of<'a>(
    text: &'a str,
    (slug, title): (&'a str, Option<&'a str>),
    frontend: &'a Frontend,
    live: Option<&'a Frontend>,
) -> Result<PageSource<'a>, RevisionError> {
    let title = title.unwrap_or(&frontend.title);
    Ok(PageSource {
        name: live.is_none().then_some(slug),
        ..PageSource::titled(page_type(frontend)?, title, text)
    })
}

/// Changes of pages in the transaction of a release.
#[derive(Clone, Debug)]
pub struct PageRelease {
    config: Arc<Config>,
    caps: CapUsageChecker,
    project: Project,
    message: Option<String>,
    now: Timestamp,
}

impl PageRelease {
    /// Returns the time of the release.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Lists the pages at which something else is live than the caller believes.
    pub fn conflicts(
        &self,
        tx: &Tx<'_>,
        expected: &[ExpectedPage],
    ) -> Result<Vec<PageConflict>, control::Error> {
        let mut conflicts = Vec::new();
        for page in expected {
            let live = find_active_in(tx, &self.project.id, &page.slug)?;
            conflicts.extend(page.conflict_with(live.as_ref()));
        }
        Ok(conflicts)
    }

    /// Notes of each page whether it is a site that the project's origin leads to, now that all is as it shall be.
    pub fn find_root(&self, tx: &Tx<'_>, pages: &mut [ReleasedPage]) -> Result<(), control::Error> {
        for page in pages {
            let live = find_active_in(tx, &self.project.id, &page.slug)?;
            page.at_root = live.is_some_and(|live| live.at_root);
        }
        Ok(())
    }

    /// Notes that the project's home is another one.
    pub fn announce_home(&self, tx: &Tx<'_>) -> Result<(), control::Error> {
        announce_home(tx, &self.config, &self.project.host_label, self.now)
    }

    /// Removes the page at a slug; returns whether there was one.
    pub fn remove(&self, tx: &Tx<'_>, slug: &str) -> Result<bool, control::Error> {
        let Some(frontend) = find_active_in(tx, &self.project.id, slug)? else {
            return Ok(false);
        };
        remove_in(tx, &self.config, &self.project, &frontend, self.now)?;
        Ok(true)
    }

    /// Makes a prepared page live, with its revision. The caller has compared what is live with what the page was prepared for.
    ///
    /// # Errors
    /// [`PageReleaseError`].
    pub fn publish(
        &self,
        tx: &Tx<'_>,
        page: &PreparedPage,
    ) -> Result<ReleasedPage, PageReleaseError> {
        match &page.stored {
            Some(stored) => self.publish_stored(tx, page, stored)?,
            // The release may have made the backend anew.
            None => rebind_backend(tx, &self.project.id, &page.frontend)?,
        }
        Ok(ReleasedPage {
            slug: page.frontend.slug.clone(),
            deployment: page.frontend.id,
            revision: page.revision,
            at_root: false,
            warnings: page.rendered.warnings.clone(),
        })
    }

    fn publish_stored(
        &self,
        tx: &Tx<'_>,
        page: &PreparedPage,
        stored: &StoredPublication,
    ) -> Result<(), PageReleaseError> {
        let (project, now, published) = (&self.project, self.now, stored.published());
        let frontend = match &page.reserved {
            Some(_) => {
                let mut frontend = page.frontend.clone();
                frontend.title.clone_from(&page.rendered.title);
                frontend.created_at = now;
                if store::is_taken(tx, &frontend.slug).map_err(control::Error::from)? {
                    return Err(PageReleaseError::SlugTaken(frontend.slug));
                }
                claim_in(tx, project, &frontend, &self.caps)?;
                activate_in(tx, project, &mut frontend, &published)?;
                frontend
            }
            None => {
                let frontend = active_in(tx, &project.id, &page.frontend.id)?;
                self.caps.check_content(tx, &project.workspace.id)?;
                let act = AuditAction::FrontendPublish;
                projects::record_audit(tx, &project.id, act, &frontend.id, now)?;
                frontend
            }
        };
        if let Some(files) = &page.files {
            files
                .adopt_live(tx, &frontend.id, now)
                .map_err(RevisionError::from)?;
        }
        let made = NewLiveRevision {
            id: page.revision,
            title: &page.rendered.title,
            message: self.message.as_deref(),
            published: &published,
            tabs: OpenTabs::of_release(&self.config.limits, now, false),
            warnings: match page.files {
                Some(_) => page.rendered.warnings.as_slice(),
                None => &[],
            },
        };
        publish_in(tx, &frontend, &made, now)?;
        if page.deletes_files {
            super::store::set_deletions(tx, &page.revision, &published.artifact, now)?;
        }
        let address = address_of(&frontend, project);
        Ok(announce_change(tx, &self.config, &address, now)?)
    }
}
