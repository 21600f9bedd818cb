//! Pages of one-time shares, read, written and burnt off the request threads.

use std::io;
use std::time::Duration;

use bytes::Bytes;

use crate::content::OneTimePages;
use svc_base::ids::DeploymentId;

/// Writes the page of a share; durable when it returns.
pub(super) async fn write(pages: &OneTimePages, id: DeploymentId, page: Bytes) -> io::Result<()> {
    match pages {
        OneTimePages::Files(files) => {
            let files = files.clone();
            run_blocking(move || files.write(&id, &page)).await
        }
        OneTimePages::Objects(objects) => objects.write(&id, page).await,
    }
}

/// Reads the page of a share; `None` once it is burnt.
pub(super) async fn read(pages: &OneTimePages, id: DeploymentId) -> io::Result<Option<Vec<u8>>> {
    match pages {
        OneTimePages::Files(files) => {
            let files = files.clone();
            run_blocking(move || files.read(&id)).await
        }
        OneTimePages::Objects(objects) => objects.read(&id).await,
    }
}

/// Removes the page of a share; durable when it returns.
pub(super) async fn burn(pages: &OneTimePages, id: DeploymentId) -> io::Result<()> {
    match pages {
        OneTimePages::Files(files) => {
            let files = files.clone();
            run_blocking(move || files.burn(&id)).await
        }
        OneTimePages::Objects(objects) => objects.burn(&id).await,
    }
}

/// Removes the page of a share that its reader has claimed. A bucket that fails is asked again until `within` is over.
pub(super) async fn burn_claimed(
    pages: &OneTimePages,
    id: DeploymentId,
    within: Duration,
) -> io::Result<()> {
    match pages {
        OneTimePages::Files(_) => burn(pages, id).await,
        OneTimePages::Objects(objects) => objects.burn_claimed(&id, within).await,
    }
}

/// Lists the shares that have a page.
pub(super) async fn list(pages: &OneTimePages) -> io::Result<Vec<DeploymentId>> {
    match pages {
        OneTimePages::Files(files) => {
            let files = files.clone();
            run_blocking(move || files.list()).await
        }
        OneTimePages::Objects(objects) => objects.list().await,
    }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other)?
}
