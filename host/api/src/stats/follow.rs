//! The log as a stream of server-sent events: it goes on until its reader leaves, or may not read it any more.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use http::{HeaderMap, HeaderName};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::requests::LogQuery;
use super::routes::StatsServices;
use super::views::LogEntryView;
use crate::access::{AuthenticationResult, Viewer};
use crate::activity::{LogEntry, LogFollower};
use crate::http::event_stream::event_response;
use crate::http::extract::invalid_request;
use crate::http::problem::{Problem, ProblemCode};
use crate::projects::scope::AuthorizedProject;
use svc_base::ids::{LogEntryId, ProjectId};

/// Id of the last event that a reader has got.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Pause after entries were sent, in which others gather: many a second cost no more than some.
const PAUSE: Duration = Duration::from_millis(50);

/// A reader who follows a log.
#[derive(Debug)]
pub(super) struct LogFollowing {
    follower: LogFollower,
    services: StatsServices,
    project: ProjectId,
    /// Headers with the reader's credential.
    headers: HeaderMap,
    /// Ticks when the stream shows that it is alive, and the reader's authority is looked at.
    checks: Interval,
    has_begun: bool,
}

impl LogFollowing {
    /// Begins to follow: after the entry that `Last-Event-ID` names, else with the next one.
    ///
    /// # Errors
    /// `invalid_request`; `rate_limited` where too many follow already.
    pub(super) fn begin(
        services: StatsServices,
        at: &AuthorizedProject<Viewer>,
        input: LogQuery,
        headers: HeaderMap,
    ) -> Result<Self, Problem> {
        if input.before.is_some() || input.limit.is_some() {
            return Err(invalid_request(
                "A stream has no `limit` and no `before`: it goes on with what comes. Leave them out, or ask without `Accept: text/event-stream`.",
            ));
        }
        let filter = input.checked()?.filter;
        let last = headers.get(&LAST_EVENT_ID);
        // A reader that comes back from elsewhere names an id that nobody knows, and begins anew.
        let last = last.and_then(|last| last.to_str().ok()?.parse::<LogEntryId>().ok());
        let project = services.activity.project(at.project.id);
        let follower = project.follow_log(filter, last).ok_or_else(|| {
            Problem::new(
                ProblemCode::RateLimited,
                "Too many streams of this log are open. Close one, then try again.",
            )
        })?;
        let period = Duration::from_secs(services.config.limits.ping_seconds.max(1));
        let mut checks = interval(period);
        checks.reset();
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            follower,
            project: at.project.id,
            services,
            headers,
            checks,
            has_begun: false,
        })
    }

    /// Returns the answer.
    pub(super) fn response(self) -> Response {
        event_response(Body::from_stream(self.stream()))
    }

    fn stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        unfold(Some(self), |following| async move {
            let mut following = following?;
            let (piece, goes_on) = following.next().await?;
            Some((Ok(piece), goes_on.then_some(following)))
        })
    }

    /// Returns the next piece, and whether the stream goes on; `None` if the log has ended.
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        if !self.has_begun {
            self.has_begun = true;
            return Some(self.sign_of_life().await);
        }
        tokio::time::sleep(PAUSE).await;
        tokio::select! {
            // A flood of entries puts no check off.
            biased;
            _ = self.checks.tick() => Some(self.sign_of_life().await),
            some = self.follower.next() => Some((encode(&some?).into(), true)),
        }
    }

    /// Returns a comment, and that the stream goes on; or why it ends.
    async fn sign_of_life(&self) -> (Bytes, bool) {
        match self.check().await {
            Ok(()) => (Bytes::from_static(b": still here\n\n"), true),
            Err(problem) => {
                problem.log("log stream");
                let document = problem.document(&self.services.config.base_url, "");
                let document = document.to_json();
                (format!("event: error\ndata: {document}\n\n").into(), false)
            }
        }
    }

    /// Looks whether the reader may still read the log.
    async fn check(&self) -> Result<(), Problem> {
        let caller = match self.services.authenticator.identify(&self.headers).await? {
            AuthenticationResult::Known(caller) => caller,
            AuthenticationResult::Nobody | AuthenticationResult::Invalid => {
                return Err(crate::access::credential_invalid());
            }
        };
        let projects = &self.services.projects;
        projects.scoped::<Viewer>(&caller, self.project).await?;
        Ok(())
    }
}

/// Writes entries as events.
fn encode(entries: &[std::sync::Arc<LogEntry>]) -> String {
    let mut events = String::new();
    for entry in entries {
        // A view of plain data has no way to fail.
        let view = serde_json::to_string(&LogEntryView::new(entry)).unwrap_or_default();
        // Writing to a string has no way to fail.
        let _ = write!(events, "event: entry\nid: {}\ndata: {view}\n\n", entry.id);
    }
    events
}
