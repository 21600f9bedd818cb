//! The log of requests below a page, for the owner of its project: a layer around routes that are no calls.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::PageService;
use crate::activity::{EntryKind, LoggedOutcome, LoggedRequest, PageActivity};
use crate::http::client_ip::ClientIp;
use crate::http::context::HttpRequestContext;
use svc_base::names::is_action_name;

/// Note of a route about its answer, for the log; an extension of the answer.
#[derive(Clone, Debug, Default)]
pub struct LogNote {
    /// Id of the visitor, if signed in.
    pub user_id: Option<String>,
    /// Code of a failure that the answer is no problem of.
    pub code: Option<&'static str>,
    /// Slug of the page, if the path names none.
    pub slug: Option<String>,
    /// Name of the action, if it is in the path.
    pub action: Option<Arc<str>>,
    /// Whether the request is in the log already.
    pub is_logged: bool,
}

/// State of the layer: the pages, and the kind of its requests.
pub type RequestLogState = (Arc<PageService>, EntryKind);

/// Writes the requests of a route into the log of the page's project.
pub async fn log_requests(
    State((serving, kind)): State<RequestLogState>,
    request: Request,
    next: Next,
) -> Response {
    let Some(context) = request.extensions().get::<HttpRequestContext>().cloned() else {
        return next.run(request).await;
    };
    let mut segments = request.uri().path().split('/').skip(1);
    let slug_of_path = segments.next().unwrap_or_default().to_owned();
    let action = match kind {
        EntryKind::Upload => segments.nth(2).filter(|name| is_action_name(name)),
        _ => None,
    };
    let (action, began) = (action.map(Arc::from), serving.clock().elapsed());
    let response = next.run(request).await;
    let note = response.extensions().get::<LogNote>().cloned();
    let outcome = LoggedOutcome::of(&response);
    // A sign-in has steps; those that lead on to the next one are no outcome of it.
    let is_step = kind == EntryKind::SignIn && note.is_none() && !outcome.is_failure();
    if is_step || note.as_ref().is_some_and(|note| note.is_logged) {
        return response;
    }
    let slug = note.as_ref().and_then(|note| note.slug.as_deref());
    let slug = slug.unwrap_or(&slug_of_path);
    let page = match serving.known_activity(&context.host, slug) {
        // The route has found the page, which may have left the memory meanwhile.
        None if note.is_some() => {
            let page = serving.page_on_host(&context.host, slug).await;
            page.ok().and_then(|page| page.activity.clone())
        }
        known => known,
    };
    if let Some(page) = page {
        let note = LogNote {
            action,
            ..note.unwrap_or_default()
        };
        let of = (&context.client, &*context.request_id);
        serving.record(&page, kind, of, began, (outcome, note));
    }
    response
}

impl PageService {
    /// Writes a request that was answered into the log of a page's project.
    pub fn record(
        &self,
        page: &PageActivity,
        kind: EntryKind,
        (client, request_id): (&ClientIp, &str),
        began: Duration,
        (mut outcome, note): (LoggedOutcome, LogNote),
    ) {
        outcome.code = outcome.code.or(note.code);
        let at = self.now();
        if kind == EntryKind::SignIn && !outcome.is_failure() {
            page.count_sign_in(at);
        }
        let request = LoggedRequest {
            kind,
            at,
            took: self.clock().elapsed().saturating_sub(began),
            client: Some(*client),
            request_id,
            action: note.action,
            user_id: note.user_id.as_deref(),
            outcome,
        };
        self.activity().record(page, request);
    }
}
