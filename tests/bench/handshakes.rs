//! Page views over HTTPS, alone and beside handshakes for names that nobody has.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustls::ClientConfig;
use svc_tests::tls::{CertificateFiles, client_config, connect};

use super::client;
use super::load;
use super::report::{Goals, print_line, print_title, quantile};
use super::server::{Bench, Running};
use super::source_generator::SourceGenerator;

const PAGE_BYTES: usize = 10 * 1024;
const NAME: &str = "localhost";
const UNKNOWN_NAMES_A_MINUTE: u32 = 10_000;
/// Connections of viewers, and the views of all of them.
const VIEWERS: u32 = 16;
const VIEWS_A_SECOND: u32 = 1_000;
const ROUNDS: u32 = 5;
const ROUND: Duration = Duration::from_secs(4);

/// Measures views while handshakes ask for unknown names.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "{VIEWS_A_SECOND} views of 10 KB a second over HTTPS, beside {UNKNOWN_NAMES_A_MINUTE} handshakes for unknown names a minute"
    ))?;
    let pair = CertificateFiles::new(&[NAME]);
    let svc = start_with_page(bench, &pair)?;
    let config = client_config(pair.pem(), &["http/1.1"]);
    let (mut quiet, mut beside, mut handshakes) = (Vec::new(), Vec::new(), 0);
    let before = svc.cpu()?;
    let mut cpu = Duration::ZERO;
    for round in 0..ROUNDS {
        quiet.extend(block_on(view(svc.address, &config))??);
        let began = svc.cpu()?;
        // Of threads of their own, so that views do not wait for the client's part of handshakes.
        let (views, asked) = thread::scope(|scope| {
            let ask = || block_on(ask_for_unknown_names(svc.address, round, &config));
            let asking = scope.spawn(ask);
            let views = block_on(view(svc.address, &config));
            (views, asking.join())
        });
        cpu += svc.cpu()? - began;
        beside.extend(views??);
        handshakes += asked.ok().context("who asks panicked")??;
    }
    let alone = (svc.cpu()? - before).saturating_sub(cpu);
    let [quiet, beside] = [quiet, beside].map(|taken| quantile(&taken, 0.99) / 1e3);
    let each = (cpu.as_secs_f64() - alone.as_secs_f64()) * 1e3 / f64::from(handshakes);
    print_line(&format!(
        "p99 of views: {quiet:.2} ms alone, {beside:.2} ms beside {handshakes} handshakes, each {each:.2} ms of processor time"
    ))?;
    let what = "views beside handshakes for unknown names: p99, of quiet";
    goals.at_most(what, beside / quiet, 1.5);
    Ok(())
}

/// Runs a future on this thread.
fn block_on<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(work))
}

/// Publishes a page, and starts the server on it with HTTPS.
fn start_with_page(bench: &Bench, pair: &CertificateFiles) -> anyhow::Result<Running> {
    let svc = bench.start_svc("handshakes")?;
    svc.await_guests()?;
    let content = SourceGenerator::new(7).html(PAGE_BYTES);
    let share = serde_json::json!({ "name": "page", "content": content });
    let published = svc.client()?.post("/api/v1/deploy", &share)?;
    ensure!(published.status == 201, "not published: {published:?}");
    drop(svc);
    bench.start_https("handshakes", pair)
}

/// Views the page over some connections at a steady rate; returns the microseconds that each took.
async fn view(address: SocketAddr, config: &Arc<ClientConfig>) -> anyhow::Result<Vec<f64>> {
    let pause = Duration::from_secs(1) * VIEWERS / VIEWS_A_SECOND;
    let count = ROUND.as_millis() / pause.as_millis();
    let mut viewers = Vec::new();
    for number in 0..VIEWERS {
        let stream = connect(address, NAME, Arc::clone(config)).await?;
        let views = (0..count).map(|_| client::get_at(NAME, "/page", "br"));
        let views = views.collect();
        viewers.push(async move {
            tokio::time::sleep(pause * number / VIEWERS).await;
            load::send(stream, views, Some(pause)).await
        });
    }
    let taken = futures_util::future::try_join_all(viewers).await?;
    Ok(taken.into_iter().flatten().collect())
}

/// Begins handshakes for names that nobody has, each another one, at a steady rate for a round; returns their number.
async fn ask_for_unknown_names(address: SocketAddr, round: u32, config: &Arc<ClientConfig>) -> u32 {
    let pause = Duration::from_secs(60) / UNKNOWN_NAMES_A_MINUTE;
    let (began, mut asked) = (Instant::now(), 0);
    let mut under_way = Vec::new();
    while began.elapsed() < ROUND {
        tokio::time::sleep_until((began + pause * asked).into()).await;
        let name = format!("n{asked}.round-{round}.example.net");
        let config = Arc::clone(config);
        // The certificate is not that name's, so each ends with a refusal.
        under_way.push(tokio::spawn(async move {
            drop(connect(address, &name, config).await);
        }));
        asked += 1;
    }
    futures_util::future::join_all(under_way).await;
    asked
}
