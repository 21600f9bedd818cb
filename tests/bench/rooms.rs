//! Rooms beside the minimal relay: deliveries, their processor time and latency; what idle sockets take.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::json;
use tokio::sync::Semaphore;

use super::owner::Owner;
use super::relay::{Counts, Pace, Run, open, receive, send, sit};
use super::report::{Goals, median, millis, quantile, say, title};
use super::server::{Bench, Running};

/// How long a run takes, and how often each is made.
const RUN: Duration = Duration::from_secs(4);
const ROUNDS: usize = 3;
/// How long a large room takes until everybody in it is a member.
const SETTLING: Duration = Duration::from_millis(1_500);
/// How long idle sockets are watched: two pings each.
const IDLE: Duration = Duration::from_secs(50);

/// Limits that are in nobody's way; the queue is the service's own.
const LIMITS: &str = "rooms_per_backend = 1000000
sockets_per_backend = 1000000
sockets_per_ip = 1000000
sockets_total = 1000000
messages_per_second = 1000000000
";

/// Rooms of so many members, of whom so many send.
#[derive(Clone, Copy, Debug)]
struct Shape {
    name: &'static str,
    rooms: usize,
    members: usize,
    senders: usize,
}

const SHAPES: [Shape; 2] = [
    Shape {
        name: "1 room of 100",
        rooms: 1,
        members: 100,
        senders: 4,
    },
    Shape {
        name: "50 rooms of 20",
        rooms: 50,
        members: 20,
        senders: 1,
    },
];

/// A relay that is measured, and the path of a room on it.
struct Relay {
    name: &'static str,
    server: Running,
    path: fn(usize) -> String,
}

/// Result of a run.
struct Outcome {
    per_second: f64,
    /// Microseconds of processor time a delivery.
    cpu: f64,
    latencies: Vec<f64>,
}

/// Measures rooms.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    title(
        "Rooms: deliveries a second, processor time a delivery, and latency at half of that load",
    )?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let (svc, credential) = bench.owned_with("rooms", LIMITS)?;
    let mut owner = Owner::new(&svc, &credential)?;
    owner.project("rooms")?;
    let backend = json!({ "ddl": "CREATE TABLE notes (id INTEGER PRIMARY KEY)", "realtime": true });
    owner.send("POST", "/backend", &backend)?;
    let page = json!({ "type": "html", "content": "<p>Rooms</p>", "requested_slug": "rooms" });
    owner.send("POST", "/frontends", &page)?;
    let relays = [
        Relay {
            name: "svc",
            server: svc,
            path: |room| format!("/rooms/ws?room=r{room}"),
        },
        Relay {
            name: "minimal",
            server: bench.minimal_rooms()?,
            path: |room| format!("/r{room}"),
        },
    ];
    for shape in SHAPES {
        runtime.block_on(compare(&relays, shape, goals))?;
    }
    for relay in &relays {
        runtime.block_on(idle(relay, goals))?;
    }
    Ok(())
}

async fn compare(relays: &[Relay; 2], shape: Shape, goals: &mut Goals) -> anyhow::Result<()> {
    let mut fastest = [0.0; 2];
    let mut figures: [Vec<Outcome>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (relay, figures) in relays.iter().zip(&mut figures) {
            figures.push(one(relay, shape, &Pace::Window(4)).await?);
        }
    }
    for ((relay, figures), fastest) in relays.iter().zip(&figures).zip(&mut fastest) {
        let of = |get: fn(&Outcome) -> f64| median(&figures.iter().map(get).collect::<Vec<_>>());
        *fastest = of(|outcome| outcome.per_second);
        say(&format!(
            "  {:<15} {:<8} {:>9.0} deliveries/s  {:>6.2} us of CPU each",
            shape.name,
            relay.name,
            fastest,
            of(|outcome| outcome.cpu),
        ))?;
    }
    let ratio = fastest[0] / fastest[1];
    goals.at_least(
        &format!("{}, deliveries beside minimal", shape.name),
        ratio,
        0.85,
    );
    // Half of what the minimal relay can, for both.
    let deliveries = shape.rooms * shape.senders * (shape.members - 1);
    let distance = Duration::from_secs_f64(deliveries as f64 / (fastest[1] / 2.0));
    for relay in relays {
        let outcome = one(relay, shape, &Pace::Every(distance)).await?;
        let (p50, p99) = (
            quantile(&outcome.latencies, 0.5),
            quantile(&outcome.latencies, 0.99),
        );
        say(&format!(
            "  {:<15} {:<8} {:>9.0} deliveries/s  p50 {p50:.2} ms  p99 {p99:.2} ms",
            shape.name, relay.name, outcome.per_second,
        ))?;
        if relay.name == "svc" {
            goals.at_most(&format!("{}, p99 at half load, ms", shape.name), p99, 50.0);
        }
    }
    Ok(())
}

/// One run on one relay.
async fn one(relay: &Relay, shape: Shape, pace: &Pace) -> anyhow::Result<Outcome> {
    let run = Arc::new(Run {
        began: Instant::now(),
        over: AtomicBool::new(false),
        counts: Counts::default(),
    });
    let (mut receivers, mut senders, mut silent) = (Vec::new(), Vec::new(), Vec::new());
    for room in 0..shape.rooms {
        let path = (relay.path)(room);
        // One listener lets the senders of its room go on.
        let turns = match pace {
            Pace::Window(window) => window * shape.senders,
            Pace::Every(_) => 0,
        };
        let heard = Arc::new(Semaphore::new(turns));
        for member in 0..shape.members {
            let (reading, writing) = open(relay.server.address, &path).await?.into_split();
            let listens = member + 1 == shape.members;
            let turns = listens.then(|| Arc::clone(&heard));
            let receiving = receive(Arc::clone(&run), reading, listens, turns);
            receivers.push(tokio::spawn(receiving));
            if member < shape.senders {
                senders.push((writing, Arc::clone(&heard)));
            } else {
                // Without this half, the other one would end.
                silent.push(writing);
            }
        }
    }
    tokio::time::sleep(SETTLING).await;
    let sending: Vec<_> = senders
        .into_iter()
        .map(|(writing, heard)| tokio::spawn(send(Arc::clone(&run), writing, pace.clone(), heard)))
        .collect();
    tokio::time::sleep(RUN / 4).await;
    let (before, cpu) = (
        run.counts.delivered.load(Ordering::Relaxed),
        relay.server.cpu()?,
    );
    let began = Instant::now();
    tokio::time::sleep(RUN).await;
    let took = began.elapsed();
    let delivered = run.counts.delivered.load(Ordering::Relaxed) - before;
    let cpu = relay.server.cpu()? - cpu;
    let closed = run.counts.closed.load(Ordering::Relaxed);
    run.over.store(true, Ordering::Relaxed);
    let mut latencies = Vec::new();
    for sender in sending {
        sender.await??;
    }
    for receiver in receivers {
        latencies.extend(receiver.await?);
    }
    drop(silent);
    ensure!(
        closed == 0,
        "{} sockets were closed by {}",
        closed,
        relay.name
    );
    Ok(Outcome {
        per_second: delivered as f64 / took.as_secs_f64(),
        cpu: millis(cpu) * 1e3 / delivered as f64,
        latencies,
    })
}

/// Measures the memory of idle sockets.
async fn idle(relay: &Relay, goals: &mut Goals) -> anyhow::Result<()> {
    let run = Arc::new(Run {
        began: Instant::now(),
        over: AtomicBool::new(false),
        counts: Counts::default(),
    });
    relay.server.await_rest()?;
    let (empty, _) = relay.server.memory()?;
    let mut open_now = 0;
    let most = allowed();
    for wanted in [10_000, 25_000] {
        let wanted = most.min(wanted);
        while open_now < wanted {
            let path = (relay.path)(open_now / 100);
            let address = SocketAddr::from(([127, 0, 0, 1], relay.server.address.port()));
            let stream = open(address, &path).await.context("one more idle socket")?;
            tokio::spawn(sit(Arc::clone(&run), stream));
            open_now += 1;
        }
        relay.server.await_rest()?;
        let (full, _) = relay.server.memory()?;
        let each = (full - empty) * 1024.0 / open_now as f64;
        let cpu = relay.server.cpu()?;
        tokio::time::sleep(IDLE).await;
        let share = (relay.server.cpu()? - cpu).as_secs_f64() / IDLE.as_secs_f64() * 100.0;
        let closed = run.counts.closed.load(Ordering::Relaxed);
        say(&format!(
            "  {open_now:>6} idle sockets of {:<8} {each:>6.1} KB each  {share:>5.2} % of a core  {closed} lost",
            relay.name,
        ))?;
        if relay.name == "svc" {
            goals.at_most(&format!("{open_now} idle sockets, KB each"), each, 10.0);
            goals.at_most(&format!("{open_now} idle sockets, % of a core"), share, 5.0);
        }
    }
    Ok(())
}

/// How many sockets the limit on open files allows here, with some left for everything else.
fn allowed() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let files = limit.current.unwrap_or(u64::MAX).saturating_sub(1_000);
    usize::try_from(files).unwrap_or(usize::MAX)
}
