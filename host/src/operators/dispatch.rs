//! The way from a command to the installation: through the server where one runs, else by its files.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::installation::{Answer, Installation, ProgressSink};
use super::{Operation, socket};
use crate::control::Control;
use crate::control::audit::{Actor, with_actor};
use crate::control::events::CommandRecord;
use crate::data_lock::{DataLock, check_not_restoring};
use crate::guests::status::is_served;
use crate::http::request_ids::RequestIds;
use svc_base::clock::Clock;
use svc_base::fault;
use svc_base::random::Random;

/// How long a server may take from its lock to its socket, or an earlier one to its end.
const START_WAIT: Duration = Duration::from_secs(20);
/// Error for a server that has the directory and no socket.
const NO_ANSWER: &str =
    "the server does not answer commands: if it is of an earlier version, restart it";
/// How long to wait between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs an operation on the installation in `data`, as `actor`: by the server, if one runs.
///
/// # Errors
/// The operation's, as a text for its operator; or a server that has the directory and does not answer.
pub async fn run_command(
    data: &Path,
    operation: Operation,
    actor: String,
) -> anyhow::Result<Answer> {
    let mut waited = Duration::ZERO;
    let lock = loop {
        if let Some(answer) =
            socket::send(data, &operation, &actor, &ProgressSink::default()).await?
        {
            return Ok(answer);
        }
        check_not_restoring(data)?;
        match DataLock::take_for_command(data) {
            Ok(lock) => break lock,
            Err(error) if waited >= START_WAIT => {
                return Err(error.context(NO_ANSWER));
            }
            Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
        }
        waited += POLL_INTERVAL;
    };
    let control = Control::open(data).with_context(|| format!("opening {}", data.display()))?;
    let installation = Installation {
        data: data.to_owned(),
        control,
        clock: Clock::system(),
        random: Random::system(),
        server: None,
        stopped: None,
        looks: None,
        progress: ProgressSink::default(),
    };
    let answer = run(operation, &installation, actor).await;
    installation.control.close();
    drop(lock);
    answer
}

/// Has the server run an operation that only reads the installation's files, as `actor`, and tells how far it is; `None` where
/// no server runs. Waits for one that is just starting.
///
/// # Errors
/// The operation's, as a text for its operator; or a server that has the directory and does not answer.
pub async fn run_on_server(
    data: &Path,
    operation: &Operation,
    actor: &str,
    told: &ProgressSink,
) -> anyhow::Result<Option<Answer>> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(answer) = socket::send(data, operation, actor, told).await? {
            return Ok(Some(answer));
        }
        if !is_served(data)? {
            return Ok(None);
        }
        if waited >= START_WAIT {
            bail!(NO_ANSWER);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        waited += POLL_INTERVAL;
    }
}

/// Runs an operation and has the log know of it.
pub(super) async fn run(
    operation: Operation,
    at: &Installation,
    actor: String,
) -> anyhow::Result<Answer> {
    // The audit knows a command by an id as that of a request.
    let prefix = u32::from_le_bytes(at.random.bytes()?);
    let actor = Actor::operator(&RequestIds::new(prefix).next());
    let answer = with_actor(actor, operation.run(at)).await?;
    fault::point("operators.done");
    if let Some(command) = answer.deed.clone() {
        let logged = at.log(CommandRecord { command, actor }).await;
        if let Err(error) = logged {
            bail!("it is done, and the server's log does not know of it: {error:#}");
        }
    }
    Ok(answer)
}
