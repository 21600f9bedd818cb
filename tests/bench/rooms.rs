//! Rooms beside the minimal relay and NATS: deliveries, their processor time and latency.

use std::time::{Duration, Instant};

use serde_json::json;

use super::owner::Owner;
use super::relay::{Pace, Play, Relay, Shape};
use super::report::{Goals, median, millis, quantile, say, title};
use super::server::{Bench, Running};
use super::speech::Speech;
use super::{Run, nats};

/// How long a run takes, and how often each is made.
const RUN: Duration = Duration::from_secs(4);
const ROUNDS: usize = 3;
/// The name of the relay that has goals.
pub(crate) const OURS: &str = "svc";

/// Limits that are in nobody's way; the queue is the service's own.
const LIMITS: &str = "rooms_per_backend = 1000000
sockets_per_backend = 1000000
sockets_per_ip = 1000000
sockets_total = 1000000
messages_per_second = 1000000000
";

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

/// Result of a run.
struct Outcome {
    per_second: f64,
    /// Microseconds of processor time a delivery.
    cpu: f64,
    latencies: Vec<f64>,
}

/// Measures rooms.
pub(crate) fn measure(run: &Run, goals: &mut Goals) -> anyhow::Result<()> {
    title(
        "Rooms: deliveries a second, processor time a delivery, and latency at half of that load",
    )?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let relays = relays(run, "rooms")?;
    for shape in SHAPES {
        runtime.block_on(compare(&relays, shape, goals))?;
    }
    Ok(())
}

/// A server with a page `rooms`, and its owner.
pub(crate) fn ours(bench: &Bench, data: &str) -> anyhow::Result<(Running, Owner)> {
    let (svc, credential) = bench.owned_with(data, LIMITS)?;
    let mut owner = Owner::new(&svc, &credential)?;
    owner.project("rooms")?;
    let backend = json!({ "ddl": "CREATE TABLE notes (id INTEGER PRIMARY KEY)", "realtime": true });
    owner.send("POST", "/backend", &backend)?;
    let page = json!({ "type": "html", "content": "<p>Rooms</p>", "requested_slug": "rooms" });
    owner.send("POST", "/frontends", &page)?;
    Ok((svc, owner))
}

/// The rooms of a server.
pub(crate) fn relay(svc: Running) -> Relay {
    Relay {
        name: OURS,
        server: svc,
        speech: Speech::Envelopes,
        path: |room| format!("/rooms/ws?room=r{room}"),
    }
}

/// All relays: ours, the minimal one, and NATS where it is installed.
pub(crate) fn relays(run: &Run, data: &str) -> anyhow::Result<Vec<Relay>> {
    let mut relays = vec![
        relay(ours(&run.bench, data)?.0),
        Relay {
            name: "minimal",
            server: run.bench.minimal_rooms()?,
            speech: Speech::Envelopes,
            path: |room| format!("/r{room}"),
        },
    ];
    match nats::start(&run.bench, run.arguments.nats.clone())? {
        Some(server) => relays.push(Relay {
            name: "NATS",
            server,
            speech: Speech::Nats,
            path: |_| "/".to_owned(),
        }),
        None => say(nats::NOT_INSTALLED)?,
    }
    Ok(relays)
}

async fn compare(relays: &[Relay], shape: Shape, goals: &mut Goals) -> anyhow::Result<()> {
    let mut figures: Vec<Vec<Outcome>> = relays.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (relay, figures) in relays.iter().zip(&mut figures) {
            figures.push(one(relay, shape, Pace::Window(4)).await?);
        }
    }
    let mut fastest = Vec::new();
    for (relay, figures) in relays.iter().zip(&figures) {
        let of = |get: fn(&Outcome) -> f64| median(&figures.iter().map(get).collect::<Vec<_>>());
        let per_second = of(|outcome| outcome.per_second);
        fastest.push(per_second);
        say(&format!(
            "  {:<15} {:<8} {per_second:>9.0} deliveries/s  {:>6.2} us of CPU each",
            shape.name,
            relay.name,
            of(|outcome| outcome.cpu),
        ))?;
    }
    let what = format!("{}, deliveries beside minimal", shape.name);
    goals.at_least(&what, fastest[0] / fastest[1], 0.85);
    // Half of what the minimal relay can, for all.
    let deliveries = shape.rooms * shape.senders * (shape.members - 1);
    let distance = Duration::from_secs_f64(deliveries as f64 / (fastest[1] / 2.0));
    for relay in relays {
        let outcome = one(relay, shape, Pace::Every(distance)).await?;
        let (p50, p99) = (
            quantile(&outcome.latencies, 0.5),
            quantile(&outcome.latencies, 0.99),
        );
        say(&format!(
            "  {:<15} {:<8} {:>9.0} deliveries/s  p50 {p50:.2} ms  p99 {p99:.2} ms",
            shape.name, relay.name, outcome.per_second,
        ))?;
        if relay.name == OURS {
            goals.at_most(&format!("{}, p99 at half load, ms", shape.name), p99, 50.0);
        }
    }
    Ok(())
}

/// One run on one relay.
async fn one(relay: &Relay, shape: Shape, pace: Pace) -> anyhow::Result<Outcome> {
    let play = Play::begin(relay, shape, pace).await?;
    tokio::time::sleep(RUN / 4).await;
    let (before, cpu) = (play.delivered(), relay.server.cpu()?);
    let began = Instant::now();
    tokio::time::sleep(RUN).await;
    let took = began.elapsed();
    let delivered = play.delivered() - before;
    let cpu = relay.server.cpu()? - cpu;
    Ok(Outcome {
        per_second: delivered as f64 / took.as_secs_f64(),
        cpu: millis(cpu) * 1e3 / delivered as f64,
        latencies: play.end().await?,
    })
}
