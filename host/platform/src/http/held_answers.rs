//! Bound on the bytes of large answers that wait for their readers: each is in memory until its reader has taken it, however slowly.
//!
//! An answer may tell of what was done, so none is refused: where there is no room its reader has less time for it, and a caller who
//! holds a part of the budget is refused before anything is done.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::header;
use http_body_util::BodyExt;
use hyper::body::Body as _;

use super::byte_budget::{ByteBudget, ByteBudgetFull};
use super::deadline::DeadlineBody;
use super::problem::{Problem, ProblemCode};
use crate::config::Limits;
use svc_base::flow::CallerFlow;

/// Most bytes of an answer that is not counted: the least rate of readers ends it within a minute.
const UNCOUNTED_BYTES: usize = 32 << 10;
/// Time that every reader of a large answer has.
const LEAST_TIME: Duration = Duration::from_secs(60);
/// Bytes for which a reader has a second more.
const BYTES_A_SECOND: u64 = 8 << 10;
/// Time that a reader has where there is no room.
const CROWDED_TIME: Duration = Duration::from_secs(10);

/// Budget of the large answers that wait for their readers. Clones share it.
#[derive(Clone, Debug)]
pub struct HeldAnswerBudget(Arc<ByteBudget>);

impl HeldAnswerBudget {
    /// Makes the budget: half of what pages in work have.
    pub fn new(limits: &Limits) -> Self {
        let cap = limits.divide_cap("page_work_bytes", limits.page_work_bytes / 2);
        Self(ByteBudget::new(cap))
    }

    /// Checks that a flow may ask for more, before anything is done for it.
    ///
    /// # Errors
    /// [`ByteBudgetFull`] if its answers that are not read yet take all that it may hold.
    pub fn check(&self, flow: &CallerFlow) -> Result<(), ByteBudgetFull> {
        match self.0.is_full_for(flow) {
            true => Err(ByteBudgetFull),
            false => Ok(()),
        }
    }

    /// Makes the body of an answer, which counts for a flow until it is read if it is large.
    pub fn body(&self, flow: CallerFlow, answer: Bytes) -> Body {
        let bytes = answer.len();
        if bytes <= UNCOUNTED_BYTES {
            return Body::from(answer);
        }
        let (permit, longest) = match self.0.try_take(flow.clone(), bytes) {
            Ok(permit) => (permit, reading_time(bytes)),
            Err(ByteBudgetFull) => (self.0.take_beyond(flow, bytes), CROWDED_TIME),
        };
        Body::new(DeadlineBody::new(permit.attach(answer), longest))
    }

    /// Counts a finished JSON answer for a flow until it is read if it is large. Others, such as streams of files, stay as they are.
    pub async fn hold(&self, flow: CallerFlow, answer: Response) -> Response {
        let label = answer.headers().get(header::CONTENT_TYPE);
        let is_json = label.is_some_and(|label| label == "application/json");
        let bytes = answer.body().size_hint().exact().unwrap_or(0);
        if !is_json || bytes <= UNCOUNTED_BYTES as u64 {
            return answer;
        }
        let (head, body) = answer.into_parts();
        match body.collect().await {
            Ok(whole) => Response::from_parts(head, self.body(flow, whole.to_bytes())),
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}

/// Returns the time that a reader has for an answer.
fn reading_time(bytes: usize) -> Duration {
    LEAST_TIME + Duration::from_secs(bytes as u64 / BYTES_A_SECOND)
}

impl From<ByteBudgetFull> for Problem {
    fn from(_: ByteBudgetFull) -> Self {
        Self::new(
            ProblemCode::CapacityReached,
            "Too many large answers wait for you to read them. Read or drop them, then send the request again: nothing was done.",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(number: u8) -> CallerFlow {
        CallerFlow::stranger([192, 0, 2, number].into())
    }

    /// A budget of 100,000 bytes, of which a client has 10,000 and an owner 25,000.
    fn budget() -> HeldAnswerBudget {
        HeldAnswerBudget::new(&Limits {
            page_work_bytes: 200_000,
            ..Limits::default()
        })
    }

    #[test]
    fn who_holds_its_part_is_refused_and_nobody_else() {
        let answers = budget();
        let large = || Bytes::from(vec![b'x'; UNCOUNTED_BYTES + 1]);
        let small = Bytes::from(vec![b'x'; UNCOUNTED_BYTES]);
        let held: Vec<_> = (0..2).map(|_| answers.body(stranger(1), large())).collect();
        let _small = answers.body(stranger(2), small);
        assert!(answers.check(&stranger(1)).is_err());
        answers.check(&stranger(2)).unwrap();
        // One that does not fit is sent all the same, and counts.
        let crowded = answers.body(stranger(2), large());
        let beyond = answers.body(stranger(2), large());
        assert!(answers.check(&stranger(2)).is_err());
        drop((held, crowded, beyond));
        for number in [1, 2] {
            answers.check(&stranger(number)).unwrap();
        }
    }

    #[tokio::test]
    async fn json_of_an_owner_counts_and_nothing_else() {
        let answers = budget();
        let owner = CallerFlow::Owner("usr_1".into());
        let labelled = |kind: &'static str, bytes: usize| {
            ([(header::CONTENT_TYPE, kind)], "x".repeat(bytes)).into_response()
        };
        let mut held = Vec::new();
        for (kind, bytes) in [
            ("application/vnd.sqlite3", 80_000),
            ("application/json", UNCOUNTED_BYTES),
            ("application/json", 60_000),
        ] {
            answers.check(&owner).unwrap();
            let answer = answers.hold(owner.clone(), labelled(kind, bytes)).await;
            assert_eq!(answer.body().size_hint().exact(), Some(bytes as u64));
            held.push(answer);
        }
        assert!(answers.check(&owner).is_err());
        drop(held);
        answers.check(&owner).unwrap();
    }

    #[test]
    fn a_larger_answer_has_more_time() {
        assert_eq!(reading_time(40_000), Duration::from_secs(64));
        assert_eq!(reading_time(4 << 20), Duration::from_secs(572));
    }
}
