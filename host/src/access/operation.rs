//! Operations: what owners do, each written once, with REST's routes and the tools as shells around it.
//!
//! An operation is a plain function of its domain's `operations.rs`:
//!
//! ```text
//! async fn promote(deployments: Arc<Deployments>, frontend: FrontendScope<Editor>, input: ReleaseRequest) -> Result<ReleasedView, Problem>
//!                  the service                    authority, whose type is the floor  what was sent          what is answered
//! ```
//!
//! One that a client may repeat with an `Idempotency-Key` also takes a [`Keep`](crate::control::answers::Keep), which keeps its
//! answer in the transaction of its effect. A door reads the input, calls the function through [`to_the_end`] if it changes
//! something, and writes the answer. What comes before the first change stands in [`while_awaited`], and stops where the client has hung up. [`Row`]s list all of them: tests, the description and the documents read the list.

use tokio::sync::watch;
use tracing::Instrument;

use super::authority::HasFloor;
use crate::control::audit::{self, Act};
use crate::http::problem::{Code, Problem};
use crate::workspaces::Role;
use svc_sandbox::Flow;

/// An operation in the list of all.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name in the OpenAPI description.
    pub id: &'static str,
    /// The tool that offers it, and its action there; none where a model has no use for it, as for secrets.
    pub tool: Option<(&'static str, &'static str)>,
    /// The least role that it takes.
    pub floor: Role,
    /// Entries that it leaves in the audit: one of these for each change, and none if it only reads.
    pub acts: &'static [Act],
}

/// The floor of an operation, read off the type of its second argument.
pub fn floor<O: Floored<Arguments>, Arguments>(_: &O) -> Role {
    O::ROLE
}

/// A function whose second argument proves a role.
pub trait Floored<Arguments> {
    /// The role.
    const ROLE: Role;
}

impl<O, S, A: HasFloor, T> Floored<(S, A)> for O
where
    O: Fn(S, A) -> T,
{
    const ROLE: Role = A::ROLE;
}

impl<O, S, A: HasFloor, I, T> Floored<(S, A, I)> for O
where
    O: Fn(S, A, I) -> T,
{
    const ROLE: Role = A::ROLE;
}

impl<O, S, A: HasFloor, I, K, T> Floored<(S, A, I, K)> for O
where
    O: Fn(S, A, I, K) -> T,
{
    const ROLE: Role = A::ROLE;
}

/// The client of an operation has hung up, and nothing has been changed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client has hung up")]
pub struct Abandoned;

impl From<Abandoned> for Problem {
    fn from(_: Abandoned) -> Self {
        Self::new(
            Code::Timeout,
            "The client has hung up. Nothing was changed: send the request again.",
        )
    }
}

tokio::task_local! {
    /// Closed once the client of the operation that this task does has hung up.
    static CLIENT: watch::Receiver<()>;
}

/// Does work to its end on behalf of its caller, even if the client hangs up, which drops the handler half-way. Only what stands
/// in [`while_awaited`] stops then.
///
/// # Errors
/// The work's, or that it panicked.
pub async fn to_the_end<T: Send + 'static, E: Send + 'static>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, Problem>
where
    Problem: From<E>,
{
    let work = audit::carried(audit::doer(), work);
    let work = Flow::current().scope(work);
    let (waits, client) = watch::channel(());
    let work = CLIENT.scope(client, work);
    let done = tokio::spawn(work.in_current_span()).await;
    // Dropped earlier where the handler is.
    drop(waits);
    Ok(done.map_err(|error| Problem::internal(&error))??)
}

/// Does a part of an operation that comes before anything is changed, such as rendering: it ends early where the client has hung up.
///
/// # Errors
/// [`Abandoned`], then.
pub async fn while_awaited<T>(work: impl Future<Output = T>) -> Result<T, Abandoned> {
    let Ok(mut client) = CLIENT.try_with(Clone::clone) else {
        // A handler's own work ends with the handler.
        return Ok(work.await);
    };
    tokio::select! {
        biased;
        done = work => Ok(done),
        // Nothing is ever sent: it is an error, once the other end is gone.
        _ = client.changed() => Err(Abandoned),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    /// Begins an operation, tells when its part has begun, and hangs up; returns what becomes of the part.
    async fn hung_up(part: impl Future<Output = ()> + Send + 'static) -> Result<(), Abandoned> {
        let (begun, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tells, outcome) = tokio::sync::oneshot::channel();
        let handler = to_the_end({
            let (begun, ended) = (Arc::clone(&begun), Arc::clone(&ended));
            async move {
                let part = while_awaited(async {
                    begun.notify_one();
                    part.await;
                });
                let _ = tells.send(part.await);
                ended.notify_one();
                Ok::<_, Problem>(())
            }
        });
        tokio::select! {
            _ = handler => {}
            () = begun.notified() => {}
        }
        ended.notified().await;
        outcome.await.unwrap()
    }

    #[tokio::test]
    async fn what_nobody_waits_for_ends_early_and_the_rest_does_not() {
        assert_eq!(hung_up(std::future::pending()).await, Err(Abandoned));
        assert_eq!(hung_up(async {}).await, Ok(()));
    }

    #[tokio::test]
    async fn work_of_a_handler_has_no_client_of_its_own() {
        assert_eq!(while_awaited(async { 1 }).await, Ok(1));
    }
}
