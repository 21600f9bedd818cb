//! The subscription to records that PocketBase has, where it is installed, beside live queries: as many watchers, as many writes.
//!
//! PocketBase sends each new record to each of a thousand streams; a live query sends the answer of the query.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::client;
use super::live::{DeliveryLog, RUN, WATCHERS, WRITES, write_notes};
use super::pocketbase::{COLLECTION, NOT_INSTALLED, start};
use super::report::{print_line, print_title, quantile};
use super::server::{Bench, Running, on_path};

/// Path of its event streams.
const REALTIME: &str = "/api/realtime";
/// Mark before the name and the number of one of our records.
const NAME: &[u8] = b"\"name\":\"note ";
/// Mark before the id of a stream.
const CLIENT: &[u8] = b"\"clientId\":\"";

/// Measures its subscription to records, if PocketBase is installed.
pub(crate) fn measure(bench: &Bench, given: Option<PathBuf>) -> anyhow::Result<()> {
    print_title(
        "PocketBase's subscription to records: a thousand who watch, beside 64 writes a second",
    )?;
    let Some(program) = given.or_else(|| on_path("pocketbase")) else {
        return print_line(NOT_INSTALLED);
    };
    let pocketbase = start(&program, &bench.directory("live-pocketbase"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(measure_delivery(&pocketbase))
}

async fn measure_delivery(pocketbase: &Running) -> anyhow::Result<()> {
    let address = pocketbase.address;
    let ledger: Arc<DeliveryLog> = Arc::default();
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS {
        let stream = open_watcher(address).await?;
        watchers.spawn(record_deliveries(stream, Arc::clone(&ledger)));
    }
    pocketbase.await_rest()?;
    let before = pocketbase.cpu()?;
    let note = |n: u64| {
        let body = json!({ "name": format!("note {n}"), "note": "something to be read" });
        client::post(address, COLLECTION, &body)
    };
    write_notes(address, &ledger, &mut 1_000_000, &note).await?;
    let cpu = pocketbase.cpu()? - before;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(watchers);
    ensure!(
        ledger.closed.load(Ordering::Relaxed) == 0,
        "streams were closed"
    );
    let [latencies, after] = ledger.latencies();
    ensure!(!latencies.is_empty(), "nobody was told");
    print_line(&format!(
        "  {:<14} {:>6.1} % of a core for {WRITES} writes a second  {:>7.0} results/s  commit to delivery p50 {:.1} ms  p99 {:.1} ms  the last write's p99 {:.1} ms",
        "PocketBase",
        cpu.as_secs_f64() / RUN.as_secs_f64() * 100.0,
        ledger.results.load(Ordering::Relaxed) as f64 / RUN.as_secs_f64(),
        quantile(&latencies, 0.5),
        quantile(&latencies, 0.99),
        quantile(&after, 0.99),
    ))
}

/// Opens a stream, and subscribes to all records.
async fn open_watcher(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let open =
        format!("GET {REALTIME} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
    stream.write_all(open.as_bytes()).await?;
    let mut said = Vec::new();
    let id = loop {
        if let Some(id) = word_after(&said, CLIENT, |byte| byte.is_ascii_alphanumeric()) {
            break String::from_utf8(said[id].to_vec())?;
        }
        ensure!(stream.read_buf(&mut said).await? > 0, "no stream");
    };
    let subscribe = json!({ "clientId": id, "subscriptions": ["items/*"] });
    let mut asking = TcpStream::connect(address).await?;
    asking
        .write_all(&client::post(address, REALTIME, &subscribe))
        .await?;
    let mut answer = Vec::new();
    while client::head_end(&answer).is_none() {
        ensure!(asking.read_buf(&mut answer).await? > 0, "no answer");
    }
    let status = client::status(&answer).context("no status")?;
    ensure!(status == 204, "{}", String::from_utf8_lossy(&answer));
    Ok(stream)
}

/// Returns the position of the word after a mark, once the word is complete.
fn word_after(bytes: &[u8], mark: &[u8], of: impl Fn(&u8) -> bool) -> Option<Range<usize>> {
    let at = bytes.windows(mark.len()).position(|part| part == mark)?;
    let start = at + mark.len();
    let length = bytes[start..].iter().position(|byte| !of(byte))?;
    Some(start..start + length)
}

async fn record_deliveries(mut stream: TcpStream, ledger: Arc<DeliveryLog>) {
    let mut said = Vec::with_capacity(16 * 1024);
    while let Ok(1..) = stream.read_buf(&mut said).await {
        let came = Instant::now();
        while let Some(number) = word_after(&said, NAME, u8::is_ascii_digit) {
            let end = number.end;
            let digits = said[number].iter();
            let n = digits.fold(0, |n, digit| n * 10 + u64::from(digit - b'0'));
            ledger.record_delivery(n, came);
            said.drain(..end);
        }
        // A mark may have begun at the end.
        let kept = said.len().saturating_sub(NAME.len() + 20);
        said.drain(..kept);
    }
    ledger.closed.fetch_add(1, Ordering::Relaxed);
}
