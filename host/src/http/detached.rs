//! Work that is begun is finished, whether or not the client waits for the answer.

use super::problem::Problem;

/// Runs `work` apart from its request: a client that hangs up must not leave it half done.
///
/// # Errors
/// `internal` if the work panicked.
pub async fn detached<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Problem> {
    tokio::spawn(work)
        .await
        .map_err(|error| Problem::internal(&error))
}
