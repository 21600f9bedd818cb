//! Requests that change something run to their end, even if their client hangs up, which drops a handler half-way.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;
use tracing::Instrument;

use crate::control::audit;
use crate::http::problem::{Code, Problem};
use svc_sandbox::Flow;

/// Runs requests to their end whose method may change something: a layer of routes.
pub async fn finish_changes(request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let work = async move { Ok::<_, Problem>(next.run(request).await) };
    run_to_completion(work)
        .await
        .unwrap_or_else(IntoResponse::into_response)
}

/// Nobody waits for the outcome of an operation any more, and it has changed nothing yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody waits for the answer any more")]
pub struct ClientGone;

impl From<ClientGone> for Problem {
    fn from(_: ClientGone) -> Self {
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

/// Does work to its end, on behalf of who asked for it, even if that client hangs up, which drops the handler half-way. Only what stands
/// in [`while_client_waits`] stops then.
///
/// # Errors
/// The work's, or that it panicked.
pub async fn run_to_completion<T: Send + 'static, E: Send + 'static>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, Problem>
where
    Problem: From<E>,
{
    if CLIENT.try_with(|_| ()).is_ok() {
        // Already within work that runs to its end.
        return Ok(work.await?);
    }
    let work = audit::carry_actor(audit::current_actor(), work);
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
/// [`ClientGone`], then.
pub async fn while_client_waits<T>(work: impl Future<Output = T>) -> Result<T, ClientGone> {
    let Ok(mut client) = CLIENT.try_with(Clone::clone) else {
        // A handler's own work ends with the handler.
        return Ok(work.await);
    };
    tokio::select! {
        biased;
        done = work => Ok(done),
        // Nothing is ever sent: it is an error, once the other end is gone.
        _ = client.changed() => Err(ClientGone),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    /// Begins an operation, tells when its part has begun, and hangs up; returns what becomes of the part.
    async fn hung_up(part: impl Future<Output = ()> + Send + 'static) -> Result<(), ClientGone> {
        let (begun, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tells, outcome) = tokio::sync::oneshot::channel();
        let handler = run_to_completion({
            let (begun, ended) = (Arc::clone(&begun), Arc::clone(&ended));
            async move {
                let part = while_client_waits(async {
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
        assert_eq!(hung_up(std::future::pending()).await, Err(ClientGone));
        assert_eq!(hung_up(async {}).await, Ok(()));
    }

    #[tokio::test]
    async fn work_of_a_handler_has_no_client_of_its_own() {
        assert_eq!(while_client_waits(async { 1 }).await, Ok(1));
    }
}
