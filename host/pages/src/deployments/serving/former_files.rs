//! Files of revisions that were live a short time ago. They serve tabs that were opened then, which load parts of the page later.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::page_cache::CacheKey;
use super::pages::ServedPage;
use super::{PageLookupError, PageService};
use crate::deployments::open_tabs::FormerRevision;
use crate::deployments::sites::{MediaType, SiteFile, SiteManifest, is_rule_file, is_too_long};
use crate::deployments::{open_tabs, store};
use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;

/// Files of former revisions that are looked at for one site at most; revisions that were live longer ago are left out.
const MAX_FILES_LOOKED_AT: usize = 100_000;
/// Bytes of memory that the files of former revisions of one site take at most; those of the revisions that were live last are kept.
const MAX_FORMER_BYTES: u64 = 2 << 20;

/// Files that the live revision of a site does not have, and that former ones had.
#[derive(Debug)]
pub(super) struct FormerFiles(HashMap<Box<str>, FormerFile>);

/// File of a former revision.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormerFile {
    /// The file.
    pub(super) file: SiteFile,
    /// Whether it was immutable then, so that no other bytes are ever live at its path while that is immutable.
    pub(super) was_immutable: bool,
    /// Until when it is served.
    until: Timestamp,
}

/// Files of former revisions as they are gathered, from the one that was live last on.
#[derive(Debug)]
struct FormerFileGatherer {
    found: HashMap<Box<str>, FormerFile>,
    live: SiteManifest,
    /// Paths that a later revision has deleted by name.
    deleted: BTreeSet<String>,
    looked_at: usize,
    /// Bytes of memory that the files take.
    bytes: u64,
    /// Whether a file was left out for want of room.
    is_full: bool,
}

impl FormerFiles {
    /// Returns about how many bytes this takes in memory.
    pub(super) fn memory(&self) -> u64 {
        self.0.keys().map(|path| memory_of(path)).sum()
    }

    fn get(&self, path: &str, now: Timestamp) -> Option<FormerFile> {
        self.0.get(path).filter(|found| found.until > now).copied()
    }
}

/// Returns about how many bytes a file takes in memory.
fn memory_of(path: &str) -> u64 {
    (path.len() + size_of::<(Box<str>, FormerFile)>()) as u64
}

impl FormerFileGatherer {
    fn beside(live: SiteManifest) -> Self {
        Self {
            found: HashMap::new(),
            deleted: live.deleted.clone(),
            live,
            looked_at: 0,
            bytes: 0,
            is_full: false,
        }
    }

    /// Adds the files of a revision that was live before those that were added, as far as there is room.
    fn add(&mut self, former: SiteManifest, until: Timestamp) {
        self.looked_at = self.looked_at.saturating_add(former.files.len());
        for (path, file) in former.files {
            let is_served = !MediaType::of(&path).is_html()
                && !is_rule_file(&path)
                && !self.live.files.contains_key(&path)
                && !self.deleted.contains(&path)
                && !self.found.contains_key(&*path);
            if !is_served {
                continue;
            }
            let bytes = self.bytes + memory_of(&path);
            if bytes > MAX_FORMER_BYTES {
                self.is_full = true;
                break;
            }
            self.bytes = bytes;
            let found = FormerFile {
                file,
                was_immutable: former.options.is_immutable(&path),
                until,
            };
            self.found.insert(path.into_boxed_str(), found);
        }
        self.deleted.extend(former.deleted);
    }

    fn is_full(&self) -> bool {
        self.looked_at >= MAX_FILES_LOOKED_AT || self.is_full
    }
}

/// Whether files of former revisions are looked for at a path of a site.
fn may_be_former_file(page: &ServedPage, path: &str) -> bool {
    let has_some = page.site.as_ref().is_some_and(|site| site.has_former_files);
    has_some && !is_too_long(path) && !MediaType::of(path).is_html()
}

impl PageService {
    /// Whether files of former revisions of a site are served.
    pub(super) async fn has_former_files(
        &self,
        deployment: DeploymentId,
    ) -> Result<bool, PageLookupError> {
        let now = self.now();
        let found = self
            .infra
            .control
            .read(move |c| open_tabs::any(c, &deployment, now));
        Ok(found.await.map_err(anyhow::Error::from)?)
    }

    /// Finds the file that a former revision of the site at a slug had at a path, and the live one does not have.
    ///
    /// # Errors
    /// [`PageLookupError`].
    pub(super) async fn former_file(
        &self,
        page: &ServedPage,
        path: &str,
    ) -> Result<Option<FormerFile>, PageLookupError> {
        if !may_be_former_file(page, path) {
            return Ok(None);
        }
        let files = match self.pages.former_files(&page.slug) {
            Some(files) => files,
            None => {
                let key = CacheKey::FormerFiles(page.slug.clone());
                let load = self.load_former_files(&page.slug);
                Box::pin(self.pages.load(key, load)).await?
            }
        };
        Ok(files.get(path, self.now()))
    }

    /// Whether no former revision of a site had a file at a path that is served still, as far as memory tells.
    pub(super) fn is_known_to_be_no_former_file(&self, page: &ServedPage, path: &str) -> bool {
        !may_be_former_file(page, path)
            || self
                .pages
                .former_files(&page.slug)
                .is_some_and(|files| files.get(path, self.now()).is_none())
    }

    /// Gathers files of former revisions. All is read anew, so that what a later change removes from memory is not made of what was
    /// read before it.
    async fn load_former_files(&self, slug: &str) -> Result<Arc<FormerFiles>, PageLookupError> {
        let (slug, now) = (slug.to_owned(), self.now());
        let found = self.infra.control.read(move |c| {
            let Some(deployment) = store::find_by_slug(c, &slug)? else {
                return Ok(None);
            };
            let former = open_tabs::list(c, &deployment.id, now)?;
            Ok(deployment.artifact.map(|live| (live, former)))
        });
        let found = found.await.map_err(anyhow::Error::from)?;
        let (live, former) = found.ok_or(PageLookupError::NotFound)?;
        let live = self.load_site(live).await?;
        // What is in memory meanwhile counts for the client whose request began it.
        let held = live.memory().saturating_add(MAX_FORMER_BYTES);
        let _counted = self.hold_page(usize::try_from(held).unwrap_or(usize::MAX))?;
        let mut gatherer = FormerFileGatherer::beside(live);
        for revision in former {
            gatherer = self.gather(gatherer, revision).await?;
            if gatherer.is_full() {
                break;
            }
        }
        gatherer.found.shrink_to_fit();
        Ok(Arc::new(FormerFiles(gatherer.found)))
    }

    /// Adds the files of a former revision, or what it has deleted by name.
    async fn gather(
        &self,
        mut gatherer: FormerFileGatherer,
        former: FormerRevision,
    ) -> Result<FormerFileGatherer, PageLookupError> {
        let manifest = former.manifest;
        let object = self.read_object(&manifest).await?;
        let adding = move || {
            let site = SiteManifest::from_object(object.as_deref()?)?;
            match former.only_deletes {
                true => gatherer.deleted.extend(site.deleted),
                false => gatherer.add(site, former.until),
            }
            Some(gatherer)
        };
        let added = tokio::task::spawn_blocking(adding).await;
        let added = added.map_err(anyhow::Error::from)?;
        Ok(added.ok_or_else(|| anyhow::anyhow!("manifest {manifest} is missing or damaged"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Digest;

    fn site(files: &[(&str, &str)], deleted: &[&str]) -> SiteManifest {
        let mut site = SiteManifest::default();
        for (path, text) in files {
            let file = SiteFile {
                digest: Digest::of(text.as_bytes()),
                bytes: text.len() as u64,
                list: None,
            };
            site.files.insert((*path).to_owned(), file);
        }
        site.deleted = deleted.iter().map(|path| (*path).to_owned()).collect();
        site
    }

    #[test]
    fn the_newest_file_serves_that_nobody_has_deleted() {
        let live = site(&[("a.js", "4")], &["gone4.js"]);
        let mut gatherer = FormerFileGatherer::beside(live);
        let formers = [
            site(
                &[("a.js", "3"), ("b.js", "3"), ("gone4.js", "3")],
                &["gone3.js"],
            ),
            site(
                &[
                    ("b.js", "2"),
                    ("gone3.js", "2"),
                    ("c.js", "2"),
                    ("p.html", "2"),
                ],
                &[],
            ),
            site(&[("c.js", "1"), ("gone3.js", "1"), ("gone4.js", "1")], &[]),
        ];
        for (former, until) in formers.into_iter().zip([30, 20, 10]) {
            gatherer.add(former, Timestamp(until));
        }
        let files = FormerFiles(gatherer.found);
        let served = |path, now| {
            files
                .get(path, Timestamp(now))
                .map(|found| found.file.digest)
        };
        assert_eq!(served("b.js", 0), Some(Digest::of(b"3")));
        assert_eq!(served("c.js", 19), Some(Digest::of(b"2")));
        assert_eq!(served("c.js", 20), None, "its time is over");
        for path in ["a.js", "gone3.js", "gone4.js", "p.html", "none"] {
            assert_eq!(served(path, 0), None, "{path}");
        }
    }

    #[test]
    fn rules_of_former_revisions_are_served_to_nobody() {
        let mut gatherer = FormerFileGatherer::beside(SiteManifest::default());
        let files = [("_headers", "1"), ("_redirects", "1"), ("a/_headers", "1")];
        gatherer.add(site(&files, &[]), Timestamp(1));
        let files = FormerFiles(gatherer.found);
        let is_served = |path| files.get(path, Timestamp(0)).is_some();
        assert!(!is_served("_headers") && !is_served("_redirects"));
        assert!(is_served("a/_headers"));
    }

    #[test]
    fn files_of_former_revisions_have_a_bound() {
        let revision = |prefix: &str| {
            let paths: Vec<String> = (0..4_000)
                .map(|number| format!("{prefix}/{number:0>200}"))
                .collect();
            let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "x")).collect();
            site(&files, &[])
        };
        let mut gatherer = FormerFileGatherer::beside(SiteManifest::default());
        gatherer.add(revision("newest"), Timestamp(1));
        assert!(!gatherer.is_full());
        let newest = gatherer.found.len();
        assert_eq!(newest, 4_000);
        gatherer.add(revision("older"), Timestamp(1));
        assert!(gatherer.is_full());
        let kept = gatherer.found.keys();
        let kept = kept.filter(|path| path.starts_with("newest/"));
        assert_eq!(kept.count(), newest, "the newest come first");
        let (bytes, files) = (gatherer.bytes, FormerFiles(gatherer.found));
        assert_eq!(files.memory(), bytes);
        assert!((1_000_000..=MAX_FORMER_BYTES).contains(&bytes), "{bytes}");
    }
}
