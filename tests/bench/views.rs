//! Page views: requests a second, latency and processor time, beside the minimal server's.

use std::time::Duration;

use anyhow::ensure;

use super::client;
use super::load;
use super::report::{Goals, median, quantile, say, title};
use super::server::{Bench, Running, cpu_of};
use super::source::Author;

const SIZES: [(&str, usize); 3] = [("1 KB", 1024), ("10 KB", 10 * 1024), ("100 KB", 100 * 1024)];
const ENCODINGS: [&str; 2] = ["identity", "br"];
const CONNECTIONS: usize = 64;
const ROUNDS: usize = 6;
const ROUND: Duration = Duration::from_millis(900);
const WARM_UP: Duration = Duration::from_millis(300);

/// What one server did in the rounds of one case.
#[derive(Debug, Default)]
struct Figures {
    rates: Vec<f64>,
    latencies: Vec<f64>,
    answers: usize,
    cpu: Duration,
}

impl Figures {
    /// Processor time an answer, in microseconds.
    fn cost(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.answers as f64
    }

    fn row(&self, case: &str, server: &str) -> String {
        format!(
            "{case:16} {server:8} {:>9.0} {:>8.0} {:>8.0} {:>10.1}",
            median(&self.rates),
            quantile(&self.latencies, 0.5),
            quantile(&self.latencies, 0.99),
            self.cost()
        )
    }
}

/// Measures all encodings of all sizes, or of the one that is named.
pub(crate) fn measure(bench: &Bench, page: Option<&str>, goals: &mut Goals) -> anyhow::Result<()> {
    title(&format!(
        "Page views, {CONNECTIONS} keep-alive connections, {ROUNDS} alternating rounds of {} ms",
        ROUND.as_millis()
    ))?;
    say(&format!(
        "{:16} {:8} {:>9} {:>8} {:>8} {:>10}",
        "page", "server", "answers/s", "p50 µs", "p99 µs", "CPU µs"
    ))?;
    let svc = bench.svc("views")?;
    svc.await_guests()?;
    let pages = bench.directory("pages");
    std::fs::create_dir(&pages)?;
    for (at, (_, bytes)) in SIZES.iter().enumerate() {
        prepare(&svc, &pages, at, *bytes)?;
    }
    let minimal = bench.minimal(&pages)?;
    let before = cpu_of("self")?;
    let mut answers = 0;
    let wanted = |size: &str| page.is_none_or(|page| size.trim_end_matches(" KB") == page);
    for (at, (size, _)) in SIZES.iter().enumerate() {
        for encoding in ENCODINGS.iter().filter(|_| wanted(size)) {
            let name = format!("page-{at}");
            let ours = client::get(svc.address, &format!("/{name}"), encoding);
            let theirs = client::get(minimal.address, &format!("/{name}.{encoding}"), encoding);
            let case = format!("{size} {encoding}");
            let (ours, theirs, ratio) = compare((&svc, &ours), (&minimal, &theirs))?;
            let cost = ours.cost() / theirs.cost();
            say(&ours.row(&case, "svc"))?;
            say(&theirs.row("", "minimal"))?;
            say(&format!(
                "{:16} {:8} {ratio:>9.2} {:>8} {:>8} {cost:>10.2}",
                "", "ratio", "", ""
            ))?;
            answers += ours.answers + theirs.answers;
            if *size == "10 KB" {
                goals.at_least(&format!("{case}: throughput, of minimal's"), ratio, 0.85);
                goals.at_most(&format!("{case}: CPU, of minimal's"), cost, 1.25);
            }
        }
    }
    let own = (cpu_of("self")? - before).as_secs_f64() * 1e6 / answers as f64;
    say(&format!(
        "\nThe load itself costs {own:.1} µs an answer, on the same cores."
    ))?;
    let (now, most) = svc.memory()?;
    say(&format!(
        "svc after it: {now:.1} MB resident, {most:.1} MB at the most."
    ))
}

/// Publishes a page of `bytes`, and keeps what is answered for the minimal server.
fn prepare(svc: &Running, pages: &std::path::Path, at: usize, bytes: usize) -> anyhow::Result<()> {
    let name = format!("page-{at}");
    let page = Author::new(at as u64 + 1).html(bytes);
    let share = serde_json::json!({ "name": name, "content": page });
    let mut client = svc.client()?;
    let published = client.post("/api/v1/deploy", &share)?;
    ensure!(published.status == 201, "not published: {published:?}");
    for encoding in ENCODINGS {
        let answer = client.get(&format!("/{name}"), encoding)?;
        let encoded = answer.head.contains("content-encoding: br");
        ensure!(answer.status == 200, "not served: {answer:?}");
        ensure!(
            encoded == (encoding == "br"),
            "not {encoding}: {}",
            answer.head
        );
        std::fs::write(pages.join(format!("{name}.{encoding}")), answer.body)?;
    }
    Ok(())
}

/// Both servers' figures, and the middle of the rounds' ratios of throughput.
fn compare(
    svc: (&Running, &[u8]),
    minimal: (&Running, &[u8]),
) -> anyhow::Result<(Figures, Figures, f64)> {
    let (mut ours, mut theirs) = (Figures::default(), Figures::default());
    for (server, request) in [svc, minimal] {
        load::run(server.address, request, CONNECTIONS, WARM_UP)?;
    }
    for round in 0..ROUNDS {
        // Each goes first as often as the other.
        if round % 2 == 0 {
            one_round(svc, &mut ours)?;
            one_round(minimal, &mut theirs)?;
        } else {
            one_round(minimal, &mut theirs)?;
            one_round(svc, &mut ours)?;
        }
    }
    let ratios: Vec<f64> = ours
        .rates
        .iter()
        .zip(&theirs.rates)
        .map(|(ours, theirs)| ours / theirs)
        .collect();
    Ok((ours, theirs, median(&ratios)))
}

fn one_round((server, request): (&Running, &[u8]), into: &mut Figures) -> anyhow::Result<()> {
    let before = server.cpu()?;
    let outcome = load::run(server.address, request, CONNECTIONS, ROUND)?;
    into.cpu += server.cpu()? - before;
    into.rates.push(outcome.rate);
    into.answers += outcome.answers;
    into.latencies.extend(outcome.latencies);
    Ok(())
}
