//! Dispatch of a command: to the running server, else to the files of the installation.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::installation::{Installation, OperationAnswer, OperationProgressSink};
use super::{Operation, forward, socket};
use crate::cluster::found;
use crate::control::ControlDatabase;
use crate::control::audit::{AuditActor, with_actor};
use crate::control::events::OperatorCommandRecord;
use crate::data_lock::{DataLock, check_not_restoring};
use crate::guests::status::is_server_running;
use crate::http::request_ids::RequestIdGenerator;
use svc_base::clock::Clock;
use svc_base::fault;
use svc_base::random::Random;

/// Most time between a server's lock and its socket, or until an earlier server's end.
const START_WAIT: Duration = Duration::from_secs(20);
/// Error for a server that has the directory's lock and no socket.
const NO_ANSWER_MESSAGE: &str =
    "the server does not answer commands: if it is of an earlier version, restart it";
/// Pause between two attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs an operation on the installation in `data`, as `actor`: on the server, if one runs.
///
/// # Errors
/// The operation's, as a text for the operator; or a server that has the directory and does not answer.
pub async fn run_command(
    data: &Path,
    operation: Operation,
    actor: String,
) -> anyhow::Result<OperationAnswer> {
    let mut waited = Duration::ZERO;
    let lock = loop {
        if let Some(answer) =
            socket::send(data, &operation, &actor, &OperationProgressSink::default()).await?
        {
            return Ok(answer);
        }
        check_not_restoring(data)?;
        match DataLock::take_for_command(data) {
            Ok(lock) => break lock,
            Err(error) if waited >= START_WAIT => {
                return Err(error.context(NO_ANSWER_MESSAGE));
            }
            Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
        }
        waited += POLL_INTERVAL;
    };
    check_not_of_node(data)?;
    let control =
        ControlDatabase::open(data).with_context(|| format!("opening {}", data.display()))?;
    let installation = Installation {
        data: data.to_owned(),
        control,
        clock: Clock::system(),
        random: Random::system(),
        server: None,
        stopped: None,
        watcher: None,
        progress: OperationProgressSink::default(),
    };
    let answer = run(operation, &installation, actor).await;
    installation.control.close();
    drop(lock);
    answer
}

/// Has the server run an operation that only reads the installation's files, as `actor`, with reports of its progress; `None` if no
/// server runs. Waits for a server that is just starting.
///
/// # Errors
/// The operation's, as a text for the operator; or a server that has the directory and does not answer.
pub async fn run_on_server(
    data: &Path,
    operation: &Operation,
    actor: &str,
    told: &OperationProgressSink,
) -> anyhow::Result<Option<OperationAnswer>> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(answer) = socket::send(data, operation, actor, told).await? {
            return Ok(Some(answer));
        }
        if !is_server_running(data)? {
            return Ok(None);
        }
        if waited >= START_WAIT {
            bail!(NO_ANSWER_MESSAGE);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        waited += POLL_INTERVAL;
    }
}

/// Refuses the files of a node of several: its databases are in the ledger, and what is on its disk may be old or missing.
///
/// # Errors
/// The directory is one of a node, or cannot be read.
pub fn check_not_of_node(data: &Path) -> anyhow::Result<()> {
    if found::installation_id(data)?.is_some() {
        bail!(
            "{} is the data directory of a node of several, whose databases are in the ledger: run the command where the node runs that has control",
            data.display()
        );
    }
    Ok(())
}

/// Runs an operation, and logs its command.
pub(super) async fn run(
    operation: Operation,
    at: &Installation,
    actor: String,
) -> anyhow::Result<OperationAnswer> {
    let node = at.server.as_ref().and_then(|app| app.cluster.as_ref());
    if node.is_some_and(|node| !node.gate().may_answer()) {
        bail!(
            "this node does not reach the ledger, and nothing was done: run this again once `svc healthcheck` says that a node is ready"
        );
    }
    if let Some(node) = node.filter(|_| at.control.is_follower()) {
        match operation {
            // It is about this node.
            Operation::Node(_) => {}
            // The component is here.
            Operation::Guest(switch) => {
                return switch.pass_on(at, node, &actor).await;
            }
            Operation::Backup(_) | Operation::Check(_) => bail!(socket::NO_BACKUP_MESSAGE),
            _ => return forward::pass_on(node.node(), &operation, &actor).await,
        }
    }
    // The audit names a command by an id like a request's.
    let prefix = u32::from_le_bytes(at.random.bytes()?);
    let command_actor = AuditActor::operator(&RequestIdGenerator::new(prefix).next());
    let answer = with_actor(command_actor, operation.run(at)).await?;
    fault::point("operators.done");
    if let Some(command) = answer.deed.clone() {
        let logged = at.log(OperatorCommandRecord { command, actor }).await;
        if let Err(error) = logged {
            bail!("it is done, and the server's log does not know of it: {error:#}");
        }
    }
    Ok(answer)
}
