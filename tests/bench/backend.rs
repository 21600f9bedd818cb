//! Calls of a backend's actions: requests a second, latency and processor time, beside the minimal server's.

use std::net::SocketAddr;

use anyhow::ensure;

use super::items::{self, Operation};
use super::minimal_sql::{GROUPED, SINGLE};
use super::owner::Owner;
use super::report::{Goals, print_title};
use super::rounds::{Contender, ROUND, ROUNDS, compare, print_head, print_ratio};
use super::server::{Bench, Running};
use super::tenant;

/// Numbers of keep-alive connections; the goals are for the largest number.
pub(crate) const CONNECTIONS: [usize; 2] = [16, GOAL_CONNECTIONS];
pub(crate) const GOAL_CONNECTIONS: usize = 64;
/// The page that the calls go through.
pub(crate) const SLUG: &str = "items";

/// Calls of one operation on one server.
struct Calls {
    requests: Vec<Vec<u8>>,
    undo: Vec<u8>,
}

impl Calls {
    fn new(operation: Operation, address: SocketAddr) -> Self {
        Self {
            requests: operation.calls(address, SLUG),
            undo: items::undo_request(address, SLUG),
        }
    }

    /// Every run starts with the same rows, so that no database comes near its size limit.
    fn contender<'a>(&'a self, server: &'a Running) -> Contender<'a> {
        Contender::new(server, &self.requests).with_undo(&self.undo)
    }
}

/// The servers.
struct Servers {
    svc: Running,
    grouped: Running,
    single: Running,
    /// An earlier build of `svc`.
    before: Option<Running>,
}

/// Measures all operations, and those of an earlier build beside them.
pub(crate) fn measure(
    bench: &Bench,
    before: Option<&Bench>,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    print_title(&format!(
        "Actions on {} rows, {ROUNDS} alternating rounds of {} ms; minimal is axum and rusqlite, as durable",
        items::ROWS,
        ROUND.as_millis()
    ))?;
    let servers = Servers {
        svc: start_with_tenant(bench)?,
        grouped: bench.start_minimal_sql(GROUPED)?,
        single: bench.start_minimal_sql(SINGLE)?,
        before: before.map(start_with_tenant).transpose()?,
    };
    print_head("operation")?;
    for operation in Operation::ALL {
        ensure_same_answers(operation, &servers.svc, &servers.grouped)?;
        for connections in CONNECTIONS {
            let case = format!("{}, {connections}", operation.name());
            match operation {
                Operation::Insert => compare_inserts(&servers, &case, connections, goals)?,
                read => compare_reads(&servers, read, &case, connections, goals)?,
            }
            if let Some(before) = &servers.before {
                compare_with_earlier(&servers.svc, before, operation, connections, goals)?;
            }
        }
    }
    Ok(())
}

fn compare_reads(
    servers: &Servers,
    operation: Operation,
    case: &str,
    connections: usize,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    let Servers { svc, grouped, .. } = servers;
    let ours = Calls::new(operation, svc.address);
    let theirs = Calls::new(operation, grouped.address);
    let contenders = [
        Contender::new(svc, &ours.requests),
        Contender::new(grouped, &theirs.requests),
    ];
    let [ours, theirs] = compare(&contenders, connections)?;
    ours.print(case, "svc")?;
    theirs.print("", "minimal")?;
    print_ratio(&ours, &theirs, "ratio")?;
    if connections == GOAL_CONNECTIONS {
        let what = format!("{case}: throughput, of minimal's");
        goals.at_least(&what, ours.ratio(&theirs), 0.75);
    }
    Ok(())
}

fn compare_inserts(
    servers: &Servers,
    case: &str,
    connections: usize,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    let calls = |server: &Running| Calls::new(Operation::Insert, server.address);
    let Servers {
        svc,
        grouped,
        single,
        ..
    } = servers;
    let (ours, theirs, alone) = (calls(svc), calls(grouped), calls(single));
    let contenders = [
        ours.contender(svc),
        theirs.contender(grouped),
        alone.contender(single),
    ];
    let [ours, theirs, alone] = compare(&contenders, connections)?;
    ours.print(case, "svc")?;
    theirs.print("", "minimal")?;
    print_ratio(&ours, &theirs, "ratio")?;
    alone.print("", "one each")?;
    print_ratio(&ours, &alone, "ratio")?;
    if connections == GOAL_CONNECTIONS {
        let what = format!("{case}: throughput, of minimal's in groups");
        goals.at_least(&what, ours.ratio(&theirs), 0.75);
        let what = format!("{case}: throughput, of a commit each");
        goals.at_least(&what, ours.ratio(&alone), 10.0);
    }
    Ok(())
}

/// A server with the tenant that is called.
fn start_with_tenant(bench: &Bench) -> anyhow::Result<Running> {
    let (svc, credential) = bench.start_owned("backend")?;
    tenant::create_tenant(&mut Owner::new(&svc, &credential)?, SLUG, &[])?;
    Ok(svc)
}

/// Measures the same operation beside an earlier build.
fn compare_with_earlier(
    svc: &Running,
    before: &Running,
    operation: Operation,
    connections: usize,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    let (ours, theirs) = (
        Calls::new(operation, svc.address),
        Calls::new(operation, before.address),
    );
    let contenders = match operation {
        Operation::Insert => [ours.contender(svc), theirs.contender(before)],
        _ => [
            Contender::new(svc, &ours.requests),
            Contender::new(before, &theirs.requests),
        ],
    };
    let [ours, theirs] = compare(&contenders, connections)?;
    ours.print("", "svc")?;
    theirs.print("", "before")?;
    print_ratio(&ours, &theirs, "ratio")?;
    let what = format!(
        "{}, {connections}: throughput, of the build before",
        operation.name()
    );
    goals.at_least(&what, ours.ratio(&theirs), 0.97);
    Ok(())
}

/// Checks that both servers answer the same, so that the same work is compared.
fn ensure_same_answers(
    operation: Operation,
    svc: &Running,
    minimal: &Running,
) -> anyhow::Result<()> {
    let asked = |server: &Running| {
        let calls = operation.calls(server.address, SLUG);
        let answer = tenant::call_json(server, &calls[calls.len() / 2])?;
        if operation == Operation::Insert {
            tenant::call_json(server, &items::undo_request(server.address, SLUG))?;
        }
        anyhow::Ok(answer)
    };
    let (ours, theirs) = (asked(svc)?, asked(minimal)?);
    ensure!(ours == theirs, "{ours} and {theirs}");
    Ok(())
}
