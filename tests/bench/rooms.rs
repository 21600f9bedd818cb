//! Rooms beside the minimal relay and NATS: deliveries, their processor time and latency.

use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::json;
use tokio::runtime::Runtime;

use super::owner::Owner;
use super::relay::{Relay, RelayOutcome, RelayRun, SendPace, Shape};
use super::relay_protocol::RelayProtocol;
use super::report::{Goals, median, millis, print_line, print_title, quantile};
use super::server::{Bench, Running};
use super::{Run, nats};

/// Duration of a run, and number of runs.
const RUN: Duration = Duration::from_secs(4);
const ROUNDS: usize = 3;
/// The name of the relay that has goals.
pub(crate) const OURS: &str = "svc";

/// Limits that are too high to matter; the queue has the service's size.
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

/// Messages a second for the comparison with the minimal relay, and whether there are goals at that load: above it, the only goal is
/// that no reading client is disconnected.
const STEADY_LOADS: [(u32, bool); 2] = [(8_000, true), (16_000, false)];
/// Rounds at each of these loads.
const STEADY_ROUNDS: usize = 5;

/// Result of a run.
struct Outcome {
    per_second: f64,
    /// Microseconds of processor time a delivery.
    cpu: f64,
    latencies: Vec<f64>,
    /// Sockets that the server has closed.
    closed: u64,
}

impl Outcome {
    fn p99(&self) -> f64 {
        quantile(&self.latencies, 0.99)
    }
}

/// Measures rooms.
pub(crate) fn measure(run: &Run, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(
        "Rooms: deliveries a second, processor time a delivery, and latency at half of that load",
    )?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let relays = start_relays(run, "rooms")?;
    for shape in SHAPES {
        runtime.block_on(compare(&relays, shape, goals))?;
    }
    Ok(())
}

/// Measures ours beside the minimal relay, at steady loads.
pub(crate) fn measure_steady(run: &Run, goals: &mut Goals) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let relays = [
        relay(start_ours(&run.bench, "rooms-steady")?.0),
        start_minimal(run)?,
    ];
    compare_at_steady_load(&relays, &runtime, goals)
}

/// Measures steady loads on one room, in rounds in which the two take turns: ours comes first.
fn compare_at_steady_load(
    relays: &[Relay; 2],
    runtime: &Runtime,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    let [shape, _] = SHAPES;
    for (load, has_goals) in STEADY_LOADS {
        print_title(&format!(
            "{}, {load} messages a second, {STEADY_ROUNDS} alternating rounds of {} s",
            shape.name,
            RUN.as_secs()
        ))?;
        let senders = u32::try_from(shape.senders)?;
        let pace = SendPace::Every(Duration::from_secs(1) * senders / load);
        let mut figures: Vec<Vec<Outcome>> = relays.iter().map(|_| Vec::new()).collect();
        for _ in 0..STEADY_ROUNDS {
            for (relay, figures) in relays.iter().zip(&mut figures) {
                figures.push(runtime.block_on(run_once(relay, shape, pace))?);
            }
        }
        for (relay, figures) in relays.iter().zip(&figures) {
            let of =
                |get: fn(&Outcome) -> f64| median(&figures.iter().map(get).collect::<Vec<_>>());
            let closed: u64 = figures.iter().map(|outcome| outcome.closed).sum();
            print_line(&format!(
                "  {:<8} {:>9.0} deliveries/s  {:>6.3} us of CPU each  p50 {:.2} ms  p99 {:.2} ms  {closed} closed",
                relay.name,
                of(|outcome| outcome.per_second),
                of(|outcome| outcome.cpu),
                of(|outcome| quantile(&outcome.latencies, 0.5)),
                of(Outcome::p99),
            ))?;
        }
        let closed: u64 = figures[0].iter().map(|outcome| outcome.closed).sum();
        goals.at_most(&format!("{load} a second, closed"), closed as f64, 0.0);
        if !has_goals {
            continue;
        }
        // Ratios within each round, because the machine's speed changes over minutes.
        let ratio = |get: fn(&Outcome) -> f64| {
            let pairs = figures[0].iter().zip(&figures[1]);
            median(
                &pairs
                    .map(|(ours, other)| get(ours) / get(other))
                    .collect::<Vec<_>>(),
            )
        };
        let cpu = ratio(|outcome| outcome.cpu);
        goals.at_most(&format!("{load} a second, CPU beside minimal"), cpu, 0.8);
        let p99 = ratio(Outcome::p99);
        goals.at_most(&format!("{load} a second, p99 beside minimal"), p99, 1.0);
    }
    Ok(())
}

/// A server with a page `rooms`, and its owner.
pub(crate) fn start_ours(bench: &Bench, data: &str) -> anyhow::Result<(Running, Owner)> {
    let (svc, credential) = bench.start_owned_behind_proxies(data, LIMITS)?;
    let mut owner = Owner::new(&svc, &credential)?;
    owner.create_project("rooms")?;
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
        protocol: RelayProtocol::Envelopes,
        path: |room| format!("/rooms/ws?room=r{room}"),
    }
}

/// The minimal relay.
fn start_minimal(run: &Run) -> anyhow::Result<Relay> {
    Ok(Relay {
        name: "minimal",
        server: run.bench.start_minimal_rooms()?,
        protocol: RelayProtocol::Envelopes,
        path: |room| format!("/r{room}"),
    })
}

/// All relays: ours, the minimal one, and NATS where it is installed.
pub(crate) fn start_relays(run: &Run, data: &str) -> anyhow::Result<Vec<Relay>> {
    let mut relays = vec![relay(start_ours(&run.bench, data)?.0), start_minimal(run)?];
    match nats::start(&run.bench, run.arguments.nats.clone())? {
        Some(server) => relays.push(Relay {
            name: "NATS",
            server,
            protocol: RelayProtocol::Nats,
            path: |_| "/".to_owned(),
        }),
        None => print_line(nats::NOT_INSTALLED)?,
    }
    Ok(relays)
}

async fn compare(relays: &[Relay], shape: Shape, goals: &mut Goals) -> anyhow::Result<()> {
    let mut figures: Vec<Vec<Outcome>> = relays.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (relay, figures) in relays.iter().zip(&mut figures) {
            let outcome = run_once(relay, shape, SendPace::Window(4)).await?;
            ensure!(
                outcome.closed == 0,
                "{} sockets were closed",
                outcome.closed
            );
            figures.push(outcome);
        }
    }
    let mut fastest = Vec::new();
    for (relay, figures) in relays.iter().zip(&figures) {
        let of = |get: fn(&Outcome) -> f64| median(&figures.iter().map(get).collect::<Vec<_>>());
        let per_second = of(|outcome| outcome.per_second);
        fastest.push(per_second);
        print_line(&format!(
            "  {:<15} {:<8} {per_second:>9.0} deliveries/s  {:>6.2} us of CPU each",
            shape.name,
            relay.name,
            of(|outcome| outcome.cpu),
        ))?;
    }
    let what = format!("{}, deliveries beside minimal", shape.name);
    goals.at_least(&what, fastest[0] / fastest[1], 0.85);
    // Half of the maximum load of the minimal relay, for all relays.
    let deliveries = shape.rooms * shape.senders * (shape.members - 1);
    let distance = Duration::from_secs_f64(deliveries as f64 / (fastest[1] / 2.0));
    for relay in relays {
        let outcome = run_once(relay, shape, SendPace::Every(distance)).await?;
        let (p50, p99) = (
            quantile(&outcome.latencies, 0.5),
            quantile(&outcome.latencies, 0.99),
        );
        print_line(&format!(
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
async fn run_once(relay: &Relay, shape: Shape, pace: SendPace) -> anyhow::Result<Outcome> {
    let play = RelayRun::begin(relay, shape, pace).await?;
    tokio::time::sleep(RUN / 4).await;
    let (before, cpu) = (play.delivered(), relay.server.cpu()?);
    let began = Instant::now();
    tokio::time::sleep(RUN).await;
    let took = began.elapsed();
    let delivered = play.delivered() - before;
    let cpu = relay.server.cpu()? - cpu;
    let RelayOutcome { latencies, closed } = play.finish().await?;
    Ok(Outcome {
        per_second: delivered as f64 / took.as_secs_f64(),
        cpu: millis(cpu) * 1e3 / delivered as f64,
        latencies,
        closed,
    })
}
