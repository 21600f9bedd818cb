//! Files of sites that are in memory with all that their answers need: most views are of such. They are answered without waiting, so that
//! a view does not carry the state of a load around, and headers are composed once for requests that are alike.

use std::sync::{Arc, Weak};

use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, header};

use super::PageService;
use super::answer::{self, RequestOrigin};
use super::origins::ProjectOrigin;
use super::pages::{PageKind, ServedPage, ServedSite};
use super::site_answer::{SiteHttpRequest, name_canonical, ruled_headers};
use super::site_files::ServedFile;
use crate::content::Encoding;
use crate::deployments::sites::{FoundFile, MediaType, SiteAnswer, SiteRequest};
use crate::http::document;
use crate::http::hosts::HostKind;
use crate::http::origin::is_navigation;
use crate::http::problem::Problem;

/// Address of a file below a site's mount.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileAddress<'r> {
    host: &'r HostKind,
    /// Whether clients leave the slug out.
    at_root: bool,
    slug: &'r str,
    /// Path of the request.
    path: &'r str,
}

/// Headers that were composed for a request, for the next one that is alike.
#[derive(Debug)]
pub(super) struct ComposedHeaders {
    /// Page that the site was; another one takes its place when anything of it changes.
    page: Weak<ServedPage>,
    /// Origin that decided which address is the canonical one.
    origin: Option<Weak<ProjectOrigin>>,
    host: HostKind,
    at_root: bool,
    path: Box<str>,
    encoding: Encoding,
    headers: HeaderMap,
}

impl ComposedHeaders {
    fn is_for(
        &self,
        at: FileAddress<'_>,
        (page, origin): (&Arc<ServedPage>, Option<&Arc<ProjectOrigin>>),
        encoding: Encoding,
    ) -> bool {
        let has_origin = match (&self.origin, origin) {
            (None, None) => true,
            (Some(of), Some(origin)) => std::ptr::eq(of.as_ptr(), Arc::as_ptr(origin)),
            _ => false,
        };
        has_origin
            && std::ptr::eq(self.page.as_ptr(), Arc::as_ptr(page))
            && self.at_root == at.at_root
            && self.encoding == encoding
            && *self.path == *at.path
            && self.host == *at.host
    }
}

/// Answers a view of a file below the address of a site from memory; `None` where the answer must be looked for.
pub fn file_from_memory(
    serving: &PageService,
    (host, at_root): (&HostKind, bool),
    slug: &str,
    request: &Parts,
) -> Option<Response> {
    let path = request.uri.path();
    let at = FileAddress {
        host,
        at_root,
        slug,
        path,
    };
    let page = serving.pages.get(slug)?;
    serving.check_on_host(host, &page).ok()?;
    let site = page.site.as_ref()?;
    let headers = &request.headers;
    let leads_away = serving.is_off_project_origin(host, &page) && is_navigation(headers);
    if leads_away || headers.contains_key(header::RANGE) {
        return None;
    }
    let (mount, origin) = (path.get(..slug.len() + 2)?, RequestOrigin::of(host));
    let asked = SiteHttpRequest::new(mount, &request.uri, headers, origin).ok()?;
    let asked = match at_root {
        true => asked.at_root(),
        false => asked,
    };
    match site.manifest.by_path(asked.path()) {
        Some(SiteAnswer::File(found)) => {
            serving.found_file_from_memory((&page, site), at, (&asked, found))
        }
        None if serving.is_known_to_be_no_former_file(&page, asked.path()) => {
            let nothing = site.manifest.in_place_of_file(SiteRequest {
                path: asked.path(),
                is_navigation: asked.is_navigation(),
            });
            matches!(nothing, SiteAnswer::Missing).then(|| Problem::not_found().into_response())
        }
        _ => None,
    }
}

impl PageService {
    fn found_file_from_memory(
        &self,
        (page, site): (&Arc<ServedPage>, &ServedSite),
        at: FileAddress<'_>,
        (asked, found): (&SiteHttpRequest<'_>, FoundFile<'_>),
    ) -> Option<Response> {
        self.check_file(&found.file).ok()?;
        let media = MediaType::of(found.path);
        let is_text = media.is_encoded(found.file.bytes, self.config().limits.page_bytes);
        // The parts of a large file are looked at where it is read, if content is blocked.
        if found.file.list.is_some() && !(is_text && self.blocked.is_empty()) {
            return None;
        }
        let served = self.file_in_memory(&found.file, is_text.then_some(page.id))?;
        let variant = served.variant(asked.headers())?;
        // The start of the project's origin decides whether the address is the canonical one.
        let origin = match &page.kind {
            PageKind::Frontend { host_label }
                if !at.at_root && self.config().sites_domain.is_some() =>
            {
                Some(self.known_origin(host_label)?)
            }
            _ => None,
        };
        let composed = served.composed();
        let known = composed
            .as_ref()
            .filter(|it| it.is_for(at, (page, origin.as_ref()), variant.encoding));
        let headers = match known {
            Some(composed) => composed.headers.clone(),
            None => {
                let of = (asked, (found.path, &media));
                let mut headers = ruled_headers(self, (page, site), of, false).ok()?;
                document::name_variant(&mut headers, &variant.etag, variant.encoding);
                self.name_canonical_from_memory(&mut headers, (page, origin.as_ref()), at)?;
                self.keep_composed(&served, (page, origin), at, (variant.encoding, &headers));
                headers
            }
        };
        let response =
            document::respond(headers, &variant.etag, &variant.bytes, asked.headers()).ok()?;
        let seen = answer::is_visit(response.status(), asked.headers());
        if seen && media.is_html() && asked.is_navigation() {
            self.count_view(page, self.now());
        }
        Some(response)
    }

    fn name_canonical_from_memory(
        &self,
        headers: &mut HeaderMap,
        (page, origin): (&ServedPage, Option<&Arc<ProjectOrigin>>),
        at: FileAddress<'_>,
    ) -> Option<()> {
        let Some(origin) = origin else {
            return Some(());
        };
        let Some(path) = origin.path_at_root(at.slug, at.path) else {
            return Some(());
        };
        let origin = self.origin_of(at.host, page)?;
        name_canonical(headers, (&origin, &path)).ok()
    }

    /// Keeps headers for the next request that is alike. What an edge is told depends on the time.
    fn keep_composed(
        &self,
        served: &ServedFile,
        (page, origin): (&Arc<ServedPage>, Option<Arc<ProjectOrigin>>),
        at: FileAddress<'_>,
        (encoding, headers): (Encoding, &HeaderMap),
    ) {
        if page.has_edge {
            return;
        }
        served.keep_composed(ComposedHeaders {
            page: Arc::downgrade(page),
            origin: origin.as_ref().map(Arc::downgrade),
            host: at.host.clone(),
            at_root: at.at_root,
            path: at.path.into(),
            encoding,
            headers: headers.clone(),
        });
    }
}
