//! A node that follows, and becomes control's owner in the running process when the owner is dead or an operator says so.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::background::{self, TaskScope};
use crate::app::SharedApp;
use crate::cluster::{self, ControlWait};

/// Times that the duties of a new owner are tried, and the pause in between. They look into the bucket: where that is away, any other node
/// would fail at them, too, and all of them would end one after the other, with the pages that they have in memory.
const TRIES: u32 = 600;
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Waits for control, takes it, and then runs the background tasks of its owner, until `stop` becomes true. A node that cannot take what
/// it has claimed ends: another run takes it then.
pub(super) async fn run(control: ControlWait, app: SharedApp, mut stop: watch::Receiver<bool>) {
    let taken = tokio::select! {
        taken = take_over(control, &app) => taken,
        _ = stop.wait_for(|stop| *stop) => return,
    };
    if let Err(error) = taken {
        cluster::end_process(&format!("control could not be taken: {error:#}"));
    }
    tracing::info!("this node has control");
    let tasks: Vec<JoinHandle<()>> = background::start_scope(TaskScope::ControlOwner, &app, &stop);
    for task in tasks {
        // A panic of the task is in the log.
        let _ = task.await;
    }
}

async fn take_over(control: ControlWait, app: &SharedApp) -> anyhow::Result<()> {
    let claim = control.claim().await;
    if let Some(node) = &app.cluster {
        node.own_control(claim, &app.control).await?;
    }
    // Until then it refuses writes, and answers everything else.
    repeat(|| app.begin_owning(), RETRY_EVERY).await
}

/// Does the duties of a new owner, again while they fail.
async fn repeat<F>(duties: impl Fn() -> F, pause: Duration) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    for _ in 1..TRIES {
        match duties().await {
            Ok(()) => return Ok(()),
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(
                    error,
                    "this node has control and cannot write there yet: that is tried again"
                );
            }
        }
        sleep(pause).await;
    }
    duties().await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_new_owner_tries_its_duties_again_while_they_fail() {
        for (failing, tried, is_done) in [(0, 1, true), (3, 4, true), (TRIES, TRIES, false)] {
            let tries = AtomicU32::new(0);
            let duties = || {
                let fails = tries.fetch_add(1, Ordering::SeqCst) < failing;
                async move {
                    match fails {
                        true => Err(anyhow::anyhow!("the bucket is away")),
                        false => Ok(()),
                    }
                }
            };
            let done = repeat(duties, Duration::ZERO).await;
            assert_eq!(done.is_ok(), is_done);
            assert_eq!(tries.load(Ordering::SeqCst), tried);
        }
    }
}
