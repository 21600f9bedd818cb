//! Background tasks: they store views, delete expired pages, and follow the installed guests. Each has a scope, which says where it runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Interval;

use crate::app::{App, SharedApp};
use crate::cluster::GuestFollower;
use crate::control::{self, audit};
use crate::deployments::{operators, rerender};
use crate::guests::watch::{FollowedRecords, GuestStatusRequest, GuestWatcher};
use crate::overview::status_file::StatusFile;
use crate::tls::Tls;
use svc_ledger::LedgerError;
use svc_sandbox::{GuestDigest, RolledBackGuest, World};

const FLUSH_VISITS_INTERVAL: Duration = Duration::from_secs(2);
const FLUSH_COUNTS_INTERVAL: Duration = Duration::from_secs(60);
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
const PURGE_INTERVAL: Duration = Duration::from_millis(250);
const PRESENCE_INTERVAL: Duration = Duration::from_millis(100);
const COLLECT_INTERVAL: Duration = Duration::from_secs(15);
const TIDY_INTERVAL: Duration = Duration::from_secs(60);
const LEFTOVER_INTERVAL: Duration = Duration::from_secs(600);
const FORGET_INTERVAL: Duration = Duration::from_secs(3600);
const ORPHANS_INTERVAL: Duration = Duration::from_secs(86_400);
/// Interval of checks of the guests: a failed guest is noticed within a second.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Application, and the signal to stop.
type BackgroundTaskInput = (SharedApp, watch::Receiver<bool>);

/// Machines that a task runs on, where several serve one installation. A machine alone is all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskScope {
    /// Every machine: for what it has in memory and in its own files.
    Node,
    /// The machine that writes the control database: for rows, content, and what other servers are told.
    ControlOwner,
    /// Every machine: for the tenants' databases that it writes.
    DatabaseOwner,
}

impl TaskScope {
    /// All scopes.
    const ALL: [Self; 3] = [Self::Node, Self::ControlOwner, Self::DatabaseOwner];
}

/// Starts the tasks of all scopes; each ends when `stop` becomes true.
pub(super) fn start(
    app: &SharedApp,
    guests: (GuestWatcher, mpsc::Receiver<GuestStatusRequest>),
    status: StatusFile,
    stop: &watch::Receiver<bool>,
) -> Vec<JoinHandle<()>> {
    let task = || (app.clone(), stop.clone());
    // A node that follows starts the tasks of control's owner when it is the owner.
    let has_scope =
        |scope: &TaskScope| *scope != TaskScope::ControlOwner || !app.control.is_follower();
    let scopes = TaskScope::ALL.into_iter().filter(has_scope);
    let mut tasks: Vec<_> = scopes
        .flat_map(|scope| start_scope(scope, app, stop))
        .collect();
    // Of every machine: each has guests and a status of its own.
    tasks.push(tokio::spawn(run_guest_watcher(guests, task())));
    tasks.push(tokio::spawn(run_status_writing(status, task())));
    let nodes = app.cluster.is_some();
    tasks.extend(nodes.then(|| tokio::spawn(run_sending_away(task()))));
    tasks
}

/// Starts the tasks of a scope; each ends when `stop` becomes true.
pub(super) fn start_scope(
    scope: TaskScope,
    app: &SharedApp,
    stop: &watch::Receiver<bool>,
) -> Vec<JoinHandle<()>> {
    let task = || (app.clone(), stop.clone());
    let mut tasks = periodic(scope, &task);
    if scope == TaskScope::ControlOwner {
        tasks.push(tokio::spawn(run_operator_event_handling(task())));
        tasks.push(tokio::spawn(run_orphan_marking(task())));
        tasks.push(tokio::spawn(run_content_collection(task())));
        tasks.push(tokio::spawn(run_rerendering(task())));
        tasks.push(tokio::spawn(run_domain_checks(task())));
        let nodes = app.cluster.is_some();
        tasks.extend(nodes.then(|| tokio::spawn(run_leftover_removal(task()))));
        tasks.extend(nodes.then(|| tokio::spawn(run_following_views(task()))));
    }
    tasks
}

/// Starts the task that reloads replaced certificates and renews expiring ones: on every machine, which has its own.
pub(super) fn run_certificate_refresh(
    tls: Arc<Tls>,
    app: &SharedApp,
    stop: &watch::Receiver<bool>,
) -> JoinHandle<()> {
    let follow = async move |app: &App| tls.refresh(app.clock.now()).await;
    let task = (app.clone(), stop.clone());
    tokio::spawn(run_periodically(
        SWEEP_INTERVAL,
        task,
        "following certificates",
        follow,
    ))
}

macro_rules! periodic {
    ($scope:expr, $task:expr; $($of:ident $period:ident $what:literal $work:expr;)+) => {{
        let mut tasks = Vec::new();
        $(if $scope == TaskScope::$of {
            tasks.push(tokio::spawn(run_periodically($period, $task(), $what, $work)));
        })+
        tasks
    }};
}

/// Starts the periodic tasks of a scope: a line each, which begins with its scope.
fn periodic(scope: TaskScope, task: &impl Fn() -> BackgroundTaskInput) -> Vec<JoinHandle<()>> {
    periodic! { scope, task;
        Node FLUSH_VISITS_INTERVAL "writing views down" async |app| Ok(app.serving.flush_visits().await?);
        Node FLUSH_COUNTS_INTERVAL "writing counts down" async |app| {
            app.activity.tidy();
            Ok(app.activity.flush().await?)
        };
        Node FORGET_INTERVAL "forgetting old counts" async |app| Ok(app.activity.forget_old(false).await?);
        ControlOwner FORGET_INTERVAL "forgetting old counts of nodes" async |app| Ok(app.activity.forget_old(true).await?);
        ControlOwner SWEEP_INTERVAL "sweeping what has expired" async |app| app.expiry.sweep().await.map(|_| ());
        Node SWEEP_INTERVAL "forgetting what was deleted" async |app| {
            let control = app.control.clone();
            Ok(tokio::task::spawn_blocking(move || control.empty_log_if_deleted()).await??)
        };
        ControlOwner SWEEP_INTERVAL "ending old drafts" async |app| Ok(app.revisions.end_old_drafts().await?);
        ControlOwner SWEEP_INTERVAL "ending files that nothing names" async |app| app.files.sweep_rested().await;
        DatabaseOwner SWEEP_INTERVAL "following files of visitors" async |app| app.visitor_files.follow_changes().await;
        DatabaseOwner LEFTOVER_INTERVAL "looking for files of visitors" async |app| app.visitor_files.follow_rest().await;
        ControlOwner TIDY_INTERVAL "removing ended files of visitors" async |app| app.visitor_files.expire().await;
        ControlOwner SWEEP_INTERVAL "encoding files of sites" async |app| app.files.make_encodings().await;
        ControlOwner SWEEP_INTERVAL "ending projects" async |app| app.teardown.run().await;
        ControlOwner PURGE_INTERVAL "purging the edge" async |app| match &app.purger {
            Some(purger) => purger.send_due().await,
            None => Ok(()),
        };
        DatabaseOwner POLL_INTERVAL "writing payments into projects' databases" async |app| app.payments.update_mirrors(&app.backends).await;
        ControlOwner SWEEP_INTERVAL "ending what removed projects sold" async |app| app.payments.send_cancellations().await;
        Node PRESENCE_INTERVAL "telling rooms" async |app| app.realtime.send_updates(&app.serving, app.hosts.domains()).await;
        Node SWEEP_INTERVAL "ending subscriptions of who has signed out" async |app| app.live_queries.live.check_sessions().await;
        Node SWEEP_INTERVAL "closing sockets of who has signed out" async |app| app.realtime.check_sessions(&app.visitors).await;
        Node POLL_INTERVAL "pinging sockets" async |app| {
            app.realtime.ping();
            Ok(())
        };
        Node TIDY_INTERVAL "forgetting what is old in memory" async |app| {
            app.rate_limits.tidy();
            app.visitor_files.tidy();
            app.visitors.forget_old_tickets();
            app.backends.update_owners().await
        };
        DatabaseOwner SWEEP_INTERVAL "closing idle databases" async |app| app.backends.close_idle().await;
        DatabaseOwner SWEEP_INTERVAL "recording histories" async |app| {
            app.backends.record_history();
            Ok(())
        };
        ControlOwner TIDY_INTERVAL "forgetting what is old" async |app| {
            app.visitors.sweep().await?;
            app.shares.forget_old_tokens().await?;
            app.revisions.forget_former().await?;
            app.payments.delete_old_events().await?;
            Ok(app.idempotency.forget_old().await?)
        };
        ControlOwner FORGET_INTERVAL "forgetting views of what is gone" async |app| Ok(app.serving.forget_visits().await?);
        ControlOwner FORGET_INTERVAL "forgetting the audit" async |app| {
            Ok(audit::forget_old(&app.control, app.clock.now()).await?)
        };
        ControlOwner TIDY_INTERVAL "ending subscriptions" async |app| app.accounts.cancel_orphaned_subscriptions().await;
        DatabaseOwner FORGET_INTERVAL "forgetting history" async |app| app.backends.forget_old().await;
    }
}

/// Runs `work` periodically; a failure is logged, and the next run tries again.
async fn run_periodically<F>(
    period: Duration,
    (app, mut stop): BackgroundTaskInput,
    what: &'static str,
    work: F,
) where
    F: AsyncFn(&App) -> anyhow::Result<()>,
{
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while wait_for_tick(&mut ticks, &mut stop).await {
        match work(&app).await {
            Ok(()) => {}
            // A node that follows says once that it hears nothing, where it listens.
            Err(error) if is_stale(&error) => tracing::debug!("{what} waits for control's node"),
            // That the ledger takes no commits is said where they are sent.
            Err(error) if is_passing(&error) && is_without_ledger(&app) => {
                tracing::debug!(error = format!("{error:#}"), "{what} waits for the ledger");
            }
            Err(error) => tracing::error!(error = format!("{error:#}"), "{what} failed"),
        }
    }
}

/// Whether work failed because this node may lack what another one has written.
fn is_stale(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| matches!(cause.downcast_ref(), Some(control::Error::Stale)))
}

/// Whether a failure passes with the ledger's.
fn is_passing(error: &anyhow::Error) -> bool {
    use control::Error::{Busy, Closed, Elsewhere, Unanswered};
    let mut causes = error.chain();
    causes.any(|cause| {
        let of_control = cause.downcast_ref();
        cause.is::<LedgerError>()
            || matches!(of_control, Some(Busy | Closed | Elsewhere | Unanswered))
    })
}

/// Whether the server is a node whose ledger does not answer.
fn is_without_ledger(app: &App) -> bool {
    let node = app.cluster.as_ref();
    node.is_some_and(|node| !node.gate().has_room())
}

/// Waits for the next tick. Returns `false` if the server stops, even where a tick is due: work may take longer than its period, as while
/// a ledger does not answer.
async fn wait_for_tick(ticks: &mut Interval, stop: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => false,
        _ = ticks.tick() => true,
    }
}

/// Deletes unreferenced content; a server that stops does not wait for all of it.
async fn run_content_collection((app, stop): BackgroundTaskInput) {
    let stopping = stop.clone();
    let collect = async move |app: &App| {
        let stops = || *stopping.borrow();
        app.collector.collect_until(stops).await.map(|_| ())
    };
    run_periodically(
        COLLECT_INTERVAL,
        (app, stop),
        "collecting unused content",
        collect,
    )
    .await;
}

/// Removes what nodes that died have left in the ledger and in the bucket.
async fn run_leftover_removal((app, stop): BackgroundTaskInput) {
    let stopping = stop.clone();
    let remove = async move |app: &App| {
        let mut stopping = stopping.clone();
        tokio::select! {
            removed = remove_leftovers(app) => removed,
            // A server that stops does not wait for a ledger that says nothing.
            _ = stopping.wait_for(|stop| *stop) => Ok(()),
        }
    };
    let task = (app, stop);
    run_periodically(LEFTOVER_INTERVAL, task, "removing leftovers", remove).await;
}

/// Checks domains that are due; a server that stops does not wait for DNS.
async fn run_domain_checks((app, stop): BackgroundTaskInput) {
    let stopping = stop.clone();
    let check = async move |app: &App| {
        let mut stopping = stopping.clone();
        tokio::select! {
            checked = app.domains.check_due() => checked,
            _ = stopping.wait_for(|stop| *stop) => Ok(()),
        }
    };
    run_periodically(SWEEP_INTERVAL, (app, stop), "checking domains", check).await;
}

/// Shows views as the ledger has them: other nodes count, too.
async fn run_following_views((app, mut stop): BackgroundTaskInput) {
    let Some(node) = &app.cluster else {
        return;
    };
    let counters = app.control.counters();
    tokio::select! {
        () = node.follow_views(&counters) => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

async fn remove_leftovers(app: &App) -> anyhow::Result<()> {
    let Some(node) = &app.cluster else {
        return Ok(());
    };
    node.remove_leftovers(&app.control).await?;
    let pages = node.list_old_one_time_pages().await?;
    app.shares.burn_unowned(pages).await
}

/// Sends clients with sockets and event streams away from a node that is cut off: another one may serve, and has news for them.
async fn run_sending_away(task: BackgroundTaskInput) {
    let send_away = async |app: &App| {
        let node = app.cluster.as_ref();
        if node.is_some_and(|node| node.gate().is_given_up() || node.is_long_behind()) {
            app.realtime.send_away();
        }
        Ok(())
    };
    run_periodically(POLL_INTERVAL, task, "sending clients away", send_away).await;
}

/// Marks orphaned content once. A store that does not answer is asked again.
async fn run_orphan_marking((app, mut stop): BackgroundTaskInput) {
    loop {
        let pause;
        tokio::select! {
            marked = app.collector.mark_orphans() => match marked {
                // Other nodes store files, too, and may die before they name them.
                Ok(()) if app.cluster.is_some() => pause = ORPHANS_INTERVAL,
                Ok(()) => return,
                Err(error) => {
                    tracing::error!(error = format!("{error:#}"), "looking for orphaned content failed: that is tried again");
                    pause = TIDY_INTERVAL;
                }
            },
            _ = stop.wait_for(|stop| *stop) => return,
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// Renders pages again on request, with pauses in between that leave the threads to other work.
async fn run_rerendering((app, mut stop): BackgroundTaskInput) {
    let mut rest = POLL_INTERVAL;
    loop {
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        rest = match app.rerenderer.render_next().await {
            Ok(next) => next.unwrap_or(POLL_INTERVAL),
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "rendering pages again failed");
                SWEEP_INTERVAL
            }
        };
    }
}

/// Writes new errors into the status file, for commands; once more at the end.
async fn run_status_writing(mut status: StatusFile, (app, mut stop): BackgroundTaskInput) {
    let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
    let mut stopping = false;
    while !stopping {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stop.wait_for(|stop| *stop) => stopping = true,
        }
        let data = app.config.data.clone();
        let told = tokio::task::spawn_blocking(move || {
            let told = status.write_if_changed(&data);
            (status, told)
        });
        let Ok((back, told)) = told.await else {
            // The panic is in the log.
            return;
        };
        status = back;
        if let Err(error) = told {
            tracing::warn!(%error, "commands do not know of the latest errors");
        }
    }
}

/// Follows the operators' choice of guests on a blocking thread: periodically, at once when a command asks, and once more at the
/// end, to report. A node of several follows the cluster's choice before each look.
async fn run_guest_watcher(
    (mut guests, mut asked): (GuestWatcher, mpsc::Receiver<GuestStatusRequest>),
    (app, mut stop): BackgroundTaskInput,
) {
    let mut follower = app
        .cluster
        .as_ref()
        .map(|node| node.follow_guests(&app.control, &app.config.guests, &app.clock));
    // Failed renderers whose pages are not requested to be rendered again yet.
    let mut remade = Vec::new();
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut stopping = false;
    while !stopping {
        let mut asking = None;
        tokio::select! {
            _ = ticks.tick() => {}
            Some(one) = asked.recv() => asking = Some(one),
            _ = stop.wait_for(|stop| *stop) => stopping = true,
        }
        let mut fallen = app.sandbox.take_rolled_back();
        let renderers = fallen.iter().filter(|one| one.world == World::Render);
        remade.extend(renderers.map(|one| one.guest));
        // Before the failure is recorded, so that a crash between the two loses neither.
        request_rerenders(&app, &mut remade).await;
        if let Some(asking) = &asking {
            guests.retry_failed(asking);
        }
        let mut followed = None;
        if let Some(follower) = &mut follower {
            let fallen = std::mem::take(&mut fallen);
            followed = Some(follow_cluster(follower, fallen, &mut stop).await);
        }
        let looked = tokio::task::spawn_blocking(move || {
            let looked = match followed {
                Some(followed) => guests.poll_followed(followed),
                None => guests.poll(fallen),
            };
            (guests, looked)
        });
        let Ok((watch, looked)) = looked.await else {
            // The panic is in the log.
            return;
        };
        guests = watch;
        if let Err(error) = looked {
            tracing::error!(
                error = format!("{error:#}"),
                "following the installed guests failed"
            );
        }
        if let Some(asking) = asking {
            guests.answer(asking);
        }
    }
}

/// Follows the guests of the cluster, and has it leave those that were rolled back here. A server that stops waits for nobody.
async fn follow_cluster(
    follower: &mut GuestFollower,
    fallen: Vec<RolledBackGuest>,
    stop: &mut watch::Receiver<bool>,
) -> FollowedRecords {
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => {}
        () = follower.follow(fallen) => {}
    }
    follower.followed()
}

/// Handles the events of commands that ran without a server, such as purges of the edge. Failures are retried.
async fn run_operator_event_handling((app, mut stop): BackgroundTaskInput) {
    while let Err(error) = operators::handle_startup_events(&app.infra).await {
        tracing::error!(%error, "what operators did before the start is not followed yet");
        tokio::select! {
            () = tokio::time::sleep(SWEEP_INTERVAL) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// Requests new renderings of the pages that failed guests made; a request that fails stays in the list.
async fn request_rerenders(app: &App, fallen: &mut Vec<GuestDigest>) {
    while let Some(guest) = fallen.last() {
        let (control, clock) = (&app.control, &app.clock);
        if let Err(error) = rerender::request_again_without(control, clock, *guest).await {
            tracing::error!(%guest, %error, "the pages of a guest that was rolled back are not made again yet: that is tried again");
            return;
        }
        fallen.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_is_late_is_not_begun_once_the_server_stops() {
        let (_stop, mut stopped) = watch::channel(true);
        for _ in 0..32 {
            // Its first tick is due at once.
            let mut ticks = tokio::time::interval(Duration::from_secs(1));
            assert!(!wait_for_tick(&mut ticks, &mut stopped).await);
        }
    }
}
