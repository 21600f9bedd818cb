//! Calls of a tenant beside a hostile tenant that abuses live queries, and the memory that this takes.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::ensure;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::background_load::BackgroundLoad;
use super::client::Client;
use super::items;
use super::neighbours::{CONNECTIONS, Figures, LOUD, QUIET, RUN, measure_operations, print_beside};
use super::owner::Owner;
use super::relay::{open, open_with_small_buffer};
use super::relay_protocol::frame;
use super::report::{Goals, print_line, print_title};
use super::server::{Bench, Running};
use super::tenant;

const RUNS: usize = 3;
/// Enough sockets for one address; every other limit of sockets and frames is the service's.
const LIMITS: &str = "sockets_per_ip = 1000\n";
/// Sockets of a backend, and subscriptions of a socket, at the most.
const SOCKETS: usize = 100;
const EACH: usize = 20;
/// About as long as a frame may be.
const PARAM: usize = 15_000;
/// Subscribes that a flood sends at once.
const FLOOD: usize = 200;
/// Megabytes that the hostile tenant may take: all params twice, answers of 32 MB, and 48 MB for sockets, subscriptions, evaluations
/// and what an allocator keeps.
const MOST_MEGABYTES: f64 = (2 * SOCKETS * EACH * PARAM / 1_000_000 + 32 + 48) as f64;
/// Writer that changes the data that all live queries read, and the pause between its writes.
const WRITER: BackgroundLoad = BackgroundLoad {
    clients: 1,
    ahead: Duration::from_secs(1),
};
const PAUSE: Duration = Duration::from_millis(20);
/// Time that a client stays without reading, and pause after a refusal.
const SLOW: Duration = Duration::from_secs(10);
const REFUSED: Duration = Duration::from_millis(50);

const ACTIONS: [(&str, &str); 4] = [
    ("touch", "UPDATE items SET note = :n WHERE id = 1"),
    (
        "echo",
        "SELECT length(:a) AS a, (SELECT note FROM items WHERE id = 1) AS n",
    ),
    (
        "heavy",
        "WITH RECURSIVE c (x) AS (SELECT length(:a) UNION ALL SELECT x + 1 FROM c LIMIT 1000000) SELECT count(*) AS n, (SELECT note FROM items WHERE id = 1) AS note FROM c",
    ),
    (
        "wide",
        "SELECT length(:a) AS a, (SELECT note FROM items WHERE id = 1) AS n, hex(zeroblob(100000)) AS b, hex(zeroblob(100000)) AS c",
    ),
];

/// Kind of hostile pages.
#[derive(Clone, Copy, Debug)]
struct HostilePage {
    name: &'static str,
    sockets: usize,
    /// Actions that a page subscribes to in turns, and how often.
    actions: &'static [&'static str],
    subscribes: usize,
    /// Bytes of each param.
    param: usize,
    /// Whether a page reads the messages that it gets.
    reads: bool,
}

const HOSTILE_PAGES: [HostilePage; 4] = [
    HostilePage {
        name: "floods",
        sockets: 20,
        actions: &["echo"],
        subscribes: FLOOD,
        param: 10,
        reads: true,
    },
    HostilePage {
        name: "heavy queries",
        sockets: 10,
        actions: &["heavy"],
        subscribes: EACH,
        param: 10,
        reads: true,
    },
    HostilePage {
        name: "large params",
        sockets: SOCKETS,
        actions: &["echo"],
        subscribes: EACH,
        param: PARAM,
        reads: true,
    },
    HostilePage {
        name: "slow readers",
        sockets: SOCKETS,
        actions: &["wide", "echo", "echo", "echo"],
        subscribes: EACH,
        param: PARAM,
        reads: false,
    },
];

/// Measures calls and memory.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Calls over {CONNECTIONS} connections, {RUNS} alternating runs of {} ms, beside hostile live queries of another tenant",
        RUN.as_millis()
    ))?;
    // One thread, because the pages use the same machine as the server.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let mut quiet = Figures::default();
    let mut beside = HOSTILE_PAGES.map(|_| Figures::default());
    let mut memory = Vec::new();
    for (kind, beside) in HOSTILE_PAGES.iter().zip(&mut beside) {
        memory.push(measure_hostile_page(
            bench,
            &runtime,
            *kind,
            (&mut quiet, beside),
        )?);
    }
    let beside: Vec<_> = HOSTILE_PAGES
        .iter()
        .map(|kind| kind.name)
        .zip(&beside)
        .collect();
    print_beside(&quiet, &beside, goals)?;
    print_line(&format!("{:32} MB more, run by run", ""))?;
    for (kind, memory) in HOSTILE_PAGES.iter().zip(memory) {
        let name = kind.name;
        let runs: Vec<_> = memory.iter().map(|most| format!("{most:>8.1}")).collect();
        print_line(&format!("{name:32} {}", runs.join(" ")))?;
        let most = memory.iter().copied().fold(0.0, f64::max);
        goals.at_most(&format!("memory of {name}, MB"), most, MOST_MEGABYTES);
    }
    Ok(())
}

/// Measures calls alone and beside one kind of hostile pages, on a separate server; returns the peak growth of memory of each run, in megabytes.
fn measure_hostile_page(
    bench: &Bench,
    runtime: &Runtime,
    kind: HostilePage,
    (quiet, beside): (&mut Figures, &mut Figures),
) -> anyhow::Result<Vec<f64>> {
    let (svc, credential) = bench.start_owned_with(&kind.name.replace(' ', "-"), LIMITS)?;
    let mut owner = Owner::new(&svc, &credential)?;
    tenant::create_tenant(&mut owner, QUIET, &[])?;
    tenant::create_tenant(&mut owner, LOUD, &ACTIONS)?;
    measure_operations(&svc, &mut Figures::default())?;
    let (before, _) = svc.memory()?;
    let mut memory = Vec::new();
    for _ in 0..RUNS {
        measure_operations(&svc, quiet)?;
        svc.reset_peak_memory()?;
        run_beside_hostile_pages(&svc, runtime, kind, || measure_operations(&svc, beside))?;
        svc.await_rest()?;
        memory.push(svc.memory()?.1 - before);
    }
    Ok(memory)
}

/// Runs the work beside hostile pages.
fn run_beside_hostile_pages(
    svc: &Running,
    runtime: &Runtime,
    kind: HostilePage,
    work: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut pages = JoinSet::new();
    for number in 0..kind.sockets {
        pages.spawn_on(
            run_hostile_page(svc.address, kind, number),
            runtime.handle(),
        );
    }
    let count = AtomicU64::new(0);
    let touch = |client: &mut Client| {
        let note = count.fetch_add(1, Ordering::Relaxed);
        let call = items::call(svc.address, LOUD, "touch", &json!({ "n": note }));
        let answer = client.send(&call)?;
        ensure!(
            matches!(answer.status, 200 | 503),
            "a change was {answer:?}"
        );
        std::thread::sleep(PAUSE);
        Ok(())
    };
    let done = WRITER.run_during(svc, touch, work);
    runtime.block_on(pages.shutdown());
    done
}

/// Opens a socket, subscribes, and opens another one when it is closed, without end.
async fn run_hostile_page(address: SocketAddr, kind: HostilePage, number: usize) {
    loop {
        // A refused or closed page tries again.
        let _ = open_hostile_socket(address, kind, number).await;
        tokio::time::sleep(REFUSED).await;
    }
}

async fn open_hostile_socket(
    address: SocketAddr,
    kind: HostilePage,
    number: usize,
) -> anyhow::Result<()> {
    let path = format!("/{LOUD}/api/live");
    let mut stream = if kind.reads {
        open(address, &path).await?
    } else {
        open_with_small_buffer(address, &path).await?
    };
    let subscribes = (0..kind.subscribes).flat_map(|n| {
        let action = kind.actions[n % kind.actions.len()];
        let param = format!("{number}.{n}.{}", "x".repeat(kind.param));
        frame(0x81, subscribe(n, action, &param).to_string().as_bytes())
    });
    stream.write_all(&subscribes.collect::<Vec<_>>()).await?;
    if !kind.reads {
        tokio::time::sleep(SLOW).await;
        return Ok(());
    }
    let mut buffer = vec![0; 64 * 1024];
    while stream.read(&mut buffer).await? > 0 {}
    Ok(())
}

fn subscribe(n: usize, action: &str, param: &str) -> Value {
    json!({ "v": 1, "type": "subscribe", "id": format!("s{n}"), "action": action, "params": { "a": param } })
}
