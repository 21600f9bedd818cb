//! Publishing: from a source to a durable page, sequentially.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::ensure;

use super::client::Client;
use super::report::{millis, print_line, print_title, quantile};
use super::server::{Bench, Running};
use super::source_generator::SourceGenerator;

const BYTES: usize = 10 * 1024;
const COUNT: usize = 200;
const WARM_UP: usize = 10;
/// Stages of a publish, with the server's names; the two that wait for the disk come last. The gate is not involved.
const PARTS: [&str; 4] = ["render", "compress", "store", "commit"];

/// Measures each type.
pub(crate) fn measure(bench: &Bench) -> anyhow::Result<()> {
    print_title(&format!(
        "Publishing sources of {} KB, {COUNT} of each type, one after the other",
        BYTES / 1024
    ))?;
    print_line(&format!(
        "{:10} {:>8} {:>8} {:>10}   of these, on average:{}",
        "type",
        "p50 ms",
        "p99 ms",
        "CPU ms",
        PARTS.map(|part| format!(" {part:>9}")).concat()
    ))?;
    let (svc, metrics) = bench.start_svc_with_metrics("publish")?;
    svc.await_guests()?;
    for kind in ["html", "markdown", "json", "csv", "mermaid"] {
        measure_type(&svc, metrics, kind)?;
    }
    Ok(())
}

/// Reads the total times of the stages of all publishes from the server's metrics, in milliseconds.
pub(crate) fn publish_stage_times(metrics: SocketAddr) -> anyhow::Result<[f64; PARTS.len()]> {
    let answer = Client::connect(metrics)?.get("/metrics", "identity")?;
    let text = String::from_utf8(answer.body)?;
    Ok(PARTS.map(|part| {
        let name = format!("svc_publish_seconds_sum{{part=\"{part}\"}} ");
        let sum = text.lines().find_map(|line| line.strip_prefix(&name));
        sum.and_then(|sum| sum.parse().ok())
            .map_or(0.0, |seconds: f64| seconds * 1000.0)
    }))
}

fn measure_type(svc: &Running, metrics: SocketAddr, kind: &str) -> anyhow::Result<()> {
    let mut client = svc.client()?;
    let mut latencies = Vec::with_capacity(COUNT);
    let mut author = SourceGenerator::new(7);
    let mut before = (svc.cpu()?, publish_stage_times(metrics)?);
    for number in 0..WARM_UP + COUNT {
        if number == WARM_UP {
            before = (svc.cpu()?, publish_stage_times(metrics)?);
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
    let cpu = millis(svc.cpu()? - before.0) / COUNT as f64;
    let took = publish_stage_times(metrics)?;
    let each: String = took
        .iter()
        .zip(before.1)
        .map(|(after, before)| format!(" {:>9.2}", (after - before) / COUNT as f64))
        .collect();
    print_line(&format!(
        "{kind:10} {:>8.1} {:>8.1} {cpu:>10.1}                        {each}",
        quantile(&latencies, 0.5),
        quantile(&latencies, 0.99)
    ))
}
