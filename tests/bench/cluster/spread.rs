//! Durable inserts into three databases: all of them at one node, and one at each of three nodes.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use super::super::items;
use super::super::load::Outcome;
use super::super::owner::Owner;
use super::super::report::{median, print_line};
use super::super::rounds::{ROUND, ROUNDS};
use super::super::tenant;
use super::Bars;
use super::inserts::WrittenDatabase;
use super::site::{Node, Site};

/// Databases of the first node, and those of the two others.
const FIRST: [&str; 3] = ["spread-a", "spread-b", "spread-c"];
const OTHERS: [&str; 2] = ["spread-d", "spread-e"];
/// Number of databases that are made here.
pub(super) const DATABASES: usize = FIRST.len() + OTHERS.len();
/// Connections to each of three databases.
const CONNECTIONS: usize = 32;
const WARM_UP: Duration = Duration::from_millis(300);
/// Cores with which three nodes have some of their own, beside the ledger and the load.
const ENOUGH_CORES: usize = 12;

/// Figures of three databases that are written to at once.
#[derive(Default)]
struct Figures {
    /// Inserts a second, of each round.
    rates: Vec<f64>,
    answers: usize,
    /// Processor time of all nodes, and of the ledger's servers.
    nodes_cpu: Duration,
    ledger_cpu: Duration,
}

impl Figures {
    /// Writes for a round, and undoes it.
    fn round(
        &mut self,
        site: &Site<'_>,
        nodes: &[Node],
        targets: &[WrittenDatabase<'_>; 3],
    ) -> anyhow::Result<()> {
        let before = (cpu(nodes)?, site.ledger_cpu());
        let outcomes = write(targets, ROUND)?;
        let after = (cpu(nodes)?, site.ledger_cpu());
        self.nodes_cpu += after.0.saturating_sub(before.0);
        self.ledger_cpu += after.1.saturating_sub(before.1);
        let mut rate = 0.0;
        for outcome in outcomes {
            rate += outcome.rate;
            self.answers += outcome.answers;
        }
        self.rates.push(rate);
        undo(targets)
    }

    fn print(&self, at: &str) -> anyhow::Result<()> {
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / self.answers as f64;
        print_line(&format!(
            "{at:27} {:>9.0} {:>15.1} {:>15.1}",
            median(&self.rates),
            micros(self.nodes_cpu),
            micros(self.ledger_cpu)
        ))
    }
}

/// Makes the databases, places them, and writes to them; returns the nodes that there are then.
pub(super) fn measure(
    site: &Site<'_>,
    nodes: Vec<Node>,
    credential: &str,
    bars: &mut Bars<'_>,
) -> anyhow::Result<Vec<Node>> {
    let nodes = place(site, nodes, credential)?;
    let [first, second, third] = &nodes[..] else {
        bail!("there are not three nodes");
    };
    let one = FIRST.map(|slug| WrittenDatabase::new(&first.svc, slug));
    let three = [
        WrittenDatabase::new(&first.svc, FIRST[0]),
        WrittenDatabase::new(&second.svc, OTHERS[0]),
        WrittenDatabase::new(&third.svc, OTHERS[1]),
    ];
    let (mut together, mut spread) = (Figures::default(), Figures::default());
    for targets in [&one, &three] {
        write(targets, WARM_UP)?;
        undo(targets)?;
    }
    for round in 0..ROUNDS {
        for turn in 0..2 {
            match (round + turn) % 2 {
                0 => together.round(site, &nodes, &one)?,
                _ => spread.round(site, &nodes, &three)?,
            }
        }
    }
    print_line(&format!(
        "\n{:27} {:>9} {:>15} {:>15}",
        "inserts, three databases", "a second", "nodes' CPU µs", "ledger's CPU µs"
    ))?;
    together.print("all at one node")?;
    spread.print("one at each of three nodes")?;
    let rounds = spread.rates.iter().zip(&together.rates);
    let ratio = median(&rounds.map(|(three, one)| three / one).collect::<Vec<_>>());
    let cores = thread::available_parallelism()?.get();
    match cores >= ENOUGH_CORES {
        true => bars.at_least("durable inserts of three nodes, of one's", ratio, 1.6),
        false => bars.note(
            &format!("durable inserts of three nodes, of one's: {cores} cores"),
            ratio,
        ),
    }
    Ok(nodes)
}

/// Makes the databases, ends the node that has them, and has each of the nodes that there are then claim its own.
fn place(site: &Site<'_>, mut nodes: Vec<Node>, credential: &str) -> anyhow::Result<Vec<Node>> {
    let owner = site.take_owner(&mut nodes)?;
    let mut client = Owner::new(&owner.svc, credential)?;
    for slug in FIRST.iter().chain(&OTHERS) {
        tenant::create_tenant(&mut client, slug, &[])?;
    }
    owner.lose()?;
    nodes.iter().try_for_each(Node::wait_for_control)?;
    nodes.push(site.start_serving()?);
    let (first, others) = nodes.split_first().context("there is no node")?;
    let others = others.iter().zip(OTHERS);
    for (node, slug) in FIRST.map(|slug| (first, slug)).into_iter().chain(others) {
        let before = site.places(node)?;
        let insert = items::call(node.svc.address, slug, "insert", &items::new_row());
        node.wait_for_answer(&insert, 200)?;
        let claimed = site.places(node)? - before;
        ensure!(claimed == 1, "{slug} is not at the node that needs it");
    }
    Ok(nodes)
}

/// Writes to three databases at once.
fn write(targets: &[WrittenDatabase<'_>; 3], time: Duration) -> anyhow::Result<Vec<Outcome>> {
    thread::scope(|scope| {
        let writers = targets
            .each_ref()
            .map(|target| scope.spawn(move || target.run(CONNECTIONS, time)));
        let outcomes = writers.into_iter();
        outcomes
            .map(|writer| writer.join().ok().context("a writer panicked")?)
            .collect()
    })
}

fn undo(targets: &[WrittenDatabase<'_>; 3]) -> anyhow::Result<()> {
    targets.iter().try_for_each(WrittenDatabase::undo)
}

/// Processor time that nodes have used so far.
fn cpu(nodes: &[Node]) -> anyhow::Result<Duration> {
    nodes.iter().map(|node| node.svc.cpu()).sum()
}
