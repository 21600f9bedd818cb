//! Publishing: from a source to a durable page, one after the other.

use std::time::Instant;

use anyhow::ensure;

use super::report::{millis, quantile, say, title};
use super::server::{Bench, Running};
use super::source::Author;

const BYTES: usize = 10 * 1024;
const COUNT: usize = 200;
const WARM_UP: usize = 10;

/// Measures each type.
pub(crate) fn measure(bench: &Bench) -> anyhow::Result<()> {
    title(&format!(
        "Publishing sources of {} KB, {COUNT} of each type, one after the other",
        BYTES / 1024
    ))?;
    say(&format!(
        "{:10} {:>8} {:>8} {:>10}",
        "type", "p50 ms", "p99 ms", "CPU ms"
    ))?;
    let svc = bench.svc("publish")?;
    svc.await_guests()?;
    for kind in ["html", "markdown", "json", "csv", "mermaid"] {
        measure_type(&svc, kind)?;
    }
    Ok(())
}

fn measure_type(svc: &Running, kind: &str) -> anyhow::Result<()> {
    let mut client = svc.client()?;
    let mut latencies = Vec::with_capacity(COUNT);
    let mut author = Author::new(7);
    let mut before = svc.cpu()?;
    for number in 0..WARM_UP + COUNT {
        if number == WARM_UP {
            before = svc.cpu()?;
        }
        let content = match kind {
            "html" => author.html(BYTES),
            "markdown" => author.markdown(BYTES),
            "json" => author.json(BYTES),
            "csv" => author.csv(BYTES),
            _ => author.mermaid(BYTES),
        };
        let share = serde_json::json!({ "type": kind, "content": content });
        let began = Instant::now();
        let answer = client.post("/api/v1/deploy", &share)?;
        let took = began.elapsed();
        ensure!(answer.status == 201, "{kind} was not published: {answer:?}");
        if number >= WARM_UP {
            latencies.push(millis(took));
        }
    }
    let cpu = millis(svc.cpu()? - before) / COUNT as f64;
    say(&format!(
        "{kind:10} {:>8.1} {:>8.1} {cpu:>10.1}",
        quantile(&latencies, 0.5),
        quantile(&latencies, 0.99)
    ))
}
