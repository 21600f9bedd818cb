//! The threads that render pages, under attack: the cost of one request of a stranger, and the effect of many on owners.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};
use svc_tests::SeededRng;

use super::background_load::BackgroundLoad;
use super::client::{self, Client};
use super::owner::Owner;
use super::report::{Goals, millis, print_line, print_title, quantile};
use super::server::{Bench, Running};
use super::source_generator::SourceGenerator;
use super::tenant;

/// Limits of previews and passwords that are too high to matter.
const LIMITS: &str = "preview_per_minute = 1000000
preview_burst = 1000000
auth_per_minute = 1000000
auth_burst = 1000000
";
/// Number of runs of each operation of the owner.
const ROUNDS: usize = 100;
/// A page that the owner publishes, in bytes.
const PAGE: usize = 10 * 1024;
/// Maximum cost of one request of a stranger, in seconds of processor time.
const MOST_SECONDS: f64 = 3.0;
/// Lowest limit of the delay of owners, in milliseconds.
const DELAY_BOUND_MILLISECONDS: f64 = 250.0;
/// Time after which a client hangs up.
const HANG_UP_AFTER: Duration = Duration::from_millis(1100);
/// Pages with twenty large diagrams, each of another client.
const SHARES: BackgroundLoad = BackgroundLoad {
    clients: 8,
    ahead: Duration::from_secs(1),
};
/// Previews of a large diagram, of two clients.
const PREVIEWS: BackgroundLoad = BackgroundLoad {
    clients: 40,
    ahead: Duration::from_secs(1),
};

/// Pause of a stranger after a refusal.
const REFUSED_PAUSE: Duration = Duration::from_millis(20);

const TENANT: &str = "tenant";
const PROTECTED: (&str, &str) = ("safe", "open sesame");

/// Measures the cost of requests, and the delay of owners.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    let (svc, credential) = bench.start_owned_behind_proxies("pool", LIMITS)?;
    let mut owner = Owner::new(&svc, &credential)?;
    tenant::create_tenant(&mut owner, TENANT, &[])?;
    measure_request_cost(&svc, goals)?;
    owner.reconnect(&svc)?;
    measure_owners_beside_strangers(&svc, &mut owner, goals)
}

/// A flowchart that takes most of a second to draw.
fn large_diagram(seed: u64) -> String {
    let mut numbers = SeededRng::new(seed);
    let mut text = "flowchart TD\n".to_owned();
    for edge in 0..450_u64 {
        let (from, to) = (edge % 300, numbers.draw() % 300);
        let _ = writeln!(text, "  n{from} --> n{to}");
    }
    text
}

/// Markdown with diagrams.
fn with_diagrams(diagrams: impl Iterator<Item = String>) -> String {
    let block = |diagram| format!("```mermaid\n{diagram}```\n\n");
    diagrams.map(block).collect()
}

/// Sources that cost much, by name.
fn costly_sources() -> Vec<(&'static str, Value)> {
    let markdown = |content| json!({ "type": "markdown", "content": content });
    let mut author = SourceGenerator::new(5);
    let megabyte = |unit: &str| unit.repeat(1_000_000 / unit.len());
    vec![
        (
            "20 large diagrams",
            markdown(with_diagrams((0..20).map(large_diagram))),
        ),
        (
            "1 large diagram",
            json!({ "type": "mermaid", "content": large_diagram(1) }),
        ),
        ("1 MB of Markdown", markdown(author.markdown(1_000_000))),
        (
            "1 MB of code",
            markdown(format!(
                "```rust\n{}\n```",
                megabyte("fn f(x: u8) -> u8 { x + 1 }\n")
            )),
        ),
        ("1 MB of emphasis", markdown(megabyte("*a **b** c* "))),
        (
            "1 MB of CSV",
            json!({ "type": "csv", "content": author.csv(1_000_000) }),
        ),
        (
            "1 MB of cells",
            json!({ "type": "csv", "content": megabyte("a,b,c,d,e,f,g,h\n") }),
        ),
        (
            "1 MB of JSON",
            json!({ "type": "json", "content": author.json(1_000_000) }),
        ),
        (
            "1 MB of brackets",
            json!({ "type": "json", "content": format!("[{}0]", megabyte("[0],")) }),
        ),
        ("1 MB of HTML", json!({ "content": author.html(1_000_000) })),
        (
            "1 MB of noise",
            json!({ "content": incompressible_text(1_000_000) }),
        ),
    ]
}

/// Text that no compressor makes smaller by much.
fn incompressible_text(bytes: usize) -> String {
    let mut numbers = SeededRng::new(3);
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        let _ = write!(text, "{:x}", numbers.draw());
    }
    text
}

/// Processor time of one request, alone, and where its client hangs up.
fn measure_request_cost(svc: &Running, goals: &mut Goals) -> anyhow::Result<()> {
    print_title("One request of a stranger")?;
    print_line(&format!(
        "{:20} {:>8} {:>8} {:>9} {:>9}",
        "", "CPU s", "wall s", "status", "not drawn"
    ))?;
    for (name, share) in costly_sources() {
        let (before, began) = (svc.cpu()?, Instant::now());
        let answer = svc.client()?.post("/api/v1/deploy", &share)?;
        let wall = began.elapsed().as_secs_f64();
        svc.await_rest()?;
        let cost = (svc.cpu()? - before).as_secs_f64();
        let said: Value = serde_json::from_slice(&answer.body)?;
        let warnings = said["warnings"].as_array().map_or(0, Vec::len);
        print_line(&format!(
            "{name:20} {cost:>8.2} {wall:>8.2} {:>9} {warnings:>9}",
            answer.status
        ))?;
        goals.at_most(&format!("{name}: processor time, s"), cost, MOST_SECONDS);
    }
    let (name, share) = costly_sources().swap_remove(0);
    let before = svc.cpu()?;
    send_and_hang_up(svc, &share)?;
    svc.await_rest()?;
    let cost = (svc.cpu()? - before).as_secs_f64();
    print_line(&format!(
        "{name}, hung up after {HANG_UP_AFTER:?}: {cost:.2} s of CPU"
    ))?;
    let most = HANG_UP_AFTER.as_secs_f64() + 0.2;
    goals.at_most("the same, hung up: processor time, s", cost, most);

    let small = "sequenceDiagram\n  Ann->>Bob: Hello\n  Bob-->>Ann: Hello back\n".to_owned();
    let charts = (0..5_u64).map(|seed| SourceGenerator::new(seed).mermaid(400));
    let content = with_diagrams(charts.chain(std::iter::repeat_n(small, 5)));
    let ordinary = json!({ "type": "markdown", "content": content });
    let before = svc.cpu()?;
    let answer = svc.client()?.post("/api/v1/deploy", &ordinary)?;
    svc.await_rest()?;
    let cost = (svc.cpu()? - before).as_secs_f64();
    let said: Value = serde_json::from_slice(&answer.body)?;
    ensure!(answer.status == 201, "an ordinary page was {said}");
    let warnings = said["warnings"].as_array().map_or(0, Vec::len);
    print_line(&format!(
        "A page with 10 ordinary diagrams: {cost:.2} s of CPU, {warnings} not drawn."
    ))?;
    goals.at_most("ordinary diagrams that are not drawn", warnings as f64, 0.0);
    Ok(())
}

/// Sends a request, and disconnects before the answer.
fn send_and_hang_up(svc: &Running, share: &Value) -> anyhow::Result<()> {
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(svc.address)?;
    stream.write_all(&client::post(svc.address, "/api/v1/deploy", share))?;
    thread::sleep(HANG_UP_AFTER);
    Ok(())
}

/// Latencies of an owner's operations, in milliseconds.
#[derive(Default)]
struct Latencies([Vec<f64>; OPERATIONS.len()]);

const OPERATIONS: [&str; 3] = ["publication", "PUT actions", "password unlock"];

impl Latencies {
    fn measure(svc: &Running, owner: &mut Owner) -> anyhow::Result<Self> {
        let mut found = Self::default();
        let mut visitor = svc.client()?;
        let mut author = SourceGenerator::new(11);
        let unlock = format!("/api/v1/auth/{}", PROTECTED.0);
        for round in 0..ROUNDS {
            let page = json!({ "content": author.markdown(PAGE) });
            let published = owner.send("PUT", "/frontends/notes", &page)?;
            let sql = format!("SELECT count(*) AS n FROM items -- {round}");
            let actions = json!({ "actions": [{ "name": "counted", "sql": sql }] });
            let defined = owner.send("PUT", "/backend/actions", &actions)?;
            let began = Instant::now();
            let answer = visitor.post(&unlock, &json!({ "password": PROTECTED.1 }))?;
            ensure!(answer.status == 200, "a password was {}", answer.status);
            let took = [published.1, defined.1, millis(began.elapsed())];
            for (all, took) in found.0.iter_mut().zip(took) {
                all.push(took);
            }
        }
        Ok(found)
    }

    fn print(&self, case: &str) -> anyhow::Result<()> {
        for (operation, all) in OPERATIONS.iter().zip(&self.0) {
            let (p50, p99) = (quantile(all, 0.5), quantile(all, 0.99));
            print_line(&format!("{operation:20} {case:16} {p50:>8.1} {p99:>8.1}"))?;
        }
        Ok(())
    }
}

/// A request that strangers repeat.
struct Attack {
    case: &'static str,
    crowd: BackgroundLoad,
    path: &'static str,
    body: Value,
    /// Number of clients that share the connections.
    clients: usize,
}

impl Attack {
    /// Runs the work while strangers repeat the request.
    fn run_during(
        &self,
        svc: &Running,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let requests: Vec<_> = (0..self.clients)
            .map(|client| request_of_client(svc, client, self.path, &self.body))
            .collect();
        let next = AtomicUsize::new(0);
        let send_request = |connection: &mut Client| {
            let number = next.fetch_add(1, Ordering::Relaxed) % requests.len();
            let answer = connection.send(&requests[number])?;
            ensure!(
                matches!(answer.status, 200 | 201 | 400 | 503),
                "an attacker was {answer:?}"
            );
            if answer.status == 503 {
                thread::sleep(REFUSED_PAUSE);
            }
            Ok(())
        };
        self.crowd.run_during(svc, send_request, work)
    }
}

/// Delays that an owner notices beside strangers who publish and look at pages that cost much.
fn measure_owners_beside_strangers(
    svc: &Running,
    owner: &mut Owner,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    print_title(&format!(
        "An owner's operations, {ROUNDS} of each, beside {} shares of 20 large diagrams at once, and {} previews of two clients",
        SHARES.clients, PREVIEWS.clients
    ))?;
    let notes = json!({ "type": "markdown", "content": "# Notes", "requested_slug": "notes" });
    owner.send("POST", "/frontends", &notes)?;
    let protected = json!({ "content": "inside", "name": PROTECTED.0, "password": PROTECTED.1 });
    let answer = svc.client()?.post("/api/v1/deploy", &protected)?;
    ensure!(answer.status == 201, "a share was {}", answer.status);
    print_line(&format!(
        "{:20} {:16} {:>8} {:>8}",
        "", "", "p50 ms", "p99 ms"
    ))?;
    let quiet = Latencies::measure(svc, owner)?;
    quiet.print("quiet")?;

    for attack in [
        Attack {
            case: "beside shares",
            crowd: SHARES,
            path: "/api/v1/deploy",
            body: costly_sources().swap_remove(0).1,
            clients: SHARES.clients,
        },
        Attack {
            case: "beside previews",
            crowd: PREVIEWS,
            path: "/_svc/preview",
            body: json!({ "type": "mermaid", "content": large_diagram(1) }),
            clients: 2,
        },
    ] {
        let mut found = Latencies::default();
        attack.run_during(svc, || {
            found = Latencies::measure(svc, owner)?;
            Ok(())
        })?;
        found.print(attack.case)?;
        let figures = OPERATIONS.iter().zip(quiet.0.iter().zip(&found.0));
        for (operation, (quiet, found)) in figures {
            let most = (2.0 * quantile(quiet, 0.99)).max(DELAY_BOUND_MILLISECONDS);
            let p99 = quantile(found, 0.99);
            goals.at_most(&format!("{operation} {}: p99, ms", attack.case), p99, most);
        }
        svc.await_rest()?;
    }
    let (now, most) = svc.memory()?;
    print_line(&format!(
        "svc after it: {now:.1} MB resident, {most:.1} MB at the most."
    ))
}

/// A request as a proxy passes it on for a client.
fn request_of_client(svc: &Running, client: usize, path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nX-Forwarded-For: 192.0.2.{client}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        svc.address,
        body.len()
    )
    .into_bytes()
}
