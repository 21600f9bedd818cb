//! Server-sent events.

use http::Method;
use reqwest::Response;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer, wait_until};

use super::{start_fixture, start_fixture_with};
use crate::project_fixture::ProjectFixture;
use crate::svc;

/// A stream that was opened.
pub(super) struct Stream {
    response: Response,
    rest: String,
}

/// A request for a stream.
fn stream_request(fixture: &ProjectFixture, query: &str) -> reqwest::RequestBuilder {
    let path = format!("/room/api/live{query}");
    fixture
        .server
        .get(&path)
        .header("accept", "text/event-stream")
}

async fn open(fixture: &ProjectFixture, query: &str) -> Stream {
    Stream::open(stream_request(fixture, query)).await
}

impl Stream {
    /// The stream that a request is answered with.
    pub(super) async fn open(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self {
            response,
            rest: String::new(),
        }
    }

    /// The next event or comment; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.rest = rest;
                return Some(event);
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.rest.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The problem of the last event, behind which the stream ends.
    pub(super) async fn problem(&mut self, status: u16, code: &str) -> Value {
        let event = self.next().await.expect("the stream says why it ends");
        let data = event.strip_prefix("event: error\ndata: ");
        let data = data.unwrap_or_else(|| panic!("{event}"));
        let problem: Value = serde_json::from_str(data).unwrap();
        assert_eq!(
            (&problem["code"], &problem["status"]),
            (&json!(code), &json!(status)),
            "{problem}"
        );
        assert!(problem["detail"].is_string(), "{problem}");
        assert_eq!(self.next().await, None, "nothing comes behind an error");
        problem
    }

    /// The result of the next event, which has this number.
    pub(super) async fn next_result(&mut self, seq: u64) -> Value {
        let event = self.next().await.expect("the stream goes on");
        let data = event.strip_prefix(&format!("event: result\nid: {seq}\ndata: "));
        let data = data.unwrap_or_else(|| panic!("{event}"));
        serde_json::from_str(data).unwrap()
    }
}

#[tokio::test]
async fn a_stream_says_what_a_socket_does() {
    let fixture = start_fixture().await;
    let mut stream = open(&fixture, "?action=counts&params=%7B%22poll%22%3A1%7D").await;
    let header = |name| stream.response.headers()[name].to_str().unwrap();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("access-control-allow-origin"), "*");
    assert!(header("ratelimit-policy").starts_with("\"op\""));
    assert_eq!(
        stream
            .response
            .headers()
            .get_all("ratelimit")
            .iter()
            .count(),
        2
    );
    assert_eq!(
        stream.next_result(1).await,
        fixture.call_ok("counts", &json!({ "poll": 1 })).await
    );
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "a\nb" }))
        .await;
    assert_eq!(
        stream.next_result(2).await["rows"],
        json!([{ "choice": "a\nb", "n": 1 }])
    );
    // Pings of sockets are comments here.
    fixture.server.advance(25);
    assert!(stream.next().await.unwrap().starts_with(':'));
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "a\nb" }))
        .await;
    assert_eq!(stream.next_result(3).await["rows"][0]["n"], 2);
    fixture.define(&[("counts", "SELECT 1 AS n")]).await;
    let problem = stream.problem(400, "params_mismatch").await;
    assert_eq!(problem["extra"], json!(["poll"]));
}

#[tokio::test]
async fn what_fails_first_is_a_problem_with_its_status() {
    let fixture = start_fixture().await;
    for (query, status, code) in [
        ("", 400, "invalid_request"),
        ("?action=", 400, "invalid_request"),
        ("?action=total&more=1", 400, "invalid_request"),
        ("?action=total&action=total", 400, "invalid_request"),
        ("?action=total&params=x", 400, "invalid_json"),
        ("?action=total&params=1", 400, "invalid_request"),
        (
            "?action=total&params=%7B%22a%22%3A1%7D",
            400,
            "params_mismatch",
        ),
        ("?action=counts", 400, "params_mismatch"),
        ("?action=nothing", 404, "not_found"),
        ("?action=clear", 400, "invalid_request"),
        ("?action=mine", 401, "identity_required"),
        ("?action=endless", 400, "query_timeout"),
        ("?action=huge", 413, "payload_too_large"),
    ] {
        stream_request(&fixture, query)
            .answer()
            .await
            .problem(status, code);
    }
    for accept in [
        "*/*",
        "text/*",
        "application/json",
        "text/event-stream;q=0",
        "*/*, text/event-stream; q=0.0",
    ] {
        let answer = fixture
            .server
            .get("/room/api/live?action=total")
            .header("accept", accept);
        let problem = answer.answer().await.problem(400, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("WebSocket") && detail.contains("text/event-stream"),
            "{detail}"
        );
    }
    let answer = fixture
        .server
        .get("/nowhere/api/live?action=total")
        .header("accept", "text/event-stream");
    answer.answer().await.problem(404, "not_found");
}

#[tokio::test]
async fn any_page_may_listen_and_names_of_events_are_ignored() {
    let fixture = start_fixture().await;
    let request = stream_request(&fixture, "?action=total")
        .header("origin", "https://elsewhere.example")
        .header("last-event-id", "7");
    Stream::open(request).await.next_result(1).await;
}

#[tokio::test]
async fn a_stream_ends_with_its_backend_and_is_not_waited_for_at_a_stop() {
    let fixture = start_fixture().await;
    let mut stream = open(&fixture, "?action=total").await;
    stream.next_result(1).await;
    fixture.delete().await.expect(204);
    stream.problem(404, "not_found").await;
    fixture.create(super::SCHEMA).await.expect(201);
    let path = format!("/{}/frontends/room", fixture.project);
    let page = json!({ "content": "# Again" });
    fixture
        .owner
        .send(&fixture.server, Method::PUT, &path, &page)
        .await
        .expect(200);
    fixture.define(&super::ACTIONS).await;
    let mut stream = open(&fixture, "?action=total").await;
    stream.next_result(1).await;
    // One whose client reads nothing of what fills the way to it holds nobody up.
    fixture.define(&[("much", "SELECT k, v, hex(zeroblob(100000)) AS a, hex(zeroblob(100000)) AS b, hex(zeroblob(100000)) AS c, hex(zeroblob(100000)) AS d, hex(zeroblob(100000)) AS e FROM keys, json_each('[1,2,3]')")]).await;
    let unread = std::net::TcpStream::connect(fixture.server.address()).unwrap();
    let request = format!(
        "GET /room/api/live?action=much HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n",
        fixture.server.address()
    );
    std::io::Write::write_all(&mut &unread, request.as_bytes()).unwrap();
    for n in 0..5 {
        fixture.call_ok("set", &json!({ "k": "a", "v": n })).await;
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    }
    let began = std::time::Instant::now();
    fixture.server.stop().await;
    assert!(
        began.elapsed() < std::time::Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(stream.next().await, None);
    drop(unread);
}

#[tokio::test]
async fn a_stream_that_is_sent_away_before_its_first_result_is_to_come_again() {
    let fixture = start_fixture().await;
    let asked = tokio::spawn(stream_request(&fixture, "?action=endless").answer());
    let realtime = &fixture.server.server().app().realtime;
    wait_until("the stream to be sent away", async || {
        realtime.send_away();
        asked.is_finished().then_some(())
    })
    .await;
    let answer = asked.await.unwrap();
    answer.problem(503, "capacity_reached");
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn params_have_the_most_that_a_call_has() {
    let fixture =
        start_fixture_with(TestServer::builder().limits(|limits| limits.op_body_bytes = 1_000))
            .await;
    fixture.define(&[("echo", "SELECT :a AS a")]).await;
    for (length, status) in [(900, 200), (1_000, 413)] {
        let params = format!(
            "?action=echo&params=%7B%22a%22%3A%22{}%22%7D",
            "x".repeat(length)
        );
        let response = stream_request(&fixture, &params).send().await.unwrap();
        assert_eq!(response.status(), status, "{length}");
    }
}

#[tokio::test]
async fn a_stream_says_why_it_ends() {
    for what in ["backend", "frontend", "project"] {
        let fixture = start_fixture().await;
        let mut stream = open(&fixture, "?action=total").await;
        stream.next_result(1).await;
        let path = match what {
            "backend" => format!("/{}/backend", fixture.project),
            "frontend" => format!("/{}/frontends/room", fixture.project),
            _ => format!("/{}", fixture.project),
        };
        fixture
            .owner
            .delete(&fixture.server, &path)
            .await
            .expect(204);
        stream.problem(404, "not_found").await;
        let again = stream_request(&fixture, "?action=total").answer().await;
        again.problem(404, "not_found");
    }
    let fixture = start_fixture_with(TestServer::builder().system_clock()).await;
    let mut stream = open(&fixture, "?action=total").await;
    stream.next_result(1).await;
    let disable = ["deployment", "disable", "room"];
    assert!(fixture.server.command(&svc(), &disable).await.success);
    stream.problem(403, "disabled").await;
}

#[tokio::test]
async fn streams_outlive_a_republish_and_the_realtime_switch() {
    let fixture = start_fixture().await;
    let mut stream = open(&fixture, "?action=total").await;
    stream.next_result(1).await;
    for realtime in [true, false] {
        let body = json!({ "realtime": realtime });
        fixture.send(Method::PATCH, "", &body).await.expect(200);
    }
    let path = format!("/{}/frontends/room", fixture.project);
    let page = json!({ "content": "# Two" });
    fixture
        .owner
        .send(&fixture.server, Method::PUT, &path, &page)
        .await
        .expect(200);
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
        .await;
    assert_eq!(stream.next_result(2).await["rows"], json!([{ "n": 1 }]));
}
