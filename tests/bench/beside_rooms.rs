//! Page views and calls of a tenant beside rooms at full load, and the effect of a member that does not read on a room.

use std::time::Duration;

use tokio::runtime::Runtime;

use super::neighbours::{
    CONNECTIONS, Figures, QUIET, RUN, RunFigures, measure_operations, print_beside,
};
use super::relay::{Relay, RelayRun, SendPace, Shape, join_without_reading};
use super::report::{Goals, median, print_line, print_title, quantile};
use super::server::{Bench, Running};
use super::{client, load, rooms, tenant};

const RUNS: usize = 5;

/// Rooms whose members send as fast as the server accepts messages.
const FULL: Shape = Shape {
    name: "a full relay",
    rooms: 1,
    members: 100,
    senders: 4,
};

/// Fast readers, and the interval between the messages of a sender.
const FAST: Shape = Shape {
    name: "99 who read",
    rooms: 1,
    members: 99,
    senders: 2,
};
const DISTANCE: Duration = Duration::from_millis(5);
/// Time for which a member does not read: long enough to fill its queue and its kernel buffers.
const SLOW: Duration = Duration::from_secs(4);

/// Measures views and calls beside full rooms, and rooms with a member that does not read.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Views and calls over {CONNECTIONS} connections, {RUNS} alternating runs of {} ms, beside a room of {} members whose {} senders never wait",
        RUN.as_millis(),
        FULL.members,
        FULL.senders
    ))?;
    let (svc, mut owner) = rooms::start_ours(bench, "beside-rooms")?;
    tenant::create_tenant(&mut owner, QUIET, &[])?;
    let relay = rooms::relay(svc);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    measure_beside_full_relay(&relay, &runtime, goals)?;
    measure_slow_member(&relay, &runtime, goals)
}

/// Measures views and calls beside a full relay.
fn measure_beside_full_relay(
    relay: &Relay,
    runtime: &Runtime,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    let mut calls = [Figures::default(), Figures::default()];
    let mut views = [RunFigures::default(), RunFigures::default()];
    let mut delivered = 0.0;
    measure_operations(&relay.server, &mut Figures::default())?;
    for _ in 0..RUNS {
        run_page_views(&relay.server, &mut views[0])?;
        measure_operations(&relay.server, &mut calls[0])?;
        let play = runtime.block_on(RelayRun::begin(relay, FULL, SendPace::Window(4)))?;
        let (began, before) = (std::time::Instant::now(), play.delivered());
        run_page_views(&relay.server, &mut views[1])?;
        measure_operations(&relay.server, &mut calls[1])?;
        delivered += (play.delivered() - before) as f64 / began.elapsed().as_secs_f64();
        runtime.block_on(play.end())?;
        relay.server.await_rest()?;
    }
    print_line(&format!(
        "  {:.0} deliveries a second meanwhile",
        delivered / RUNS as f64
    ))?;
    print_beside(&calls[0], &[(FULL.name, &calls[1])], goals)?;
    views[0].print_beside("view", &[(FULL.name, &views[1])], goals)
}

/// One run of page views.
fn run_page_views(svc: &Running, into: &mut RunFigures) -> anyhow::Result<()> {
    let view = [client::get(svc.address, &format!("/{QUIET}"), "br")];
    into.add(&load::run(svc.address, &view, CONNECTIONS, RUN)?);
    Ok(())
}

/// Measures the cost of a member that does not read for the others.
fn measure_slow_member(relay: &Relay, runtime: &Runtime, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "A member who takes nothing among {}, {RUNS} alternating runs of {} s: latency of the others' messages",
        FAST.name,
        SLOW.as_secs()
    ))?;
    let mut p99 = [Vec::new(), Vec::new()];
    let mut closed = 0;
    for _ in 0..RUNS {
        for (is_slow, p99) in [false, true].into_iter().zip(&mut p99) {
            let (latencies, code) = runtime.block_on(async {
                let play = RelayRun::begin(relay, FAST, SendPace::Every(DISTANCE)).await?;
                let code = if is_slow {
                    join_without_reading(relay, 0, SLOW).await?
                } else {
                    tokio::time::sleep(SLOW).await;
                    None
                };
                anyhow::Ok((play.end().await?, code))
            })?;
            p99.push(quantile(&latencies, 0.99));
            closed += usize::from(code == Some(1013));
        }
    }
    let [alone, beside] = p99.map(|p99| median(&p99));
    print_line(&format!(
        "  p99 {alone:.2} ms alone, {beside:.2} ms beside one who takes nothing; {closed} of {RUNS} were closed with 1013"
    ))?;
    goals.at_most(
        "beside one who takes nothing, p99, ms",
        beside,
        (2.0 * alone).max(10.0),
    );
    goals.at_least(
        "who takes nothing is closed with 1013, of all",
        closed as f64 / RUNS as f64,
        1.0,
    );
    Ok(())
}
