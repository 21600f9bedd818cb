//! Latencies of visitors and callers while a client publishes sources that exhaust a renderer.

use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use svc_tests::hostile;

use super::background_load::BackgroundLoad;
use super::client::{self, Client};
use super::items::{self, Operation};
use super::load;
use super::owner::Owner;
use super::report::{Goals, median, print_line, print_title, quantile};
use super::server::{Bench, Running};
use super::tenant;

const RUNS: usize = 5;
const RUN: Duration = Duration::from_millis(1500);
/// Connections of the measured clients.
const CONNECTIONS: usize = 4;
/// Connections of the publisher: more than the threads for guests.
const PUBLISHERS: BackgroundLoad = BackgroundLoad {
    clients: 8,
    ahead: Duration::from_millis(500),
};
const QUIET: &str = "quiet";
/// Allowed growth of memory, in megabytes: what the allocator keeps for each of two threads that
/// had much, and no page of 100 MB more.
const ALLOCATOR_MEGABYTES: f64 = 128.0;

/// Sources to publish: each begins with the letter that selects an attack of the hostile renderer.
const MISDEEDS: [(&str, &str); 5] = [
    ("l", "endless work"),
    ("m", "endless memory"),
    ("s", "endless depth"),
    ("t", "traps"),
    ("o", "pages of 100 MB"),
];

/// Measures views of a page, and reads and inserts through its actions.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Views and calls over {CONNECTIONS} connections, {RUNS} alternating runs of {} ms, beside {} connections that publish to a hostile renderer",
        RUN.as_millis(),
        PUBLISHERS.clients
    ))?;
    let folder = bench.directory("guests").join("guests/render");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("000001-hostile.wasm"), hostile::renderer())?;
    let (svc, credential) = bench.start_owned("guests")?;
    let mut owner = Owner::new(&svc, &credential)?;
    tenant::create_tenant(&mut owner, QUIET, &[])?;
    let asked = [
        (
            "view",
            vec![client::get(svc.address, &format!("/{QUIET}"), "identity")],
        ),
        (
            Operation::Row.name(),
            Operation::Row.calls(svc.address, QUIET),
        ),
        (
            Operation::Insert.name(),
            Operation::Insert.calls(svc.address, QUIET),
        ),
    ];
    let p99 = |requests: &[Vec<u8>]| -> anyhow::Result<f64> {
        let outcome = load::run(svc.address, requests, CONNECTIONS, RUN)?;
        tenant::call_json(&svc, &items::undo_request(svc.address, QUIET))?;
        Ok(quantile(&outcome.latencies, 0.99) / 1e3)
    };
    // One run of everything first, so that all caches are filled.
    for (letter, _) in MISDEEDS {
        run_beside_publishers(&svc, letter, || Ok(()))?;
    }
    svc.await_rest()?;
    let (before, _) = svc.memory()?;
    print_line(&format!("{:32} {:>10} {:>10}", "", "p99 ms", "quiet ms"))?;
    for (name, requests) in &asked {
        let mut quiet = Vec::new();
        let mut loud = MISDEEDS.map(|_| Vec::new());
        for _ in 0..RUNS {
            quiet.push(p99(requests)?);
            for ((letter, _), loud) in MISDEEDS.iter().zip(&mut loud) {
                run_beside_publishers(&svc, letter, || {
                    loud.push(p99(requests)?);
                    Ok(())
                })?;
                svc.await_rest()?;
            }
        }
        let most = (2.0 * median(&quiet)).max(10.0);
        for ((_, what), loud) in MISDEEDS.iter().zip(&loud) {
            let case = format!("{name} beside {what}");
            let (loud, quiet) = (median(loud), median(&quiet));
            print_line(&format!("{case:32} {loud:>10.2} {quiet:>10.2}"))?;
            goals.at_most(&format!("{case}: p99, ms"), loud, most);
        }
    }
    let (after, most) = svc.memory()?;
    print_line(&format!(
        "svc: {before:.1} MB resident before it, {after:.1} MB after it, {most:.1} MB at the most."
    ))?;
    goals.at_most(
        "memory kept after hostile pages, MB",
        after - before,
        ALLOCATOR_MEGABYTES,
    );
    Ok(())
}

/// Runs the work while the publishers publish.
fn run_beside_publishers(
    svc: &Running,
    letter: &str,
    work: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let share = json!({ "type": "markdown", "content": letter });
    let publish = |client: &mut Client| {
        let answer = client.post("/api/v1/deploy", &share)?;
        // A budget, a guest that failed, or no thread in time.
        ensure!(
            matches!(answer.status, 400 | 500 | 503),
            "published: {answer:?}"
        );
        Ok(())
    };
    PUBLISHERS.run_during(svc, publish, work)
}
