//! What runs beside requests: views written down, what has expired swept, operators' commands noticed.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::app::{App, SharedApp};
use crate::control::events;
use crate::guests::watch::Watch;

const FLUSH_VISITS: Duration = Duration::from_secs(2);
const SWEEP: Duration = Duration::from_secs(1);
const PURGE: Duration = Duration::from_millis(250);
const TELL: Duration = Duration::from_millis(100);
const COLLECT: Duration = Duration::from_secs(15);
const TIDY: Duration = Duration::from_secs(60);
const FORGET: Duration = Duration::from_secs(3600);
/// Four times a second, so that a command takes effect within one.
const LISTEN: Duration = Duration::from_millis(250);

/// The application, and the end of it.
type Task = (SharedApp, watch::Receiver<bool>);

/// Starts all of it; each ends when `stop` becomes true.
pub(super) fn start(
    app: &SharedApp,
    guests: Watch,
    stop: &watch::Receiver<bool>,
) -> Vec<JoinHandle<()>> {
    let task = || (app.clone(), stop.clone());
    let mut tasks = periodic(&task);
    tasks.push(tokio::spawn(hear_operators(task())));
    tasks.push(tokio::spawn(mark_orphans(task())));
    tasks.push(tokio::spawn(watch_guests(guests, stop.clone())));
    tasks.push(tokio::spawn(rerender(task())));
    tasks
}

macro_rules! periodic {
    ($task:expr; $($period:ident $what:literal $work:expr;)+) => {
        vec![$(tokio::spawn(every($period, $task(), $what, $work)),)+]
    };
}

/// What is done again and again: a line each.
fn periodic(task: &impl Fn() -> Task) -> Vec<JoinHandle<()>> {
    periodic! { task;
        FLUSH_VISITS "writing views down" async |app| Ok(app.deployments.flush_visits().await?);
        SWEEP "sweeping what has expired" async |app| app.deployments.sweep().await.map(|_| ());
        COLLECT "collecting unused content" async |app| app.deployments.collect().await.map(|_| ());
        SWEEP "ending projects" async |app| app.teardown.run().await;
        PURGE "purging the edge" async |app| match &app.purger {
            Some(purger) => purger.run().await,
            None => Ok(()),
        };
        TELL "telling rooms" async |app| app.realtime.tell(&app.deployments).await;
        LISTEN "pinging sockets" async |app| {
            app.realtime.ping();
            Ok(())
        };
        TIDY "forgetting what is old" async |app| {
            app.rate_limits.tidy();
            app.backends.tidy();
            Ok(app.idempotency.forget_old().await?)
        };
        FORGET "forgetting history" async |app| app.backends.forget_old().await;
    }
}

/// Does `work` again and again; a failure is logged and the work tried again in its turn.
async fn every<F>(period: Duration, (app, mut stop): Task, what: &'static str, work: F)
where
    F: AsyncFn(&App) -> anyhow::Result<()>,
{
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        if let Err(error) = work(&app).await {
            tracing::error!(error = format!("{error:#}"), "{what} failed");
        }
    }
}

async fn mark_orphans((app, mut stop): Task) {
    tokio::select! {
        marked = app.deployments.mark_orphans() => {
            if let Err(error) = marked {
                tracing::error!(error = format!("{error:#}"), "looking for orphaned content failed");
            }
        }
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

/// Makes pages again where that was asked for, with rests in between that leave the threads to everybody else.
async fn rerender((app, mut stop): Task) {
    let mut rest = LISTEN;
    loop {
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        rest = match app.deployments.rerender_next().await {
            Ok(next) => next.unwrap_or(LISTEN),
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "rendering pages again failed");
                SWEEP
            }
        };
    }
}

/// Follows what operators choose of guests, on a thread that may block; once more at the end, to say what they did.
async fn watch_guests(mut guests: Watch, mut stop: watch::Receiver<bool>) {
    let mut ticks = tokio::time::interval(LISTEN);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut stopping = false;
    while !stopping {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stop.wait_for(|stop| *stop) => stopping = true,
        }
        let looked = tokio::task::spawn_blocking(move || {
            let looked = guests.look();
            (guests, looked)
        });
        let Ok((watch, looked)) = looked.await else {
            // A panic has said so in the log.
            return;
        };
        guests = watch;
        if let Err(error) = looked {
            tracing::error!(
                error = format!("{error:#}"),
                "following the installed guests failed"
            );
        }
    }
}

/// Acts on operators' events: a look at a table that is empty when there are none. Those from before the start are
/// among them, because the edge remembers what memory does not.
async fn hear_operators((app, mut stop): Task) {
    let mut ticks = tokio::time::interval(LISTEN);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        match app.control.read(events::unhandled).await {
            Ok(heard) => {
                for event in heard {
                    act(&app, event).await;
                }
            }
            Err(error) => tracing::error!(%error, "operators' commands cannot be read"),
        }
    }
}

/// Does what an event asks for; one that fails is tried again in its turn.
async fn act(app: &App, event: events::OperatorEvent) {
    tracing::info!(
        kind = event.kind,
        subject = event.subject,
        "an operator's command"
    );
    if let Err(error) = app.deployments.handle_event(event).await {
        tracing::error!(%error, "an operator's command could not be followed");
    }
}
