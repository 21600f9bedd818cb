//! Completion of requests that change something: they run to their end even if the client disconnects, which would drop the handler.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tracing::Instrument;

use crate::control::audit;
use crate::http::problem::{Problem, ProblemCode};
use svc_base::flow::CallerFlow;

/// Layer of routes: runs requests with a method that may change something to completion.
pub async fn run_changes_to_completion(request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let work = async move { Ok::<_, Problem>(next.run(request).await) };
    run_to_completion(work)
        .await
        .unwrap_or_else(IntoResponse::into_response)
}

/// Error of an operation that was stopped before it changed anything, because its client disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody waits for the answer any more")]
pub struct ClientDisconnected;

impl From<ClientDisconnected> for Problem {
    fn from(_: ClientDisconnected) -> Self {
        Self::new(
            ProblemCode::Timeout,
            "The client has hung up. Nothing was changed: send the request again.",
        )
    }
}

tokio::task_local! {
    /// Receiver that closes once the client of this task's operation has disconnected.
    static CLIENT_CONNECTED: watch::Receiver<()>;
}

/// Runs work to completion in a task of its own, with the caller's actor and flow, even if the client disconnects. Only parts in
/// [`run_while_client_waits`] stop then.
///
/// # Errors
/// The work's, or that it panicked.
pub async fn run_to_completion<T: Send + 'static, E: Send + 'static>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, Problem>
where
    Problem: From<E>,
{
    if CLIENT_CONNECTED.try_with(|_| ()).is_ok() {
        // Already inside of such a task.
        return Ok(work.await?);
    }
    // Boxed: the compiler makes a task for each kind of result, and not for each operation.
    let work: BoxFuture<'static, Result<T, E>> = Box::pin(work);
    let work = audit::with_optional_actor(audit::current_actor(), work);
    let work = CallerFlow::current().scope(work);
    let (waits, client) = watch::channel(());
    let work = CLIENT_CONNECTED.scope(client, work);
    let done = tokio::spawn(work.in_current_span()).await;
    // Dropped earlier if the handler is dropped.
    drop(waits);
    Ok(done.map_err(|error| Problem::internal(&error))??)
}

/// Runs a part of an operation that changes nothing, such as rendering: it is cancelled when the client disconnects.
///
/// # Errors
/// [`ClientDisconnected`] if it was cancelled.
pub async fn run_while_client_waits<T>(
    work: impl Future<Output = T>,
) -> Result<T, ClientDisconnected> {
    let Ok(mut client) = CLIENT_CONNECTED.try_with(Clone::clone) else {
        // Outside of such a task, the work is dropped with its handler.
        return Ok(work.await);
    };
    tokio::select! {
        biased;
        done = work => Ok(done),
        // Nothing is ever sent: this ends with an error once the sender is dropped.
        _ = client.changed() => Err(ClientDisconnected),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    /// Begins an operation, tells when its part has begun, and hangs up; returns what becomes of the part.
    async fn hung_up(
        part: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ClientDisconnected> {
        let (begun, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tells, outcome) = tokio::sync::oneshot::channel();
        let handler = run_to_completion({
            let (begun, ended) = (Arc::clone(&begun), Arc::clone(&ended));
            async move {
                let part = run_while_client_waits(async {
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
        assert_eq!(
            hung_up(std::future::pending()).await,
            Err(ClientDisconnected)
        );
        assert_eq!(hung_up(async {}).await, Ok(()));
    }

    #[tokio::test]
    async fn work_of_a_handler_has_no_client_of_its_own() {
        assert_eq!(run_while_client_waits(async { 1 }).await, Ok(1));
    }
}
