//! Republishing and promoting, and the effect of a stream of publishes on page views.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::client;
use super::load;
use super::owner::{Owner, text};
use super::report::{Goals, median, print_line, print_title, quantile};
use super::server::Bench;
use super::source_generator::SourceGenerator;

const BYTES: usize = 10 * 1024;
const COUNT: usize = 200;
const RUNS: usize = 5;
const RUN: Duration = Duration::from_millis(1500);
/// Concurrent visitors: enough to notice a stall, too few to cause one.
const VISITORS: usize = 8;

/// Measures releases, and page views beside publishes.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    std::fs::create_dir_all(bench.directory("releases"))?;
    let credential = bench.create_namespace("releases")?;
    let svc = bench.start_svc("releases")?;
    svc.await_guests()?;
    let mut author = SourceGenerator::new(11);
    let mut owner = Owner::new(&svc, &credential)?;
    owner.create_project("Bench")?;
    owner.path.push_str("/frontends");
    let page =
        json!({ "type": "markdown", "content": author.markdown(BYTES), "requested_slug": "page" });
    owner.send("POST", "", &page)?;
    owner.path.push_str("/page");

    print_title(&format!(
        "Releasing Markdown of {} KB, {COUNT} times one after the other",
        BYTES / 1024
    ))?;
    print_line(&format!("{:16} {:>8} {:>8}", "", "p50 ms", "p99 ms"))?;
    let mut took = Vec::new();
    let mut live = String::new();
    for _ in 0..COUNT {
        let (frontend, time) = publish_again(&mut owner, &mut author)?;
        live = text(&frontend, "active_revision_id")?;
        took.push(time);
    }
    print_line(&row("republish", &took))?;
    took.clear();
    let draft = json!({ "base_revision_id": live, "content": author.markdown(BYTES) });
    let mut next = text(
        &owner.send("POST", "/revisions", &draft)?.0["revision"],
        "revision_id",
    )?;
    for _ in 0..COUNT {
        let body = json!({ "revision_id": next, "expected_active_revision_id": live });
        took.push(owner.send("POST", "/promote", &body)?.1);
        std::mem::swap(&mut live, &mut next);
    }
    print_line(&row("promote", &took))?;
    measure_views(svc.address, &mut owner, &mut author, goals)
}

/// Page views of another page, with and without a stream of publishes beside them.
fn measure_views(
    address: std::net::SocketAddr,
    owner: &mut Owner,
    author: &mut SourceGenerator,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    let share = json!({ "name": "other", "content": author.html(BYTES) });
    let published = owner.client.post("/api/v1/deploy", &share)?;
    ensure!(published.status == 201, "not published: {published:?}");
    let request = [client::get(address, "/other", "br")];
    print_title(&format!(
        "Page views over {VISITORS} connections, {RUNS} alternating runs of {} ms",
        RUN.as_millis()
    ))?;
    let (mut quiet, mut busy, mut published) = (Vec::new(), Vec::new(), 0);
    load::run(address, &request, VISITORS, RUN / 3)?;
    for _ in 0..RUNS {
        let alone = load::run(address, &request, VISITORS, RUN)?;
        quiet.push(quantile(&alone.latencies, 0.99) / 1e3);
        let stop = AtomicBool::new(false);
        let beside = std::thread::scope(|scope| {
            let stream = scope.spawn(|| {
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    publish_again(owner, author)?;
                    count += 1;
                }
                anyhow::Ok(count)
            });
            let beside = load::run(address, &request, VISITORS, RUN);
            stop.store(true, Ordering::Relaxed);
            let count = stream.join().ok().context("the publisher panicked")??;
            anyhow::Ok((beside?, count))
        })?;
        busy.push(quantile(&beside.0.latencies, 0.99) / 1e3);
        published += beside.1;
    }
    let (quiet, busy) = (median(&quiet), median(&busy));
    print_line(&format!(
        "p99 quiet {quiet:.2} ms, beside {published} publishes {busy:.2} ms"
    ))?;
    goals.at_most(
        "views beside publishes: p99, ms",
        busy,
        (2.0 * quiet).max(10.0),
    );
    Ok(())
}

fn publish_again(owner: &mut Owner, author: &mut SourceGenerator) -> anyhow::Result<(Value, f64)> {
    owner.send("PUT", "", &json!({ "content": author.markdown(BYTES) }))
}

fn row(what: &str, took: &[f64]) -> String {
    format!(
        "{what:16} {:>8.1} {:>8.1}",
        quantile(took, 0.5),
        quantile(took, 0.99)
    )
}
