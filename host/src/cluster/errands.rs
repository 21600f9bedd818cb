//! Errands of a node that follows control: they are sent to the node that has it, which answers when they are done.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use svc_ledger::{DatabaseName, Ledger};
use tokio::time::{sleep, timeout};

use super::known_places::{DatabaseLocation, KnownPlaces};
use super::peers::{PeerError, full_body};
use super::run::Run;
use crate::control::{ErrandSender, Error};

/// Service of the node that has control.
pub const ERRANDS_SERVICE: &str = "errands";
/// Times that an errand which nobody has taken is sent, and the pause in between.
const TRIES: u32 = 3;
const RETRY_AFTER: Duration = Duration::from_millis(300);
/// Longest time that an answer is waited for, which others wait behind.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest answer to an errand, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Sender of errands to the node that has control.
pub(super) struct ErrandPost<L> {
    run: Arc<Run<L>>,
    places: Arc<KnownPlaces<L>>,
}

impl<L> fmt::Debug for ErrandPost<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrandPost").finish_non_exhaustive()
    }
}

impl<L: Ledger> ErrandPost<L> {
    pub(super) fn new(run: &Arc<Run<L>>, places: &Arc<KnownPlaces<L>>) -> Self {
        Self {
            run: Arc::clone(run),
            places: Arc::clone(places),
        }
    }

    /// Sends an errand until somebody has taken it. One that may have been taken is not sent again, as some must not be done twice.
    async fn post(&self, message: String) -> Result<String, Error> {
        let message = Bytes::from(message);
        for tried in 0..TRIES {
            if tried > 0 {
                sleep(RETRY_AFTER).await;
                self.places.forget(DatabaseName::Control);
            }
            let DatabaseLocation::At(run) = self.places.locate(DatabaseName::Control).await else {
                continue;
            };
            let request = Request::post(format!("/{ERRANDS_SERVICE}"));
            let request = request.body(full_body(message.clone()));
            let request = request.map_err(Error::from_errand)?;
            match self.run.peers().client().send(run, request).await {
                Ok(answer) => return read_answer(answer).await,
                Err(PeerError::NotSent { .. } | PeerError::Refused) => {}
                Err(PeerError::Lost { reason }) => {
                    tracing::warn!(reason, "whether an errand was done is not known");
                    return Err(Error::Unanswered);
                }
            }
        }
        Err(Error::Elsewhere)
    }
}

/// Reads the answer to an errand that was taken.
async fn read_answer(answer: http::Response<Incoming>) -> Result<String, Error> {
    let status = answer.status();
    let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect();
    let Ok(body) = body.await else {
        return Err(Error::Unanswered);
    };
    let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    match status {
        StatusCode::OK => Ok(text),
        _ => Err(Error::from_errand_failure(&text)),
    }
}

impl<L: Ledger> ErrandSender for ErrandPost<L> {
    fn send(&self, message: String) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(async move {
            let posted = timeout(ANSWER_TIMEOUT, self.post(message)).await;
            posted.unwrap_or(Err(Error::Unanswered))
        })
    }
}
