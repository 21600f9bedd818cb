//! Requests that are answered without the router: views, files of sites, calls, and downloads. They are by far the most requests, and the
//! router's boxed futures would cost as much as their answers.

use std::time::Duration;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{Method, Uri};
use svc_base::names::is_slug;

use super::passkey_policy;
use crate::app::App;
use crate::backends::calls::routes::{self as calls, CallContext};
use crate::deployments::model::is_reserved;
use crate::deployments::serving::{file_from_memory, routes as pages};
use crate::deployments::sites::is_runtime_path;
use crate::http::client_ip::ClientIp;
use crate::http::hosts::HostKind;
use crate::http::problem::Problem;
use crate::visitor_files::routes as visitor_files;

/// Folders below the address of a page that have routes of sign-in or payments; a site may have other files there.
const ACCOUNT_FOLDERS: [&str; 2] = ["auth", "payments"];
/// First segments of other routes below the address of a page.
const ROUTED_BELOW_PAGES: [&str; 7] = ["_svc", "api", "auth", "mcp", "payments", "raw", "ws"];

/// Whether a request is a page view, which [`view`] answers as the route `GET /{slug}` does.
pub fn is_view(host: &HostKind, request: &Request) -> bool {
    let pages = host.has_pages();
    pages && request.method() == Method::GET && slug_of_path(request.uri()).is_some()
}

/// Whether a request reads a page that may be in memory: a view, its head alone, or the source.
pub fn reads_page(host: &HostKind, method: &Method, uri: &Uri) -> bool {
    let path = uri.path();
    let page = path.strip_suffix("/raw").filter(|page| !page.is_empty());
    may_read(host, method) && slug_of_page(page.unwrap_or(path)).is_some()
}

/// Whether a request reads a file below an address that may be a site's, or the page of its folder.
pub fn reads_file(host: &HostKind, method: &Method, uri: &Uri) -> bool {
    let path = uri.path();
    let home = path.strip_suffix('/').unwrap_or_default();
    let is_file = slug_of_page(home).is_some() || slug_of_file(path).is_some();
    may_read(host, method) && (is_file || is_file_beside_account_routes(path))
}

/// Whether a path may be that of a site's file in a folder that has routes of sign-in or payments, too.
fn is_file_beside_account_routes(path: &str) -> bool {
    let Some((slug, below)) = path.strip_prefix('/').and_then(|path| path.split_once('/')) else {
        return false;
    };
    let folder = below.split_once('/').map(|(folder, _)| folder);
    folder.is_some_and(|folder| ACCOUNT_FOLDERS.contains(&folder))
        && !is_runtime_path(below)
        && is_slug(slug)
        && !is_reserved(slug)
}

fn may_read(host: &HostKind, method: &Method) -> bool {
    host.has_pages() && [Method::GET, Method::HEAD].contains(method)
}

/// Answers a page view without the router: views are by far the most requests, and the router's boxed futures would double their cost.
pub async fn view(app: &App, host: &HostKind, request: &Parts) -> Response {
    let slug = slug_of_path(&request.uri).unwrap_or_default();
    let shown = pages::show(&app.serving, host, slug, request).await;
    let has_passkeys = passkey_policy::is_reached(&app.config, host);
    passkey_policy::refuse_passkeys(has_passkeys, shown.into_response())
}

/// Whether a request is a view of a file below an address that may be a site's, which [`view_file`] answers as the route
/// of files does. Its path is in the canonical form.
pub fn is_file_view(host: &HostKind, request: &Request) -> bool {
    host.has_pages()
        && request.method() == Method::GET
        && slug_of_file(request.uri().path()).is_some()
}

/// Answers a view of a file without the router, for the same reason; `at_root` says that the mount is the root of the host.
pub async fn view_file(
    app: &App,
    (host, at_root): (&HostKind, bool),
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let slug = slug_of_file(parts.uri.path()).unwrap_or_default();
    let shown = match file_from_memory(&app.serving, (host, at_root), slug, &parts) {
        Some(shown) => shown,
        // It is larger than the answer to a page's view, which has no room for it.
        None => {
            let showing = pages::show_file(&app.serving, (host, at_root), slug, &parts);
            Box::pin(showing).await.into_response()
        }
    };
    passkey_policy::refuse_passkeys(passkey_policy::is_reached(&app.config, host), shown)
}

/// Whether a request is a call of an action, which [`call`] answers as the route `POST /{slug}/api/op` does.
pub fn is_call(host: &HostKind, request: &Request) -> bool {
    let pages = host.has_pages();
    pages && request.method() == Method::POST && called_slug(request.uri()).is_some()
}

/// Answers a call of an action without the router, for the same reason.
pub async fn call(
    app: &App,
    (host, client): (&HostKind, &ClientIp),
    (request_id, began): (&str, Duration),
    request: Request,
) -> Response {
    let context = CallContext {
        host,
        client,
        request_id,
        began,
    };
    let uri = request.uri().clone();
    let slug = called_slug(&uri).unwrap_or_default();
    calls::call(&app.calls, context, slug, request).await
}

/// Whether a request is a download of a visitor's file, which [`download`] answers as its route does. Its path is in the
/// canonical form.
pub fn is_download(host: &HostKind, request: &Request) -> bool {
    let pages = host.has_pages();
    pages && request.method() == Method::GET && downloaded_file(request.uri().path()).is_some()
}

/// Answers a download of a visitor's file without the router, for the same reason.
pub async fn download(
    app: &App,
    (host, client): (&HostKind, &ClientIp),
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let Some(at) = downloaded_file(&path) else {
        return Problem::not_found().into_response();
    };
    let answer =
        visitor_files::answer_download(&app.visitor_file_routes, (host, client), at, &parts);
    // It is larger than the answer to a page's view, which has no room for it.
    let answer = Box::pin(answer).await;
    passkey_policy::refuse_passkeys(passkey_policy::is_reached(&app.config, host), answer)
}

/// Returns slug, action and file of the canonical path of a download, which has nothing to be decoded.
fn downloaded_file(path: &str) -> Option<(&str, &str, &str)> {
    let (slug, rest) = path.strip_prefix('/')?.split_once("/api/files/")?;
    let (action, file) = rest.split_once('/')?;
    let is_plain = |part: &str| {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !part.is_empty() && part.bytes().all(is_word)
    };
    let plain = is_slug(slug) && !is_reserved(slug) && is_plain(action) && is_plain(file);
    plain.then_some((slug, action, file))
}

/// Returns the slug of the canonical path of a call.
pub fn called_slug(uri: &Uri) -> Option<&str> {
    let slug = uri.path().strip_prefix('/')?.strip_suffix("/api/op")?;
    (is_slug(slug) && !is_reserved(slug)).then_some(slug)
}

/// Returns the slug of a path below it that no route has but that of files.
fn slug_of_file(path: &str) -> Option<&str> {
    let (slug, below) = path.strip_prefix('/')?.split_once('/')?;
    let first = below.split('/').next().unwrap_or_default();
    let is_routed = below.is_empty() || ROUTED_BELOW_PAGES.contains(&first);
    (!is_routed && is_slug(slug) && !is_reserved(slug)).then_some(slug)
}

/// Returns the slug, if the canonical path is nothing but a slug.
fn slug_of_path(uri: &Uri) -> Option<&str> {
    slug_of_page(uri.path())
}

fn slug_of_page(path: &str) -> Option<&str> {
    let slug = path.strip_prefix('/')?;
    (is_slug(slug) && !is_reserved(slug)).then_some(slug)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_has_a_plain_path() {
        let file = "file_01h455vb4pex5vsknk084sn02q";
        let path = format!("/shop/api/files/picture/{file}");
        assert_eq!(downloaded_file(&path), Some(("shop", "picture", file)));
        for other in [
            "/shop/api/files/picture",
            "/shop/api/files/a/b/c",
            "/api/api/files/a/b",
            "/shop/api/files/a/%62",
        ] {
            assert_eq!(downloaded_file(other), None, "{other}");
        }
    }

    #[test]
    fn whoever_reads_a_page_is_told_apart() {
        let project = HostKind::Project("shop".to_owned());
        for (host, method, path, reads) in [
            (&HostKind::Api, Method::GET, "/room", true),
            (&HostKind::Api, Method::HEAD, "/room", true),
            (&project, Method::GET, "/room/raw", true),
            (&HostKind::Sites, Method::HEAD, "/room/raw", true),
            (&HostKind::Api, Method::POST, "/room", false),
            (&HostKind::Api, Method::GET, "/room/api/schema", false),
            (&HostKind::Api, Method::GET, "/room/raw/raw", false),
            (&HostKind::Api, Method::GET, "/healthz", false),
            (&HostKind::Landing, Method::GET, "/room", false),
        ] {
            let uri: Uri = path.parse().unwrap();
            assert_eq!(reads_page(host, &method, &uri), reads, "{method} {path}");
        }
        for (host, method, path, reads) in [
            (&project, Method::GET, "/shop/", true),
            (&project, Method::HEAD, "/shop/a/b.css", true),
            (&HostKind::Api, Method::GET, "/shop", false),
            (&HostKind::Api, Method::GET, "/shop/auth/status", false),
            (&HostKind::Api, Method::GET, "/shop/auth/help.html", true),
            (&HostKind::Api, Method::GET, "/shop/api/help.html", false),
            (&HostKind::Api, Method::POST, "/shop/a.html", false),
        ] {
            let uri: Uri = path.parse().unwrap();
            assert_eq!(reads_file(host, &method, &uri), reads, "{method} {path}");
        }
    }
}
