//! Presence in large rooms: told in pieces, right in the end, and never one half of a pair.

use std::collections::BTreeSet;

use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::Value;
use svc_tests::{Socket, SocketEvent, TestServer, wait_until};
use tokio::task::JoinSet;

use super::{join, start_fixture_with};
use crate::owner::text;
use crate::project_fixture::ProjectFixture;

/// Members of the large room.
const CROWD: usize = 80;

/// A fixture for crowds of whom nobody listens all the time, so that nobody answers pings.
async fn start_crowd_fixture() -> ProjectFixture {
    let limits = |limits: &mut svc::config::Limits| {
        limits.sockets_per_backend = 10_000;
        limits.ping_seconds = 10_000;
        limits.pong_seconds = 10_000;
    };
    start_fixture_with(TestServer::builder().limits(limits)).await
}

async fn start_crowd() -> (ProjectFixture, Vec<(Socket, String)>) {
    let fixture = start_crowd_fixture().await;
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        // Each is told at once, because the last telling was a while ago.
        fixture.server.advance(1);
        crowd.push(join(&fixture, "hall").await);
    }
    fixture.server.advance(1);
    (fixture, crowd)
}

/// Opens a socket without reading its welcome.
async fn open_unwelcomed_socket(fixture: &ProjectFixture) -> Socket {
    fixture
        .server
        .socket("/room/ws?room=hall", &[])
        .await
        .unwrap()
}

async fn wait_for_socket_count(fixture: &ProjectFixture, sockets: usize) {
    let seen = async || (fixture.detail().await["realtime"]["sockets"] == sockets).then_some(());
    wait_until("the sockets to be counted", seen).await;
}

#[tokio::test]
async fn many_who_reload_at_once_are_told_in_one_piece() {
    let (fixture, crowd) = start_crowd().await;
    // One stays to watch; it has heard of everybody who came so far.
    let mut crowd = crowd.into_iter();
    let (mut watcher, _) = crowd.next().unwrap();
    watcher.drain_envelopes().await;
    // The first change after a quiet while is told at once; all others wait, because the clock stands still.
    let mut first = open_unwelcomed_socket(&fixture).await;
    assert_eq!(first.envelope().await["type"], "svc:welcome");
    let left: BTreeSet<String> = crowd
        .map(|(socket, id)| {
            drop(socket);
            id
        })
        .collect();
    wait_for_socket_count(&fixture, 2).await;
    let mut back = Vec::new();
    for _ in 0..CROWD {
        back.push(open_unwelcomed_socket(&fixture).await);
    }
    wait_for_socket_count(&fixture, 2 + CROWD).await;
    let told = watcher.drain_envelopes().await;
    assert_eq!(
        told.len(),
        2,
        "one join and one presence, not {}",
        told.len()
    );
    fixture.server.advance(1);
    // Each member that reloads gets one welcome with all members, and no events of the others.
    let mut frames = 0;
    let mut ids = BTreeSet::new();
    let mut lists = Vec::new();
    for socket in &mut back {
        let mut welcome = socket.envelope().await;
        assert_eq!(welcome["type"], "svc:welcome");
        assert_eq!(welcome["data"]["members"], 2 + CROWD);
        ids.insert(text(&welcome["data"]["client_id"]));
        lists.push(welcome["data"]["list"].take());
        let rest = socket.drain_envelopes().await;
        assert_eq!(rest.len(), 1, "{rest:?}");
        assert_eq!(rest[0]["data"]["members"], 2 + CROWD);
        frames += 2;
    }
    assert!(
        frames < CROWD * 4,
        "{frames} frames instead of {}",
        2 * CROWD * CROWD
    );
    // The member who stayed gets each event, and then the count.
    let told = watcher.drain_envelopes().await;
    let of = |kind: &str| -> BTreeSet<String> {
        let events = told.iter().filter(|event| event["type"] == kind);
        events
            .map(|event| text(&event["data"]["client_id"]))
            .collect()
    };
    assert_eq!(of("svc:leave"), left);
    assert_eq!(of("svc:join"), ids);
    // All are welcomed with one list: those who stayed, then all who have come.
    let joined = told.iter().filter(|event| event["type"] == "svc:join");
    let joined: Vec<&Value> = joined.map(|event| &event["data"]).collect();
    let list = lists[0].as_array().unwrap();
    assert!(lists.iter().all(|other| *other == lists[0]));
    assert_eq!(list.iter().skip(2).collect::<Vec<_>>(), joined);
    assert_eq!(told.len(), left.len() + ids.len() + 1);
    assert_eq!(told.last().unwrap()["data"]["members"], 2 + CROWD);
}

#[tokio::test]
async fn who_comes_and_goes_between_two_tellings_is_never_heard_of() {
    let (fixture, mut crowd) = start_crowd().await;
    let mut watcher = crowd.pop().unwrap().0;
    watcher.drain_envelopes().await;
    let _first = open_unwelcomed_socket(&fixture).await;
    wait_for_socket_count(&fixture, CROWD + 1).await;
    let brief = open_unwelcomed_socket(&fixture).await;
    wait_for_socket_count(&fixture, CROWD + 2).await;
    drop(brief);
    wait_for_socket_count(&fixture, CROWD + 1).await;
    fixture.server.advance(1);
    let told = watcher.drain_envelopes().await;
    let kinds: Vec<&Value> = told.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["svc:join", "svc:presence"], "only the first");
    assert_eq!(told[1]["data"]["members"], CROWD + 1);
}

#[tokio::test]
async fn who_speaks_before_it_is_told_of_is_heard_after() {
    let (fixture, mut crowd) = start_crowd().await;
    let mut watcher = crowd.pop().unwrap().0;
    let _first = open_unwelcomed_socket(&fixture).await;
    let mut eager = open_unwelcomed_socket(&fixture).await;
    eager.send_envelope("eager", serde_json::json!(1)).await;
    eager.send_envelope("eager", serde_json::json!(2)).await;
    wait_for_socket_count(&fixture, CROWD + 2).await;
    fixture.server.advance(1);
    let id = text(&eager.envelope().await["data"]["client_id"]);
    let mut seen = Vec::new();
    while seen.len() < 3 {
        if let SocketEvent::Text(event) = watcher.next().await
            && (event["data"]["client_id"] == *id || event["sender"] == *id)
        {
            seen.push(text(&event["type"]));
        }
    }
    assert_eq!(seen, ["svc:join", "eager", "eager"]);
}

#[tokio::test]
async fn messages_do_not_wait_for_presence() {
    let (fixture, mut crowd) = start_crowd().await;
    let mut watcher = crowd.pop().unwrap().0;
    let mut speaker = crowd.pop().unwrap().0;
    let _first = open_unwelcomed_socket(&fixture).await;
    let _second = open_unwelcomed_socket(&fixture).await;
    speaker.send_envelope("now", serde_json::json!(1)).await;
    watcher.wait_for_envelope("now").await;
}

/// Members that reload at once.
const THOUSAND: usize = 1_000;

/// Opens so many sockets without reading their welcome.
async fn open_unwelcomed_sockets(fixture: &ProjectFixture, many: usize) -> Vec<Socket> {
    let address = fixture.server.address();
    let mut coming = JoinSet::new();
    for _ in 0..many {
        coming.spawn(async move {
            let opened = Socket::open(address, "/room/ws?room=hall", &[]).await;
            opened.unwrap()
        });
    }
    coming.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_who_reload_cost_each_of_them_two_frames() {
    // Both ends of each socket are files of this process.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).unwrap();
    let fixture = start_crowd_fixture().await;
    let (mut watcher, _) = join(&fixture, "hall").await;
    let crowd = open_unwelcomed_sockets(&fixture, THOUSAND).await;
    wait_for_socket_count(&fixture, 1 + THOUSAND).await;
    fixture.server.advance(1);
    watcher.drain_envelopes().await;
    // All members leave and come back within a second of the server's clock.
    drop(crowd);
    wait_for_socket_count(&fixture, 1).await;
    let back = open_unwelcomed_sockets(&fixture, THOUSAND).await;
    wait_for_socket_count(&fixture, 1 + THOUSAND).await;
    fixture.server.advance(1);
    let mut hearing = JoinSet::new();
    for mut socket in back {
        hearing.spawn(async move {
            let first = socket.envelope().await;
            (first, socket.drain_envelopes().await)
        });
    }
    for (welcome, rest) in hearing.join_all().await {
        assert_eq!(welcome["type"], "svc:welcome");
        assert_eq!(welcome["data"]["members"], 1 + THOUSAND);
        let list = welcome["data"]["list"].as_array().unwrap();
        assert_eq!(list.len(), 1 + THOUSAND);
        assert_eq!(rest.len(), 1, "{rest:?}");
        assert_eq!(rest[0]["data"]["members"], 1 + THOUSAND);
    }
    // The member who stayed gets one event for each member, and the count.
    let told = watcher.drain_envelopes().await;
    let count = |kind: &str| told.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(
        (count("svc:leave"), count("svc:join")),
        (THOUSAND, THOUSAND)
    );
    assert_eq!(told.len(), 2 * THOUSAND + 1);
    assert_eq!(told.last().unwrap()["data"]["members"], 1 + THOUSAND);
}
