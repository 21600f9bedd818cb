//! Rendering beside an earlier build: pages of 10 KB, published on both servers in turns, timed by the metrics of each server.

use std::net::SocketAddr;

use anyhow::ensure;
use serde_json::json;

use super::client::Client;
use super::publish::publish_stage_times;
use super::report::{Goals, median, print_line, print_title};
use super::server::{Bench, Running};
use super::source_generator::SourceGenerator;

const BYTES: usize = 10 * 1024;
/// Rounds: each publishes the same pages on both servers; the first rounds are not counted.
const ROUNDS: usize = 40;
const WARM_UP: usize = 5;
const PAGES: usize = 10;
/// Maximum time of a page of Markdown, as a multiple of the time in the earlier build.
const MARKDOWN: f64 = 1.1;

/// A server, and the address of its metrics.
struct ServerWithMetrics {
    server: Running,
    metrics: SocketAddr,
    client: Client,
}

/// Measures each type whose pages are rendered in one call.
pub(crate) fn measure(bench: &Bench, before: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Rendering sources of {} KB beside the build before, {PAGES} pages in turns: ms a page, median of {} rounds",
        BYTES / 1024,
        ROUNDS - WARM_UP
    ))?;
    print_line(&format!(
        "{:10} {:>8} {:>8} {:>6}",
        "type", "svc", "before", "ratio"
    ))?;
    let mut ours = start_with_metrics(bench, "calls")?;
    let mut theirs = start_with_metrics(before, "calls-before")?;
    for kind in ["html", "markdown", "json", "csv"] {
        let mut author = SourceGenerator::new(7);
        let (mut now, mut then) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let contents: Vec<String> = (0..PAGES).map(|_| source(&mut author, kind)).collect();
            let ours = ours.render(kind, &contents)?;
            let theirs = theirs.render(kind, &contents)?;
            if round >= WARM_UP {
                now.push(ours);
                then.push(theirs);
            }
        }
        let (now, then) = (median(&now), median(&then));
        let ratio = now / then;
        print_line(&format!("{kind:10} {now:>8.2} {then:>8.2} {ratio:>6.2}"))?;
        if kind == "markdown" {
            goals.at_most("rendering 10 KB of Markdown, of before", ratio, MARKDOWN);
        }
    }
    Ok(())
}

fn start_with_metrics(bench: &Bench, data: &str) -> anyhow::Result<ServerWithMetrics> {
    let (server, metrics) = bench.start_svc_with_metrics(data)?;
    server.await_guests()?;
    let client = server.client()?;
    Ok(ServerWithMetrics {
        server,
        metrics,
        client,
    })
}

fn source(author: &mut SourceGenerator, kind: &str) -> String {
    match kind {
        "html" => author.html(BYTES),
        "markdown" => author.markdown(BYTES),
        "json" => author.json(BYTES),
        _ => author.csv(BYTES),
    }
}

impl ServerWithMetrics {
    /// Publishes pages; returns how long each was rendered on average, in milliseconds.
    fn render(&mut self, kind: &str, contents: &[String]) -> anyhow::Result<f64> {
        let [before, ..] = publish_stage_times(self.metrics)?;
        for content in contents {
            let share = json!({ "type": kind, "content": content });
            let answer = self.client.post("/api/v1/deploy", &share)?;
            ensure!(
                answer.status == 201,
                "{kind} was not published by {}: {answer:?}",
                self.server.address
            );
        }
        let [after, ..] = publish_stage_times(self.metrics)?;
        Ok((after - before) / PAGES as f64)
    }
}
