//! The Unix socket in the data directory, over which a running server takes operations: one a connection, as JSON. The server reports
//! the progress of long ones.

use std::convert::Infallible;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::forward::{self, ForwardedCommand};
use super::installation::{
    Installation, OperationAnswer, OperationProgressSink, OperationProgressStep,
};
use super::node::{self, NodeOperation};
use super::{Operation, dispatch};
use crate::app::SharedApp;
use crate::cluster::{ClusterNode, NodeView};
use crate::guests::watch::GuestWatcherHandle;

/// The name of the socket in the data directory.
pub const SOCKET_FILE: &str = "operators.sock";
/// Error for a command that waits for a ledger which does not answer.
const LEDGER_AWAY_MESSAGE: &str =
    "the ledger does not answer: the command may be done, so look, or give it again once it does";
/// Error for a command that copies or looks at files, of which a node has only its own.
pub(super) const NO_BACKUP_MESSAGE: &str = "a cluster has no backup and no check by this command: copy it into an empty directory by `svc restore --from`, and back up or check that directory";
/// Mode of the socket: for its owner alone.
const SOCKET_MODE: u32 = 0o600;
/// Longest path of a socket that every system supports, in bytes.
const MAX_PATH_BYTES: usize = 100;
/// The longest request, in bytes.
pub(super) const MAX_REQUEST_BYTES: u64 = 64 * 1024;
/// Most progress steps that are queued; further ones are dropped.
const MAX_QUEUED_STEPS: usize = 4;
/// Longest time that a node which stands by waits for the ledger, to list the nodes or to find the one that has control.
pub(super) const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time that it waits until another node is removed: longer than any node may stand still before it is taken for dead.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(75);
/// Timeout of sending a request or its answer.
pub(super) const TRANSFER_TIMEOUT: Duration = Duration::from_secs(30);

/// A request to be sent.
#[derive(Debug, Serialize)]
struct OutgoingOperatorRequest<'a> {
    version: &'a str,
    actor: &'a str,
    operation: &'a Operation,
}

/// Writes a request of this program.
pub(super) fn encode(operation: &Operation, actor: &str) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&OutgoingOperatorRequest {
        version: env!("CARGO_PKG_VERSION"),
        actor,
        operation,
    })
}

/// A received request: the operation is parsed after the version was compared.
#[derive(Debug, Deserialize)]
struct IncomingOperatorRequest {
    version: String,
    actor: String,
    operation: Box<RawValue>,
}

/// A line of the server's answer: progress, or at last the outcome.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OperatorReply {
    Step(OperationProgressStep),
    Answer(OperationAnswer),
    Error(String),
}

/// The server's end of the socket.
#[derive(Debug)]
pub struct OperatorSocketListener {
    listener: UnixListener,
    path: PathBuf,
}

impl OperatorSocketListener {
    /// Listens in a data directory whose lock the caller holds; replaces the socket of an earlier server.
    ///
    /// # Errors
    /// The system's.
    pub fn bind(data: &Path) -> anyhow::Result<Self> {
        let path = data.join(SOCKET_FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("removing {}", path.display()));
            }
            _ => {}
        }
        let listener = with_socket_path(data, |path| UnixListener::bind(path))
            .with_context(|| format!("listening for commands on {}", path.display()))?;
        fs::set_permissions(&path, Permissions::from_mode(SOCKET_MODE))
            .with_context(|| format!("closing {} to others", path.display()))?;
        Ok(Self { listener, path })
    }

    /// Answers the operations of a node that stands by, until the future is dropped; those under way go on. `ready` says when the node
    /// serves.
    pub async fn serve_standby(
        &self,
        node: &ClusterNode,
        ready: &watch::Receiver<bool>,
    ) -> Infallible {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(answer_as_standby(stream, node.clone(), ready.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a command could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Answers operations until `stop` becomes true, then finishes the running ones. A node of several also takes those that others pass
    /// on.
    pub async fn serve(
        self,
        app: SharedApp,
        watcher: GuestWatcherHandle,
        stop: watch::Receiver<bool>,
    ) {
        let mut stopping = pin!(stop_requested(stop.clone()));
        let mut connections = JoinSet::new();
        let mut forwarded = forward::accept(&app);
        let at = || (app.clone(), watcher.clone(), stop.clone());
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(answer(stream, at()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a command could not be accepted");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                command = forward::next(&mut forwarded) => {
                    connections.spawn(answer_forwarded(command, at()));
                }
                Some(_) = connections.join_next() => {}
                () = &mut stopping => break,
            }
        }
        drop(forwarded);
        // Later commands find no socket, and wait for the lock.
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, "the socket for commands is left behind");
        }
        drop(self.listener);
        while connections.join_next().await.is_some() {}
    }
}

/// Waits until `stop` becomes true.
async fn stop_requested(mut stop: watch::Receiver<bool>) {
    // A dropped sender means stop.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Parts of a server that runs operations.
type ServerParts = (SharedApp, GuestWatcherHandle, watch::Receiver<bool>);

/// Answers the one request of a connection.
async fn answer(mut stream: UnixStream, at: ServerParts) {
    let reply = match read(&mut stream).await {
        Ok(request) => {
            let (steps, mut told) = mpsc::channel(MAX_QUEUED_STEPS);
            let progress = OperationProgressSink::new(move |step| {
                // If the queue is full, the step is dropped.
                let _ = steps.try_send(step);
            });
            let mut running = pin!(run(request, at, progress));
            loop {
                tokio::select! {
                    Some(step) = told.recv() => write(&mut stream, &OperatorReply::Step(step)).await,
                    reply = &mut running => break reply,
                }
            }
        }
        Err(error) => OperatorReply::Error(format!("{error:#}")),
    };
    write(&mut stream, &reply).await;
}

/// Answers a command that another node has passed on.
async fn answer_forwarded(command: ForwardedCommand, at: ServerParts) {
    let reply = match parse(&command.request) {
        Ok(request) => run(request, at, OperationProgressSink::default()).await,
        Err(error) => OperatorReply::Error(format!("{error:#}")),
    };
    // The other node may be gone.
    let _ = command.reply.send(reply);
}

/// Runs an operation.
async fn run(
    (operation, actor): (Operation, String),
    (app, watcher, stopped): ServerParts,
    progress: OperationProgressSink,
) -> OperatorReply {
    let interrupted = wait_until_interrupted(app.clone());
    let done = tokio::spawn(async move {
        let at = Installation::of_server(&app, stopped, watcher, progress);
        dispatch::run(operation, &at, actor).await
    });
    tokio::select! {
        done = done => match done {
            Ok(Ok(answer)) => OperatorReply::Answer(answer),
            Ok(Err(error)) => OperatorReply::Error(format!("{error:#}")),
            // The panic is in the log.
            Err(_) => OperatorReply::Error("the server failed: its log says why".to_owned()),
        },
        // The command runs to its end all the same.
        () = interrupted => OperatorReply::Error(LEDGER_AWAY_MESSAGE.to_owned()),
    }
}

/// Waits until a command must be given up, as any request to a node of several; on a single machine without end.
async fn wait_until_interrupted(app: SharedApp) {
    match &app.cluster {
        Some(node) => node.gate().wait_until_interrupted().await,
        None => std::future::pending().await,
    }
}

/// Answers the one request of a connection to a node that stands by.
async fn answer_as_standby(
    mut stream: UnixStream,
    standby: ClusterNode,
    mut ready: watch::Receiver<bool>,
) {
    let answer = async {
        let (operation, actor) = read(&mut stream).await?;
        match operation {
            Operation::Node(NodeOperation::List {}) => {
                node::list_nodes(&list_nodes(standby.clone()).await?)
            }
            Operation::Node(NodeOperation::Promote {}) => {
                standby.promote().await?;
                if ready.wait_for(|ready| *ready).await.is_err() {
                    bail!("this node has ended before it served: its log says why");
                }
                node::promoted(false)
            }
            Operation::Node(NodeOperation::Remove { name }) => {
                remove_node(standby.clone(), name.clone()).await?;
                node::removed(&name)
            }
            // Which guests are installed is in control, of which it has nothing.
            Operation::Guest(_) => bail!(
                "this node stands by, and does not know which guests are installed: run this at a node that serves"
            ),
            Operation::Backup(_) | Operation::Check(_) => bail!(NO_BACKUP_MESSAGE),
            operation => forward::pass_on(&standby, &operation, &actor).await,
        }
    };
    let reply = match answer.await {
        Ok(answer) => OperatorReply::Answer(answer),
        Err(error) => OperatorReply::Error(format!("{error:#}")),
    };
    write(&mut stream, &reply).await;
}

/// Lists the nodes, while the ledger answers.
async fn list_nodes(standby: ClusterNode) -> anyhow::Result<Vec<NodeView>> {
    // Requests to the ledger are not given up: others wait behind them.
    let listing = tokio::spawn(async move { standby.list().await });
    let listed = tokio::time::timeout(LIST_TIMEOUT, listing).await;
    listed.context("the ledger does not answer")??
}

/// Takes a dead node off the lists, while the ledger answers.
async fn remove_node(standby: ClusterNode, name: String) -> anyhow::Result<()> {
    let removing = tokio::spawn(async move { standby.remove(&name).await });
    let removed = tokio::time::timeout(REMOVE_TIMEOUT, removing).await;
    removed.context("the ledger does not answer")??
}

/// Writes a line of the answer, with a timeout.
async fn write(stream: &mut UnixStream, reply: &OperatorReply) {
    let written = async {
        let mut bytes = serde_json::to_vec(reply)?;
        bytes.push(b'\n');
        stream.write_all(&bytes).await
    };
    if !matches!(
        tokio::time::timeout(TRANSFER_TIMEOUT, written).await,
        Ok(Ok(()))
    ) {
        tracing::debug!("a command did not take its answer");
    }
}

/// Reads a request of the server's own user.
async fn read(stream: &mut UnixStream) -> anyhow::Result<(Operation, String)> {
    let (user, ours) = (
        stream.peer_cred()?.uid(),
        rustix::process::geteuid().as_raw(),
    );
    if user != ours && user != 0 {
        bail!("the server runs as another user: run this as the user with the number {ours}");
    }
    let mut bytes = Vec::new();
    let mut limited = stream.take(MAX_REQUEST_BYTES);
    let reading = limited.read_to_end(&mut bytes);
    tokio::time::timeout(TRANSFER_TIMEOUT, reading)
        .await
        .context("the request did not arrive in time")??;
    parse(&bytes)
}

/// Reads a request of this program's version.
fn parse(bytes: &[u8]) -> anyhow::Result<(Operation, String)> {
    let request: IncomingOperatorRequest =
        serde_json::from_slice(bytes).context("the request is none of this server's")?;
    let version = env!("CARGO_PKG_VERSION");
    if request.version != version {
        bail!(
            "the server is svc {version}, and this command svc {}: use the server's program, or restart the server with this one",
            request.version
        );
    }
    let operation = serde_json::from_str(request.operation.get())
        .context("the server does not know this command: restart it with this program")?;
    Ok((operation, request.actor))
}

/// Sends an operation to the server that listens in a data directory; `None` if there is none.
///
/// # Errors
/// The operation's, or a server that ended before it answered.
pub(super) async fn send(
    data: &Path,
    operation: &Operation,
    actor: &str,
    told: &OperationProgressSink,
) -> anyhow::Result<Option<OperationAnswer>> {
    let stream = with_socket_path(data, |path| std::os::unix::net::UnixStream::connect(path));
    let stream = match stream {
        Ok(stream) => stream,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error).context("reaching the server"),
    };
    stream.set_nonblocking(true)?;
    let mut stream = UnixStream::from_std(stream)?;
    let request = encode(operation, actor)?;
    let ended =
        "the server ended before it answered: look whether this was done, and run it again if not";
    stream.write_all(&request).await.context(ended)?;
    stream.shutdown().await.context(ended)?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await.context(ended)? {
        match serde_json::from_str(&line).context(ended)? {
            OperatorReply::Step(OperationProgressStep { stage, done, all }) => {
                told.report(stage, done, all);
            }
            OperatorReply::Answer(answer) => return Ok(Some(answer)),
            OperatorReply::Error(error) => bail!("{error}"),
        }
    }
    bail!(ended)
}

/// Runs `work` with the path of the socket, or a shorter one by `/proc` if it is too long for a socket's address.
fn with_socket_path<T>(data: &Path, work: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = data.join(SOCKET_FILE);
    if path.as_os_str().len() <= MAX_PATH_BYTES {
        return work(&path);
    }
    let directory = File::open(data)?;
    work(Path::new(&format!(
        "/proc/self/fd/{}/{SOCKET_FILE}",
        directory.as_raw_fd()
    )))
}
