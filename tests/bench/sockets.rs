//! Idle sockets: the memory of each, and the cost of their pings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinSet;

use super::Run;
use super::relay::{Relay, stay_idle};
use super::report::{Goals, print_line, print_title};
use super::rooms;

/// Number of sockets.
const COUNTS: [usize; 2] = [10_000, 25_000];
/// Number of sockets in a room.
const MEMBERS: usize = 100;
/// Duration of the measurement: two pings of each socket.
const IDLE: Duration = Duration::from_secs(50);
/// Open files of this program beside sockets.
const OTHER_FILES: u64 = 1_000;

/// Measures them on every relay.
pub(crate) fn measure(run: &Run, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Idle sockets, {MEMBERS} in each room, with pings: memory of each, and processor time in {} s",
        IDLE.as_secs()
    ))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let most = open_file_limit();
    if most < COUNTS[1] {
        print_line(&format!(
            "{most} at the most: raise the limit on open files (`ulimit -n`) for more."
        ))?;
    }
    for relay in rooms::start_relays(run, "sockets")? {
        runtime.block_on(measure_idle_sockets(&relay, most, goals))?;
    }
    Ok(())
}

async fn measure_idle_sockets(relay: &Relay, most: usize, goals: &mut Goals) -> anyhow::Result<()> {
    let lost: Arc<AtomicU64> = Arc::default();
    let mut sockets = JoinSet::new();
    relay.server.await_rest()?;
    let (empty, _) = relay.server.memory()?;
    for wanted in COUNTS.map(|wanted| wanted.min(most)) {
        while sockets.len() < wanted {
            let joined = relay.join(sockets.len() / MEMBERS).await;
            let stream = joined.context("one more idle socket")?;
            sockets.spawn(stay_idle(relay.protocol, stream, Arc::clone(&lost)));
        }
        relay.server.await_rest()?;
        let (full, _) = relay.server.memory()?;
        let each = (full - empty) * 1024.0 / wanted as f64;
        print_line(&format!(
            "  {wanted:>6} of {:<8} {each:>6.1} KB each",
            relay.name
        ))?;
        if relay.name == rooms::OURS {
            goals.at_most(&format!("{wanted} idle sockets, KB each"), each, 6.0);
        }
    }
    let cpu = relay.server.cpu()?;
    tokio::time::sleep(IDLE).await;
    let share = (relay.server.cpu()? - cpu).as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    let (all, lost) = (sockets.len(), lost.load(Ordering::Relaxed));
    print_line(&format!(
        "  {all:>6} of {:<8} {share:>6.2} % of a core  {lost} lost",
        relay.name
    ))?;
    if relay.name == rooms::OURS {
        goals.at_most(&format!("{all} idle sockets, % of a core"), share, 5.0);
    }
    Ok(())
}

/// Returns the number of sockets that the limit on open files allows, with some files left for other uses.
fn open_file_limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let files = limit
        .current
        .unwrap_or(u64::MAX)
        .saturating_sub(OTHER_FILES);
    usize::try_from(files).unwrap_or(usize::MAX)
}
