//! Clients that go on whatever happens, each request at a random node.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use svc_tests::{Answer, SeededRng, http_client};
use tokio::task::JoinSet;

use super::record::{Outcome, Record};

const WRITERS: u64 = 8;
const READERS: u64 = 3;
const PUBLISHERS: u64 = 2;
/// Readers of a one-time page at once, and how often each asks at most.
const OPENERS: usize = 4;
const ATTEMPTS: usize = 5;
/// Pauses after a write and a read, after a page, and after a refusal.
const PAUSE: Duration = Duration::from_millis(20);
const PAGE_PAUSE: Duration = Duration::from_millis(300);
const REFUSED_PAUSE: Duration = Duration::from_millis(50);
/// Longest time of a request to a node that runs.
const LONGEST: Duration = Duration::from_secs(12);
/// Time after which a client gives up.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

const DEPLOY: &str = "/api/v1/deploy";
/// Host of `base_url`: nodes answer for it, and not for the addresses of relays.
const HOST: &str = "127.0.0.1";

/// A node as clients reach it, and whether they do.
#[derive(Debug)]
struct Door {
    address: SocketAddr,
    /// Number of reasons for which the node need not answer.
    closings: AtomicU64,
    /// Number of changes of them.
    changes: AtomicU64,
}

impl Door {
    /// Returns what changes when the door is closed; `None` while it is.
    fn opening(&self) -> Option<u64> {
        let changes = self.changes.load(Ordering::SeqCst);
        let is_open = self.closings.load(Ordering::SeqCst) == 0;
        is_open.then_some(changes)
    }
}

/// State that clients share with what disturbs the nodes.
#[derive(Debug)]
pub(super) struct Shared {
    doors: Vec<Door>,
    client: Client,
    record: Mutex<Record>,
    /// Number of times that PostgreSQL's standbys were stopped and started: odd while they are stopped.
    standby_changes: AtomicU64,
    stop: AtomicBool,
}

impl Shared {
    /// Knows the nodes by their addresses for clients. None of them answers yet.
    pub(super) fn new(addresses: impl Iterator<Item = SocketAddr>) -> Self {
        let doors = addresses.map(|address| Door {
            address,
            closings: AtomicU64::new(1),
            changes: AtomicU64::new(0),
        });
        let client = http_client().no_proxy().timeout(CALL_TIMEOUT);
        Self {
            doors: doors.collect(),
            client: client.build().unwrap(),
            record: Mutex::default(),
            standby_changes: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        }
    }

    /// Notes a reason for which a node need not answer.
    pub(super) fn close(&self, at: usize) {
        let door = &self.doors[at];
        door.closings.fetch_add(1, Ordering::SeqCst);
        door.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes back one call of [`Self::close`].
    pub(super) fn open(&self, at: usize) {
        let door = &self.doors[at];
        door.changes.fetch_add(1, Ordering::SeqCst);
        door.closings.fetch_sub(1, Ordering::SeqCst);
    }

    /// Notes that PostgreSQL's standbys have been stopped, or are about to start.
    pub(super) fn note_standbys(&self) {
        self.standby_changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns what changes when standbys start; `None` while they run.
    fn without_standbys(&self) -> Option<u64> {
        let changes = self.standby_changes.load(Ordering::SeqCst);
        (changes % 2 == 1).then_some(changes)
    }

    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap()
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    /// Sends a POST to a random node.
    async fn post(
        &self,
        rng: &mut SeededRng,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Option<Answer> {
        let at = usize::try_from(rng.draw()).unwrap() % self.doors.len();
        let door = &self.doors[at];
        let url = format!("http://{}{path}", door.address);
        let mut request = self.client.post(url).header("host", HOST);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let (opening, begun) = (door.opening(), Instant::now());
        let answer = read(request).await;
        let took = begun.elapsed();
        if took > LONGEST && opening.is_some() && opening == door.opening() {
            let fault = format!("{path} at node {at} took {took:?}: {answer:?}");
            self.record().fault(fault);
        }
        answer
    }

    /// Calls an action.
    async fn call(&self, rng: &mut SeededRng, action: &str, params: &Value) -> Option<Answer> {
        let body = json!({ "action": action, "params": params });
        self.post(rng, "/room/api/op", Some(&body), None).await
    }

    /// Publishes a page until that is acknowledged, with one key. Returns whether it was.
    async fn publish(&self, rng: &mut SeededRng, body: &Value) -> bool {
        let name = body["name"].as_str().unwrap();
        while self.goes_on() {
            let answer = self.post(rng, DEPLOY, Some(body), Some(name)).await;
            match answer.as_ref().map_or(503, |answer| answer.status) {
                201 => {
                    let slug = answer.unwrap().json()["slug"].clone();
                    if slug != name {
                        self.record()
                            .fault(format!("{name} was published as {slug}"));
                    }
                    return true;
                }
                503 => tokio::time::sleep(REFUSED_PAUSE).await,
                409 if is_running(answer.as_ref()) => tokio::time::sleep(REFUSED_PAUSE).await,
                _ => {
                    self.record().fault(format!("{name}: {answer:?}"));
                    return false;
                }
            }
        }
        false
    }
}

/// Sends a request; `None` if no whole answer came.
pub(super) async fn read(request: RequestBuilder) -> Option<Answer> {
    let response = request.send().await.ok()?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.bytes().await.ok()?;
    Some(Answer {
        status,
        headers,
        body,
    })
}

/// Whether an earlier request with the same key is under way, and not one that said something else.
fn is_running(answer: Option<&Answer>) -> bool {
    answer.is_some_and(|answer| answer.header("retry-after").is_some())
}

/// Reads what an answer to a write says, if it is one that may be given.
fn outcome(answer: Option<&Answer>) -> Option<Outcome> {
    let Some(answer) = answer else {
        return Some(Outcome::Unknown);
    };
    match answer.status {
        200 => Some(Outcome::Acknowledged),
        503 if answer.json()["code"] == "interrupted" => Some(Outcome::Unknown),
        503 => Some(Outcome::Refused),
        _ => None,
    }
}

async fn write(shared: Arc<Shared>, writer: u64, mut rng: SeededRng) {
    let mut number = 0;
    while shared.goes_on() {
        let entry = (writer, number);
        let without_standbys = shared.without_standbys();
        shared.record().rows.insert(entry, Outcome::Unknown);
        let params = json!({ "writer": writer, "number": number });
        let answer = shared.call(&mut rng, "add", &params).await;
        match outcome(answer.as_ref()) {
            Some(outcome) => {
                let mut record = shared.record();
                record.rows.insert(entry, outcome);
                if outcome == Outcome::Acknowledged
                    && without_standbys.is_some()
                    && without_standbys == shared.without_standbys()
                {
                    record.fault(format!("{entry:?} was acknowledged without standbys"));
                }
            }
            None => shared.record().fault(format!("{entry:?}: {answer:?}")),
        }
        number += 1;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn read_rows(shared: Arc<Shared>, mut rng: SeededRng) {
    while shared.goes_on() {
        let writer = rng.draw() % WRITERS;
        let (first, expected) = shared.record().expected(writer);
        let params = json!({ "writer": writer, "first": first });
        let answer = shared.call(&mut rng, "written", &params).await;
        match answer.as_ref().map_or(503, |answer| answer.status) {
            200 => {
                let answer = answer.unwrap().json();
                let rows = answer["rows"].as_array().unwrap();
                let numbers = rows.iter().map(|row| row["number"].as_u64().unwrap());
                let numbers: Vec<u64> = numbers.collect();
                shared.record().note_read(writer, &expected, &numbers);
            }
            503 => {}
            _ => shared.record().fault(format!("a read: {answer:?}")),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn publish_pages(shared: Arc<Shared>, publisher: u64, mut rng: SeededRng) {
    let mut number = 0;
    while shared.goes_on() {
        let name = format!("page-{publisher}-{number}");
        shared.record().pages.insert(name.clone(), false);
        let body = json!({ "content": format!("<p>of {name}</p>"), "name": name });
        if shared.publish(&mut rng, &body).await {
            shared.record().pages.insert(name, true);
        }
        number += 1;
        tokio::time::sleep(PAGE_PAUSE).await;
    }
}

/// Publishes one-time pages, each for several readers at once.
async fn burn_pages(shared: Arc<Shared>, mut rng: SeededRng) {
    let mut number = 0;
    while shared.goes_on() {
        let name = format!("once-{number}");
        let content = format!("<p>of {name}</p>");
        let body = json!({ "content": content, "name": name, "one_time": true });
        if shared.publish(&mut rng, &body).await {
            let seeds: [u64; OPENERS] = std::array::from_fn(|_| rng.draw());
            let readers = seeds.map(|seed| open_page(&shared, &name, SeededRng::new(seed)));
            let got = join_all(readers)
                .await
                .into_iter()
                .filter(|got| *got)
                .count();
            let mut record = shared.record();
            if got > 1 {
                record.fault(format!("{name} was given to {got} readers"));
            }
            record.readers.insert(name, got);
        }
        number += 1;
        tokio::time::sleep(PAGE_PAUSE).await;
    }
}

/// Opens a one-time page, by some attempts. Returns whether it was had.
async fn open_page(shared: &Shared, name: &str, mut rng: SeededRng) -> bool {
    let path = format!("/{name}");
    for _ in 0..ATTEMPTS {
        let answer = shared.post(&mut rng, &path, None, None).await;
        match answer.as_ref().map_or(503, |answer| answer.status) {
            200 => return true,
            404 => return false,
            503 => tokio::time::sleep(REFUSED_PAUSE).await,
            _ => {
                shared.record().fault(format!("{name}: {answer:?}"));
                return false;
            }
        }
    }
    false
}

/// Clients of all kinds.
#[derive(Debug)]
pub(super) struct Clients {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

impl Clients {
    pub(super) fn start(shared: &Arc<Shared>, seed: u64) -> Self {
        let mut tasks = JoinSet::new();
        let mut number = seed;
        let mut next = || {
            number = number.wrapping_add(1);
            (Arc::clone(shared), SeededRng::new(number))
        };
        for writer in 0..WRITERS {
            let (shared, rng) = next();
            tasks.spawn(write(shared, writer, rng));
        }
        for _ in 0..READERS {
            let (shared, rng) = next();
            tasks.spawn(read_rows(shared, rng));
        }
        for publisher in 0..PUBLISHERS {
            let (shared, rng) = next();
            tasks.spawn(publish_pages(shared, publisher, rng));
        }
        let (of_burner, rng) = next();
        tasks.spawn(burn_pages(of_burner, rng));
        Self {
            shared: Arc::clone(shared),
            tasks,
        }
    }

    /// Ends them, once each has its answer.
    pub(super) async fn stop(self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.tasks.join_all().await;
    }
}
