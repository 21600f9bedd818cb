//! Requests between runs over loopback, and callers that are none.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, UPGRADE};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use svc_base::clock::{Clock, Timestamp};
use svc_ledger::{AppendQueue, Node, NodeState, RunId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use super::super::gate::AnswerGate;
use super::super::keys::RunKeys;
use super::super::run::SeenNode;
use super::super::tests::live_state;
use super::{KnownRuns, PeerBody, PeerError, PeerHandlerFn, PeerListener, Peers, full_body};

const SUSPECT_AFTER: Duration = Duration::from_secs(5);
const STALE_PAGES: Duration = Duration::from_secs(600);

/// A run with its listener, whose beats the test makes.
struct TestRun {
    state: NodeState,
    peers: Arc<Peers>,
    clock: Clock,
    gate: Arc<AnswerGate>,
    nodes: watch::Sender<Vec<SeenNode>>,
}

impl TestRun {
    /// Starts a run that answers `/echo`.
    async fn start(number: u128) -> Self {
        Self::start_with(number, RunKeys::generate().unwrap()).await
    }

    async fn start_with(number: u128, keys: RunKeys) -> Self {
        let clock = Clock::manual(Timestamp(0));
        let run = RunId::from(Uuid::from_u128(number));
        let queue = Arc::new(AppendQueue::new(run, clock.clone()));
        let gate = AnswerGate::new(run, queue, clock.clone(), SUSPECT_AFTER, STALE_PAGES);
        let gate = Arc::new(gate);
        let nodes = watch::Sender::new(Vec::new());
        let known = KnownRuns::new(nodes.subscribe(), Arc::clone(&gate));
        let listener = PeerListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.await.unwrap();
        assert_ne!(listener.address().port(), 0);
        let node = Node {
            run,
            name: format!("n{number}"),
            suspect_after: SUSPECT_AFTER,
            peer_url: format!("https://{}", listener.address()),
            peer_key: keys.public_key().to_vec(),
            version: String::new(),
            schema: 1,
        };
        let peers = Arc::new(Peers::new(keys, known, clock.clone()));
        peers.serve("echo", echo());
        listener.start(&peers).unwrap();
        Self {
            state: live_state(node),
            peers,
            clock,
            gate,
            nodes,
        }
    }

    fn id(&self) -> RunId {
        self.state.node.run
    }

    fn address(&self) -> SocketAddr {
        let url = &self.state.node.peer_url;
        url.strip_prefix("https://").unwrap().parse().unwrap()
    }

    /// Has a beat of this run find others so.
    fn find(&self, states: &[NodeState]) {
        let since = self.clock.elapsed();
        self.gate.beat_answered(since, states);
        let seen = states.iter().cloned();
        let seen = seen.map(|state| SeenNode { state, since });
        self.nodes.send_replace(seen.collect());
    }

    /// Has beats find a run that stands still, until it is suspected.
    fn suspect(&self, other: &NodeState) {
        for _ in 0..=SUSPECT_AFTER.as_secs() {
            self.clock.advance(Duration::from_secs(1));
            self.find(std::slice::from_ref(other));
        }
    }

    async fn send(
        &self,
        to: &Self,
        path: &str,
        body: &'static str,
    ) -> Result<Response<hyper::body::Incoming>, PeerError> {
        let request = Request::post(path).body(full_body(body)).unwrap();
        self.peers.client().send(to.id(), request).await
    }

    /// Asks for an echo.
    async fn echo(&self, to: &Self, body: &'static str) -> Result<String, PeerError> {
        let answer = self.send(to, "/echo/below?x=1", body).await?;
        assert_eq!(answer.status(), StatusCode::OK);
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        Ok(String::from_utf8(text.to_vec()).unwrap())
    }
}

/// Handler that answers with the run that asks, the path, and the body.
fn echo() -> PeerHandlerFn {
    Arc::new(|from, request| {
        Box::pin(async move {
            let path = request.uri().to_string();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let body = String::from_utf8_lossy(&body).into_owned();
            Response::new(full_body(format!("{from} {path} {body}")))
        })
    })
}

/// Two runs that know each other.
async fn pair() -> (TestRun, TestRun) {
    let (a, b) = (TestRun::start(1).await, TestRun::start(2).await);
    for run in [&a, &b] {
        run.find(&[a.state.clone(), b.state.clone()]);
    }
    (a, b)
}

/// Whether nothing of a request was sent; its body is whole then.
async fn is_unsent(sent: Result<String, PeerError>, body: &str) -> bool {
    let Err(PeerError::NotSent { request, .. }) = sent else {
        return false;
    };
    let unsent = request.into_body().collect().await.unwrap().to_bytes();
    unsent == body.as_bytes()
}

#[tokio::test]
async fn runs_that_live_ask_each_other() {
    let (a, b) = pair().await;
    for (from, to) in [(&a, &b), (&b, &a), (&a, &b)] {
        let answer = from.echo(to, "hello").await.unwrap();
        assert_eq!(answer, format!("{} /echo/below?x=1 hello", from.id()));
    }
    let elsewhere = a.send(&b, "/others", "").await;
    assert!(matches!(elsewhere, Err(PeerError::Refused)));
    b.peers.withdraw("echo");
    let withdrawn = a.send(&b, "/echo", "").await;
    assert!(matches!(withdrawn, Err(PeerError::Refused)));
}

#[tokio::test]
async fn a_key_that_nobody_knows_is_refused_before_anything_is_sent() {
    let (a, b) = pair().await;
    b.find(std::slice::from_ref(&b.state));
    assert!(is_unsent(a.echo(&b, "secret").await, "secret").await);
    b.find(&[a.state.clone(), b.state.clone()]);
    assert!(a.echo(&b, "again").await.is_ok());
}

#[tokio::test]
async fn a_run_that_is_dead_is_answered_no_more() {
    let (a, b) = pair().await;
    a.echo(&b, "alive").await.unwrap();
    let dead = NodeState {
        live: false,
        ..a.state.clone()
    };
    b.find(&[dead, b.state.clone()]);
    // Its connection is cut, or answered by a refusal; a new one is not made.
    assert!(a.echo(&b, "kept").await.is_err());
    assert!(is_unsent(a.echo(&b, "new").await, "new").await);
    // It is not called, either.
    let late = b.echo(&a, "late").await;
    assert!(is_unsent(late, "late").await);
}

#[tokio::test]
async fn a_run_that_shows_another_key_than_its_own_gets_nothing() {
    let (a, b) = pair().await;
    let c = TestRun::start(3).await;
    // The address is of one run, the key of another.
    let mut mixed = b.state.clone();
    mixed.node.peer_key = c.state.node.peer_key;
    a.find(&[a.state.clone(), mixed]);
    assert!(is_unsent(a.echo(&b, "secret").await, "secret").await);
}

#[tokio::test]
async fn a_certificate_without_its_key_is_worth_nothing() {
    let (keys, a) = (RunKeys::generate().unwrap(), TestRun::start(1).await);
    let impostor = TestRun::start_with(2, keys.impostor().unwrap()).await;
    assert_eq!(impostor.state.node.peer_key, keys.public_key());
    for run in [&a, &impostor] {
        run.find(&[a.state.clone(), impostor.state.clone()]);
    }
    assert!(is_unsent(a.echo(&impostor, "to it").await, "to it").await);
    assert!(is_unsent(impostor.echo(&a, "of it").await, "of it").await);
}

#[tokio::test]
async fn strangers_get_no_answer_and_keep_nobody_out() {
    let (a, b) = pair().await;
    let mut plain = TcpStream::connect(b.address()).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut said = Vec::new();
    // The connection may be reset.
    let _ = plain.read_to_end(&mut said).await;
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
    // Silent callers of one address; the last ones are not even waited for.
    let mut silent = Vec::new();
    for _ in 0..100 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        silent.push(socket.connect(b.address()).await.unwrap());
    }
    assert!(a.echo(&b, "hello").await.is_ok());
    for mut silent in silent {
        assert_eq!(silent.read(&mut [0]).await.unwrap_or(0), 0);
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_no_request() {
    let (a, b) = pair().await;
    let request = Request::post("/echo").header("x-large", "x".repeat(300 << 10));
    let request = request.body(full_body("")).unwrap();
    match a.peers.client().send(b.id(), request).await {
        Ok(answer) => assert_eq!(answer.status(), 431),
        // The connection ends before all of the head is sent.
        Err(error) => assert!(matches!(error, PeerError::Lost { .. }), "{error}"),
    }
    assert!(a.echo(&b, "small").await.is_ok());
}

#[tokio::test]
async fn nobody_waits_longer_for_a_run_than_it_is_trusted() {
    let (a, b) = pair().await;
    let (begun, mut begins) = mpsc::unbounded_channel();
    b.peers.serve(
        "never",
        Arc::new(move |_, _| {
            begun.send(()).unwrap();
            Box::pin(std::future::pending::<Response<PeerBody>>())
        }),
    );
    let suspected = async {
        begins.recv().await.unwrap();
        a.suspect(&b.state);
    };
    let (answer, ()) = tokio::join!(a.send(&b, "/never", ""), suspected);
    assert!(matches!(answer, Err(PeerError::Lost { .. })), "{answer:?}");
    assert!(is_unsent(a.echo(&b, "later").await, "later").await);
}

#[tokio::test]
async fn a_connection_becomes_a_tunnel() {
    let (a, b) = pair().await;
    b.peers.serve(
        "tunnel",
        Arc::new(|_, mut request| {
            let upgrading = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let mut tunnel = TokioIo::new(upgrading.await.unwrap());
                let mut word = [0; 4];
                tunnel.read_exact(&mut word).await.unwrap();
                word.reverse();
                tunnel.write_all(&word).await.unwrap();
            });
            let answer = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
            let answer = answer.header(CONNECTION, "upgrade").header(UPGRADE, "word");
            Box::pin(std::future::ready(answer.body(full_body("")).unwrap()))
        }),
    );
    let request = Request::get("/tunnel").header(CONNECTION, "upgrade");
    let request = request.header(UPGRADE, "word").body(full_body("")).unwrap();
    let answer = a.peers.client().send(b.id(), request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
    let tunnel = hyper::upgrade::on(answer).await.unwrap();
    let mut tunnel = TokioIo::new(tunnel);
    tunnel.write_all(b"word").await.unwrap();
    let mut word = [0; 4];
    tunnel.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"drow");
    // Other requests go on beside it.
    assert!(a.echo(&b, "hello").await.is_ok());
}
