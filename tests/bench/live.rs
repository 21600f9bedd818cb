//! Live queries: the cost of a thousand subscribers of one query, their delay, and the effect on writers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::client::{self, head_end};
use super::load;
use super::owner::Owner;
use super::relay::open;
use super::relay_protocol::{Frames, frame};
use super::report::{Goals, median, millis, print_line, print_title, quantile};
use super::server::{Bench, Running};

/// Number of clients that watch.
pub(crate) const WATCHERS: usize = 1_000;
/// Writes a second, one after another.
pub(crate) const WRITES: u32 = 64;
/// Duration of a run, and number of rounds.
pub(crate) const RUN: Duration = Duration::from_secs(5);
const ROUNDS: usize = 4;
/// Number of connections that insert as fast as possible.
const CONNECTIONS: usize = 64;

/// Limits that are too high to matter; queries are evaluated as often as by default.
const LIMITS: &str = "sockets_per_backend = 1000000
sockets_per_ip = 1000000
sockets_total = 1000000
messages_per_second = 1000000000
";

const SCHEMA: &str =
    "CREATE TABLE notes (n INTEGER PRIMARY KEY, part INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX parts ON notes (part);";

const ACTIONS: [(&str, &str); 4] = [
    (
        "newest",
        "SELECT n, text FROM notes ORDER BY n DESC LIMIT 10",
    ),
    (
        "of_part",
        "SELECT max(n) AS n, count(*) AS notes FROM notes WHERE part = :part",
    ),
    (
        "write",
        "INSERT INTO notes (n, part, text) VALUES (:n, :n % 1000, 'something to be read') RETURNING n",
    ),
    (
        "insert",
        "INSERT INTO notes (part, text) VALUES (7, 'something to be read')",
    ),
];

/// Times at which each note was answered, and delivered to readers.
#[derive(Debug, Default)]
pub(crate) struct DeliveryLog {
    written: Mutex<Vec<(u64, Instant)>>,
    heard: Mutex<Vec<(u64, Instant)>>,
    pub(crate) results: AtomicU64,
    pub(crate) closed: AtomicU64,
}

/// Measures live queries.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(
        "Live queries: a thousand who watch, beside 64 writes a second and beside writers at full speed",
    )?;
    let (svc, credential) = bench.start_owned_with("live", LIMITS)?;
    let mut owner = Owner::new(&svc, &credential)?;
    owner.create_project("live")?;
    owner.send("POST", "/backend", &json!({ "ddl": SCHEMA }))?;
    let actions = ACTIONS.map(|(name, sql)| json!({ "name": name, "sql": sql }));
    owner.send("PUT", "/backend/actions", &json!({ "actions": actions }))?;
    let page = json!({ "type": "html", "content": "<p>Live</p>", "requested_slug": "live" });
    owner.send("POST", "/frontends", &page)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(measure_delivery(&svc, goals))?;
    measure_throughput(&svc, &runtime, goals)
}

/// Measures the cost and the delay of delivering a change.
async fn measure_delivery(svc: &Running, goals: &mut Goals) -> anyhow::Result<()> {
    let mut next = 1_000_000;
    for (name, different) in [
        ("nobody", None),
        ("one query", Some(false)),
        ("1,000 queries", Some(true)),
    ] {
        let ledger: Arc<DeliveryLog> = Arc::default();
        let watchers = match different {
            Some(different) => open_watchers(svc.address, &ledger, different).await?,
            None => JoinSet::new(),
        };
        svc.await_rest()?;
        let before = (svc.cpu()?, ledger.results.load(Ordering::Relaxed));
        let note = |n: u64| {
            let body = json!({ "action": "write", "params": { "n": n } });
            client::post(svc.address, "/live/api/op", &body)
        };
        write_notes(svc.address, &ledger, &mut next, &note).await?;
        let cpu = svc.cpu()? - before.0;
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(watchers);
        let results = ledger.results.load(Ordering::Relaxed) - before.1;
        let share = cpu.as_secs_f64() / RUN.as_secs_f64() * 100.0;
        ensure!(
            ledger.closed.load(Ordering::Relaxed) == 0,
            "sockets were closed"
        );
        let [latencies, after] = ledger.latencies();
        if latencies.is_empty() {
            print_line(&format!(
                "  {name:<14} {share:>6.1} % of a core for {WRITES} writes a second"
            ))?;
            continue;
        }
        let (p50, p99) = (quantile(&latencies, 0.5), quantile(&latencies, 0.99));
        print_line(&format!(
            "  {name:<14} {share:>6.1} % of a core  {:>7.0} results/s  commit to delivery p50 {p50:.1} ms  p99 {p99:.1} ms  the last write's p99 {:.1} ms",
            results as f64 / RUN.as_secs_f64(),
            quantile(&after, 0.99),
        ))?;
        if different == Some(false) {
            goals.at_most(
                "1,000 who watch one query, commit to delivery p99, ms",
                p99,
                50.0,
            );
        }
        svc.await_rest()?;
    }
    Ok(())
}

impl DeliveryLog {
    /// Records that a reader received a note.
    pub(crate) fn record_delivery(&self, n: u64, came: Instant) {
        self.results.fetch_add(1, Ordering::Relaxed);
        let mut heard = self.heard.lock().unwrap_or_else(|held| held.into_inner());
        heard.push((n, came));
    }

    /// From the answer of the newest write that a result has to its coming, in milliseconds: of those that came while it was
    /// written, and of those that came after it.
    pub(crate) fn latencies(&self) -> [Vec<f64>; 2] {
        let written = self.written.lock().unwrap_or_else(|held| held.into_inner());
        let heard = self.heard.lock().unwrap_or_else(|held| held.into_inner());
        let last = written.last().map(|(_, at)| *at);
        let at = |n: u64| {
            written
                .binary_search_by_key(&n, |(n, _)| *n)
                .ok()
                .map(|at| written[at].1)
        };
        let latency =
            |(n, came): &(u64, Instant)| Some(millis(came.saturating_duration_since(at(*n)?)));
        let (meanwhile, after): (Vec<_>, Vec<_>) =
            heard.iter().partition(|(_, came)| Some(*came) <= last);
        [meanwhile, after].map(|heard| heard.into_iter().filter_map(latency).collect())
    }
}

/// Opens the sockets of the subscribers, each with its query; dropping them closes them.
async fn open_watchers(
    address: SocketAddr,
    ledger: &Arc<DeliveryLog>,
    different: bool,
) -> anyhow::Result<JoinSet<()>> {
    let mut watchers = JoinSet::new();
    for number in 0..WATCHERS {
        let mut stream = open(address, "/live/api/live").await?;
        let subscribe = if different {
            json!({ "v": 1, "type": "subscribe", "id": "a", "action": "of_part", "params": { "part": number } })
        } else {
            json!({ "v": 1, "type": "subscribe", "id": "a", "action": "newest" })
        };
        stream
            .write_all(&frame(0x81, subscribe.to_string().as_bytes()))
            .await?;
        watchers.spawn(record_deliveries(stream, Arc::clone(ledger)));
    }
    while ledger.results.load(Ordering::Relaxed) < WATCHERS as u64 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(watchers)
}

async fn record_deliveries(mut stream: TcpStream, ledger: Arc<DeliveryLog>) {
    let mut frames = Frames::default();
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let came = Instant::now();
        frames.take(&buffer[..length], |opcode, payload| {
            if opcode == 1 {
                ledger.record_delivery(newest_number(payload).unwrap_or_default(), came);
            }
        });
    }
    ledger.closed.fetch_add(1, Ordering::Relaxed);
}

/// Returns the first `n` in a result.
fn newest_number(payload: &[u8]) -> Option<u64> {
    const MARK: &[u8] = b"\"n\":";
    let at = payload.windows(MARK.len()).position(|part| part == MARK)?;
    let digits = payload[at + MARK.len()..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |n, digit| n * 10 + u64::from(digit - b'0')))
}

/// Writes notes at a given rate, and records the time of each answer.
pub(crate) async fn write_notes(
    address: SocketAddr,
    ledger: &DeliveryLog,
    next: &mut u64,
    note: &dyn Fn(u64) -> Vec<u8>,
) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / WRITES);
    let began = Instant::now();
    let mut answer = vec![0; 8 * 1024];
    while began.elapsed() < RUN {
        ticks.tick().await;
        *next += 1;
        stream.write_all(&note(*next)).await?;
        let mut length = 0;
        loop {
            length += stream.read(&mut answer[length..]).await?;
            let Some(end) = head_end(&answer[..length]) else {
                continue;
            };
            if length >= end + client::content_length(&answer[..end]).unwrap_or(0) {
                break;
            }
        }
        let at = Instant::now();
        ensure!(
            client::status(&answer[..length]) == Some(200),
            "{}",
            String::from_utf8_lossy(&answer[..length])
        );
        ledger
            .written
            .lock()
            .unwrap_or_else(|held| held.into_inner())
            .push((*next, at));
    }
    Ok(())
}

/// Inserts at full speed, without subscribers and with a thousand.
fn measure_throughput(
    svc: &Running,
    runtime: &tokio::runtime::Runtime,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    let insert = [client::post(
        svc.address,
        "/live/api/op",
        &json!({ "action": "insert" }),
    )];
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        // The order alternates, because the table grows from run to run.
        for watched in [round % 2, (round + 1) % 2] {
            let ledger: Arc<DeliveryLog> = Arc::default();
            let watchers = match watched {
                1 => runtime.block_on(open_watchers(svc.address, &ledger, false))?,
                _ => JoinSet::new(),
            };
            rates[watched].push(load::run(svc.address, &insert, CONNECTIONS, RUN)?.rate);
            drop(watchers);
            svc.await_rest()?;
        }
    }
    let [alone, watched] = rates.map(|rates| median(&rates));
    print_line(&format!(
        "  inserts        {alone:>8.0} a second alone  {watched:>8.0} beside {WATCHERS} who watch"
    ))?;
    goals.at_least("Inserts beside 1,000 who watch", watched / alone, 0.9);
    Ok(())
}
