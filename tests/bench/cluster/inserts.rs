//! Durable inserts: alone and of many connections, through a node, through a server of one machine, and as bare appends of what the node
//! has appended.

use std::time::Duration;

use anyhow::ensure;

use super::super::items::{self, Operation};
use super::super::load::{self, Outcome};
use super::super::report::{median, print_line, quantile};
use super::super::rounds::{ROUND, ROUNDS};
use super::super::server::Running;
use super::super::tenant;
use super::appends::{self, Appends};
use super::site::Site;
use super::{Bars, SLUG};

const WARM_UP: Duration = Duration::from_millis(300);
/// Connections of inserts that come together.
const TOGETHER: usize = 64;
/// Fewer appends than these, of a round in which the rest was made needless, are not sent again.
const LEAST_APPENDS: usize = 16;
/// Contenders: the node, embedded, and the bare client.
const CONTENDERS: usize = 3;

/// Database that is written to, at a server.
pub(super) struct WrittenDatabase<'s> {
    svc: &'s Running,
    calls: Vec<Vec<u8>>,
    undo: Vec<u8>,
}

impl<'s> WrittenDatabase<'s> {
    pub(super) fn new(svc: &'s Running, slug: &str) -> Self {
        Self {
            svc,
            calls: Operation::Insert.calls(svc.address, slug),
            undo: items::undo_request(svc.address, slug),
        }
    }

    pub(super) fn run(&self, connections: usize, time: Duration) -> anyhow::Result<Outcome> {
        load::run(self.svc.address, &self.calls, connections, time)
    }

    pub(super) fn undo(&self) -> anyhow::Result<()> {
        tenant::call_json(self.svc, &self.undo).map(drop)
    }
}

/// Figures of one contender.
#[derive(Default)]
struct Figures {
    /// Inserts a second, of each round.
    rates: Vec<f64>,
    /// Microseconds of each answer.
    latencies: Vec<f64>,
}

impl Figures {
    fn add(&mut self, rate: f64, latencies: Vec<f64>) {
        self.rates.push(rate);
        self.latencies.extend(latencies);
    }

    /// Median of the latencies, in milliseconds.
    fn p50(&self) -> f64 {
        quantile(&self.latencies, 0.5) / 1e3
    }

    fn ratio(&self, other: &Self) -> f64 {
        let rounds = self.rates.iter().zip(&other.rates);
        median(
            &rounds
                .map(|(ours, theirs)| ours / theirs)
                .collect::<Vec<_>>(),
        )
    }

    fn print(&self, case: &str, who: &str) -> anyhow::Result<()> {
        print_line(&format!(
            "{case:16} {who:10} {:>9.0} {:>8.2} {:>8.2}",
            median(&self.rates),
            self.p50(),
            quantile(&self.latencies, 0.99) / 1e3
        ))
    }
}

/// Figures of all contenders.
#[derive(Default)]
struct Inserts {
    node: Figures,
    embedded: Figures,
    bare: Figures,
    /// Bytes in the ledger that one insert takes, of each round.
    bytes: Vec<f64>,
}

/// A round of the node, with what it has appended.
struct Recorded {
    outcome: Outcome,
    appends: Appends,
    inserts_per_commit: f64,
}

/// Measures inserts alone, and of many connections.
pub(super) fn measure(
    site: &Site<'_>,
    node: &Running,
    embedded: &Running,
    bars: &mut Bars<'_>,
) -> anyhow::Result<()> {
    // It is the only one yet.
    let database = site.text("SELECT db FROM svc.bases WHERE db <> 'control' LIMIT 1")?;
    let (node, embedded) = (
        WrittenDatabase::new(node, SLUG),
        WrittenDatabase::new(embedded, SLUG),
    );
    print_line(&format!(
        "{:16} {:10} {:>9} {:>8} {:>8}",
        "durable inserts", "by", "a second", "p50 ms", "p99 ms"
    ))?;
    let alone = compare(site, &database, (&node, &embedded), 1)?;
    alone.print("alone")?;
    let most = alone.embedded.p50() + 1.5 * alone.bare.p50();
    let figure = "insert alone: p50, ms (embedded + 1.5 × bare append)";
    bars.at_most(figure, alone.node.p50(), most);
    bars.at_most(
        "insert alone: p50, ms (on a quiet machine)",
        alone.node.p50(),
        4.0,
    );
    let kilobytes = median(&alone.bytes) / 1024.0;
    bars.at_most("insert alone: KB of the ledger", kilobytes, 6.0);

    let together = compare(site, &database, (&node, &embedded), TOGETHER)?;
    together.print("64 connections")?;
    let (of_bare, of_embedded) = (
        together.node.ratio(&together.bare),
        together.node.ratio(&together.embedded),
    );
    bars.at_least("64 connections: inserts, of the bare client", of_bare, 0.7);
    bars.at_least("64 connections: inserts, of embedded", of_embedded, 0.2);
    let kilobytes = median(&together.bytes) / 1024.0;
    bars.at_most("64 connections: KB of the ledger each", kilobytes, 1.5);
    Ok(())
}

impl Inserts {
    fn print(&self, case: &str) -> anyhow::Result<()> {
        self.node.print(case, "node")?;
        self.embedded.print("", "embedded")?;
        self.bare.print("", "bare")?;
        print_line(&format!(
            "{:16} {:10} {:>9.2} of embedded, {:.2} of bare; {:.0} bytes of the ledger each",
            "",
            "ratio",
            self.node.ratio(&self.embedded),
            self.node.ratio(&self.bare),
            median(&self.bytes)
        ))
    }
}

fn compare(
    site: &Site<'_>,
    database: &str,
    (node, embedded): (&WrittenDatabase<'_>, &WrittenDatabase<'_>),
    connections: usize,
) -> anyhow::Result<Inserts> {
    let mut inserts = Inserts::default();
    embedded.run(connections, WARM_UP)?;
    embedded.undo()?;
    let mut recorded = record(site, database, node, connections, WARM_UP)?;
    for round in 0..ROUNDS {
        for turn in 0..CONTENDERS {
            match (round + turn) % CONTENDERS {
                0 => {
                    let mut newer = record(site, database, node, connections, ROUND)?;
                    let bytes = newer.appends.row_bytes / newer.inserts_per_commit;
                    inserts.bytes.push(bytes);
                    let latencies = std::mem::take(&mut newer.outcome.latencies);
                    inserts.node.add(newer.outcome.rate, latencies);
                    if newer.appends.len() >= LEAST_APPENDS {
                        recorded = newer;
                    }
                }
                1 => {
                    let outcome = embedded.run(connections, ROUND)?;
                    inserts.embedded.add(outcome.rate, outcome.latencies);
                    embedded.undo()?;
                }
                _ => {
                    let appends = &recorded.appends;
                    let replay = site.wait(appends.replay(site.client(), ROUND))?;
                    let rate = replay.rate * recorded.inserts_per_commit;
                    inserts.bare.add(rate, replay.latencies);
                }
            }
        }
    }
    Ok(inserts)
}

/// Runs a round of the node, and reads what it has appended.
fn record(
    site: &Site<'_>,
    database: &str,
    node: &WrittenDatabase<'_>,
    connections: usize,
    time: Duration,
) -> anyhow::Result<Recorded> {
    let last = || site.wait(appends::last_commit(site.client(), database));
    let before = last()?;
    let outcome = node.run(connections, time)?;
    let commits = last()? - before;
    let appends = site.wait(Appends::read(site.client(), database, before))?;
    node.undo()?;
    ensure!(
        commits > 0 && appends.len() > 0,
        "the ledger has no commit of a round"
    );
    Ok(Recorded {
        inserts_per_commit: outcome.answers as f64 / commits as f64,
        outcome,
        appends,
    })
}
