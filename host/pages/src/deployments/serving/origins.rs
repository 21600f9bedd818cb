//! Origins of projects in memory: the frontend that each leads to, and which paths are whose where a site answers at the root.

use std::collections::HashSet;
use std::sync::Arc;

use http::HeaderValue;
use http::header::InvalidHeaderValue;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::pages::{PageKind, ServedPage};
use super::{PageLookupError, PageService};
use crate::control::{ControlChange, ControlDatabase};
use crate::deployments::address::{active_slugs, find_origin};
use crate::deployments::sites::{RUNTIME_SCRIPT, is_runtime_path};
use crate::http::cookies::HostCookie;
use crate::http::hosts::HostKind;
use svc_base::clock::Timestamp;
use svc_base::memory_cache;

/// First segment of the platform's own paths.
const PLATFORM_SEGMENT: &str = "_svc";
/// Most bytes of origins in memory.
const CACHE_BYTES: u64 = 8 << 20;
/// Bytes of an origin, and of each slug in it, beside their texts.
const ENTRY_BYTES: u64 = 128;

/// Origin of a project.
#[derive(Debug)]
pub struct ProjectOrigin {
    /// Slug of the frontend that it leads to.
    home: Option<String>,
    /// Slugs of the project's frontends, where one that is a site answers at the root: their paths are not its files.
    slugs: Option<HashSet<String>>,
    expires_at: Option<Timestamp>,
}

impl ProjectOrigin {
    /// Returns the slug of the frontend that the origin leads to; `None` where nothing is published.
    pub fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    /// Returns the slug of the site that answers at the root.
    pub fn root_site(&self) -> Option<&str> {
        self.slugs.as_ref()?;
        self.home()
    }

    /// Whether a path, in its canonical form, is one of the site at the root.
    pub fn is_below_root(&self, path: &str) -> bool {
        let Some((slugs, path)) = self.slugs.as_ref().zip(path.strip_prefix('/')) else {
            return false;
        };
        match path.split('/').next().unwrap_or_default() {
            // Two slashes would begin the name of another host.
            "" => path.is_empty(),
            PLATFORM_SEGMENT => path == RUNTIME_SCRIPT,
            first => !slugs.contains(first),
        }
    }

    /// Returns the path at the root that a path below a slug stands for, if the frontend there answers at the root.
    pub(super) fn path_at_root(&self, slug: &str, path: &str) -> Option<String> {
        let rest = path.strip_prefix('/')?.strip_prefix(slug)?;
        let at_root = if rest.is_empty() { "/" } else { rest };
        let is_root = self.root_site() == Some(slug) && at_root.starts_with('/');
        (is_root && self.is_below_root(at_root)).then(|| at_root.to_owned())
    }

    fn weight(&self) -> u64 {
        let slugs = self.slugs.iter().flatten();
        let texts = slugs.map(|slug| slug.len() as u64 + ENTRY_BYTES);
        ENTRY_BYTES + texts.sum::<u64>()
    }
}

/// Paths at which a frontend answers on a host.
#[derive(Clone, Debug)]
pub struct PageMounts {
    slug: String,
    /// Whether it may answer at the root, too, now or at another time.
    is_site: bool,
    /// Origin at whose root it answers.
    root: Option<Arc<ProjectOrigin>>,
}

impl PageMounts {
    /// Returns the mounts of a page that answers at its slug alone.
    pub fn at_slug(slug: &str) -> Self {
        Self {
            slug: slug.to_owned(),
            is_site: false,
            root: None,
        }
    }

    /// Returns the slug.
    pub fn slug(&self) -> &str {
        &self.slug
    }

    /// Returns the path of the frontend's own page.
    pub fn home(&self) -> String {
        match self.root {
            Some(_) => "/".to_owned(),
            None => format!("/{}", self.slug),
        }
    }

    /// Whether a decoded path is the frontend's.
    pub fn has(&self, path: &str) -> bool {
        let below = path.strip_prefix('/');
        let below = below.and_then(|path| path.strip_prefix(&*self.slug));
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            || self
                .root
                .as_ref()
                .is_some_and(|root| root.is_below_root(path))
    }

    /// Whether a decoded path is one of the sign-in's below a mount. A site has files beside them, and a page has not.
    pub fn is_sign_in(&self, path: &str) -> bool {
        let below = |mount: &str| {
            let rest = path.strip_prefix(mount);
            rest.is_some_and(|rest| {
                rest.starts_with("auth/") && (!self.is_site || is_runtime_path(rest))
            })
        };
        below(&format!("/{}/", self.slug)) || (self.root.is_some() && below("/"))
    }

    /// Returns the path at the root that a path below the slug stands for, if the frontend answers there.
    fn path_at_root(&self, path: &str) -> Option<String> {
        self.root.as_ref()?.path_at_root(&self.slug, path)
    }

    /// Returns the `Set-Cookie` headers of a cookie for a number of seconds; 0 removes it. Where cookies have paths, the one that a site
    /// had at another path, before it began or ceased to answer at the root, ends: two of one name count as none.
    ///
    /// # Errors
    /// When a header cannot hold the value.
    pub fn cookie_headers(
        &self,
        name: &str,
        secure: bool,
        (value, seconds): (&str, i64),
    ) -> Result<Vec<HeaderValue>, InvalidHeaderValue> {
        let at_slug = HostCookie::for_page(name, &self.slug, secure);
        if !self.is_site || secure {
            return Ok(vec![at_slug.set_header(value, seconds)?]);
        }
        let at_root = HostCookie::for_host(name, secure);
        let (own, other) = match self.root {
            Some(_) => (at_root, at_slug),
            None => (at_slug, at_root),
        };
        Ok(vec![
            own.set_header(value, seconds)?,
            other.set_header("", 0)?,
        ])
    }
}

/// Cache of origins by their labels, bounded by their weight.
#[derive(Debug)]
pub(super) struct OriginCache(Cache<String, Arc<ProjectOrigin>, OriginWeigher>);

#[derive(Clone, Debug)]
struct OriginWeigher;

impl Weighter<String, Arc<ProjectOrigin>> for OriginWeigher {
    fn weight(&self, label: &String, origin: &Arc<ProjectOrigin>) -> u64 {
        label.len() as u64 + origin.weight()
    }
}

impl OriginCache {
    /// Makes a cache that follows the changes of `control` from now on.
    pub(super) fn following(control: &ControlDatabase) -> Arc<Self> {
        let items = usize::try_from(CACHE_BYTES / (4 * ENTRY_BYTES)).unwrap_or(usize::MAX);
        let cache = memory_cache::weighted_cache(items, CACHE_BYTES, 1, OriginWeigher);
        let origins = Arc::new(Self(cache));
        let held = Arc::clone(&origins);
        control.on_change(move |change| held.follow(change));
        origins
    }

    /// Forgets the origin that a change is about; a load of it that is under way is not kept either.
    fn follow(&self, change: &ControlChange) {
        match change {
            ControlChange::Origin(label) => {
                self.0.remove(label.as_str());
            }
            ControlChange::Slug(_)
            | ControlChange::ContentBlocked(_)
            | ControlChange::ContentAllowed(_)
            | ControlChange::BackendCreated(..)
            | ControlChange::BackendEnded(_)
            | ControlChange::RealtimeOff(_)
            | ControlChange::ActionsDefined(_)
            | ControlChange::ActionJudged(_)
            | ControlChange::SessionEnded(_)
            | ControlChange::SessionsEnded(_)
            | ControlChange::DomainServed { .. }
            | ControlChange::DomainEnded(_) => {}
        }
    }
}

impl PageService {
    /// Returns the origin of a label, if it is in memory.
    pub fn known_origin(&self, label: &str) -> Option<Arc<ProjectOrigin>> {
        let origin = self.origins.0.get(label)?;
        self.is_live(&origin).then_some(origin)
    }

    /// Returns the origin of a label, from memory or loaded into it.
    ///
    /// # Errors
    /// `NotFound` for a label that no live project has; the database's.
    pub async fn origin(&self, label: &str) -> Result<Arc<ProjectOrigin>, PageLookupError> {
        let loading = self.load_origin(label);
        let origin = Box::pin(self.origins.0.get_or_insert_async(label, loading)).await?;
        match self.is_live(&origin) {
            true => Ok(origin),
            false => Err(PageLookupError::NotFound),
        }
    }

    fn is_live(&self, origin: &ProjectOrigin) -> bool {
        let now = self.infra.clock.now();
        origin.expires_at.is_none_or(|at| at > now)
    }

    async fn load_origin(&self, label: &str) -> Result<Arc<ProjectOrigin>, PageLookupError> {
        let label = label.to_owned();
        let found = self.infra.control.read(move |c| {
            let Some(origin) = find_origin(c, &label)? else {
                return Ok(None);
            };
            let slugs = match &origin.root {
                Some(root) if root.is_site => Some(active_slugs(c, &origin.project)?),
                _ => None,
            };
            Ok(Some((origin, slugs)))
        });
        let found = found.await.map_err(anyhow::Error::from)?;
        let (origin, slugs) = found.ok_or(PageLookupError::NotFound)?;
        Ok(Arc::new(ProjectOrigin {
            home: origin.root.map(|root| root.slug),
            slugs: slugs.map(|slugs| slugs.into_iter().collect()),
            expires_at: origin.expires_at,
        }))
    }

    /// Returns the origin of a frontend's project for a visitor of a host, as addresses begin.
    pub(super) fn origin_of(&self, host: &HostKind, page: &ServedPage) -> Option<String> {
        match &page.kind {
            PageKind::Frontend { host_label } => {
                Some(host.project_origin(&self.infra.config, host_label))
            }
            PageKind::Share | PageKind::Preview => None,
        }
    }

    /// Returns the path at the root of its project's origin that a path of the page at a slug stands for, if the page answers there.
    ///
    /// # Errors
    /// The database's.
    pub(super) async fn path_at_root(
        &self,
        page: &ServedPage,
        slug: &str,
        path: &str,
    ) -> Result<Option<String>, PageLookupError> {
        match self.infra.config.sites_domain {
            Some(_) => Ok(self.mounts(page, slug).await?.path_at_root(path)),
            None => Ok(None),
        }
    }

    /// Returns the mounts of the page at a slug on its project's origin.
    ///
    /// # Errors
    /// The database's.
    pub async fn mounts(
        &self,
        page: &ServedPage,
        slug: &str,
    ) -> Result<PageMounts, PageLookupError> {
        let mut mounts = PageMounts::at_slug(slug);
        let has_origins = self.infra.config.sites_domain.is_some();
        mounts.is_site = has_origins && page.content_type.is_site();
        if let PageKind::Frontend { host_label } = &page.kind
            && mounts.is_site
        {
            let origin = match self.known_origin(host_label) {
                Some(origin) => origin,
                None => self.origin(host_label).await?,
            };
            mounts.root = Some(origin).filter(|origin| origin.root_site() == Some(slug));
        }
        Ok(mounts)
    }

    /// Returns the mounts of the page at a slug on the host that a request names.
    ///
    /// # Errors
    /// The database's.
    pub async fn mounts_on_host(
        &self,
        host: &HostKind,
        page: &ServedPage,
        slug: &str,
    ) -> Result<PageMounts, PageLookupError> {
        let mounts = self.mounts(page, slug).await?;
        Ok(match host {
            HostKind::Project(_) | HostKind::Domain(_) => mounts,
            _ => PageMounts {
                root: None,
                ..mounts
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(slugs: Option<&[&str]>) -> ProjectOrigin {
        ProjectOrigin {
            home: Some("app".to_owned()),
            slugs: slugs.map(|slugs| slugs.iter().map(|slug| (*slug).to_owned()).collect()),
            expires_at: None,
        }
    }

    #[test]
    fn slugs_and_the_platform_come_before_files_at_the_root() {
        let with_site = origin(Some(&["app", "docs"]));
        assert_eq!(with_site.root_site(), Some("app"));
        let with_page = origin(None);
        assert_eq!(with_page.root_site(), None);
        for (path, below) in [
            ("/", true),
            ("/index.html", true),
            ("/doc", true),
            ("/assets/docs/x", true),
            ("/api/op", true),
            ("/healthz", true),
            ("/_svc/runtime.js", true),
            ("/_svc", false),
            ("/_svc/runtime/1.js", false),
            ("/_svc/runtime.js/x", false),
            ("/app", false),
            ("/app/x", false),
            ("/docs", false),
            ("/docs/x.js", false),
            ("", false),
            ("//", false),
            ("//other.example", false),
        ] {
            assert_eq!(with_site.is_below_root(path), below, "{path}");
            assert!(!with_page.is_below_root(path), "{path}");
        }
    }

    #[test]
    fn a_frontend_has_the_paths_of_its_mounts() {
        let at_slug = PageMounts::at_slug("app");
        let at_root = PageMounts {
            root: Some(Arc::new(origin(Some(&["app", "docs"])))),
            is_site: true,
            ..at_slug.clone()
        };
        assert_eq!(
            (at_slug.home().as_str(), at_root.home().as_str()),
            ("/app", "/")
        );
        for (path, slug, root) in [
            ("/app", true, true),
            ("/app/x", true, true),
            ("/apple", false, true),
            ("/", false, true),
            ("/docs/x", false, false),
            ("/_svc/auth/callback/x", false, false),
        ] {
            assert_eq!(
                (at_slug.has(path), at_root.has(path)),
                (slug, root),
                "{path}"
            );
        }
        for (path, slug, root) in [
            ("/app/auth/login", true, true),
            ("/app/auth/passkeys", true, true),
            ("/app/auth/welcome", true, false),
            ("/app/auth", false, false),
            ("/auth/login", false, true),
            ("/auth/welcome", false, false),
            ("/other/auth/login", false, false),
        ] {
            let found = (at_slug.is_sign_in(path), at_root.is_sign_in(path));
            assert_eq!(found, (slug, root), "{path}");
        }
        for (path, expected) in [
            ("/app", Some("/")),
            ("/app/", Some("/")),
            ("/app/a%20b/c", Some("/a%20b/c")),
            ("/app/docs/x", None),
            ("/apple", None),
        ] {
            assert_eq!(at_root.path_at_root(path).as_deref(), expected, "{path}");
            assert_eq!(at_slug.path_at_root(path), None, "{path}");
        }
    }

    #[test]
    fn a_site_has_one_cookie_whichever_path_it_had() {
        let page = PageMounts::at_slug("app");
        let site = PageMounts {
            is_site: true,
            ..page.clone()
        };
        let root = PageMounts {
            root: Some(Arc::new(origin(Some(&["app"])))),
            ..site.clone()
        };
        let paths = |mounts: &PageMounts, secure| {
            let headers = mounts.cookie_headers("n", secure, ("v", 60)).unwrap();
            let path = |header: &HeaderValue| {
                let text = header.to_str().unwrap();
                let (_, rest) = text.split_once("Path=").unwrap();
                rest.to_owned()
            };
            headers.iter().map(path).collect::<Vec<_>>()
        };
        assert_eq!(paths(&page, false), ["/app; Max-Age=60"]);
        assert_eq!(paths(&site, false), ["/app; Max-Age=60", "/; Max-Age=0"]);
        assert_eq!(paths(&root, false), ["/; Max-Age=60", "/app; Max-Age=0"]);
        for mounts in [&page, &site, &root] {
            assert_eq!(paths(mounts, true), ["/; Max-Age=60"]);
        }
    }
}
