//! Files of one-time shares, read, written and burnt off the request threads.

use std::io;

use bytes::Bytes;

use crate::content::OneTimeFileDirectory;
use svc_base::ids::DeploymentId;

/// Writes the page of a share; durable when it returns.
pub(super) async fn write(
    files: &OneTimeFileDirectory,
    id: DeploymentId,
    page: Bytes,
) -> io::Result<()> {
    let files = files.clone();
    run_blocking(move || files.write(&id, &page)).await
}

/// Reads the page of a share; `None` once it is burnt.
pub(super) async fn read(
    files: &OneTimeFileDirectory,
    id: DeploymentId,
) -> io::Result<Option<Vec<u8>>> {
    let files = files.clone();
    run_blocking(move || files.read(&id)).await
}

/// Removes the page of a share; durable when it returns.
pub(super) async fn burn(files: &OneTimeFileDirectory, id: DeploymentId) -> io::Result<()> {
    let files = files.clone();
    run_blocking(move || files.burn(&id)).await
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other)?
}
