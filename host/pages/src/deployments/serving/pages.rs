//! Pages ready to be served: their bytes, and the headers that say how far they are trusted.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::page_cache::ENTRY_OVERHEAD_BYTES;
use super::visits::ViewCounter;
use crate::activity::PageActivity;
use crate::content::{Digest, EncodedPage, Encoding};
use crate::deployments::model::{Deployment, DeploymentType};
use crate::deployments::sites::SiteManifest;
use crate::http::NOSNIFF;
use crate::http::document;
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, DeploymentId};

/// Scripts may run, in an origin of their own that holds nothing.
pub const SANDBOX_POLICY: HeaderValue = HeaderValue::from_static(
    "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads",
);
/// Keeps private pages out of every cache.
pub const NO_STORE: HeaderValue = HeaderValue::from_static("private, no-store");
/// A revision never changes.
pub const CACHE_FOREVER: HeaderValue =
    HeaderValue::from_static("public, max-age=31536000, immutable");
/// Says that an answer is another one for a browser that opens the address.
pub const VARY_NAVIGATION: HeaderValue = HeaderValue::from_static("Sec-Fetch-Mode, Sec-Fetch-Dest");
/// Says so of a page that has several encodings, too.
const VARY_PAGE: HeaderValue =
    HeaderValue::from_static("Accept-Encoding, Sec-Fetch-Mode, Sec-Fetch-Dest");
/// Media type of pages.
pub const HTML_TYPE: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// Header that keeps an answer out of search engines.
pub const UNLISTED: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-robots-tag"),
    HeaderValue::from_static("noindex"),
);

/// Guard of a page: decides which readers see it.
#[derive(Clone, Debug)]
pub enum PageProtection {
    /// Lets everybody in.
    Open,
    /// Lets readers in who know the password of this Argon2id hash.
    Password(String),
}

/// Where a page comes from, which decides how far it is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// A stranger's.
    Share,
    /// An owner's.
    Frontend {
        /// Label of the project's origin, where the page is at home.
        host_label: String,
    },
    /// Preview of a revision that may never be live; static, and in its own origin.
    Preview,
}

/// Policy of an installation for the pages that it serves.
#[derive(Clone, Copy, Debug)]
pub struct PagePolicy {
    /// Whether projects have origins of their own, so that everywhere else their pages are strangers.
    pub origins: bool,
    /// Whether an edge in front keeps pages until they are purged.
    pub edge: bool,
}

/// A page ready to be served, with what decides whether it may be.
#[derive(Debug)]
pub struct ServedPage {
    /// Identifier of the deployment.
    pub id: DeploymentId,
    /// Slug at which it answers.
    pub(super) slug: String,
    /// Where it comes from.
    pub kind: PageKind,
    /// Type of the source, or that it is a site.
    pub content_type: DeploymentType,
    /// Digest of the source; a one-time share has none here.
    pub source: Option<Digest>,
    /// Digest of the page or of the site's manifest, as it is stored; a one-time share has none.
    pub artifact: Option<Digest>,
    /// The live backend that it calls.
    pub backend: Option<BackendId>,
    /// Whether an edge in front keeps what it may until that is purged.
    pub has_edge: bool,
    /// Guard of the page.
    pub guard: PageProtection,
    /// Whether the page burns when read; such a page has no variants here.
    pub one_time: bool,
    /// Whether the operator has taken it down.
    pub disabled: bool,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// Encodings in the server's order of preference, identity last. A site has none.
    pub variants: Vec<PageVariant>,
    /// Files of a site.
    pub site: Option<ServedSite>,
    /// Counts its views.
    pub(super) visits: Arc<ViewCounter>,
    /// Counters for the owner of its project, if it has one.
    pub activity: Option<Arc<PageActivity>>,
}

/// Files of a site, with the headers that all of them have.
#[derive(Debug)]
pub struct ServedSite {
    /// Files and options.
    pub(super) manifest: SiteManifest,
    /// Whether files of former revisions serve tabs that were opened then.
    pub(super) has_former_files: bool,
    /// Headers on the site's own origin.
    own_origin_headers: HeaderMap,
    /// Headers elsewhere.
    headers: HeaderMap,
}

/// One encoding, with the headers of its 200.
#[derive(Debug)]
pub struct PageVariant {
    /// How it is encoded.
    pub encoding: Encoding,
    /// Strong entity tag.
    pub etag: HeaderValue,
    /// Bytes of the encoding.
    pub bytes: Bytes,
    /// All headers of a whole answer.
    pub headers: HeaderMap,
    /// Headers on the page's own origin, if it has one.
    pub project_origin_headers: Option<HeaderMap>,
}

impl ServedPage {
    /// Makes a page ready. `artifact` is absent for a one-time share, whose bytes are read when it burns.
    pub fn new(
        deployment: &Deployment,
        artifact: Option<(Digest, EncodedPage)>,
        policy: PagePolicy,
    ) -> Self {
        let kind = match &deployment.host_label {
            Some(label) => PageKind::Frontend {
                host_label: label.clone(),
            },
            None => PageKind::Share,
        };
        Self::of_kind(deployment, kind, artifact, policy)
    }

    /// Makes a preview of one of a frontend's revisions.
    pub fn preview(
        deployment: &Deployment,
        artifact: (Digest, EncodedPage),
        policy: PagePolicy,
    ) -> Self {
        Self::of_kind(deployment, PageKind::Preview, Some(artifact), policy)
    }

    /// Makes a site ready; it comes with whether files of its former revisions are served.
    pub fn site(deployment: &Deployment, site: (SiteManifest, bool), policy: PagePolicy) -> Self {
        let page = Self::new(deployment, None, policy);
        Self {
            site: Some(ServedSite::new(site, &page.kind, policy)),
            ..page
        }
    }

    /// Makes a preview of one of a site's revisions.
    pub fn site_preview(
        deployment: &Deployment,
        manifest: SiteManifest,
        policy: PagePolicy,
    ) -> Self {
        let page = Self::of_kind(deployment, PageKind::Preview, None, policy);
        Self {
            site: Some(ServedSite::new((manifest, false), &page.kind, policy)),
            ..page
        }
    }

    fn of_kind(
        deployment: &Deployment,
        kind: PageKind,
        artifact: Option<(Digest, EncodedPage)>,
        policy: PagePolicy,
    ) -> Self {
        let protected = deployment.password_hash.is_some();
        let headers = trust_headers(&kind, protected, policy.origins);
        let project_headers = matches!(kind, PageKind::Frontend { .. })
            .then(|| compose_headers(document::REVALIDATE, None, false));
        let redirects_home = project_headers.is_some() && policy.origins;
        let variants = artifact.map(|(digest, artifact)| {
            let variants = artifact.variants.into_iter().map(|v| {
                let mut ready = PageVariant::new(
                    &digest,
                    v.encoding,
                    v.bytes,
                    &headers,
                    project_headers.as_ref(),
                );
                if redirects_home {
                    ready.headers.insert(header::VARY, VARY_PAGE);
                }
                ready
            });
            variants.collect()
        });
        Self {
            id: deployment.id,
            slug: deployment.slug.clone(),
            content_type: deployment.content_type,
            source: deployment.source,
            artifact: deployment.artifact,
            backend: deployment.backend,
            has_edge: policy.edge,
            kind,
            guard: match &deployment.password_hash {
                Some(hash) => PageProtection::Password(hash.clone()),
                None => PageProtection::Open,
            },
            one_time: deployment.one_time,
            disabled: deployment.disabled,
            expires_at: deployment.expires_at,
            variants: variants.unwrap_or_default(),
            site: None,
            visits: Arc::new(ViewCounter::new(deployment.id)),
            activity: None,
        }
    }

    /// Whether readers need a password.
    pub fn is_protected(&self) -> bool {
        matches!(self.guard, PageProtection::Password(_))
    }

    /// Whether this is the page of a frontend.
    pub fn is_frontend(&self) -> bool {
        matches!(self.kind, PageKind::Frontend { .. })
    }

    /// Returns about how many bytes this takes in memory.
    pub(super) fn weight(&self) -> u64 {
        ENTRY_OVERHEAD_BYTES
            + self
                .variants
                .iter()
                .map(|v| v.bytes.len() as u64)
                .sum::<u64>()
            + self.site.as_ref().map_or(0, |site| site.manifest.memory())
    }
}

impl ServedSite {
    fn new(
        (manifest, has_former_files): (SiteManifest, bool),
        kind: &PageKind,
        policy: PagePolicy,
    ) -> Self {
        let mut own_origin = match kind {
            PageKind::Preview => preview_origin_headers(),
            PageKind::Share | PageKind::Frontend { .. } => {
                compose_headers(document::REVALIDATE, None, false)
            }
        };
        document::add_document_headers(&mut own_origin);
        let mut elsewhere = trust_headers(kind, false, policy.origins);
        document::add_document_headers(&mut elsewhere);
        if matches!(kind, PageKind::Frontend { .. }) && policy.origins {
            elsewhere.insert(header::VARY, VARY_PAGE);
        }
        Self {
            manifest,
            has_former_files,
            // A copy has no room for more headers, which would be most of its memory.
            own_origin_headers: own_origin.clone(),
            headers: elsewhere.clone(),
        }
    }

    /// Returns the headers that all files have, without those that are a file's own.
    pub(super) fn headers(&self, is_own_origin: bool) -> &HeaderMap {
        match is_own_origin {
            true => &self.own_origin_headers,
            false => &self.headers,
        }
    }
}

impl PageVariant {
    fn new(
        digest: &Digest,
        encoding: Encoding,
        bytes: Bytes,
        headers: &HeaderMap,
        project_headers: Option<&HeaderMap>,
    ) -> Self {
        let etag = document::etag(digest, encoding);
        let whole = |policy: &HeaderMap| {
            let mut headers = policy.clone();
            headers.insert(header::CONTENT_TYPE, HTML_TYPE);
            document::add_variant_headers(&mut headers, &etag, encoding);
            headers
        };
        Self {
            encoding,
            headers: whole(headers),
            project_origin_headers: project_headers.map(whole),
            etag,
            bytes,
        }
    }
}

/// Composes the headers that say how far a page is trusted: away from its own origin, if it has one.
pub fn trust_headers(kind: &PageKind, protected: bool, origins: bool) -> HeaderMap {
    match kind {
        PageKind::Share if protected => compose_headers(NO_STORE, Some(SANDBOX_POLICY), true),
        PageKind::Share => compose_headers(document::REVALIDATE, Some(SANDBOX_POLICY), true),
        PageKind::Frontend { .. } => compose_headers(
            document::REVALIDATE,
            origins.then_some(SANDBOX_POLICY),
            false,
        ),
        PageKind::Preview => compose_headers(CACHE_FOREVER, Some(SANDBOX_POLICY), true),
    }
}

/// Composes the headers of a file of a revision on the revision's own origin, where no other page is. It is gone with the revision, so
/// that nobody keeps it without asking.
fn preview_origin_headers() -> HeaderMap {
    let cache = HeaderValue::from_static("private, max-age=0, must-revalidate");
    compose_headers(cache, None, true)
}

fn compose_headers(cache: HeaderValue, sandbox: Option<HeaderValue>, hidden: bool) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(16);
    headers.insert(header::CACHE_CONTROL, cache);
    headers.insert(NOSNIFF.0, NOSNIFF.1);
    if let Some(sandbox) = sandbox {
        headers.insert(header::CONTENT_SECURITY_POLICY, sandbox);
    }
    if hidden {
        headers.insert(UNLISTED.0, UNLISTED.1);
    }
    headers
}
