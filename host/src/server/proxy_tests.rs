//! Tests of requests that other nodes answer, with nodes that do as they are told.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, stream};
use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use svc_base::sync::lock;
use svc_ledger::{DatabaseName, RunId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::access_log::AnsweringRun;
use super::admission::ConnectionCounts;
use super::other_nodes::OtherNodes;
use super::proxy::{Destination, ProxiedRequest, RequestProxy};
use crate::cluster::{DatabaseLocation, PeerBody, PeerError, PeerHandlerFn};
use crate::http::client_ip::ClientIp;
use crate::http::forwarded::{ForwardedRequest, RequestSource};
use crate::http::problem::{Problem, ProblemCode};

/// Time until the head of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(200);

/// Answer of a node.
#[derive(Debug)]
enum FakeAnswer {
    Given(Response),
    NotSent,
    Refused,
    Lost,
    Hangs,
    /// Answer of a real connection.
    Connection(SendRequest<PeerBody>),
}

/// Request that a node has received.
#[derive(Debug)]
struct SentRequest {
    run: RunId,
    target: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// Nodes that do as they are told.
#[derive(Debug, Default)]
struct FakeNodes {
    answers: Mutex<VecDeque<FakeAnswer>>,
    sent: Mutex<Vec<SentRequest>>,
    /// Where every database is, and where it is known to be without asking.
    location: Mutex<Option<DatabaseLocation>>,
    known_location: Mutex<Option<DatabaseLocation>>,
}

impl OtherNodes for FakeNodes {
    fn known_location(&self, _: DatabaseName) -> Option<DatabaseLocation> {
        *lock(&self.known_location)
    }

    fn locate(&self, _: DatabaseName) -> BoxFuture<'_, DatabaseLocation> {
        let found = lock(&self.location).unwrap_or(DatabaseLocation::At(run(2)));
        async move { found }.boxed()
    }

    fn forget(&self, _: DatabaseName) {}

    fn send(
        &self,
        run: RunId,
        request: http::Request<PeerBody>,
    ) -> BoxFuture<'_, Result<Response, PeerError>> {
        let answer = lock(&self.answers).pop_front().unwrap();
        async move {
            let lost = || PeerError::Lost {
                reason: "cut".to_owned(),
            };
            match answer {
                FakeAnswer::NotSent => {
                    return Err(PeerError::NotSent {
                        request: Box::new(request),
                        reason: "unreachable".to_owned(),
                    });
                }
                FakeAnswer::Connection(mut node) => {
                    let answered = node.send_request(request).await;
                    return answered.map_or_else(|_| Err(lost()), |it| Ok(it.map(Body::new)));
                }
                _ => {}
            }
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(|_| lost())?;
            lock(&self.sent).push(SentRequest {
                run,
                target: format!("{} {}", parts.method, parts.uri),
                headers: parts.headers,
                body: body.to_bytes().to_vec(),
            });
            match answer {
                FakeAnswer::Given(response) => Ok(response),
                FakeAnswer::Refused => Err(PeerError::Refused),
                FakeAnswer::Hangs => pending().await,
                _ => Err(lost()),
            }
        }
        .boxed()
    }

    fn wait_until_gone(&self, _: RunId) -> BoxFuture<'static, ()> {
        pending().boxed()
    }

    fn serve(&self, _: Option<PeerHandlerFn>) {}

    fn count(&self, _: Duration) {}
}

fn run(number: u128) -> RunId {
    uuid::Uuid::from_u128(number).into()
}

fn client(hops: u8) -> ForwardedRequest {
    ForwardedRequest {
        hops,
        database: String::new(),
        client: ClientIp([192, 0, 2, 7].into()),
        request_id: "0a-01".into(),
        authority: "share.example.com".into(),
    }
}

/// Nodes with these answers, and a request for the first run.
fn proxy(answers: impl IntoIterator<Item = FakeAnswer>) -> (Arc<FakeNodes>, Arc<RequestProxy>) {
    let nodes = FakeNodes {
        answers: Mutex::new(answers.into_iter().collect()),
        ..FakeNodes::default()
    };
    let nodes = Arc::new(nodes);
    let proxy = Arc::new(proxy_over(&nodes, 8));
    (nodes, proxy)
}

/// A proxy that passes on so many requests of a client at once.
fn proxy_over(nodes: &Arc<FakeNodes>, per_client: u64) -> RequestProxy {
    let passing = ConnectionCounts::with_limits(16, per_client, &[]);
    RequestProxy::over(Arc::clone(nodes) as _, ANSWER_TIMEOUT, passing)
}

fn passed(answers: impl IntoIterator<Item = FakeAnswer>) -> (Arc<FakeNodes>, ProxiedRequest) {
    let (nodes, proxy) = proxy(answers);
    (nodes, passed_by(&proxy))
}

fn passed_by(proxy: &Arc<RequestProxy>) -> ProxiedRequest {
    ProxiedRequest::new(proxy, (DatabaseName::Control, run(1)), client(0))
}

fn request(method: Method, path: &str, body: &'static str) -> Request {
    let body = match body {
        "" => Body::empty(),
        body => Body::from(body),
    };
    let request = Request::builder().method(method).uri(path);
    request.body(body).unwrap()
}

fn given() -> FakeAnswer {
    FakeAnswer::Given(Response::new(Body::from("done")))
}

/// Code of the problem that an answer carries.
fn code_of(response: &Response) -> Option<ProblemCode> {
    let problem = response.extensions().get::<Box<Problem>>();
    problem.map(|problem| problem.code)
}

#[tokio::test]
async fn a_request_and_its_answer_pass_whole_but_for_what_is_of_one_connection() {
    let answer = Response::builder()
        .header(header::CONNECTION, "close")
        .header(header::ETAG, "\"a\"")
        .header("x-request-id", "0a-01");
    let answer = answer.body(Body::from("done")).unwrap();
    let (nodes, passed) = passed([FakeAnswer::Given(answer)]);
    let mut asked = request(
        Method::POST,
        "http://share.example.com/room/api/op?a=1",
        "{}",
    );
    for (name, value) in [
        ("host", "share.example.com"),
        ("connection", "keep-alive, x-hop"),
        ("x-hop", "1"),
        ("keep-alive", "timeout=5"),
        ("transfer-encoding", "chunked"),
        ("expect", "100-continue"),
        ("svc-forwarded", "9 control 6.6.6.6 id host"),
        ("cookie", "a=b"),
    ] {
        asked.headers_mut().insert(name, value.parse().unwrap());
    }
    let response = passed.send(asked).await;
    assert_eq!(response.status(), StatusCode::OK);
    let answering = response.extensions().get::<AnsweringRun>();
    assert!(matches!(answering, Some(AnsweringRun(it)) if *it == run(1)));
    let headers = response.headers();
    assert!(!headers.contains_key(header::CONNECTION));
    assert_eq!(headers[header::ETAG], "\"a\"");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "done");

    let mut sent = lock(&nodes.sent).pop().unwrap();
    assert_eq!(sent.run, run(1));
    assert_eq!(sent.target, "POST /proxied/room/api/op?a=1");
    assert_eq!(sent.body, b"{}");
    let forwarded = ForwardedRequest::take(&mut sent.headers).unwrap();
    let expected = ForwardedRequest {
        database: "control".to_owned(),
        ..client(1)
    };
    assert_eq!(forwarded, expected);
    let left: Vec<&str> = sent
        .headers
        .keys()
        .map(header::HeaderName::as_str)
        .collect();
    assert_eq!(left, ["cookie"]);
}

#[tokio::test]
async fn a_request_is_sent_again_only_where_that_does_nothing_twice() {
    use FakeAnswer::{Hangs, Lost, NotSent, Refused};
    let (capacity, interrupted) = (ProblemCode::CapacityReached, ProblemCode::Interrupted);
    let write = || request(Method::POST, "/room/api/op", "{}");
    let delete = || request(Method::DELETE, "/api/v1/projects/p", "");
    let read = || request(Method::GET, "/room/api/schema", "");
    let login = || request(Method::GET, "/room/auth/login", "");
    for (answers, asked, problem) in [
        (vec![NotSent, given()], write(), None),
        (vec![NotSent, given()], read(), None),
        (vec![NotSent, NotSent], write(), Some(capacity)),
        (vec![NotSent, Lost], write(), Some(interrupted)),
        (vec![Refused, given()], delete(), None),
        // The body was taken by the first run.
        (vec![Refused], write(), Some(capacity)),
        (vec![Lost], write(), Some(interrupted)),
        (vec![Lost], delete(), Some(interrupted)),
        (vec![Lost], login(), Some(interrupted)),
        (vec![Lost, given()], read(), None),
        (vec![Lost, Lost], read(), Some(capacity)),
        (vec![Hangs], write(), Some(interrupted)),
        (vec![Hangs], read(), Some(capacity)),
    ] {
        let told = format!("{answers:?} {asked:?}");
        let (nodes, passed) = passed(answers);
        let response = passed.send(asked).await;
        assert_eq!(code_of(&response), problem, "{told}");
        if problem.is_some() {
            assert_eq!(response.headers()[header::RETRY_AFTER], "1", "{told}");
        } else {
            assert_eq!(response.status(), StatusCode::OK, "{told}");
            let last = lock(&nodes.sent).pop().unwrap();
            assert_eq!(last.run, run(2), "{told}");
        }
        assert!(lock(&nodes.answers).is_empty(), "{told}");
    }
}

#[tokio::test]
async fn without_a_new_owner_nothing_is_sent_again() {
    for location in [DatabaseLocation::Unknown, DatabaseLocation::Here] {
        let (nodes, passed) = passed([FakeAnswer::NotSent]);
        *lock(&nodes.location) = Some(location);
        let response = passed.send(request(Method::POST, "/mcp", "{}")).await;
        assert_eq!(code_of(&response), Some(ProblemCode::CapacityReached));
    }
}

#[tokio::test]
async fn a_client_that_sends_slowly_is_waited_for() {
    let (nodes, passed) = passed([given()]);
    let late = stream::once(async {
        tokio::time::sleep(2 * ANSWER_TIMEOUT).await;
        Ok::<_, io::Error>("late")
    });
    let asked = Request::post("/room/api/op");
    let asked = asked.body(Body::from_stream(late)).unwrap();
    assert_eq!(passed.send(asked).await.status(), StatusCode::OK);
    assert_eq!(lock(&nodes.sent)[0].body, b"late");
}

#[tokio::test]
async fn a_client_has_so_many_requests_at_other_nodes_until_their_answers_are_sent() {
    let nodes = FakeNodes {
        answers: Mutex::new([given(), given(), given()].into()),
        ..FakeNodes::default()
    };
    let proxy = Arc::new(proxy_over(&Arc::new(nodes), 2));
    let pass = async || {
        let asked = request(Method::POST, "/mcp", "{}");
        passed_by(&proxy).send(asked).await
    };
    let held = [pass().await, pass().await];
    assert!(held.iter().all(|answer| code_of(answer).is_none()));
    let refused = pass().await;
    assert_eq!(code_of(&refused), Some(ProblemCode::CapacityReached));
    drop(held);
    assert_eq!(code_of(&pass().await), None);
}

#[tokio::test]
async fn a_request_takes_two_hops_at_most() {
    let nodes = Arc::new(FakeNodes::default());
    let proxy = proxy_over(&nodes, 8);
    let sources = [
        RequestSource::Client([192, 0, 2, 7].into()),
        RequestSource::Node(client(1)),
        RequestSource::Node(client(2)),
    ];
    for (location, expected) in [
        (DatabaseLocation::At(run(2)), ["node", "node", "refused"]),
        (DatabaseLocation::Here, ["here"; 3]),
        (DatabaseLocation::Unknown, ["refused"; 3]),
    ] {
        *lock(&nodes.location) = Some(location);
        for (source, expected) in sources.iter().zip(expected) {
            let found = match proxy.look_for(DatabaseName::Control, source).await {
                Destination::Here => "here",
                Destination::Node(DatabaseName::Control, to) if to == run(2) => "node",
                Destination::Node(..) => "another node",
                Destination::Refused(_) => "refused",
            };
            assert_eq!(found, expected, "{location:?} {source:?}");
        }
    }
}

#[tokio::test]
async fn a_database_whose_place_is_known_is_not_looked_for() {
    let nodes = Arc::new(FakeNodes::default());
    let proxy = proxy_over(&nodes, 8);
    *lock(&nodes.location) = Some(DatabaseLocation::Unknown);
    let source = RequestSource::Client([192, 0, 2, 7].into());
    for known in [DatabaseLocation::Here, DatabaseLocation::At(run(3))] {
        *lock(&nodes.known_location) = Some(known);
        let found = match proxy.look_for(DatabaseName::Control, &source).await {
            Destination::Here => DatabaseLocation::Here,
            Destination::Node(_, run) => DatabaseLocation::At(run),
            Destination::Refused(_) => DatabaseLocation::Unknown,
        };
        assert_eq!(found, known);
    }
}

/// Returns a server that answers by a function, and a connection to it.
fn serve<A>(
    answer: impl Fn(http::Request<Incoming>) -> A + Send + 'static,
) -> (impl Future<Output = ()> + Send, DuplexStream)
where
    A: Future<Output = Response> + Send + 'static,
{
    let (near, far) = duplex(1 << 12);
    let serving = async move {
        let service = service_fn(move |request| {
            let answering = answer(request);
            async move { Ok::<_, Infallible>(answering.await) }
        });
        let connection = Builder::new().serve_connection(TokioIo::new(far), service);
        let _ = connection.with_upgrades().await;
    };
    (serving, near)
}

/// Accepts a WebSocket, greets, and goes after the first byte.
async fn greet_and_go(mut request: http::Request<Incoming>) -> Response {
    assert_eq!(request.headers()[header::CONNECTION], "upgrade");
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut socket = TokioIo::new(upgrade.await.unwrap());
        socket.write_all(&[0x81, 2, b'h', b'i']).await.unwrap();
        socket.read_exact(&mut [0]).await.unwrap();
    });
    let answer = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::UPGRADE, "websocket")
        .header(header::CONNECTION, "upgrade");
    answer.body(Body::empty()).unwrap()
}

#[tokio::test]
async fn a_websocket_passes_through_and_is_closed_with_1012_when_its_node_goes() {
    let (serving, near) = serve(greet_and_go);
    tokio::spawn(serving);
    let (node, connection) = handshake::<_, PeerBody>(TokioIo::new(near)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    // Its sockets end with it.
    let (_, proxy) = proxy([FakeAnswer::Connection(node)]);
    let passed = Mutex::new(Some(passed_by(&proxy)));
    let (serving, near) = serve(move |request| {
        let passed = lock(&passed).take().unwrap();
        passed.send(request.map(Body::new))
    });
    tokio::spawn(serving);
    let (mut front, connection) = handshake::<_, Body>(TokioIo::new(near)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let asked = Request::get("/room/ws?room=a")
        .header(header::HOST, "share.example.com")
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket");
    let asked = asked.body(Body::empty()).unwrap();
    let answer = front.send_request(asked).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(answer.headers()[header::UPGRADE], "websocket");
    let mut socket = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
    let mut greeting = [0; 4];
    socket.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting[2..], b"hi");
    socket.write_all(b"x").await.unwrap();
    let mut close = [0; 4];
    socket.read_exact(&mut close).await.unwrap();
    assert_eq!(close[0], 0x88);
    assert_eq!(close[2..], 1012_u16.to_be_bytes());
}
