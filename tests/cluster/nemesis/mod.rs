//! Three nodes that all serve. Nodes, networks, PostgreSQL and the bucket fail at random while clients go on: nothing is lost, done twice, or
//! shown too early.
//!
//! `SVC_NEMESIS_SEED` repeats a schedule, and `SVC_NEMESIS_MINUTES` makes it longer.

mod client_context;
mod clients;
mod edits;
mod keys;
mod machines;
mod pages;
mod record;
mod room;
mod schedule;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use svc_tests::wait_until;

use self::clients::Clients;
use self::machines::Machines;
use self::schedule::{Event, NODES, Schedule};
use crate::svc;

/// Pause between two looks at the nodes.
const PAUSE: Duration = Duration::from_millis(50);
/// Answers that clients of each kind get once everything is mended.
const MORE: usize = 3;

/// Number that the environment has.
fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_whatever_fails() {
    let seed = setting("SVC_NEMESIS_SEED");
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000);
    let minutes = setting("SVC_NEMESIS_MINUTES").unwrap_or(1);
    println!("SVC_NEMESIS_SEED={seed}");
    let mut machines = Machines::start(svc()).await;
    let clients = Clients::start(machines.context(), seed);
    let mut schedule = Schedule::new(seed);
    let lasts = Duration::from_secs(60 * minutes);
    disturb(&mut machines, &mut schedule, lasts).await;
    machines.settle().await;
    let before = machines.context().record().progress();
    wait_until("clients that go on", async || {
        machines.look_after().await;
        let now = machines.context().record().progress();
        let mut both = now.iter().zip(&before);
        both.all(|(now, before)| *now >= before + MORE)
            .then_some(())
    })
    .await;
    clients.stop().await;
    machines.all_serving().await;
    for at in 0..NODES {
        machines.make_owner(at).await;
        let process = machines.process(at).unwrap();
        room::check(machines.context(), process).await;
    }
    println!(
        "rows, rows shown, pages, pages looked at, one-time pages, names, versions, keys: {before:?} meanwhile"
    );
    let context = Arc::clone(machines.context());
    machines.stop().await;
    let record = context.record();
    assert!(record.faults().is_empty(), "{:#?}", record.faults());
}

/// Lets one thing after the other fail, and mends each after its time; at the end, or when something is wrong, all.
async fn disturb(machines: &mut Machines, schedule: &mut Schedule, lasts: Duration) {
    let begun = Instant::now();
    let mut broken: Vec<(Instant, Event)> = Vec::new();
    let mut next = begun;
    while begun.elapsed() < lasts && machines.context().record().faults().is_empty() {
        machines.look_after().await;
        let now = Instant::now();
        let (over, lasting): (Vec<_>, Vec<_>) =
            broken.into_iter().partition(|(until, _)| *until <= now);
        broken = lasting;
        for (_, event) in over {
            machines.mend(event).await;
            println!("{:.1?}: over: {event:?}", begun.elapsed());
        }
        if now >= next {
            let fault = schedule.draw();
            next = now + fault.pause;
            let target = fault.event.target();
            let is_free = broken.iter().all(|(_, event)| event.target() != target);
            if is_free && machines.disturb(fault.event).await {
                println!("{:.1?}: {:?}", begun.elapsed(), fault.event);
                if !matches!(fault.event, Event::Kill { .. } | Event::FailOver) {
                    broken.push((Instant::now() + fault.lasts, fault.event));
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    for (_, event) in broken {
        machines.mend(event).await;
    }
}
