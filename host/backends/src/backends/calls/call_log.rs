//! Counts calls of visitors and writes them into the log, for the owner of the page.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use serde_json::Value;

use super::routes::{CallContext, CallServices};
use crate::activity::{EntryKind, LoggedOutcome, LoggedRequest, PageActivity};
use crate::deployments::serving::PageLookupError;
use crate::deployments::serving::pages::ServedPage;
use crate::http::hosts::HostKind;
use crate::http::problem::Problem;
use svc_base::ids::BackendId;
use svc_base::names::is_action_name;
use svc_database::RowCounts;

/// Note of a call, as far as the call is known.
#[derive(Debug)]
pub(super) struct CallNote {
    began: Duration,
    page: Option<Arc<PageActivity>>,
    pub(super) backend: Option<BackendId>,
    /// Names of the actions, as they were sent.
    pub(super) actions: Vec<String>,
    pub(super) user_id: Option<String>,
    pub(super) rows: RowCounts,
}

impl CallNote {
    /// Begins the note of a call.
    pub(super) fn begin(calls: &CallServices) -> Self {
        Self {
            began: calls.serving.clock().elapsed(),
            page: None,
            backend: None,
            actions: Vec::new(),
            user_id: None,
            rows: RowCounts::default(),
        }
    }

    /// Finds whose call it is. The page of one that the client's bucket refuses is looked for in memory alone.
    pub(super) fn find_page(
        &mut self,
        calls: &CallServices,
        (host, slug): (&HostKind, &str),
        page: Option<&Result<Arc<ServedPage>, PageLookupError>>,
    ) {
        self.page = match page {
            Some(Ok(page)) => page.activity.clone(),
            Some(Err(_)) | None => calls.serving.known_activity(host, slug),
        };
    }

    /// Counts the call, and writes it into the log.
    pub(super) fn record(
        self,
        calls: &CallServices,
        context: &CallContext<'_>,
        response: &Response,
    ) {
        let Some(page) = &self.page else { return };
        let (clock, outcome) = (calls.serving.clock(), LoggedOutcome::of(response));
        let (at, took) = (clock.now(), clock.elapsed().saturating_sub(self.began));
        let failed = failed_op(response);
        if outcome.status != 429 {
            self.count(calls, page, (at, took), (outcome.is_failure(), failed));
        }
        let action = match (&*self.actions, failed) {
            ([one], _) => Some(one),
            (several, Some(failed)) => several.get(failed),
            _ => None,
        };
        let request = LoggedRequest {
            kind: EntryKind::Call,
            at,
            took,
            client: Some(*context.client),
            request_id: context.request_id,
            action: action
                .map(String::as_str)
                .filter(|name| is_action_name(name)),
            user_id: self.user_id.as_deref(),
            outcome,
        };
        calls.serving.activity().record(page, request);
    }

    fn count(
        &self,
        calls: &CallServices,
        page: &PageActivity,
        (at, took): (svc_base::clock::Timestamp, Duration),
        (is_failure, failed): (bool, Option<usize>),
    ) {
        let project = page.project();
        if self.actions.is_empty() {
            project.count_call(None, at, took, Err(()));
        }
        for (number, name) in self.actions.iter().enumerate() {
            let action = self
                .backend
                .and_then(|backend| calls.definitions.known_action(backend, name));
            let counters = action.as_ref().and_then(|action| action.activity(project));
            // Of a batch one call has failed, and the others have no effect.
            let outcome = match failed {
                Some(failed) if failed != number => Ok(0),
                None if is_failure && self.actions.len() > 1 => Ok(0),
                _ if is_failure => Err(()),
                _ => Ok(self.rows.of(number)),
            };
            project.count_call(counters, at, took, outcome);
        }
    }
}

/// Returns which call of a batch has failed, as the problem says.
fn failed_op(response: &Response) -> Option<usize> {
    let problem = response.extensions().get::<Box<Problem>>()?;
    let index = problem.extensions.get("index").and_then(Value::as_u64)?;
    usize::try_from(index).ok()
}
