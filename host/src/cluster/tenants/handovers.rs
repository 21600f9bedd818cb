//! Hand-overs of tenants' databases: a node that needs one which another node has asks for it, and the other one gives it up.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use svc_base::ids::BackendId;
use svc_ledger::{Ledger, RunId};
use tokio::time::timeout;

use super::super::bases::LiveDatabases;
use super::super::owned_databases::OwnedDatabases;
use super::super::peers::{self, PeerBody};
use super::super::run::Run;
use super::Tenants;

/// Service of every node that serves.
const SERVICE: &str = "places";
/// Longest name of a database, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// Longest time that another node is waited for, which closes the database meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);

/// Begins to give databases up that other nodes ask for.
pub(in crate::cluster) fn serve<L: Ledger>(run: &Arc<Run<L>>, databases: &Arc<OwnedDatabases<L>>) {
    let databases = Arc::clone(databases);
    let handler =
        move |_: RunId, request: Request<Incoming>| -> BoxFuture<'static, Response<PeerBody>> {
            Box::pin(answer(Arc::clone(&databases), request))
        };
    run.peers().serve(SERVICE, Arc::new(handler));
}

/// Answers a node that asks for a database, once its place is given back.
async fn answer<L: Ledger>(
    databases: Arc<OwnedDatabases<L>>,
    request: Request<Incoming>,
) -> Response<PeerBody> {
    let Some(id) = read_name(request).await else {
        return peers::empty_response(StatusCode::BAD_REQUEST);
    };
    // It goes on if the other node hangs up.
    let giving = async move { give_up(&*databases, databases.tenants(), id).await };
    let giving = tokio::spawn(giving);
    match giving.await {
        Ok(Ok(())) => peers::empty_response(StatusCode::OK),
        // The log says why, also of a panic.
        Ok(Err(_)) | Err(_) => peers::empty_response(StatusCode::CONFLICT),
    }
}

async fn give_up<L: Ledger>(
    live: &impl LiveDatabases,
    tenants: &Arc<Tenants<L>>,
    id: BackendId,
) -> anyhow::Result<()> {
    tenants.give_up(id, live).await.inspect_err(|error| {
        let error = format!("{error:#}");
        tracing::warn!(error, backend = %id, "a database is not given up that another node asks for");
    })
}

async fn read_name(request: Request<Incoming>) -> Option<BackendId> {
    let body = Limited::new(request.into_body(), MAX_NAME_BYTES).collect();
    let body = timeout(ANSWER_TIMEOUT, body).await.ok()?.ok()?.to_bytes();
    std::str::from_utf8(&body).ok()?.parse().ok()
}

/// Asks the run that has a database to give its place back. It may be claimed when this returns, by anybody.
pub(in crate::cluster) async fn ask_for<L: Ledger>(
    run: &Run<L>,
    holder: RunId,
    id: BackendId,
) -> anyhow::Result<()> {
    let request = Request::post(format!("/{SERVICE}")).body(peers::full_body(id.to_string()))?;
    let sending = run.peers().client().send(holder, request);
    let sent = timeout(ANSWER_TIMEOUT, sending).await;
    let sent = sent.context("the node that has it does not give it up in time")?;
    // The error is none that may be shared between threads.
    let answer = sent.map_err(|error| anyhow::anyhow!("{error}"))?;
    if answer.status() != StatusCode::OK {
        bail!("the node that has it does not give it up now");
    }
    Ok(())
}
