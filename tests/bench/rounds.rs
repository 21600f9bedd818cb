//! Servers measured in alternating rounds, so that what else the machine does hits all of them.

use std::time::Duration;

use anyhow::ensure;

use super::load;
use super::report::{median, print_line, quantile};
use super::server::Running;

/// Number of rounds: a multiple of the number of servers, so that each goes first equally often.
pub(crate) const ROUNDS: usize = 6;
pub(crate) const ROUND: Duration = Duration::from_millis(900);
const WARM_UP: Duration = Duration::from_millis(300);

/// Measured server, with its requests.
pub(crate) struct Contender<'a> {
    server: &'a Running,
    requests: &'a [Vec<u8>],
    /// Request that undoes a round; it is not measured.
    undo: Option<&'a [u8]>,
    /// Status of its answers.
    status: u16,
}

impl<'a> Contender<'a> {
    pub(crate) fn new(server: &'a Running, requests: &'a [Vec<u8>]) -> Self {
        Self {
            server,
            requests,
            undo: None,
            status: 200,
        }
    }

    /// Has its answers be of another status.
    pub(crate) fn answering(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Adds a request that undoes a round.
    pub(crate) fn with_undo(self, undo: &'a [u8]) -> Self {
        Self {
            undo: Some(undo),
            ..self
        }
    }

    fn run(&self, connections: usize, time: Duration) -> anyhow::Result<load::Outcome> {
        let (address, requests) = (self.server.address, self.requests);
        load::run_expecting(address, requests, connections, time, self.status)
    }

    fn round(&self, connections: usize, into: &mut Figures) -> anyhow::Result<()> {
        let before = self.server.cpu()?;
        let outcome = self.run(connections, ROUND)?;
        into.cpu += self.server.cpu()? - before;
        into.rates.push(outcome.rate);
        into.answers += outcome.answers;
        into.latencies.extend(outcome.latencies);
        self.undo()
    }

    fn undo(&self) -> anyhow::Result<()> {
        if let Some(undo) = self.undo {
            let answer = self.server.client()?.send(undo)?;
            ensure!(answer.status == 200, "not undone: {answer:?}");
        }
        Ok(())
    }
}

/// Figures of one server in its rounds.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    rates: Vec<f64>,
    latencies: Vec<f64>,
    pub(crate) answers: usize,
    cpu: Duration,
}

impl Figures {
    /// Processor time an answer, in microseconds.
    pub(crate) fn cost(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.answers as f64
    }

    /// Median of the latencies, in milliseconds.
    pub(crate) fn p50(&self) -> f64 {
        quantile(&self.latencies, 0.5) / 1e3
    }

    /// Returns the median of the rounds' ratios of throughput.
    pub(crate) fn ratio(&self, other: &Self) -> f64 {
        let rounds = self.rates.iter().zip(&other.rates);
        median(
            &rounds
                .map(|(ours, theirs)| ours / theirs)
                .collect::<Vec<_>>(),
        )
    }

    /// Prints the figures as a row.
    pub(crate) fn print(&self, case: &str, server: &str) -> anyhow::Result<()> {
        print_line(&format!(
            "{case:16} {server:10} {:>9.0} {:>8.0} {:>8.0} {:>10.1}",
            median(&self.rates),
            quantile(&self.latencies, 0.5),
            quantile(&self.latencies, 0.99),
            self.cost()
        ))
    }
}

/// Prints the header of the table.
pub(crate) fn print_head(case: &str) -> anyhow::Result<()> {
    print_line(&format!(
        "{case:16} {:10} {:>9} {:>8} {:>8} {:>10}",
        "server", "answers/s", "p50 µs", "p99 µs", "CPU µs"
    ))
}

/// Prints the ratio of two rows.
pub(crate) fn print_ratio(ours: &Figures, theirs: &Figures, of: &str) -> anyhow::Result<()> {
    print_line(&format!(
        "{:16} {of:10} {:>9.2} {:>8} {:>8} {:>10.2}",
        "",
        ours.ratio(theirs),
        "",
        "",
        ours.cost() / theirs.cost()
    ))
}

/// The figures of each, in their order.
pub(crate) fn compare<const N: usize>(
    contenders: &[Contender<'_>; N],
    connections: usize,
) -> anyhow::Result<[Figures; N]> {
    let mut figures = std::array::from_fn(|_| Figures::default());
    for contender in contenders {
        contender.run(connections, WARM_UP)?;
        contender.undo()?;
    }
    for round in 0..ROUNDS {
        for turn in 0..N {
            let at = (round + turn) % N;
            contenders[at].round(connections, &mut figures[at])?;
        }
    }
    Ok(figures)
}
