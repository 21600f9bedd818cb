//! Latencies of viewers while all pages are rendered again by another guest.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use svc_sandbox::{World, built_in_component};
use svc_tests::guests::with_other_digest;

use super::report::{Goals, median, print_line, print_title, quantile};
use super::server::Bench;
use super::source_generator::SourceGenerator;
use super::{client, load};

const DATA: &str = "rerender";
const RUNS: u8 = 5;
const RUN: Duration = Duration::from_millis(1500);
const CONNECTIONS: usize = 4;
/// Number of pages, so large that a rerender takes longer than a run.
const PAGES: usize = 150;
const BYTES: usize = 10 * 1024;

/// Measures views of pages, with nothing else to do and during a rerender.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Views over {CONNECTIONS} connections while {PAGES} pages of 10 KB Markdown are rendered again, {RUNS} alternating runs of {} ms",
        RUN.as_millis()
    ))?;
    let svc = bench.start_svc(DATA)?;
    svc.await_guests()?;
    let mut author = SourceGenerator::new(13);
    let mut client = svc.client()?;
    for number in 0..PAGES {
        let share = json!({ "name": format!("page-{number}"), "type": "markdown", "content": author.markdown(BYTES) });
        let answer = client.post("/api/v1/deploy", &share)?;
        ensure!(answer.status == 201, "not published: {answer:?}");
    }
    let requests: Vec<Vec<u8>> = (0..PAGES)
        .map(|number| client::get(svc.address, &format!("/page-{number}"), "br"))
        .collect();
    let views = || load::run(svc.address, &requests, CONNECTIONS, RUN);
    let (mut quiet, mut during) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        // A guest with another digest has all pages rendered again, without changes.
        let path = bench.directory("again.wasm");
        std::fs::write(
            &path,
            with_other_digest(built_in_component(World::Render), run),
        )?;
        let path = path.to_str().context("a path that is text")?;
        bench.run_guest_command(DATA, ["install", path])?;
        svc.await_rest()?;
        quiet.push(views()?);
        bench.run_guest_command(DATA, ["rerender"])?;
        during.push(views()?);
        let status = bench.run_guest_command(DATA, ["status"])?;
        let left = status["rerender"]["finished_at"] == Value::Null;
        ensure!(left, "the rerender was over before the run: {status}");
        let done = bench.run_guest_command(DATA, ["rerender", "--wait"])?;
        ensure!(done["rerender"]["failed"] == 0, "not rendered: {done}");
        svc.await_rest()?;
    }
    let figures = |outcomes: &[load::Outcome], share: f64| {
        let each = outcomes.iter().map(|one| quantile(&one.latencies, share));
        median(&each.collect::<Vec<_>>()) / 1e3
    };
    print_line(&format!(
        "{:>16} {:>10} {:>10} {:>10}",
        "", "p50 ms", "p99 ms", "views/s"
    ))?;
    for (name, outcomes) in [("quiet", &quiet), ("rerendering", &during)] {
        let rates: Vec<f64> = outcomes.iter().map(|one| one.rate).collect();
        print_line(&format!(
            "{name:>16} {:>10.2} {:>10.2} {:>10.0}",
            figures(outcomes, 0.5),
            figures(outcomes, 0.99),
            median(&rates)
        ))?;
    }
    let most = (2.0 * figures(&quiet, 0.99)).max(10.0);
    goals.at_most(
        "views during a rerender: p99, ms",
        figures(&during, 0.99),
        most,
    );
    Ok(())
}
