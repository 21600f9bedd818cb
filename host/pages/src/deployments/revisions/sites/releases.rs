//! Sites of a project's release: prepared like any other revision, while nothing answers them.

use std::collections::{BTreeSet, HashSet};

use super::model::{ReleasedSite, SiteSource, title_of, with_options};
use crate::content::Digest;
use crate::deployments::files::{FileError, NewSite, SiteTarget, SiteTitle, UnstoredSite};
use crate::deployments::frontends::{Frontend, FrontendError};
use crate::deployments::revisions::line_changes::LineChanges;
use crate::deployments::revisions::model::RevisionError;
use crate::deployments::revisions::release_pages::{
    PageToRelease, PreparedPage, ReleasedContent, RenderedParts,
};
use crate::deployments::revisions::service::Revisions;
use crate::deployments::sites::{SiteManifest, SiteOptions};
use crate::projects::Project;

/// Returns the first page of a release that names a file which an error says is missing.
pub fn first_page_missing(pages: &[PageToRelease], error: &RevisionError) -> Option<usize> {
    let RevisionError::Frontend(FrontendError::Files(FileError::Missing(missing))) = error else {
        return None;
    };
    let missing: HashSet<&Digest> = missing.iter().collect();
    pages.iter().position(|page| match &page.content {
        ReleasedContent::Site(site) => site.source.named().any(|named| missing.contains(&named)),
        ReleasedContent::Text(_) => false,
    })
}

/// Site of a release that was only tried.
#[derive(Clone, Copy, Debug)]
pub(in crate::deployments::revisions) struct TriedSite {
    /// Whether it is other than what is live.
    pub(in crate::deployments::revisions) is_other: bool,
    /// Files by which it differs.
    pub(in crate::deployments::revisions) files: LineChanges,
}

impl Revisions {
    /// Returns the site of a release for a slug, and its title; `live` is what is there.
    async fn released_site(
        &self,
        (slug, live): (&str, Option<&Frontend>),
        (site, title): (ReleasedSite, Option<String>),
    ) -> Result<(NewSite, SiteTitle), RevisionError> {
        let base = match live {
            Some(live) => {
                let active = live.active_revision.ok_or(RevisionError::NoRevision)?;
                Some(self.base_site(live, active).await?)
            }
            None => None,
        };
        let mut deleted = BTreeSet::new();
        let files = match (site.source, &base) {
            (SiteSource::Files(files), _) => files,
            (SiteSource::Changes(changes), Some(base)) => {
                deleted.extend(changes.delete.iter().cloned());
                self.change_files(&base.manifest, changes).await?
            }
            (SiteSource::Changes(_), None) => {
                return Err(RevisionError::Content(
                    "There is no site yet whose files could be changed: send all `files`. Nothing was changed.",
                ));
            }
        };
        let mut new = match &base {
            Some(base) => with_options(files, site.options, &base.manifest.options),
            None => with_options(files, site.options, &SiteOptions::default()),
        };
        new.deleted = deleted;
        let title = match (title, &base) {
            (title, Some(base)) => title_of(title, &new, base),
            (Some(title), None) => SiteTitle::Given(title),
            (None, None) => SiteTitle::OfStartPage(slug.to_owned()),
        };
        Ok((new, title))
    }

    /// Stores the site of a release, unless it is live already.
    pub(in crate::deployments::revisions) async fn store_released_site(
        &self,
        project: &Project,
        (slug, live): (&str, Option<&Frontend>),
        content: (ReleasedSite, Option<String>),
        mut prepared: PreparedPage,
    ) -> Result<PreparedPage, RevisionError> {
        let (new, title) = self.released_site((slug, live), content).await?;
        let target = target_of(slug, live);
        let site = self.files.prepare(project, target, new, title).await?;
        let source = site.publication.published().source;
        let same = live.filter(|live| is_live_already(live, source, &site.title));
        if let Some(revision) = same.and_then(|live| live.active_revision) {
            self.files.give_up(&site.files()).await?;
            prepared.revision = revision;
            return Ok(prepared);
        }
        prepared.files = Some(site.files());
        prepared.deletes_files = site.deletes_files;
        prepared.rendered = RenderedParts {
            title: site.title,
            warnings: site.warnings,
        };
        prepared.stored = Some(site.publication);
        Ok(prepared)
    }

    /// Marks the files that were stored for pages of a release which has failed: no row names them.
    ///
    /// # Errors
    /// The database's.
    pub async fn give_up_pages(&self, pages: &[PreparedPage]) -> Result<(), RevisionError> {
        for files in pages.iter().filter_map(|page| page.files.as_ref()) {
            self.files.give_up(files).await?;
        }
        Ok(())
    }

    /// Refuses a release with sites whose files the project does not have: all of them at once.
    ///
    /// # Errors
    /// `Missing`.
    pub async fn check_release_files(
        &self,
        project: &Project,
        pages: &[PageToRelease],
    ) -> Result<(), RevisionError> {
        let sites = pages.iter().filter_map(|page| match &page.content {
            ReleasedContent::Site(site) => Some(&site.source),
            ReleasedContent::Text(_) => None,
        });
        let named = sites.flat_map(SiteSource::named).collect();
        Ok(self.files.check_named(project, named).await?)
    }

    /// Tries the site of a release: it is looked at like it, and compared with what is live. Nothing of it is stored.
    pub(in crate::deployments::revisions) async fn try_released_site(
        &self,
        project: &Project,
        (slug, live): (&str, Option<&Frontend>),
        content: (ReleasedSite, Option<String>),
    ) -> Result<TriedSite, RevisionError> {
        let (new, title) = self.released_site((slug, live), content).await?;
        let target = target_of(slug, live);
        let tried = self.files.try_site(project, target, new, title).await?;
        self.compare_site(live, &tried).await
    }

    async fn compare_site(
        &self,
        live: Option<&Frontend>,
        tried: &UnstoredSite,
    ) -> Result<TriedSite, RevisionError> {
        let old = match live.and_then(|live| live.active_revision.map(|active| (live, active))) {
            Some((live, active)) => self.base_site(live, active).await?.manifest,
            None => SiteManifest::default(),
        };
        Ok(TriedSite {
            is_other: live.is_none_or(|live| !is_live_already(live, tried.source, &tried.title)),
            files: LineChanges::between_sites(&old, &tried.manifest),
        })
    }
}

/// Whether a site of this canonical form and title is what is live.
fn is_live_already(live: &Frontend, source: Digest, title: &str) -> bool {
    live.source == Some(source) && live.title == title
}

/// Names where the site of a release is to answer.
fn target_of<'t>(slug: &'t str, live: Option<&Frontend>) -> SiteTarget<'t> {
    SiteTarget {
        slug: Some(slug),
        deployment: live.map(|live| live.id),
    }
}
