//! A node that follows, and becomes control's owner in the running process when the owner is dead or an operator says so.

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::background::{self, TaskScope};
use crate::app::SharedApp;
use crate::cluster::{self, ControlWait};

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
    app.begin_owning().await
}
