//! Commands that a node passes on to the one that has control, which answers them as its own.
//!
//! These are answered where they are given, and are never passed on: `svc node` and `svc promote`; `svc backup` and `svc check`,
//! which a cluster does not have.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use tokio::sync::{mpsc, oneshot};

use super::Operation;
use super::installation::OperationAnswer;
use super::socket::{self, LIST_TIMEOUT, MAX_REQUEST_BYTES, OperatorReply, TRANSFER_TIMEOUT};
use crate::app::SharedApp;
use crate::cluster::{self, ClusterNode, ControlHolder, PeerBody, PeerError};

/// Service of the peers' listener that takes commands.
const SERVICE: &str = "operators";
/// Most commands of other nodes that wait for their turn.
const MAX_WAITING: usize = 16;
/// Times that a command is sent while nobody takes it, and the pause in between: longer than from a beat to the next.
const MAX_TRIES: u32 = 10;
const RETRY_EVERY: Duration = Duration::from_millis(300);
/// Largest answer to a command, in bytes.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// A command that another node has passed on.
#[derive(Debug)]
pub(super) struct ForwardedCommand {
    /// Request in the form of the socket's.
    pub(super) request: Bytes,
    /// Receiver of the outcome.
    pub(super) reply: oneshot::Sender<OperatorReply>,
}

/// Begins to take commands of other nodes; `None` if the server is none of several. Once the receiver is dropped they are refused.
pub(super) fn accept(app: &SharedApp) -> Option<mpsc::Receiver<ForwardedCommand>> {
    let node = app.cluster.as_ref()?;
    let (commands, waiting) = mpsc::channel(MAX_WAITING);
    let peers = node.run().peers();
    peers.serve(
        SERVICE,
        Arc::new(move |_, request| Box::pin(answer(commands.clone(), request))),
    );
    Some(waiting)
}

/// Returns the next command of another node.
pub(super) async fn next(
    commands: &mut Option<mpsc::Receiver<ForwardedCommand>>,
) -> ForwardedCommand {
    if let Some(commands) = commands
        && let Some(command) = commands.recv().await
    {
        return command;
    }
    std::future::pending().await
}

/// Answers a command of another node, once it is done.
async fn answer(
    commands: mpsc::Sender<ForwardedCommand>,
    request: Request<Incoming>,
) -> Response<PeerBody> {
    let most = usize::try_from(MAX_REQUEST_BYTES).unwrap_or(usize::MAX);
    let body = Limited::new(request.into_body(), most).collect();
    let Ok(Ok(body)) = tokio::time::timeout(TRANSFER_TIMEOUT, body).await else {
        return cluster::refusal();
    };
    let (reply, replied) = oneshot::channel();
    let request = body.to_bytes();
    let is_taken = commands.try_send(ForwardedCommand { request, reply });
    if is_taken.is_err() {
        return cluster::refusal();
    }
    // A command that is not answered has not begun: the server stops.
    let Ok(reply) = replied.await else {
        return cluster::refusal();
    };
    match serde_json::to_vec(&reply) {
        Ok(reply) => Response::new(cluster::full_body(reply)),
        Err(error) => {
            tracing::error!(%error, "the answer to a command cannot be written");
            Response::new(cluster::full_body(Bytes::new()))
        }
    }
}

/// Has the node that has control run a command that was given at this one, which has not.
///
/// # Errors
/// The command's; or no node has control, or its answer is lost.
pub(super) async fn pass_on(
    node: &ClusterNode,
    operation: &Operation,
    actor: &str,
) -> anyhow::Result<OperationAnswer> {
    let request = socket::encode(operation, &format!("{actor} at {}", node.name()))?;
    let (name, response) = send(node, &Bytes::from(request)).await?;
    let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect();
    let body = body
        .await
        .map_err(|error| lost(&name, &error.to_string()))?;
    let reply = serde_json::from_slice(&body.to_bytes());
    match reply.map_err(|error| lost(&name, &error.to_string()))? {
        OperatorReply::Answer(answer) => Ok(answer),
        OperatorReply::Error(error) => bail!("{error}"),
        OperatorReply::Step(_) => Err(lost(&name, "it answers by progress alone")),
    }
}

/// Sends a command to the node that has control, and returns the node's name with the answer. A node that does not take the command has
/// done nothing: it may not know this one yet, or not serve yet.
async fn send(node: &ClusterNode, request: &Bytes) -> anyhow::Result<(String, Response<Incoming>)> {
    let mut tries = 1;
    loop {
        let ControlHolder { run, name } = find_control(node).await?;
        let body = cluster::full_body(request.clone());
        let post = Request::post(format!("/{SERVICE}")).body(body)?;
        match node.peers().client().send(run, post).await {
            Ok(response) => return Ok((name, response)),
            Err(PeerError::Lost { reason }) => return Err(lost(&name, &reason)),
            Err(_) if tries < MAX_TRIES => tries += 1,
            Err(error) => bail!(
                "{name} has control, and nothing was done: {error}. Run the command again, or where {name} runs"
            ),
        }
        tokio::time::sleep(RETRY_EVERY).await;
    }
}

/// Error of a command whose answer is lost.
fn lost(name: &str, reason: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "{name} has control, and its answer is lost ({reason}): the command may be done, so look, or give it again"
    )
}

/// Finds the node that has control.
async fn find_control(node: &ClusterNode) -> anyhow::Result<ControlHolder> {
    let (asking, own) = (node.clone(), node.id());
    // Requests to the ledger are not given up: others wait behind them.
    let looking = tokio::spawn(async move { asking.find_control().await });
    let found = tokio::time::timeout(LIST_TIMEOUT, looking).await;
    let found = found.context("the ledger does not answer, and nothing was done")???;
    match found {
        Some(holder) if holder.run != own => Ok(holder),
        Some(_) => bail!(
            "this node is taking control, and nothing was done: run the command again once `svc healthcheck` says that it is ready"
        ),
        None => bail!(
            "no node has control, and nothing was done: run the command again once `svc node list` names one that has"
        ),
    }
}
