//! The log as a stream: it has each new entry once, and ends with its reader's authority.

use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::{start_fixture, start_on};
use crate::project_fixture::ProjectFixture;

/// A stream that was opened.
struct LogStream {
    response: reqwest::Response,
    rest: String,
}

impl LogStream {
    async fn open(fixture: &ProjectFixture, query: &str, last: Option<&str>) -> Self {
        let request = request(fixture, query);
        let request = match last {
            Some(last) => request.header("last-event-id", last),
            None => request,
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        let mut stream = Self {
            response,
            rest: String::new(),
        };
        assert_eq!(stream.next().await.as_deref(), Some(": still here"));
        stream
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

    /// The next entry.
    async fn entry(&mut self) -> Value {
        let event = loop {
            match self.next().await.expect("the stream goes on") {
                comment if comment.starts_with(": ") => {}
                event => break event,
            }
        };
        let (id, data) = event
            .strip_prefix("event: entry\nid: ")
            .and_then(|event| event.split_once("\ndata: "))
            .unwrap_or_else(|| panic!("{event}"));
        let entry: Value = serde_json::from_str(data).unwrap();
        assert_eq!(entry["id"], id);
        entry
    }
}

fn request(fixture: &ProjectFixture, query: &str) -> reqwest::RequestBuilder {
    let path = format!("/{}/log{query}", fixture.project);
    let request = fixture.owner.request(
        &fixture.server,
        http::Method::GET,
        &format!("/api/v1/projects{path}"),
    );
    request.header("accept", "text/event-stream")
}

#[tokio::test]
async fn a_stream_has_each_entry_once_and_goes_on_after_the_last_one() {
    let fixture = start_fixture().await;
    fixture.call_ok("all", &json!({})).await;
    let mut all = LogStream::open(&fixture, "", None).await;
    let mut some = LogStream::open(&fixture, "?action=named&kind=call", None).await;
    for n in 0..5 {
        let params = json!({ "name": n.to_string() });
        fixture.call_ok("named", &params).await;
        fixture.call_ok("all", &json!({})).await;
    }
    let mut seen = Vec::new();
    for n in 0..10 {
        let entry = all.entry().await;
        assert_eq!(entry["action"], ["named", "all"][n % 2]);
        seen.push(entry);
    }
    for n in 0..5 {
        assert_eq!(some.entry().await, seen[2 * n]);
    }
    let log = fixture.seen("log?limit=10").await;
    let newest_first: Vec<_> = seen.iter().rev().cloned().collect();
    assert_eq!(log["entries"], json!(newest_first));
    drop(all);
    let last = seen[6]["id"].as_str().unwrap();
    let mut again = LogStream::open(&fixture, "", Some(last)).await;
    for expected in &seen[7..] {
        assert_eq!(again.entry().await, *expected);
    }
}

#[tokio::test]
async fn a_stream_takes_no_page_and_there_are_ten_of_a_project() {
    let fixture = start_fixture().await;
    for query in [
        "?limit=1",
        "?before=01a1ff0b-0540-7000-8000-000000000001",
        "?kind=none",
    ] {
        request(&fixture, query)
            .answer()
            .await
            .problem(400, "invalid_request");
    }
    let mut open = Vec::new();
    for _ in 0..10 {
        open.push(LogStream::open(&fixture, "", None).await);
    }
    request(&fixture, "")
        .answer()
        .await
        .problem(429, "rate_limited");
    open.pop();
    let freed = async || {
        let response = request(&fixture, "").send().await.unwrap();
        (response.status() == 200).then_some(())
    };
    svc_tests::wait_until("the place to be free", freed).await;
}

#[tokio::test]
async fn a_stream_ends_with_the_project_and_with_the_server() {
    let server = TestServer::builder()
        .limits(|limits| limits.ping_seconds = 1)
        .start()
        .await;
    let fixture = start_on(server).await;
    let mut stream = LogStream::open(&fixture, "", None).await;
    fixture
        .owner
        .delete(&fixture.server, &format!("/{}", fixture.project))
        .await
        .expect(204);
    loop {
        match stream.next().await {
            None => break,
            Some(event) if event.starts_with("event: error") => {}
            Some(event) => assert_eq!(event, ": still here"),
        }
    }
    let fixture = start_fixture().await;
    let mut stream = LogStream::open(&fixture, "", None).await;
    fixture.server.stop().await;
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_reader_who_reads_nothing_holds_nobody_up() {
    let fixture = start_fixture().await;
    let _idle = LogStream::open(&fixture, "", None).await;
    for _ in 0..500 {
        fixture.call_ok("all", &json!({})).await;
    }
    let log = fixture.seen("log?limit=500").await;
    assert_eq!(log["entries"].as_array().unwrap().len(), 500);
}
