//! Random requests at every route: whatever comes, the answer is no 5xx, and there is one.

use std::net::SocketAddr;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::json;
use svc_tests::{Answer, ReadAnswer, TestServer, exchange};

use crate::openapi::{description, fill_path, operations};

/// Random requests of each kind. They cost a millisecond or two each.
const CASES: u32 = 400;

async fn start_with_pages() -> (TestServer, Vec<String>) {
    let server = TestServer::start().await;
    for body in [
        json!({ "content": "x", "name": "page" }),
        json!({ "content": "x", "name": "safe", "password": "p" }),
        json!({ "content": "x", "name": "once", "one_time": true }),
    ] {
        server.publish_slug(&body).await;
    }
    let mut paths = Vec::new();
    for (path, ..) in operations(&description(&server).await) {
        for slug in ["page", "safe", "once", "nothing"] {
            paths.push(fill_path(&path, slug));
        }
    }
    (server, paths)
}

/// Runs cases on a thread of its own, beside the server.
async fn run_cases<S>(
    server: &TestServer,
    strategy: S,
    send: fn(SocketAddr, &S::Value) -> Option<Answer>,
) where
    S: Strategy + Send + 'static,
{
    let address = server.address();
    let run = move || {
        let config = Config {
            cases: CASES,
            failure_persistence: None,
            ..Config::default()
        };
        let no_failure_of_ours = |value| match send(address, &value) {
            // Unconfigured features answer that they are unconfigured, for any request.
            Some(answer) if answer.status >= 500 && !answer.text().contains("_unconfigured") => {
                Err(TestCaseError::fail(format!("{answer:?}")))
            }
            _ => Ok(()),
        };
        let outcome = TestRunner::new(config).run(&strategy, no_failure_of_ours);
        outcome.map_err(|failure| failure.to_string())
    };
    let outcome = tokio::task::spawn_blocking(run).await.unwrap();
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    server.get("/healthz").answer().await.expect(200);
    let page = server.get("/page").answer().await.expect(200);
    assert_eq!(page.text(), "x");
}

/// A request that is well formed as far as its framing goes.
#[derive(Clone, Debug)]
struct RandomRequest {
    method: String,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

fn methods() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]).prop_map(str::to_owned),
        1 => "[A-Z]{1,10}",
    ]
}

fn paths(known: Vec<String>) -> impl Strategy<Value = String> {
    let known = prop::sample::select(known);
    prop_oneof![
        4 => known.clone(),
        2 => (known.clone(), "[!-~&&[^# ]]{0,20}").prop_map(|(path, rest)| format!("{path}{rest}")),
        2 => (known, "[a-z%=&+;0-9]{0,30}").prop_map(|(path, query)| format!("{path}?{query}")),
        1 => "(/[!-~&&[^# ?]]{0,12}){1,6}",
        1 => "/(%[0-9a-fA-F]{2}|%|/|\\.|[a-z]){0,30}",
    ]
}

fn headers() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    let known = vec![
        "Accept",
        "Accept-Encoding",
        "Authorization",
        "Content-Encoding",
        "Content-Type",
        "Cookie",
        "Expect",
        "Idempotency-Key",
        "If-Match",
        "If-Modified-Since",
        "If-None-Match",
        "If-Range",
        "Origin",
        "Range",
        "Referer",
        "Sec-Fetch-Dest",
        "Sec-Fetch-Mode",
        "TE",
        "Upgrade",
        "X-Forwarded-For",
        "X-Request-Id",
    ];
    let meant = vec![
        "*/*",
        "text/html",
        "br;q=x, gzip;q=9, *;q=-1",
        "Bearer svc_a_b_c",
        "bytes=0-0",
        "bytes=5-2",
        "bytes=-0",
        "bytes=18446744073709551615-",
        "bytes=0-18446744073709551615",
        "bytes=-18446744073709551616",
        "\"*\"",
        "W/\"",
        "svc_unlock=AAAA",
        "application/json",
        "application/x-www-form-urlencoded",
        "null",
        "http://localhost",
        "100-continue",
        "navigate",
        "document",
        "h2c",
        "::1, x, ,127.0.0.1",
    ];
    let value = prop_oneof![
        3 => prop::sample::select(meant).prop_map(|value| value.as_bytes().to_vec()),
        2 => prop::collection::vec(prop_oneof![0x20_u8..0x7f, 0x80_u8..=0xff], 0..40),
    ];
    let name = prop_oneof![
        5 => prop::sample::select(known).prop_map(str::to_owned),
        1 => "X-[A-Za-z]{1,12}",
    ];
    prop::collection::vec((name, value), 0..6)
}

fn bodies() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        2 => prop::collection::vec(any::<u8>(), 0..200),
        5 => documents().prop_map(String::into_bytes),
        1 => "password=[ -~]{0,40}".prop_map(String::into_bytes),
    ]
}

/// Objects of the fields that routes take, with values that fit and values that do not.
fn documents() -> impl Strategy<Value = String> {
    let fields = vec![
        "content", "type", "name", "title", "one_time", "password", "slug", "reason", "details",
        "contact", "x",
    ];
    let meant = vec![
        "html", "markdown", "mermaid", "json", "csv", "page", "safe", "once", "p", "other", "api",
        "a-",
    ];
    let value = prop_oneof![
        3 => prop::sample::select(meant).prop_map(|text| json!(text)),
        2 => any::<String>().prop_map(|text| json!(text)),
        1 => any::<i64>().prop_map(|number| json!(number)),
        1 => any::<bool>().prop_map(|bit| json!(bit)),
        1 => Just(json!(null)),
        1 => Just(json!([{ "a": [] }])),
    ];
    let source = prop_oneof![any::<String>(), "[\\[\\]{}\",:0-9a-z#*`|>\\-\n ]{1,60}"];
    let object = prop::collection::hash_map(prop::sample::select(fields), value, 0..6);
    (source, object).prop_map(|(source, fields)| {
        let mut object = json!(fields);
        if object["content"].is_null() {
            object["content"] = source.into();
        }
        object.to_string()
    })
}

fn send(address: SocketAddr, sent: &RandomRequest) -> Option<Answer> {
    let mut answer = exchange(address, &sent.bytes(address, &sent.body));
    if answer.is_empty() {
        // Closing on a body that nobody read resets the connection, and what was answered goes with it.
        answer = exchange(address, &sent.bytes(address, b""));
        assert!(!answer.is_empty(), "closed without an answer");
    }
    Some(Answer::parse(skip_interim(&answer)))
}

impl RandomRequest {
    fn bytes(&self, address: SocketAddr, body: &[u8]) -> Vec<u8> {
        let Self {
            method,
            path,
            headers,
            ..
        } = self;
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n")
                .into_bytes();
        for (name, value) in headers {
            request.extend_from_slice(name.as_bytes());
            request.extend_from_slice(b": ");
            request.extend_from_slice(value);
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        request.extend_from_slice(body);
        request
    }
}

/// Skips `100 Continue`, if there is one.
fn skip_interim(answer: &[u8]) -> &[u8] {
    match answer.strip_prefix(b"HTTP/1.1 100 Continue\r\n\r\n") {
        Some(rest) if !rest.is_empty() => rest,
        _ => answer,
    }
}

#[tokio::test]
async fn random_requests_are_no_failure_of_ours() {
    let (server, known) = start_with_pages().await;
    let strategy = (methods(), paths(known), headers(), bodies());
    let strategy = strategy.prop_map(|(method, path, headers, body)| RandomRequest {
        method,
        path,
        headers,
        body,
    });
    run_cases(&server, strategy, send).await;
}

#[tokio::test]
async fn random_documents_are_no_failure_of_ours() {
    let (server, _) = start_with_pages().await;
    let routes = vec![
        "/api/v1/deploy",
        "/api/v1/reports",
        "/api/v1/auth/safe",
        "/api/v1/auth/once",
    ];
    let strategy =
        (prop::sample::select(routes), documents()).prop_map(|(path, body)| RandomRequest {
            method: "POST".to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: body.into_bytes(),
        });
    run_cases(&server, strategy, send).await;
}

/// Bytes that are no request at all may be answered or not, but they end.
#[tokio::test]
async fn random_bytes_are_no_failure_of_ours() {
    let (server, known) = start_with_pages().await;
    let line = (
        methods(),
        paths(known),
        prop::collection::vec(any::<u8>(), 0..200),
    )
        .prop_map(|(method, path, rest)| [format!("{method} {path} ").into_bytes(), rest].concat());
    let strategy = prop_oneof![prop::collection::vec(any::<u8>(), 1..300), line];
    run_cases(&server, strategy, |address, bytes| {
        // A line that cannot go on is what tells an HTTP server that there is nothing to wait for.
        let answer = exchange(address, &[bytes.as_slice(), b"\r\n\x00\r\n\r\n"].concat());
        let is_http = answer.starts_with(b"HTTP/1.1 ");
        is_http.then(|| Answer::parse(skip_interim(&answer)))
    })
    .await;
}
