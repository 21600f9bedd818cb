//! A node that stands by, and what operators ask of it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use svc_tests::cluster::{Cluster, ClusterNode};
use svc_tests::{ReadAnswer, exchange, wait_until};

use crate::svc;

/// Clients that ask a standby at once.
const PROBES: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_answers_probes_and_operators() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    let standby = cluster.start("n2", true).await;
    let process = &standby.process;
    assert_eq!(process.get("/healthz").await.expect(200).text(), "ok\n");
    let probe = process.get("/readyz").await.expect(503);
    assert_eq!(probe.text(), "standby\n");
    assert_eq!(probe.header("retry-after"), Some("1"));
    assert_eq!(probe.header("connection"), Some("close"));
    for (method, path) in [
        (Method::HEAD, "/readyz"),
        (Method::HEAD, "/room"),
        (Method::OPTIONS, "/room"),
        (Method::POST, "/readyz"),
        (Method::DELETE, "/api/v1/projects"),
    ] {
        let refused = process.client().request(method, process.url(path));
        let refused = refused.answer().await.expect(503);
        assert_eq!(refused.header("retry-after"), Some("1"), "{path}");
    }
    for path in ["/room", "/", "/api/v1/projects"] {
        let refused = process.get(path).await;
        refused.problem(503, "capacity_reached");
        assert_eq!(refused.header("retry-after"), Some("1"), "{path}");
    }
    standby.add((1, 1)).await.problem(503, "capacity_reached");
    let listed = cluster.run(&standby.data, &["namespace", "list"]).await;
    assert!(listed.success, "{listed:?}");

    for at in [&owner, &standby] {
        let nodes = cluster.nodes(at).await;
        let live = nodes.iter().filter(|node| node["live"] == true);
        let shown: Vec<_> = live
            .map(|node| {
                let is = |what: &str| node[what] == true;
                (node["name"].as_str().unwrap(), is("control"), is("serves"))
            })
            .collect();
        let expected = [("n1", true, true), ("n2", false, false)];
        assert_eq!(shown, expected, "{nodes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_has_a_standby_take_over() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    owner.add((1, 1)).await.expect(200);
    let standby = cluster.start("n2", true).await;
    let promoted = cluster.run(&standby.data, &["promote", "--json"]).await;
    assert_eq!(promoted.json()["had_control"], false);
    standby.add((1, 2)).await.expect(200);
    let (ended, _) = owner.process.wait_for_exit().await;
    assert_eq!(ended.code(), Some(3));
    let entries = cluster.entries(&standby).await;
    assert!(entries.keys().eq(&[(1, 1), (1, 2)]), "{entries:?}");
    let again = cluster.run(&standby.data, &["promote", "--json"]).await;
    assert_eq!(again.json()["had_control"], true);
}

/// Asks a node whether it serves until it does, each time on a connection of its own. None may break before it is answered.
fn probe_until_ready(address: SocketAddr) {
    let request = format!("GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    loop {
        let answer = exchange(address, request.as_bytes());
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 "), "{answer:?}");
        if answer.starts_with("HTTP/1.1 200 ") {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_takeover_breaks_no_connection_to_the_standby() {
    let (cluster, _owner) = Cluster::with_room(svc()).await;
    let standby = cluster.start("n2", true).await;
    let address = standby.process.address();
    let probes =
        [(); PROBES].map(|()| tokio::task::spawn_blocking(move || probe_until_ready(address)));
    let promoted = cluster.promote(&standby).await;
    assert!(promoted.success, "{promoted:?}");
    for probe in probes {
        probe.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_and_a_one_time_page_count_once_over_a_takeover() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    let standby = cluster.start("n2", true).await;
    let once = json!({ "content": "# Once", "name": "once", "one_time": true });
    let publish = async |node: &ClusterNode| -> Value {
        let url = node.process.url("/api/v1/deploy");
        let request = node.process.client().post(url);
        let request = request.header("idempotency-key", "once").json(&once);
        request.answer().await.expect(201).json()
    };
    let first = publish(&owner).await;
    let promoted = cluster.promote(&standby).await;
    assert!(promoted.success, "{promoted:?}");
    assert_eq!(publish(&standby).await, first);
    let open = async || {
        let url = standby.process.url("/once");
        standby.process.client().post(url).answer().await.status
    };
    assert_eq!([open().await, open().await], [200, 404]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_stopped_hands_over() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    owner.add((1, 1)).await.expect(200);
    let standby = cluster.start("n2", true).await;
    let other = cluster.start("n3", true).await;
    // A standby that is stopped leaves, too.
    other.process.signal(Signal::TERM);
    let (ended, said) = other.process.wait_for_exit().await;
    assert!(ended.success() && said.starts_with("standby "), "{said}");
    owner.process.signal(Signal::TERM);
    let (ended, _) = owner.process.wait_for_exit().await;
    assert_eq!(ended.code(), Some(0));
    standby.wait_until_ready().await;
    standby.add((1, 2)).await.expect(200);
    assert_eq!(cluster.entries(&standby).await.len(), 2);
    // The same directory again: nothing of its databases is believed.
    standby.process.signal(Signal::TERM);
    let (_, said) = standby.process.wait_for_exit().await;
    let lines: Vec<_> = said.lines().collect();
    assert!(
        lines[0].starts_with("standby ") && lines[1].starts_with("ready "),
        "{said}"
    );
}

/// Begins requests to a node that ask whether it serves, each on a connection of its own.
fn begin_probes(address: SocketAddr) -> Vec<TcpStream> {
    let begin = |_| {
        let mut connection = TcpStream::connect(address).unwrap();
        write!(connection, "GET /readyz HTTP/1.1\r\nhost: {address}\r\n").unwrap();
        connection
    };
    (0..PROBES).map(begin).collect()
}

/// Ends a request that was begun, and returns its answer: nothing if the node had not read its beginning, and has closed the connection.
fn end_probe(mut connection: TcpStream) -> String {
    let mut answer = String::new();
    let ended = connection.write_all(b"\r\n");
    match ended.and_then(|()| connection.read_to_string(&mut answer)) {
        Ok(_) => answer,
        Err(_) => String::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_stopped_says_so_while_requests_finish() {
    let cluster = Cluster::found(svc()).await;
    let node = cluster.start("n1", false).await;
    node.wait_until_ready().await;
    let address = node.process.address();
    let begun = tokio::task::spawn_blocking(move || begin_probes(address));
    let begun = begun.await.unwrap();
    // Connections are taken in their order.
    node.process.get("/readyz").await.expect(200);
    node.process.signal(Signal::TERM);
    wait_until("a node that takes no connection", async || {
        TcpStream::connect(address).is_err().then_some(())
    })
    .await;
    let end_all = move || begun.into_iter().map(end_probe).collect::<Vec<_>>();
    let mut answers = tokio::task::spawn_blocking(end_all).await.unwrap();
    answers.retain(|answer| !answer.is_empty());
    assert!(!answers.is_empty());
    for answer in answers {
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
        assert!(answer.ends_with("leaving\n"), "{answer}");
    }
    let (ended, _) = node.process.wait_for_exit().await;
    assert_eq!(ended.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_join_says_why() {
    let unfounded = Cluster::unfounded(svc()).await;
    // The bucket may be made by the founding.
    for _ in 0..2 {
        let refused = unfounded.try_start("n1", false).await.unwrap_err();
        assert!(refused.contains("svc cluster found"), "{refused}");
        fs::remove_dir(unfounded.bucket()).unwrap_or_default();
    }

    let (cluster, owner) = Cluster::with_room(svc()).await;
    let refused = cluster.try_start("n1", true).await.unwrap_err();
    assert!(refused.contains("another node named \"n1\""), "{refused}");
    let url = owner.process.url("/room");
    let page = owner.process.client().get(url).answer().await;
    page.expect(200);
}
