//! Counts calls of visitors and writes them into the log, for the owner of the page.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use serde_json::Value;

use super::requests::BatchedCall;
use super::routes::{CallContext, CallServices};
use crate::activity::{EntryKind, LoggedOutcome, LoggedRequest, PageActivity, ProjectActivity};
use crate::backends::model::CallableAction;
use crate::deployments::serving::PageLookupError;
use crate::deployments::serving::pages::ServedPage;
use crate::http::problem::Problem;
use crate::visitors::ActionCallerIdentity;
use svc_base::clock::Timestamp;
use svc_base::names::is_action_name;
use svc_database::RowCounts;

/// Beginning of the ids of visitors.
const VISITOR_PREFIX: &str = "usr_";

/// Actions of a call, as far as they were found: none of a call that was refused before.
#[derive(Debug, Default)]
pub(super) struct CalledActions {
    /// Action of a single call.
    pub(super) single: Option<Arc<CallableAction>>,
    /// Actions of the first calls of a batch.
    of_batch: Vec<Arc<CallableAction>>,
    /// Names as they were sent: of all calls of a batch, or of a single call whose action was not found.
    names: Vec<String>,
    is_batch: bool,
}

/// Note of a call, as far as the call is known.
#[derive(Debug, Default)]
pub(super) struct CallNote {
    page: Option<Arc<PageActivity>>,
    pub(super) called: CalledActions,
    /// Id of the visitor, if signed in.
    user_id: Option<String>,
    pub(super) rows: RowCounts,
}

/// Time of a call, and whether it failed.
#[derive(Clone, Copy)]
struct CallOutcome {
    at: Timestamp,
    took: Duration,
    is_failure: bool,
    /// Number of the call that failed, if one call did.
    failed: Option<usize>,
}

impl CalledActions {
    /// Begins the actions of a batch.
    pub(super) fn begin_batch(&mut self, calls: &[BatchedCall]) -> &mut Vec<Arc<CallableAction>> {
        self.is_batch = true;
        self.names = calls.iter().map(|call| call.action.clone()).collect();
        &mut self.of_batch
    }

    /// Notes the name of an action that was not found.
    pub(super) fn set_unknown(&mut self, name: String) {
        self.names = vec![name];
    }

    /// Returns the number of calls.
    fn count(&self) -> usize {
        match self.is_batch {
            true => self.names.len(),
            false => 1,
        }
    }

    /// Returns the action of a call, from 0.
    fn of(&self, call: usize) -> Option<&CallableAction> {
        let action = match self.is_batch {
            true => self.of_batch.get(call),
            false => self.single.as_ref(),
        };
        action.map(|action| &**action)
    }

    /// Returns the name of the action of a call, if it could be an action's.
    fn name_of(&self, call: usize, project: &ProjectActivity) -> Option<Arc<str>> {
        match self.of(call) {
            Some(action) => Some(action.counted_name(project)),
            None => {
                let name = self.names.get(call)?;
                is_action_name(name).then(|| name.as_str().into())
            }
        }
    }
}

impl CallNote {
    /// Begins the note of a call. The page of one that the client's bucket refuses is looked for in memory alone.
    pub(super) fn begin(
        calls: &CallServices,
        context: &CallContext<'_>,
        slug: &str,
        page: Option<&Result<Arc<ServedPage>, PageLookupError>>,
    ) -> Self {
        let page = match page {
            Some(Ok(page)) => page.activity.clone(),
            Some(Err(_)) | None => calls.serving.known_activity(context.host, slug),
        };
        Self {
            page,
            ..Self::default()
        }
    }

    /// Notes whom the call is by. What an owner calls as may be any text, of which only ids of visitors are noted.
    pub(super) fn set_visitor(&mut self, by: Option<&ActionCallerIdentity>) {
        let id = by.map(|by| by.user_id.as_str());
        let id = id.filter(|id| id.starts_with(VISITOR_PREFIX));
        self.user_id = id.map(str::to_owned);
    }

    /// Counts the call, and writes it into the log.
    pub(super) fn record(
        self,
        calls: &CallServices,
        context: &CallContext<'_>,
        response: &Response,
    ) {
        let Some(page) = &self.page else { return };
        let (clock, logged) = (calls.serving.clock(), LoggedOutcome::of(response));
        // Of one call it is known; of several the problem says it, if it is one call's.
        let failed = match self.called.is_batch {
            true if self.called.count() > 1 => failed_op(response),
            _ => Some(0),
        };
        let outcome = CallOutcome {
            at: clock.now(),
            took: clock.elapsed().saturating_sub(context.began),
            is_failure: logged.is_failure(),
            failed,
        };
        if logged.status != 429 {
            self.count(page, outcome);
        }
        let name = |call| self.called.name_of(call, page.project());
        let request = LoggedRequest {
            kind: EntryKind::Call,
            at: outcome.at,
            took: outcome.took,
            client: Some(*context.client),
            request_id: context.request_id,
            action: failed.and_then(name),
            user_id: self.user_id.as_deref(),
            outcome: logged,
        };
        calls.serving.activity().record(page, request);
    }

    fn count(&self, page: &PageActivity, outcome: CallOutcome) {
        let project = page.project();
        for call in 0..self.called.count() {
            let action = self.called.of(call);
            let counters = action.and_then(|action| action.activity(project));
            let counted = match outcome {
                CallOutcome {
                    is_failure: false, ..
                } => Ok(self.rows.of(call)),
                // Of a batch one call has failed, and the others have no effect.
                CallOutcome { failed, .. } if failed == Some(call) => Err(()),
                CallOutcome { .. } => Ok(0),
            };
            project.count_call(counters, outcome.at, outcome.took, counted);
        }
    }
}

/// Returns which call of a batch has failed, as the problem says.
fn failed_op(response: &Response) -> Option<usize> {
    let problem = response.extensions().get::<Box<Problem>>()?;
    let index = problem.extensions.get("index").and_then(Value::as_u64)?;
    usize::try_from(index).ok()
}
