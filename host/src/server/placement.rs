//! The node of several that answers a request: one pure function over everything that the router knows.
//!
//! The places of owners' operations stand in the list of operations, too (`operations.rs`); `tests/http/placement.rs` compares both
//! with the routes, and finds a route without a place.

use http::{Method, Uri};
use svc_base::names::is_slug;

use crate::deployments::model::is_reserved;
use crate::deployments::sites::is_runtime_path;
use crate::http::hosts::HostKind;

/// Segments of a path that are looked at: one more than the longest path that is named whole.
const SEGMENTS: usize = 9;

/// Place of a request among the nodes of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPlace<'r> {
    /// Every node.
    AnyNode,
    /// Every node if the revision has a page; else the node that has the control database, which renders it.
    Preview {
        /// Id of the frontend.
        deployment: &'r str,
        /// Id of the revision.
        revision: &'r str,
    },
    /// Node that has the database of a backend.
    Backend(BackendPath<'r>),
    /// Node that has the control database.
    Control,
    /// Node that has the control database, and gets the backend's database for it.
    ControlWithBackend,
}

/// A backend, as paths name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendPath<'r> {
    /// Backend of the page at a slug.
    Page(&'r str),
    /// Backend of a project, by the project's id.
    Project(&'r str),
}

/// Returns where a request is answered; `None` for one that no route takes, whose refusal is the same everywhere. The path is in its
/// canonical form.
pub fn placement<'r>(host: &HostKind, method: &Method, uri: &'r Uri) -> Option<RequestPlace<'r>> {
    if matches!(host, HostKind::Preview(_)) {
        return Some(RequestPlace::AnyNode);
    }
    let is_look = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
    let is_landing = *host == HostKind::Landing;
    let path = uri.path();
    let mut segments = [""; SEGMENTS];
    let mut count = 0;
    for (at, segment) in segments.iter_mut().zip(path.strip_prefix('/')?.split('/')) {
        *at = segment;
        count += 1;
    }
    if *host == HostKind::Console {
        return place_of_console(method, &segments[..count], uri.query());
    }
    let place = match segments[..count] {
        ["healthz" | "readyz"] => RequestPlace::AnyNode,
        ["api" | "mcp" | "_preview", ..] if is_landing => return None,
        ["api", "v1", ref rest @ ..] => place_of_api(method, rest, uri.query())?,
        ["mcp"] => RequestPlace::Control,
        ["_preview", deployment, revision, _, ..] => RequestPlace::Preview {
            deployment,
            revision,
        },
        ["_preview", _, _] => RequestPlace::AnyNode,
        ["_svc", ref rest @ ..] => place_of_platform(is_look, rest)?,
        [".well-known", "security.txt" | "oauth-protected-resource"]
        | [".well-known", "oauth-protected-resource", "mcp"]
        | ["problems", _]
        | ["" | "llms.txt" | "robots.txt" | "favicon.ico" | "favicon.svg"] => RequestPlace::AnyNode,
        [slug, ref rest @ ..] if !is_landing && is_slug(slug) && !is_reserved(slug) => {
            let below = path.get(slug.len() + 2..).unwrap_or_default();
            place_of_page(is_look, slug, (rest, below))
        }
        _ => return None,
    };
    Some(place)
}

/// Returns the place of a path of the console's host, whose screens and files every node has.
fn place_of_console<'r>(
    method: &Method,
    path: &[&'r str],
    query: Option<&str>,
) -> Option<RequestPlace<'r>> {
    match *path {
        ["api", "v1", ref rest @ ..] => place_of_api(method, rest, query),
        // A link works once, whichever node is asked.
        ["_svc", "console", "session"] => Some(RequestPlace::Control),
        _ => Some(RequestPlace::AnyNode),
    }
}

/// Returns the place of a path below `/api/v1`.
fn place_of_api<'r>(
    method: &Method,
    path: &[&'r str],
    query: Option<&str>,
) -> Option<RequestPlace<'r>> {
    match *path {
        ["openapi.json"] => Some(RequestPlace::AnyNode),
        ["projects", project, "backend", ref rest @ ..] => {
            let backend = RequestPlace::Backend(BackendPath::Project(project));
            place_of_backend(method, rest, query, backend)
        }
        ["projects", project, "files"] | ["projects", project, "files", _] => {
            Some(RequestPlace::Backend(BackendPath::Project(project)))
        }
        ["projects", _, "release"] => Some(RequestPlace::ControlWithBackend),
        // Where the database is, calls are answered.
        ["projects", project, "log"] => Some(RequestPlace::Backend(BackendPath::Project(project))),
        // Owners' reads, too, so that one node counts them.
        [
            "projects" | "workspaces" | "me" | "deploy" | "auth" | "reports",
            ..,
        ] => Some(RequestPlace::Control),
        _ => None,
    }
}

/// Returns the place of a path below a project's backend; `backend` is that of its database.
fn place_of_backend<'r>(
    method: &Method,
    path: &[&'r str],
    query: Option<&str>,
    backend: RequestPlace<'r>,
) -> Option<RequestPlace<'r>> {
    match *path {
        [] if *method == Method::DELETE => Some(RequestPlace::Control),
        [] | ["actions"] if [Method::GET, Method::HEAD].contains(method) => Some(backend),
        [] if *method == Method::PATCH && is_dry_run(query) => Some(backend),
        ["actions"] if *method == Method::PUT && is_dry_run(query) => Some(backend),
        ["actions", _, "versions"] => Some(RequestPlace::Control),
        [] | ["actions" | "restore"] | ["actions", _] | ["actions", _, "rollback"] => {
            Some(RequestPlace::ControlWithBackend)
        }
        ["export" | "history" | "rooms" | "query" | "batch"] | ["rooms", _, "messages"] => {
            Some(backend)
        }
        _ => None,
    }
}

/// Whether a change is only tried. Another spelling of it is answered where changes are, which is right, too.
fn is_dry_run(query: Option<&str>) -> bool {
    let mut pairs = query.unwrap_or_default().split('&');
    pairs.any(|pair| pair == "dry_run=true")
}

/// Returns the place of a path of the platform's own, below `/_svc`.
fn place_of_platform<'r>(is_look: bool, path: &[&'r str]) -> Option<RequestPlace<'r>> {
    match *path {
        ["runtime" | "pictures" | "qr" | "report", _]
        | ["runtime.d.ts" | "report"]
        | ["docs", ..] => Some(RequestPlace::AnyNode),
        ["preview"] if is_look => Some(RequestPlace::AnyNode),
        // Development, its sign-in and its payments are refused in a cluster.
        ["preview"] | ["share"] | ["share", "delete"] | ["auth" | "dev" | "webhooks", ..] => {
            Some(RequestPlace::Control)
        }
        _ => None,
    }
}

/// Returns the place of a page, or of a path below its address, by the path's segments and as a whole.
fn place_of_page<'r>(
    is_look: bool,
    slug: &'r str,
    (path, below): (&[&'r str], &str),
) -> RequestPlace<'r> {
    match *path {
        [] | [""] | ["raw"] if is_look => RequestPlace::AnyNode,
        // A one-time page is opened by a form.
        [] | [""] | ["raw"] => RequestPlace::Control,
        ["api", "op" | "query" | "schema" | "live"]
        | ["api", "files", _]
        | ["api", "files", _, _]
        | ["ws" | "mcp"] => RequestPlace::Backend(BackendPath::Page(slug)),
        // A site may have other files there.
        ["auth" | "payments", _] if is_runtime_path(below) => RequestPlace::Control,
        // A file of a site; where none is, and for another method, every node refuses alike.
        _ => RequestPlace::AnyNode,
    }
}

/// Whether a request changes nothing, so that it may be sent again although it may have been received. Sign-ins are safe by their
/// method alone.
pub(super) fn is_repeatable(method: &Method, path: &str) -> bool {
    let is_sign_in = path.starts_with("/_svc/auth/")
        || path.ends_with("/auth/login")
        || path.ends_with("/auth/complete")
        || path.ends_with("/auth/passkeys");
    method.is_safe() && !is_sign_in
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Place of a request in a few letters.
    fn place(host: &HostKind, request: &str) -> String {
        let (method, path) = request.split_once(' ').unwrap();
        let uri: Uri = path.parse().unwrap();
        let method: Method = method.parse().unwrap();
        match placement(host, &method, &uri) {
            None => "none".to_owned(),
            Some(RequestPlace::AnyNode) => "any".to_owned(),
            Some(RequestPlace::Preview {
                deployment,
                revision,
            }) => {
                format!("preview {deployment} {revision}")
            }
            Some(RequestPlace::Backend(BackendPath::Page(slug))) => format!("page {slug}"),
            Some(RequestPlace::Backend(BackendPath::Project(id))) => format!("project {id}"),
            Some(RequestPlace::Control) => "control".to_owned(),
            Some(RequestPlace::ControlWithBackend) => "control with backend".to_owned(),
        }
    }

    #[test]
    fn every_kind_of_request_has_its_place() {
        for (request, expected) in [
            ("GET /", "any"),
            ("GET /healthz", "any"),
            ("GET /readyz", "any"),
            ("GET /room", "any"),
            ("HEAD /room", "any"),
            ("GET /room/", "any"),
            ("GET /room/raw", "any"),
            ("POST /room", "control"),
            ("GET /_preview/d/r/", "preview d r"),
            ("GET /_preview/d/r", "any"),
            ("GET /_svc/runtime/1.js", "any"),
            ("GET /_svc/runtime.d.ts", "any"),
            ("GET /_svc/docs/", "any"),
            ("GET /_svc/docs/images/a.png", "any"),
            ("GET /_svc/qr/room", "any"),
            ("GET /_svc/report/room", "any"),
            ("GET /_svc/preview", "any"),
            ("POST /_svc/preview", "control"),
            ("POST /_svc/share", "control"),
            ("POST /_svc/share/delete", "control"),
            ("GET /_svc/auth/callback/google", "control"),
            ("POST /_svc/auth/email", "control"),
            ("POST /_svc/auth/passkey", "control"),
            ("GET /room/auth/passkeys", "control"),
            ("POST /_svc/webhooks/stripe", "control"),
            ("GET /llms.txt", "any"),
            ("GET /problems/not_found", "any"),
            ("GET /.well-known/oauth-protected-resource/mcp", "any"),
            ("GET /api/v1/openapi.json", "any"),
            ("POST /api/v1/deploy", "control"),
            ("POST /api/v1/auth/room", "control"),
            ("POST /api/v1/reports", "control"),
            ("GET /api/v1/me", "control"),
            ("GET /api/v1/projects/p", "control"),
            ("GET /api/v1/projects/p/stats", "control"),
            ("GET /api/v1/projects/p/log", "project p"),
            ("GET /api/v1/projects/p/files", "project p"),
            ("DELETE /api/v1/projects/p/files/f", "project p"),
            ("POST /room/api/files/add", "page room"),
            ("GET /room/api/files/see/f", "page room"),
            ("POST /api/v1/projects/p/frontends/f/promote", "control"),
            ("GET /api/v1/projects/p/payments/catalog", "control"),
            ("POST /api/v1/projects/p/release", "control with backend"),
            ("GET /api/v1/projects/p/backend", "project p"),
            ("POST /api/v1/projects/p/backend", "control with backend"),
            ("PATCH /api/v1/projects/p/backend", "control with backend"),
            ("PATCH /api/v1/projects/p/backend?dry_run=true", "project p"),
            (
                "PATCH /api/v1/projects/p/backend?dry_run=false",
                "control with backend",
            ),
            ("DELETE /api/v1/projects/p/backend", "control"),
            ("GET /api/v1/projects/p/backend/actions", "project p"),
            (
                "PUT /api/v1/projects/p/backend/actions",
                "control with backend",
            ),
            (
                "PUT /api/v1/projects/p/backend/actions?dry_run=true",
                "project p",
            ),
            (
                "POST /api/v1/projects/p/backend/restore",
                "control with backend",
            ),
            ("GET /api/v1/projects/p/backend/history", "project p"),
            ("GET /api/v1/projects/p/backend/export", "project p"),
            ("GET /api/v1/projects/p/backend/rooms", "project p"),
            (
                "POST /api/v1/projects/p/backend/rooms/r/messages",
                "project p",
            ),
            ("POST /room/api/op", "page room"),
            ("POST /room/api/query", "page room"),
            ("GET /room/api/schema", "page room"),
            ("GET /room/api/live?action=a", "page room"),
            ("GET /room/ws?room=a", "page room"),
            ("POST /room/mcp", "page room"),
            ("GET /room/auth/status", "control"),
            ("POST /room/payments/checkout", "control"),
            ("GET /room/payments/catalog", "control"),
            ("GET /room/auth/", "any"),
            ("GET /room/auth/help.html", "any"),
            ("GET /room/payments/terms", "any"),
            ("POST /mcp", "control"),
            ("GET /api/v2/x", "none"),
            ("GET /api/v1/projects/p/backend/other", "none"),
            ("GET /room/other", "any"),
            ("GET /room/other/file.js", "any"),
            ("POST /room/other", "any"),
            ("GET /_preview/d/r/a/b.js", "preview d r"),
            (
                "POST /api/v1/projects/p/backend/rooms/r/messages/more",
                "none",
            ),
            ("GET /_svc/docs/a/b/c/d/e/f/g/h", "any"),
            ("GET /_svc/other", "none"),
            ("GET /Room/api/op", "none"),
        ] {
            assert_eq!(place(&HostKind::Api, request), expected, "{request}");
        }
        let project = HostKind::Project("shop".to_owned());
        let preview = HostKind::Preview("01a1fc20-6ee3-7da4-ae81-ade539ecfe63".parse().unwrap());
        for (host, request, expected) in [
            (&project, "GET /", "any"),
            (&project, "GET /room/ws", "page room"),
            (&project, "GET /room/_svc/runtime.js", "any"),
            (&preview, "GET /api/op", "any"),
            (&preview, "POST /mcp", "any"),
            (&HostKind::Sites, "POST /room/api/op", "page room"),
            (&HostKind::Console, "GET /", "any"),
            (&HostKind::Console, "GET /p/a/pages/b", "any"),
            (&HostKind::Console, "GET /_svc/console/a.js", "any"),
            (&HostKind::Console, "POST /_svc/console/session", "control"),
            (&HostKind::Console, "GET /api/v1/me", "control"),
            (
                &HostKind::Console,
                "POST /api/v1/projects/p/backend/query",
                "project p",
            ),
            (&HostKind::Landing, "GET /", "any"),
            (&HostKind::Landing, "POST /_svc/share", "control"),
            (&HostKind::Landing, "POST /mcp", "none"),
            (&HostKind::Landing, "POST /room/api/op", "none"),
        ] {
            assert_eq!(place(host, request), expected, "{host:?} {request}");
        }
    }

    #[test]
    fn only_what_changes_nothing_is_sent_again() {
        for (method, path, repeatable) in [
            (Method::GET, "/room/api/schema", true),
            (Method::HEAD, "/room", true),
            (Method::POST, "/room/api/op", false),
            (Method::PUT, "/api/v1/deploy/a.md", false),
            (Method::GET, "/room/auth/login", false),
            (Method::GET, "/room/auth/complete", false),
            (Method::GET, "/_svc/auth/callback/google", false),
            (Method::GET, "/_svc/auth/passkeys", false),
            (Method::GET, "/room/auth/passkeys", false),
            (Method::GET, "/room/auth/status", true),
        ] {
            assert_eq!(is_repeatable(&method, path), repeatable, "{method} {path}");
        }
    }
}
