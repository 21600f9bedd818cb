//! Latencies of a tenant beside a loud tenant, whose statements never end or become slow.

use std::time::Duration;

use anyhow::ensure;
use serde_json::{Value, json};

use super::background_load::BackgroundLoad;
use super::client::Client;
use super::items::{self, Operation};
use super::load;
use super::owner::Owner;
use super::report::{Goals, median, print_line, print_title, quantile};
use super::server::{Bench, Running};
use super::tenant;

const RUNS: usize = 5;
pub(crate) const RUN: Duration = Duration::from_millis(1500);
/// Connections of the measured tenant: enough to notice a stall, too few to cause one.
pub(crate) const CONNECTIONS: usize = 4;
/// Connections of the loud tenant: more than the threads for its work. They run for this long before the
/// measurement, so that the first statements reach their deadline during it.
const ENDLESS_CALLERS: BackgroundLoad = BackgroundLoad {
    clients: 8,
    ahead: Duration::from_secs(1),
};

/// Number of calls with small arguments before the calls with large ones.
const TRAINING: usize = 3;

const OPERATIONS: [Operation; 2] = [Operation::Row, Operation::Insert];

/// The two tenants' pages.
pub(crate) const QUIET: &str = "quiet";
pub(crate) const LOUD: &str = "loud";
/// Actions that run until they are stopped: by their time alone, and by the space that they sort in, too; and some that take
/// long within one row, where `n` is large.
const LOUD_ACTIONS: [(&str, &str); 4] = [
    (
        "count",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + :n FROM n) SELECT count(*) AS n FROM n",
    ),
    (
        "sort",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + :n FROM n) SELECT i FROM n ORDER BY i DESC",
    ),
    (
        "unhex",
        "SELECT length(unhex(printf('%.*c', :n, '!'), printf('%.*c', :n, 'z') || '!')) AS x",
    ),
    ("like", ""),
];
/// Text that the last of them repeats in its one row, and how often.
const REPEATED_TEXT: (&str, usize) = (
    "(printf('%.*c', :n, 'a') LIKE '%a' || replace(printf('%.*c', min(:n, 490), 'x'), 'x', '_a') || 'b')",
    200,
);
/// Arguments until the statements count as quick, and arguments after that.
const SMALL_ARGUMENT: i64 = 1;
const LARGE_ARGUMENT: i64 = 100_000;

/// Measures reads and inserts.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Calls over {CONNECTIONS} connections, {RUNS} alternating runs of {} ms, beside {} connections of a tenant whose statements never end",
        RUN.as_millis(),
        ENDLESS_CALLERS.clients
    ))?;
    let (svc, credential) = bench.start_owned("neighbours")?;
    let mut owner = Owner::new(&svc, &credential)?;
    tenant::create_tenant(&mut owner, QUIET, &[])?;
    let like = format!(
        "SELECT {} AS x",
        vec![REPEATED_TEXT.0; REPEATED_TEXT.1].join(" + ")
    );
    let loud = LOUD_ACTIONS.map(|(name, sql)| (name, if sql.is_empty() { &*like } else { sql }));
    tenant::create_tenant(&mut owner, LOUD, &loud)?;
    let mut quiet = Figures::default();
    let mut beside = LOUD_ACTIONS.map(|_| Figures::default());
    measure_operations(&svc, &mut Figures::default())?;
    for _ in 0..RUNS {
        measure_operations(&svc, &mut quiet)?;
        for ((action, _), beside) in LOUD_ACTIONS.iter().zip(&mut beside) {
            // Repeated each time, because a slow statement counts as slow for a while.
            for _ in 0..TRAINING {
                svc.client()?
                    .send(&loud_call(&svc, action, SMALL_ARGUMENT))?;
            }
            run_beside_endless_calls(&svc, action, || measure_operations(&svc, beside))?;
            svc.await_rest()?;
        }
    }
    let beside = LOUD_ACTIONS.iter().zip(&beside);
    let beside: Vec<_> = beside
        .map(|((name, _), figures)| (*name, figures))
        .collect();
    print_beside(&quiet, &beside, goals)?;
    let (now, most) = svc.memory()?;
    print_line(&format!(
        "svc after it: {now:.1} MB resident, {most:.1} MB at the most."
    ))
}

/// Figures of each operation.
pub(crate) type Figures = [RunFigures; OPERATIONS.len()];

/// Prints the figures of a quiet tenant, alone and beside others, which must not affect it.
pub(crate) fn print_beside(
    quiet: &Figures,
    beside: &[(&str, &Figures)],
    goals: &mut Goals,
) -> anyhow::Result<()> {
    print_line(&format!("{:32} {:>10} {:>10}", "", "p99 ms", "calls/s"))?;
    for (at, operation) in OPERATIONS.iter().enumerate() {
        let beside: Vec<_> = beside
            .iter()
            .map(|(other, figures)| (*other, &figures[at]))
            .collect();
        quiet[at].print_beside(operation.name(), &beside, goals)?;
    }
    Ok(())
}

/// One run of each operation.
pub(crate) fn measure_operations(svc: &Running, into: &mut Figures) -> anyhow::Result<()> {
    for (operation, runs) in OPERATIONS.iter().zip(into) {
        let calls = operation.calls(svc.address, QUIET);
        runs.add(&load::run(svc.address, &calls, CONNECTIONS, RUN)?);
    }
    tenant::call_json(svc, &items::undo_request(svc.address, QUIET))?;
    Ok(())
}

/// Figures of some runs.
#[derive(Debug, Default)]
pub(crate) struct RunFigures {
    p99: Vec<f64>,
    rates: Vec<f64>,
}

impl RunFigures {
    pub(crate) fn add(&mut self, outcome: &load::Outcome) {
        self.p99.push(quantile(&outcome.latencies, 0.99) / 1e3);
        self.rates.push(outcome.rate);
    }

    /// Prints figures measured alone and beside others, which must not differ.
    pub(crate) fn print_beside(
        &self,
        name: &str,
        beside: &[(&str, &Self)],
        goals: &mut Goals,
    ) -> anyhow::Result<()> {
        self.print(&format!("{name}, quiet"))?;
        let most = (2.0 * median(&self.p99)).max(10.0);
        for (other, runs) in beside {
            let case = format!("{name} beside {other}");
            runs.print(&case)?;
            goals.at_most(&format!("{case}: p99, ms"), median(&runs.p99), most);
        }
        Ok(())
    }

    fn print(&self, case: &str) -> anyhow::Result<()> {
        let (p99, rate) = (median(&self.p99), median(&self.rates));
        print_line(&format!("{case:32} {p99:>10.2} {rate:>10.0}"))
    }
}

/// A call of the loud tenant's.
fn loud_call(svc: &Running, action: &str, n: i64) -> Vec<u8> {
    let params: Value = json!({ "n": n });
    items::call(svc.address, LOUD, action, &params)
}

/// Runs the work while the loud tenant repeats a call.
fn run_beside_endless_calls(
    svc: &Running,
    action: &str,
    work: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let call = loud_call(svc, action, LARGE_ARGUMENT);
    let send_request = |client: &mut Client| {
        let answer = client.send(&call)?;
        // Out of time or space, or not started in time because of the tenant's other calls; some calls succeed.
        ensure!(
            matches!(answer.status, 200 | 400 | 503),
            "a loud statement was {answer:?}"
        );
        Ok(())
    };
    ENDLESS_CALLERS.run_during(svc, send_request, work)
}
