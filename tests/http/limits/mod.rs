//! Limits: how often, how much, and how many; who counts as one client.

mod caps;
mod connections;
mod sizes;

use std::io::{Read, Write};

use http::Method;
use serde_json::json;
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::owner::{Owner, text};

#[track_caller]
fn assert_rate_limited(answer: &Answer) {
    answer.problem(429, "rate_limited");
    assert_eq!(answer.header("retry-after"), Some("60"));
}

/// A route, its burst and its refill a minute, and the status of a request that is let through.
const LIMITED: [(&str, usize, u64, u16); 4] = [
    ("/api/v1/deploy", 15, 30, 400),
    ("/_svc/preview", 20, 60, 400),
    ("/api/v1/auth/nothing", 10, 10, 404),
    ("/api/v1/reports", 5, 10, 400),
];

#[tokio::test]
async fn a_burst_then_a_continuous_refill() {
    let server = TestServer::builder().service_limits().start().await;
    for (path, burst, per_minute, status) in LIMITED {
        for left in (0..burst).rev() {
            let answer = server.post(path).answer().await.expect(status);
            assert_rate_headers(&answer, path, per_minute, left);
        }
        let answer = server.post(path).answer().await;
        assert_rate_limited(&answer);
        assert_rate_headers(&answer, path, per_minute, 0);
        server.advance(60 / per_minute);
        server.post(path).answer().await.expect(status);
        assert_rate_limited(&server.post(path).answer().await);
        server.advance(60);
        let refilled = burst.min(usize::try_from(per_minute).unwrap());
        for _ in 0..refilled {
            server.post(path).answer().await.expect(status);
        }
        assert_rate_limited(&server.post(path).answer().await);
    }
}

#[track_caller]
fn assert_rate_headers(answer: &Answer, path: &str, per_minute: u64, left: usize) {
    let policy = answer.header("ratelimit-policy").unwrap();
    assert!(policy.starts_with('"'), "{policy}");
    assert!(
        policy.contains(&format!(";q={per_minute}")),
        "{path}: {policy}"
    );
    assert!(policy.contains(";w=60"), "{policy}");
    let state = answer.header("ratelimit").unwrap();
    assert!(state.contains(&format!(";r={left}")), "{path}: {state}");
    let name = |value: &str| value.split(';').next().unwrap().to_owned();
    assert_eq!(name(policy), name(state), "{path}");
}

#[tokio::test]
async fn buckets_of_different_routes_are_different() {
    let server = TestServer::builder().service_limits().start().await;
    for _ in 0..5 {
        server.post("/api/v1/reports").answer().await.expect(400);
    }
    assert_rate_limited(&server.post("/api/v1/reports").answer().await);
    let body = json!({ "content": "x", "name": "page" });
    server.deploy(&body).await;
    // One page's attempts are another's too: it is the client who is counted.
    for _ in 0..10 {
        let path = "/api/v1/auth/page";
        server.post(path).answer().await.expect(404);
    }
    assert_rate_limited(&server.post("/api/v1/auth/other").answer().await);
}

#[tokio::test]
async fn reading_is_not_limited() {
    let server = TestServer::builder().service_limits().start().await;
    server
        .publish_slug(&json!({ "content": "x", "name": "page" }))
        .await;
    for path in [
        "/page",
        "/page/raw",
        "/nothing",
        "/api/v1/openapi.json",
        "/",
    ] {
        for _ in 0..150 {
            let answer = server.get(path).answer().await;
            assert_ne!(answer.status, 429, "{path}");
            assert_eq!(answer.header("ratelimit"), None, "{path}");
        }
    }
}

#[tokio::test]
async fn other_methods_and_preflights_spend_nothing() {
    let server = TestServer::builder()
        .limits(|l| l.deploy_burst = 1)
        .start()
        .await;
    for method in [Method::GET, Method::OPTIONS, Method::PUT] {
        for _ in 0..3 {
            server
                .request(method.clone(), "/api/v1/deploy")
                .answer()
                .await;
        }
    }
    server.deploy(&json!({ "content": "x" })).await;
    assert_rate_limited(
        &server
            .json("/api/v1/deploy", &json!({ "content": "x" }))
            .answer()
            .await,
    );
}

#[tokio::test]
async fn a_client_is_told_apart_by_what_trusted_proxies_say() {
    let server = TestServer::builder()
        .limits(|l| l.report_burst = 1)
        .settings(|s| {
            s.trusted_proxies = ["127.0.0.0/8", "10.0.0.0/8", "fd00::/8"]
                .map(|net| net.parse().unwrap())
                .to_vec();
        })
        .start()
        .await;
    let from = async |forwarded: &[&str]| {
        let mut request = server.post("/api/v1/reports");
        for line in forwarded {
            request = request.header("x-forwarded-for", *line);
        }
        request.answer().await.status
    };
    for (forwarded, status) in [
        (&["203.0.113.1"][..], 400),
        (&["203.0.113.1"], 429),
        (&["203.0.113.2"], 400),
        // What the client wrote itself is left of what the proxy wrote.
        (&["198.51.100.1, 203.0.113.1"], 429),
        (&["203.0.113.1, 203.0.113.3"], 400),
        (&["203.0.113.3, 10.1.2.3"], 429),
        (&["203.0.113.3, 10.1.2.3, fd00::1"], 429),
        (&["198.51.100.9", "203.0.113.3"], 429),
        (&["203.0.113.3", "198.51.100.9"], 400),
        // One client has a whole /64.
        (&["2001:db8:0:1::1"], 400),
        (&["2001:db8:0:1:ffff::2"], 429),
        (&["2001:db8:0:2::1"], 400),
        // An IPv4 address is one, however it is written.
        (&["::ffff:203.0.113.1"], 429),
        // Nothing that can be read: the proxy itself is who asks.
        (&["nonsense"], 400),
        (&[], 429),
    ] {
        assert_eq!(from(forwarded).await, status, "{forwarded:?}");
    }
}

#[tokio::test]
async fn nobody_is_believed_unless_trusted() {
    let server = TestServer::builder()
        .limits(|l| l.report_burst = 1)
        .start()
        .await;
    for (forwarded, status) in [("203.0.113.1", 400), ("203.0.113.2", 429)] {
        let request = server.post("/api/v1/reports");
        let request = request.header("x-forwarded-for", forwarded);
        request.answer().await.expect(status);
    }
}

#[tokio::test]
async fn a_server_that_is_full_says_so_until_there_is_room() {
    let server = TestServer::builder()
        .limits(|l| {
            l.active_deployments = 2;
            l.quick_share_seconds = 100;
        })
        .start()
        .await;
    let body = json!({ "content": "x" });
    let once = json!({ "content": "x", "one_time": true, "name": "once" });
    server.deploy(&body).await;
    server.deploy(&once).await;
    let before = server.snapshot();
    for body in [&body, &once] {
        let answer = server.json("/api/v1/deploy", body).answer().await;
        let problem = answer.problem(503, "capacity_reached");
        assert_eq!(answer.header("retry-after"), Some("60"));
        assert!(problem["detail"].as_str().unwrap().contains("deployments"));
    }
    assert_eq!(server.snapshot(), before);
    server.post("/once").answer().await.expect(200);
    server.deploy(&body).await;
    let full = server.json("/api/v1/deploy", &body).answer().await;
    full.problem(503, "capacity_reached");
    server.advance(100);
    server.deploy(&body).await;
}

#[tokio::test]
async fn racing_for_the_last_room_fills_it_exactly() {
    let server = TestServer::builder()
        .limits(|l| l.active_deployments = 3)
        .start()
        .await;
    let mut racing = tokio::task::JoinSet::new();
    for number in 0..10 {
        let body = json!({ "content": "x", "one_time": number % 2 == 0 });
        racing.spawn(server.json("/api/v1/deploy", &body).answer());
    }
    let answers = racing.join_all().await;
    let taken = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(taken, 3);
    let refused = answers.iter().filter(|answer| answer.status == 503).count();
    assert_eq!(refused, 7);
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_takes_nothing_new() {
    let server = TestServer::builder()
        .limits(|l| l.free_disk_bytes = u64::MAX)
        .start()
        .await;
    let before = server.snapshot();
    let answer = server
        .json("/api/v1/deploy", &json!({ "content": "x" }))
        .answer()
        .await;
    let problem = answer.problem(503, "capacity_reached");
    assert!(problem["detail"].as_str().unwrap().contains("disk"));
    assert_eq!(answer.header("retry-after"), Some("60"));
    assert_eq!(server.snapshot(), before);
}

const BODY: usize = 1_048_576;

#[tokio::test]
async fn the_operators_numbers_are_used() {
    let server = TestServer::builder()
        .limits(|l| {
            l.body_bytes = 2000;
            l.page_bytes = 4096;
            l.quick_share_seconds = 60;
            l.deploy_burst = 4;
            l.deploy_per_minute = 6;
        })
        .start()
        .await;
    let large = server
        .post("/api/v1/deploy")
        .body(body_of_size(2001))
        .answer()
        .await;
    large.problem(413, "payload_too_large");
    let answer = server
        .post("/api/v1/deploy")
        .body(body_of_size(2000))
        .answer()
        .await;
    let deployed = answer.expect(201).json();
    assert_eq!(deployed["expires_at"], "2026-11-20T12:01:00.000Z");
    let rows = "a,a,a,a\n".repeat(20);
    let wide = json!({ "type": "csv", "content": rows });
    let answer = server.json("/api/v1/deploy", &wide).answer().await;
    let problem = answer.problem(400, "render_failed");
    assert_eq!(problem["budget"], "page_bytes");
    server.post("/api/v1/deploy").answer().await.expect(400);
    assert_rate_limited(&server.post("/api/v1/deploy").answer().await);
    server.advance(10);
    server.post("/api/v1/deploy").answer().await.expect(400);
}

/// Whoever writes a whole body before reading anything gets to read why it was refused, on the same connection.
#[tokio::test]
async fn a_refusal_reaches_those_who_are_still_sending() {
    let server = TestServer::start().await;
    let (address, bytes) = (server.address(), 4 * BODY);
    let declared = format!("Content-Length: {bytes}");
    let chunked = format!("Transfer-Encoding: chunked\r\n\r\n{bytes:x}");
    for (line, framing, status) in [
        ("POST /api/v1/deploy", &declared, 413),
        ("POST /api/v1/deploy", &chunked, 413),
        ("POST /api/v1/auth/nothing", &chunked, 404),
        ("PUT /api/v1/deploy", &declared, 405),
        // Its declared length is looked at before whether there is anything.
        ("POST /nothing", &declared, 413),
        ("POST /nothing", &chunked, 404),
        ("POST /a/b/c", &chunked, 404),
        ("POST /api/v1/deploy?x=1", &chunked, 400),
    ] {
        for _ in 0..5 {
            let head =
                format!("{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{framing}");
            let patient = move || {
                let mut stream = std::net::TcpStream::connect(address).unwrap();
                let chunked = head.contains("chunked");
                // A chunk's size ends where a head's last line and the empty one after it would.
                let end = if chunked { "\r\n" } else { "\r\n\r\n" };
                stream.write_all((head + end).as_bytes()).unwrap();
                stream.write_all(&vec![b'x'; bytes]).unwrap();
                if chunked {
                    stream.write_all(b"\r\n0\r\n\r\n").unwrap();
                }
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).unwrap();
                Answer::parse(&answer)
            };
            let answer = tokio::task::spawn_blocking(patient).await.unwrap();
            assert_eq!(answer.status, status, "{line} {framing}");
        }
    }
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_takes_no_revision_either() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let made = owner.frontend(&server, &project, "room").await;
    let room = format!("/{project}/frontends/room");
    let revisions = format!("{room}/revisions");
    let live = text(&owner.get(&server, &revisions).await.json()["active_revision_id"]);
    let draft = json!({ "base_revision_id": live, "content": "# Two" });
    let two = owner.post(&server, &revisions, &draft).await.expect(200);
    let two = text(&two.json()["revision"]["revision_id"]);
    let promote = json!({ "revision_id": two, "expected_active_revision_id": live });
    let path = format!("{room}/promote");
    owner.post(&server, &path, &promote).await.expect(200);

    let full = |settings: &mut svc::config::Settings| settings.limits.free_disk_bytes = u64::MAX;
    let server = server.restart_with(full).await;
    let before = server.snapshot();
    let back = json!({ "revision_id": live, "expected_active_revision_id": two });
    let three = json!({ "base_revision_id": two, "content": "# Three" });
    let put = json!({ "content": "# Three" });
    for (method, path, body) in [
        (Method::PUT, room.clone(), &put),
        (Method::POST, revisions, &three),
        (Method::POST, format!("{room}/promote"), &back),
        (Method::POST, format!("{room}/rollback"), &back),
    ] {
        let answer = owner.send(&server, method, &path, body).await;
        answer.problem(503, "capacity_reached");
        assert_eq!(answer.header("retry-after"), Some("60"));
    }
    // A preview that nobody has looked at is made at the first look.
    let preview = format!("/_preview/{}/{live}/", text(&made["id"]));
    let unseen = server.get(&preview).answer().await;
    unseen.problem(503, "capacity_reached");
    assert_eq!(server.snapshot(), before);
    server.get("/room").answer().await.expect(200);
}

/// A deploy's body of exactly this many bytes.
fn body_of_size(bytes: usize) -> String {
    let around = json!({ "content": "" }).to_string().len();
    json!({ "content": "x".repeat(bytes - around) }).to_string()
}
