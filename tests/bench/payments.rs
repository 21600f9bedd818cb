//! Webhooks of the payment provider: throughput, cost of each, and their effect on page views.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use axum::extract::State;
use axum::{Form, Json, Router};
use serde_json::{Value, json};
use svc_base::clock::Clock;

use super::client;
use super::load::{self, Outcome};
use super::owner::{Owner, text};
use super::report::{Goals, median, print_line, print_title, quantile};
use super::rounds::ROUNDS;
use super::server::{Bench, Running};

const SECRET: &str = "whsec_of_the_bench";
const SLUG: &str = "shop";
/// Purchases that events are about, and number of events of each.
const SESSIONS: usize = 3_000;
const EVENTS: usize = 4;
/// Events of the first round, which warms up, and of each of the others.
const WARM_UP_EVENTS: usize = 600;
const ROUND: usize = (SESSIONS * EVENTS - WARM_UP_EVENTS) / ROUNDS;
/// Connections that webhooks come over, and that pages are viewed over.
const CONNECTIONS: usize = 16;
/// Webhooks a minute beside which pages are viewed, and for how long at a time.
const WEBHOOKS_PER_MINUTE: u32 = 10_000;
const VIEWING: Duration = Duration::from_secs(3);
/// Purchases that these webhooks are about.
const PURCHASES_BESIDE: usize = 750;
/// Maximum growth of the p99 of page views beside them.
const MAX_P99_GROWTH: f64 = 1.5;

/// A session and the provider's id of its checkout.
type StartedCheckout = (String, String);

/// Measures webhooks.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Webhooks over {CONNECTIONS} connections, {ROUNDS} alternating rounds of {ROUND} events; minimal writes the same rows, as durable"
    ))?;
    let provider = FakeStripe::start()?;
    let more = format!(
        "checkout_per_minute = 100000000\ncheckout_burst = 100000000\n[stripe]\nsecret_key = \"sk_test_bench\"\nwebhook_secret = \"{SECRET}\"\napi_base = \"http://{}\"\n",
        provider.address
    );
    let (svc, credential) = bench.start_owned_with("payments", &more)?;
    let mut owner = Owner::new(&svc, &credential)?;
    let price = create_price(&mut owner)?;
    let begun = begin_checkouts(&svc, &provider, &price, SESSIONS + PURCHASES_BESIDE)?;
    let (first, second) = begun.split_at(SESSIONS);
    let minimal = bench.start_minimal_ledger()?;
    let ids: Vec<&str> = first.iter().map(|(session, _)| session.as_str()).collect();
    let prepared = minimal.client()?.post("/sessions", &json!(ids))?;
    ensure!(prepared.status == 200, "not prepared: {prepared:?}");
    compare_throughput(&svc, &minimal, first, goals)?;
    measure_views_beside_webhooks(&svc, second, goals)?;
    ensure_paid(&svc, &credential)?;
    let (now, most) = svc.memory()?;
    print_line(&format!(
        "svc after it: {now:.1} MB resident, {most:.1} MB at the most."
    ))
}

/// A project with a page and a price; answers the price.
fn create_price(owner: &mut Owner) -> anyhow::Result<String> {
    owner.create_project("Shop")?;
    let page = json!({ "type": "html", "content": "<h1>Shop</h1>", "requested_slug": SLUG });
    owner.send("POST", "/frontends", &page)?;
    let price =
        json!({ "product_name": "Handbook", "label": "PDF", "amount": 900, "currency": "eur" });
    let (price, _) = owner.send("POST", "/payments/catalog", &price)?;
    text(&price, "id")
}

/// Begins checkouts, each of another visitor.
fn begin_checkouts(
    svc: &Running,
    provider: &FakeStripe,
    price: &str,
    count: usize,
) -> anyhow::Result<Vec<StartedCheckout>> {
    let path = format!("/{SLUG}/payments/checkout");
    let work = |share: usize| -> anyhow::Result<()> {
        let mut client = svc.client()?;
        for _ in 0..share {
            let answer = client.post(&path, &json!({ "price": price }))?;
            ensure!(answer.status == 303, "not begun: {answer:?}");
        }
        Ok(())
    };
    thread::scope(|scope| {
        let some: Vec<_> = (0..CONNECTIONS)
            .map(|at| count / CONNECTIONS + usize::from(at < count % CONNECTIONS))
            .map(|share| scope.spawn(move || work(share)))
            .collect();
        for one in some {
            one.join().ok().context("a visitor panicked")??;
        }
        anyhow::Ok(())
    })?;
    let begun = provider.started_checkouts();
    ensure!(begun.len() == count, "{} of {count} begun", begun.len());
    Ok(begun)
}

/// The events of purchases that are paid late and of which a part is returned: in the order in which they happen, each kind of all.
fn events(begun: &[StartedCheckout]) -> Vec<Value> {
    let kinds = [
        "checkout.session.completed",
        "checkout.session.async_payment_succeeded",
        "charge.refunded",
        "charge.dispute.created",
    ];
    let all = kinds.iter().enumerate().flat_map(|(step, kind)| {
        begun.iter().map(move |(session, checkout)| {
            let payment = format!("pi_{checkout}");
            let object = match step {
                0 | 1 => json!({
                    "id": checkout, "object": "checkout.session", "mode": "payment", "status": "complete",
                    "payment_status": if step == 0 { "unpaid" } else { "paid" }, "amount_total": 900, "currency": "eur",
                    "client_reference_id": session, "metadata": { "svc_session": session }, "payment_intent": payment,
                    "subscription": null, "invoice": null, "customer_details": { "email": "ada@example.com" },
                }),
                2 => json!({
                    "id": format!("ch_{checkout}"), "object": "charge", "amount": 900, "amount_refunded": 100, "refunded": false,
                    "currency": "eur", "metadata": { "svc_session": session }, "payment_intent": payment,
                }),
                _ => json!({
                    "id": format!("dp_{checkout}"), "object": "dispute", "amount": 900, "currency": "eur",
                    "charge": format!("ch_{checkout}"), "payment_intent": payment, "metadata": { "svc_session": session },
                }),
            };
            json!({
                "id": format!("evt_{step}_{checkout}"), "object": "event", "type": kind, "created": 1_795_176_000 + step,
                "livemode": false, "data": { "object": object },
            })
        })
    });
    all.collect()
}

/// Requests that bring events to a server, signed now.
fn signed_requests(address: SocketAddr, events: &[Value]) -> Vec<Vec<u8>> {
    let now = Clock::system().now();
    let one = |event: &Value| {
        let body = event.to_string();
        let signature = svc::stripe::sign(SECRET, body.as_bytes(), now);
        client::webhook(address, &signature, &body)
    };
    events.iter().map(one).collect()
}

/// Figures of one server in its rounds.
#[derive(Debug, Default)]
struct Figures {
    rates: Vec<f64>,
    latencies: Vec<f64>,
    cpu: Duration,
    answers: usize,
}

impl Figures {
    fn add(&mut self, server: &Running, requests: &[Vec<u8>]) -> anyhow::Result<()> {
        let before = server.cpu()?;
        let outcome = load::once(server.address, requests, CONNECTIONS, None)?;
        self.cpu += server.cpu()? - before;
        self.rates.push(outcome.rate);
        self.answers += outcome.answers;
        self.latencies.extend(outcome.latencies);
        Ok(())
    }

    /// Processor time an event, in microseconds.
    fn cost(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.answers as f64
    }

    fn print(&self, server: &str) -> anyhow::Result<()> {
        print_line(&format!(
            "{server:24} {:>9.0} {:>8.0} {:>8.0} {:>10.1}",
            median(&self.rates),
            quantile(&self.latencies, 0.5),
            quantile(&self.latencies, 0.99),
            self.cost()
        ))
    }
}

/// Events a second and the cost of one, beside inserts of the same rows.
fn compare_throughput(
    svc: &Running,
    minimal: &Running,
    begun: &[StartedCheckout],
    goals: &mut Goals,
) -> anyhow::Result<()> {
    let events = events(begun);
    let servers = [svc, minimal];
    let requests = servers.map(|server| signed_requests(server.address, &events));
    let mut figures = [Figures::default(), Figures::default()];
    for (server, requests) in servers.iter().zip(&requests) {
        load::once(
            server.address,
            &requests[..WARM_UP_EVENTS],
            CONNECTIONS,
            None,
        )?;
    }
    for round in 0..ROUNDS {
        let from = WARM_UP_EVENTS + round * ROUND;
        for turn in 0..servers.len() {
            let at = (round + turn) % servers.len();
            figures[at].add(servers[at], &requests[at][from..from + ROUND])?;
        }
    }
    print_line(&format!(
        "{:24} {:>9} {:>8} {:>8} {:>10}",
        "server", "events/s", "p50 µs", "p99 µs", "CPU µs"
    ))?;
    let [ours, theirs] = figures;
    ours.print("svc")?;
    theirs.print("minimal")?;
    let pairs = ours.rates.iter().zip(&theirs.rates);
    let ratio = median(&pairs.map(|(one, other)| one / other).collect::<Vec<_>>());
    let cost = ours.cost() / theirs.cost();
    print_line(&format!("{:24} {ratio:>9.2} {:>28.2}", "ratio", cost))?;
    goals.at_least("webhooks: events a second, of the same inserts", ratio, 0.5);
    let minute = median(&ours.rates) * 60.0;
    goals.at_least(
        "webhooks: events a minute",
        minute,
        f64::from(WEBHOOKS_PER_MINUTE),
    );
    Ok(())
}

/// Page views alone, and beside as many webhooks as a busy provider sends.
fn measure_views_beside_webhooks(
    svc: &Running,
    begun: &[StartedCheckout],
    goals: &mut Goals,
) -> anyhow::Result<()> {
    let views = [client::get(svc.address, &format!("/{SLUG}"), "identity")];
    let view = || load::run(svc.address, &views, CONNECTIONS, VIEWING);
    let rate = WEBHOOKS_PER_MINUTE / 60;
    let share = VIEWING.as_secs() as usize * rate as usize;
    let (mut alone, mut among, mut late) = (Vec::new(), Vec::new(), Vec::new());
    let p99 = |outcome: &Outcome| quantile(&outcome.latencies, 0.99);
    let events = events(begun);
    view()?;
    for some in events.chunks_exact(share).take(ROUNDS) {
        alone.push(p99(&view()?));
        let requests = signed_requests(svc.address, some);
        let (viewed, sent) = thread::scope(|scope| {
            let sending = scope.spawn(|| load::once(svc.address, &requests, 4, Some(rate)));
            let viewed = view();
            (viewed, sending.join())
        });
        let sent = sent.ok().context("the provider panicked")??;
        among.push(p99(&viewed?));
        late.push(p99(&sent));
    }
    let (alone, among) = (median(&alone), median(&among));
    print_line(&format!(
        "\nPage views' p99 over {CONNECTIONS} connections: {alone:.0} µs alone, {among:.0} µs beside {WEBHOOKS_PER_MINUTE} webhooks a minute, whose own is {:.0} µs.",
        median(&late)
    ))?;
    goals.at_most(
        "page views beside webhooks: p99, of that alone",
        among / alone,
        MAX_P99_GROWTH,
    );
    Ok(())
}

/// Checks that the latest purchases are paid, so that real work was measured.
fn ensure_paid(svc: &Running, credential: &str) -> anyhow::Result<()> {
    // A connection that has rested for so long is closed.
    let mut owner = Owner::new(svc, credential)?;
    owner.select_first_project()?;
    let (list, _) = owner.send("GET", "/payments/sessions?limit=1000", &Value::Null)?;
    let sessions = list["sessions"].as_array().context("no sessions")?;
    let unpaid = sessions.iter().find(|session| session["status"] != "paid");
    ensure!(unpaid.is_none(), "not paid: {unpaid:?}");
    ensure!(sessions.len() == 1_000, "{} sessions", sessions.len());
    Ok(())
}

/// A provider that makes hosted checkouts, and nothing else.
struct FakeStripe {
    address: SocketAddr,
    begun: Arc<Mutex<Vec<StartedCheckout>>>,
}

impl FakeStripe {
    fn start() -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let begun: Arc<Mutex<Vec<StartedCheckout>>> = Arc::default();
        let router = Router::new()
            .fallback(checkout)
            .with_state(Arc::clone(&begun));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        thread::spawn(move || {
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                axum::serve(listener, router).await
            })
        });
        Ok(Self { address, begun })
    }

    fn started_checkouts(&self) -> Vec<StartedCheckout> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.clone()
    }
}

async fn checkout(
    State(begun): State<Arc<Mutex<Vec<StartedCheckout>>>>,
    Form(form): Form<Vec<(String, String)>>,
) -> Json<Value> {
    let mut fields = form.into_iter();
    let session = fields.find(|(name, _)| name == "client_reference_id");
    let (_, session) = session.unwrap_or_default();
    let mut begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
    let id = format!("cs_test_{}", begun.len());
    begun.push((session, id.clone()));
    let url = format!("http://127.0.0.1:9/pay/{id}");
    Json(json!({ "id": id, "object": "checkout.session", "url": url }))
}
