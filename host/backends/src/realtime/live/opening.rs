//! Beginnings of live queries, which are counted as calls and written into the log when they are answered.

use std::sync::Arc;
use std::time::Duration;

use super::connection::ConnectionContext;
use super::error::LiveError;
use super::problems;
use crate::activity::{EntryKind, LoggedRequest, PageActivity};
use crate::backends::calls::ActionCalls;
use crate::deployments::serving::PageService;
use crate::http::client_ip::ClientIp;
use svc_base::ids::BackendId;
use svc_base::names::is_action_name;

/// A live query that is not answered yet.
#[derive(Debug)]
pub(super) struct LiveQueryOpening {
    /// Name of the action, as it was sent.
    pub(super) action: String,
    /// When it began, on the clock of the server's run.
    pub(super) began: Duration,
}

/// Log of the project of a connection's page.
#[derive(Debug)]
pub(super) struct LiveQueryLog {
    pub(super) serving: Arc<PageService>,
    pub(super) actions: Arc<ActionCalls>,
    pub(super) page: Arc<PageActivity>,
    pub(super) backend: BackendId,
    pub(super) client: ClientIp,
}

impl ConnectionContext {
    /// Counts a live query and writes it into the log, by its first answer: the number of rows, or why there is none.
    pub(super) fn record(&self, opening: LiveQueryOpening, answer: Result<u64, &LiveError>) {
        if let Some(log) = &self.log {
            log.record(opening, self, answer);
        }
    }
}

impl LiveQueryLog {
    fn record(
        &self,
        opening: LiveQueryOpening,
        opened: &ConnectionContext,
        answer: Result<u64, &LiveError>,
    ) {
        let LiveQueryOpening { action, began } = opening;
        let clock = self.serving.clock();
        let (at, took) = (clock.now(), clock.elapsed().saturating_sub(began));
        let outcome = problems::logged_outcome(answer.err());
        let known = self.actions.known_action(self.backend, &action);
        let project = self.page.project();
        if outcome.status != 429 {
            let counters = known.as_ref().and_then(|action| action.activity(project));
            project.count_call(counters, at, took, answer.map_err(|_| ()));
        }
        let user = opened
            .sign_in
            .as_ref()
            .and_then(|sign_in| sign_in.visitor());
        let request = LoggedRequest {
            kind: EntryKind::Live,
            at,
            took,
            client: Some(self.client),
            request_id: &opened.request,
            action: match known {
                Some(known) => Some(known.counted_name(project)),
                None => is_action_name(&action).then(|| action.into()),
            },
            user_id: user.as_ref().map(|user| user.user_id.as_str()),
            outcome,
        };
        self.serving.activity().record(&self.page, request);
    }
}
