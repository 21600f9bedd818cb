//! State that clients share with what disturbs the nodes: which nodes need not answer, the record, and requests at random nodes.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use http::Method;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use svc_tests::three_nodes::LONGEST;
use svc_tests::{Answer, ReadAnswer as _, SeededRng, TokenIssuer, http_client};

use super::record::Record;

/// Time after which a client gives up.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a refusal.
pub(super) const REFUSED_PAUSE: Duration = Duration::from_millis(50);

const DEPLOY: &str = "/api/v1/deploy";
/// Host of `base_url`: nodes answer for it, and not for the addresses of relays.
const HOST: &str = "127.0.0.1";

/// A node as clients reach it, and whether they do.
#[derive(Debug)]
struct ClientEndpoint {
    address: SocketAddr,
    /// Number of reasons for which the node need not answer.
    closings: AtomicU64,
    /// Number of changes of them.
    changes: AtomicU64,
}

impl ClientEndpoint {
    /// Returns what changes when the endpoint is closed; `None` while it is.
    fn opening(&self) -> Option<u64> {
        let changes = self.changes.load(Ordering::SeqCst);
        let is_open = self.closings.load(Ordering::SeqCst) == 0;
        is_open.then_some(changes)
    }
}

/// State that clients share with what disturbs the nodes.
#[derive(Debug)]
pub(super) struct ClientContext {
    endpoints: Vec<ClientEndpoint>,
    client: Client,
    /// Issuer of the tokens of those who own the page.
    pub(super) issuer: TokenIssuer,
    record: Mutex<Record>,
    /// Number of times that PostgreSQL's standbys were stopped and started: odd while they are stopped.
    standby_changes: AtomicU64,
    stop: AtomicBool,
}

impl ClientContext {
    /// Knows the nodes by their addresses for clients. None of them answers yet.
    pub(super) fn new(addresses: impl Iterator<Item = SocketAddr>, issuer: TokenIssuer) -> Self {
        let endpoints = addresses.map(|address| ClientEndpoint {
            address,
            closings: AtomicU64::new(1),
            changes: AtomicU64::new(0),
        });
        let client = http_client().no_proxy().timeout(CALL_TIMEOUT);
        Self {
            endpoints: endpoints.collect(),
            client: client.build().unwrap(),
            issuer,
            record: Mutex::default(),
            standby_changes: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        }
    }

    /// Notes a reason for which a node need not answer.
    pub(super) fn close(&self, at: usize) {
        let endpoint = &self.endpoints[at];
        endpoint.closings.fetch_add(1, Ordering::SeqCst);
        endpoint.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes back one call of [`Self::close`].
    pub(super) fn open(&self, at: usize) {
        let endpoint = &self.endpoints[at];
        endpoint.changes.fetch_add(1, Ordering::SeqCst);
        endpoint.closings.fetch_sub(1, Ordering::SeqCst);
    }

    /// Notes that PostgreSQL's standbys have been stopped, or are about to start.
    pub(super) fn note_standbys(&self) {
        self.standby_changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns what changes when standbys start; `None` while they run.
    pub(super) fn without_standbys(&self) -> Option<u64> {
        let changes = self.standby_changes.load(Ordering::SeqCst);
        (changes % 2 == 1).then_some(changes)
    }

    /// Ends the clients, once each has its answer.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap()
    }

    pub(super) fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    /// Sends a request to a random node, with what `finish` adds to it. `None` if no whole answer came.
    pub(super) async fn send(
        &self,
        rng: &mut SeededRng,
        (method, path): (Method, &str),
        finish: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Option<Answer> {
        let at = rng.below(self.endpoints.len());
        let endpoint = &self.endpoints[at];
        let url = format!("http://{}{path}", endpoint.address);
        let request = finish(self.client.request(method, url).header("host", HOST));
        let (opening, begun) = (endpoint.opening(), Instant::now());
        let answer = request.try_answer().await;
        let took = begun.elapsed();
        if took > LONGEST && opening.is_some() && opening == endpoint.opening() {
            let fault = format!("{path} at node {at} took {took:?}: {answer:?}");
            self.record().fault(fault);
        }
        answer
    }

    /// Calls an action.
    pub(super) async fn call(
        &self,
        rng: &mut SeededRng,
        action: &str,
        params: &Value,
    ) -> Option<Answer> {
        let body = json!({ "action": action, "params": params });
        let call = (Method::POST, "/room/api/op");
        self.send(rng, call, |request| request.json(&body)).await
    }

    /// Sends a page once, with a key. Returns the share, or whether it may be sent again.
    pub(super) async fn publish_once(
        &self,
        rng: &mut SeededRng,
        body: &Value,
        key: &str,
    ) -> Result<Value, bool> {
        let deploy = (Method::POST, DEPLOY);
        let finish = |request: RequestBuilder| request.json(body).header("idempotency-key", key);
        let answer = self.send(rng, deploy, finish).await;
        match answer.as_ref().map_or(503, |answer| answer.status) {
            201 => {
                let share = answer.unwrap().json();
                let slug = share["slug"].as_str().unwrap().to_owned();
                self.record().note_slug(&slug, key);
                Ok(share)
            }
            503 => Err(true),
            409 if is_running(answer.as_ref()) => Err(true),
            _ => {
                self.record().fault(format!("{key}: {answer:?}"));
                Err(false)
            }
        }
    }

    /// Publishes a page until that is acknowledged, with one key. Returns the share.
    pub(super) async fn publish(
        &self,
        rng: &mut SeededRng,
        body: &Value,
        key: &str,
    ) -> Option<Value> {
        while self.goes_on() {
            match self.publish_once(rng, body, key).await {
                Ok(share) => return Some(share),
                Err(true) => tokio::time::sleep(REFUSED_PAUSE).await,
                Err(false) => return None,
            }
        }
        None
    }

    /// Deletes something until that is acknowledged. Returns whether it was.
    pub(super) async fn delete(&self, rng: &mut SeededRng, path: &str, credential: &str) -> bool {
        while self.goes_on() {
            let delete = (Method::DELETE, path);
            let finish = |request: RequestBuilder| request.bearer_auth(credential);
            let answer = self.send(rng, delete, finish).await;
            match answer.as_ref().map_or(503, |answer| answer.status) {
                // An earlier request may have done it.
                204 | 404 => return true,
                503 => tokio::time::sleep(REFUSED_PAUSE).await,
                _ => {
                    self.record().fault(format!("{path}: {answer:?}"));
                    return false;
                }
            }
        }
        false
    }
}

/// Whether an earlier request with the same key is under way, and not one that said something else.
fn is_running(answer: Option<&Answer>) -> bool {
    answer.is_some_and(|answer| answer.header("retry-after").is_some())
}
