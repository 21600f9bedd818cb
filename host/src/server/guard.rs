//! Guard of a node's answers: none is given once another node may have taken over, and none waits for the ledger without end.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::response::{IntoResponse, Response};
use futures_util::future::Either;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use pin_project_lite::pin_project;
use tokio::time::Sleep;

use super::placement::is_repeatable;
use crate::cluster::{AnswerGate, ServingClusterNode};
use crate::http::hosts::HostKind;
use crate::http::problem::{Problem, ProblemCode};
use crate::router;

/// Header that has an edge keep a page for long.
const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");
/// End of the paths of calls.
const CALL_PATH: &str = "/api/op";

/// Kind of a request, by what may have been done when its answer is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuardedRequest {
    /// A probe, which says itself how the node is.
    Probe,
    /// A page or a file that is read, as by a view: those in memory are shown for a while without the ledger.
    View(ViewKind),
    /// A request that only reads.
    Read,
    /// A call of an action, which may change something or not. Its database asks for room where it writes.
    Call,
    /// Any other request that may change something.
    Write,
}

/// Views, by what is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewKind {
    /// A page, which may be locked.
    Page,
    /// A file of a site, which everybody may read.
    File,
}

impl ViewKind {
    /// Returns what a routed request reads, if it does.
    pub(super) fn of(host: &HostKind, method: &Method, uri: &Uri) -> Option<Self> {
        if router::reads_page(host, method, uri) {
            Some(Self::Page)
        } else {
            router::reads_file(host, method, uri).then_some(Self::File)
        }
    }
}

impl GuardedRequest {
    fn of(method: &Method, path: &str, view: Option<ViewKind>) -> Self {
        if matches!(path, "/healthz" | "/readyz") {
            Self::Probe
        } else if let Some(view) = view {
            Self::View(view)
        } else if is_repeatable(method, path) {
            Self::Read
        } else if path.ends_with(CALL_PATH) {
            Self::Call
        } else {
            Self::Write
        }
    }
}

/// Guard of one answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerGuard<'g> {
    node: &'g ServingClusterNode,
    kind: GuardedRequest,
}

impl<'g> AnswerGuard<'g> {
    /// Makes the guard of a request. A view is of what may be in memory.
    pub(super) fn new(
        node: &'g ServingClusterNode,
        method: &Method,
        path: &str,
        view: Option<ViewKind>,
    ) -> Self {
        let kind = GuardedRequest::of(method, path, view);
        Self { node, kind }
    }

    /// Returns the refusal of a request that must not begin.
    pub(super) fn refusal(self) -> Option<Problem> {
        if !self.may_answer() || self.is_out_of_date() {
            return Some(refusal());
        }
        let is_too_much = self.kind == GuardedRequest::Write && !self.node.gate().has_room();
        is_too_much.then(busy)
    }

    fn may_answer(self) -> bool {
        match self.kind {
            GuardedRequest::Probe => true,
            GuardedRequest::View(_) => self.node.may_show_pages(),
            GuardedRequest::Read | GuardedRequest::Call | GuardedRequest::Write => {
                self.node.gate().may_answer()
            }
        }
    }

    /// Whether all that this node has in memory is too old: what needs no more, as a call of an action, must not go on for ever at a node
    /// that hears nothing of control.
    fn is_out_of_date(self) -> bool {
        match self.kind {
            GuardedRequest::Read | GuardedRequest::Call | GuardedRequest::Write => {
                self.node.is_long_behind()
            }
            GuardedRequest::Probe | GuardedRequest::View(_) => false,
        }
    }

    /// Problem in place of an answer that is given up.
    fn given_up(self) -> Problem {
        match self.kind {
            GuardedRequest::Call | GuardedRequest::Write => Problem::interrupted(),
            GuardedRequest::Probe | GuardedRequest::View(_) | GuardedRequest::Read => refusal(),
        }
    }

    /// Returns what the client gets for an answer that was made under this guard.
    fn finish(self, response: Response) -> Response {
        if !self.may_answer() {
            return self.given_up().into_response();
        }
        let is_refusal = response.status() == StatusCode::SERVICE_UNAVAILABLE;
        let response = match self.kind {
            GuardedRequest::Probe => response,
            _ if is_refusal => shorten_wait(response, self.node.gate().has_room()),
            _ => response,
        };
        match self.kind {
            GuardedRequest::View(view) if !self.node.is_current() => {
                let shown = stale_view(view, response);
                shown.unwrap_or_else(|| self.given_up().into_response())
            }
            _ => response,
        }
    }
}

/// Has the client of a 503 come back soon where the wait is for the ledger or for a database that moves. On one machine it is longer.
fn shorten_wait(mut response: Response, has_room: bool) -> Response {
    let problem = response.extensions().get::<Box<Problem>>();
    let is_busy = problem.is_some_and(|problem| problem.code == ProblemCode::DatabaseBusy);
    if response.status() == StatusCode::SERVICE_UNAVAILABLE && (is_busy || !has_room) {
        let wait = HeaderValue::from_static("1");
        response.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    response
}

/// Returns the answer to a view that is shown without the ledger or control's owner, if everybody may read it or it leads there: another
/// node may have changed the password of a locked page, or deleted it. An edge must not keep it beyond the end of this node.
fn stale_view(view: ViewKind, mut response: Response) -> Option<Response> {
    let status = response.status();
    let leads_on = status.is_redirection() && status != StatusCode::NOT_MODIFIED;
    let is_open = match view {
        ViewKind::Page => {
            let cache = response.headers().get(header::CACHE_CONTROL);
            cache.is_some_and(|cache| cache.as_bytes().starts_with(b"public"))
        }
        // A file that is not there may have come since.
        ViewKind::File => status.is_success() || status == StatusCode::NOT_MODIFIED,
    };
    if !is_open && !leads_on {
        return None;
    }
    response.headers_mut().remove(CDN_CACHE_CONTROL);
    Some(response)
}

pin_project! {
    /// Answer that is given while this node may. It is looked at in place: a box for each request costs more than the look.
    struct GuardedAnswer<'g, F> {
        guard: AnswerGuard<'g>,
        #[pin]
        answer: F,
        #[pin]
        next_look: Option<Sleep>,
    }
}

impl<F: Future<Output = Response>> Future for GuardedAnswer<'_, F> {
    type Output = Response;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response> {
        let mut this = self.project();
        if let Poll::Ready(response) = this.answer.poll(context) {
            return Poll::Ready(this.guard.finish(response));
        }
        loop {
            if let Some(look) = this.next_look.as_mut().as_pin_mut() {
                ready!(look.poll(context));
                // A probe says itself how the node is.
                let is_probe = this.guard.kind == GuardedRequest::Probe;
                if !is_probe && this.guard.node.gate().is_interrupted() {
                    return Poll::Ready(this.guard.given_up().into_response());
                }
            }
            this.next_look
                .set(Some(tokio::time::sleep(AnswerGate::LOOK_EVERY)));
        }
    }
}

/// Gives an answer: on a single machine as it is, on a node under its guard. What changes something runs to its end all the same.
pub(super) fn run_guarded(
    guard: Option<AnswerGuard<'_>>,
    answer: impl Future<Output = Response>,
) -> impl Future<Output = Response> {
    match guard {
        None => Either::Left(answer),
        Some(guard) => Either::Right(GuardedAnswer {
            guard,
            answer,
            next_look: None,
        }),
    }
}

/// Refusal of a node that may have been replaced: nothing was done.
fn refusal() -> Problem {
    Problem::new(
        ProblemCode::CapacityReached,
        "This server does not reach what it shares with others, and nothing was done. Try again after Retry-After.",
    )
    .retry_soon()
}

/// Refusal of a write while too much waits for the ledger: nothing was done.
fn busy() -> Problem {
    Problem::new(
        ProblemCode::DatabaseBusy,
        "Too many writes wait for what this server shares with others, and nothing was done. Try again after Retry-After.",
    )
    .retry_soon()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart_by_what_may_have_been_done() {
        for (method, path, kind) in [
            (Method::POST, "/page/api/op", GuardedRequest::Call),
            (Method::POST, "/page/mcp", GuardedRequest::Write),
            (Method::DELETE, "/api/v1/x", GuardedRequest::Write),
            (Method::GET, "/api/v1/x", GuardedRequest::Read),
            (Method::GET, "/page/auth/complete", GuardedRequest::Write),
            (
                Method::GET,
                "/_svc/auth/callback/acme",
                GuardedRequest::Write,
            ),
            (Method::GET, "/page", GuardedRequest::View(ViewKind::Page)),
            (Method::HEAD, "/page/", GuardedRequest::View(ViewKind::File)),
            (Method::GET, "/readyz", GuardedRequest::Probe),
        ] {
            let view = ViewKind::of(&HostKind::Api, &method, &path.parse().unwrap());
            assert_eq!(GuardedRequest::of(&method, path, view), kind, "{path}");
        }
        let refused = refusal().into_response();
        assert_eq!(refused.headers()[header::RETRY_AFTER], "1");
    }

    #[test]
    fn who_waits_for_the_ledger_comes_back_soon() {
        for (code, has_room, wait) in [
            (ProblemCode::DatabaseBusy, true, Some("1")),
            (ProblemCode::CapacityReached, false, Some("1")),
            (ProblemCode::CapacityReached, true, Some("60")),
            (ProblemCode::NotFound, false, None),
        ] {
            let answer = Problem::new(code, "no").into_response();
            let answer = shorten_wait(answer, has_room);
            let said = answer.headers().get(header::RETRY_AFTER);
            assert_eq!(said.map(|said| said.to_str().unwrap()), wait);
        }
    }

    #[test]
    fn without_the_ledger_only_open_pages_are_shown_and_no_edge_keeps_them() {
        let answer = |status: StatusCode, cache: &'static str| {
            let headers = [
                (header::CACHE_CONTROL, cache),
                (CDN_CACHE_CONTROL, "max-age=86400"),
            ];
            (status, headers).into_response()
        };
        let (page, file) = (ViewKind::Page, ViewKind::File);
        for (view, status, cache, is_shown) in [
            (
                page,
                StatusCode::OK,
                "public, max-age=0, must-revalidate",
                true,
            ),
            (page, StatusCode::NOT_MODIFIED, "public, max-age=0", true),
            (page, StatusCode::FOUND, "no-store", true),
            (page, StatusCode::PERMANENT_REDIRECT, "no-store", true),
            (page, StatusCode::OK, "private, no-store", false),
            (page, StatusCode::NOT_MODIFIED, "private, no-store", false),
            (page, StatusCode::UNAUTHORIZED, "private, no-store", false),
            (file, StatusCode::OK, "max-age=60", true),
            (file, StatusCode::PARTIAL_CONTENT, "no-store", true),
            (file, StatusCode::NOT_MODIFIED, "no-cache", true),
            (file, StatusCode::NOT_FOUND, "public, max-age=60", false),
        ] {
            let shown = stale_view(view, answer(status, cache));
            assert_eq!(shown.is_some(), is_shown, "{status} {cache}");
            assert!(shown.is_none_or(|it| !it.headers().contains_key(CDN_CACHE_CONTROL)));
        }
        let lost = Problem::not_found().into_response();
        assert!(stale_view(page, lost).is_none());
    }
}
