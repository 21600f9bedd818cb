//! Memory of a server with the maximum number of databases, all of them in use.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;

use super::items;
use super::load;
use super::owner::Owner;
use super::report::{Goals, print_line, print_title, quantile};
use super::server::{Bench, Running};
use super::tenant;

/// Number of databases: the default limit.
const DATABASES: usize = 250;
/// Number of databases that are created at a time.
const CREATORS: usize = 4;
const CONNECTIONS: usize = 64;
const RUN: Duration = Duration::from_secs(10);
/// Operations on every database in a turn: mostly reads. The scan fills the database's cache of pages.
const OPERATION_MIX: [&str; 6] = ["scan", "row", "range", "row", "insert", "row"];
const SCAN: (&str, &str) = (
    "scan",
    "SELECT count(*) AS n FROM items WHERE note LIKE '%item 99%'",
);
/// Number of turns; each uses other rows.
const TURNS: usize = 10;

/// Measures the memory.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "{DATABASES} databases of {} rows under a mixed load of {CONNECTIONS} connections for {} s",
        items::ROWS,
        RUN.as_secs()
    ))?;
    let (svc, credential) = bench.start_owned("crowd")?;
    let began = Instant::now();
    thread::scope(|scope| {
        let makers: Vec<_> = (0..CREATORS)
            .map(|maker| {
                scope.spawn({
                    let (svc, credential) = (&svc, &credential);
                    move || {
                        let mut owner = Owner::new(svc, credential)?;
                        (maker..DATABASES).step_by(CREATORS).try_for_each(|number| {
                            tenant::create_tenant(&mut owner, &slug_of(number), &[SCAN])
                        })
                    }
                })
            })
            .collect();
        makers
            .into_iter()
            .try_for_each(|maker| maker.join().ok().context("a maker panicked")?)
    })?;
    let (now, most) = svc.memory()?;
    print_line(&format!(
        "made in {:.1} s: {now:.1} MB resident, {most:.1} MB at the most",
        began.elapsed().as_secs_f64()
    ))?;
    let outcome = load::run(svc.address, &visit_requests(&svc), CONNECTIONS, RUN)?;
    print_line(&format!(
        "{:.0} answers/s, p50 {:.2} ms, p99 {:.2} ms",
        outcome.rate,
        quantile(&outcome.latencies, 0.5) / 1e3,
        quantile(&outcome.latencies, 0.99) / 1e3
    ))?;
    let (now, most) = svc.memory()?;
    print_line(&format!(
        "svc after it: {now:.1} MB resident, {most:.1} MB at the most."
    ))?;
    goals.at_most(
        &format!("{DATABASES} databases: peak memory, MB"),
        most,
        512.0,
    );
    Ok(())
}

fn slug_of(number: usize) -> String {
    format!("crowd-{number}")
}

/// Turns of one database after the other, as visitors come: some calls in a row, then none for a while.
fn visit_requests(svc: &Running) -> Vec<Vec<u8>> {
    let mut keys = items::keys().cycle();
    let mut requests = Vec::with_capacity(TURNS * DATABASES * OPERATION_MIX.len());
    for slug in (0..TURNS).flat_map(|_| 0..DATABASES).map(slug_of) {
        for action in OPERATION_MIX {
            let key = keys.next().unwrap_or(1);
            let params = match action {
                "row" => json!({ "id": key }),
                "range" => json!({ "first": items::first_key_of_range(key) }),
                "insert" => items::new_row(),
                _ => json!({}),
            };
            requests.push(items::call(svc.address, &slug, action, &params));
        }
    }
    requests
}
