//! Bad input: every field of every route, wrong in every way, is refused by name, and nothing is stored.

mod order;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

/// A request that must be refused, and the word that its detail must name.
struct RefusedRequest {
    path: &'static str,
    body: Value,
    names: &'static str,
}

fn refused_request(path: &'static str, body: Value, names: &'static str) -> RefusedRequest {
    RefusedRequest { path, body, names }
}

async fn start_with_pages() -> TestServer {
    let server = TestServer::start().await;
    for body in [
        json!({ "content": "x", "name": "page" }),
        json!({ "content": "x", "name": "safe", "password": "p" }),
    ] {
        server.publish_slug(&body).await;
    }
    server
}

#[track_caller]
fn assert_detail_names(answer: &Answer, status: u16, code: &str, word: &str) {
    let problem = answer.problem(status, code);
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(word), "{word}: {detail}");
}

fn wrong_types(
    path: &'static str,
    valid: &Value,
    field: &'static str,
    fits: &str,
) -> Vec<RefusedRequest> {
    let values = [
        ("string", json!("text")),
        ("number", json!(7)),
        ("bool", json!(true)),
        ("array", json!(["a"])),
        ("object", json!({ "a": 1 })),
    ];
    let wrong = values.into_iter().filter(|(kind, _)| *kind != fits);
    wrong
        .map(|(_, value)| {
            let mut body = valid.clone();
            body[field] = value;
            refused_request(path, body, field)
        })
        .collect()
}

const DEPLOY: &str = "/api/v1/deploy";
const REPORTS: &str = "/api/v1/reports";
const AUTH: &str = "/api/v1/auth/safe";

fn refused_requests() -> Vec<RefusedRequest> {
    let deploy = |field: &str, value: Value| {
        let mut body = json!({ "content": "x" });
        body[field] = value;
        body
    };
    let report = |field: &str, value: Value| {
        let mut body = json!({ "slug": "page", "reason": "other" });
        body[field] = value;
        body
    };
    let (share, complaint, unlock) = (
        json!({ "content": "x" }),
        json!({ "slug": "page", "reason": "other" }),
        json!({ "password": "p" }),
    );
    let mut table = Vec::new();
    for (path, valid, field, fits) in [
        (DEPLOY, &share, "content", "string"),
        (DEPLOY, &share, "type", ""),
        (DEPLOY, &share, "name", "string"),
        (DEPLOY, &share, "title", "string"),
        (DEPLOY, &share, "one_time", "bool"),
        (DEPLOY, &share, "password", "string"),
        (REPORTS, &complaint, "slug", "string"),
        (REPORTS, &complaint, "reason", ""),
        (REPORTS, &complaint, "details", "string"),
        (REPORTS, &complaint, "contact", "string"),
        (AUTH, &unlock, "password", "string"),
    ] {
        table.extend(wrong_types(path, valid, field, fits));
    }
    table.extend([
        refused_request(DEPLOY, json!({}), "content"),
        refused_request(DEPLOY, json!({ "content": null }), "content"),
        refused_request(DEPLOY, json!({ "content": "" }), "content"),
        refused_request(DEPLOY, json!({ "content": " \n" }), "content"),
        refused_request(DEPLOY, json!({ "type": "html" }), "content"),
        refused_request(DEPLOY, deploy("type", json!("HTML")), "type"),
        refused_request(DEPLOY, deploy("type", json!("")), "type"),
        refused_request(DEPLOY, deploy("type", json!("pdf")), "type"),
        refused_request(DEPLOY, deploy("title", json!("t".repeat(201))), "title"),
        refused_request(DEPLOY, deploy("title", json!("ü".repeat(201))), "title"),
        refused_request(DEPLOY, deploy("password", json!("")), "password"),
        refused_request(
            DEPLOY,
            deploy("password", json!("p".repeat(1025))),
            "password",
        ),
        refused_request(
            DEPLOY,
            deploy("password", json!("ü".repeat(513))),
            "password",
        ),
        refused_request(DEPLOY, deploy("slug", json!("x")), "slug"),
        refused_request(DEPLOY, deploy("ttl_seconds", json!(60)), "ttl_seconds"),
        refused_request(DEPLOY, deploy("Content", json!("x")), "Content"),
        refused_request(REPORTS, json!({}), "slug"),
        refused_request(REPORTS, json!({ "slug": "page" }), "reason"),
        refused_request(REPORTS, json!({ "reason": "other" }), "slug"),
        refused_request(REPORTS, report("slug", json!(null)), "slug"),
        refused_request(REPORTS, report("reason", json!(null)), "reason"),
        refused_request(REPORTS, report("reason", json!("spam")), "reason"),
        refused_request(REPORTS, report("reason", json!("")), "reason"),
        refused_request(
            REPORTS,
            report("details", json!("d".repeat(4001))),
            "details",
        ),
        refused_request(
            REPORTS,
            report("contact", json!("c".repeat(321))),
            "contact",
        ),
        refused_request(REPORTS, report("email", json!("a@b")), "email"),
        refused_request(AUTH, json!({}), "password"),
        refused_request(AUTH, json!({ "password": null }), "password"),
        refused_request(AUTH, json!({ "password": "p".repeat(1025) }), "password"),
        refused_request(AUTH, json!({ "password": "p", "user": "u" }), "user"),
    ]);
    for name in [
        "",
        "-a",
        "a-",
        "-",
        "A",
        "Page",
        "a_b",
        "a.b",
        "a b",
        "a/b",
        "ä",
        "a\n",
        " a",
        "../x",
        "%61",
        &"a".repeat(64),
    ] {
        table.push(refused_request(DEPLOY, deploy("name", json!(name)), "name"));
    }
    table
}

#[tokio::test]
async fn every_bad_field_is_named_and_nothing_is_stored() {
    let server = start_with_pages().await;
    let before = server.snapshot();
    let table = refused_requests();
    assert!(table.len() > 80);
    for RefusedRequest {
        path,
        body,
        names: word,
    } in table
    {
        let answer = server.json(path, &body).answer().await;
        assert_eq!(answer.status, 400, "{path} {body}: {}", answer.text());
        assert_detail_names(&answer, 400, "invalid_request", word);
    }
    assert_eq!(server.snapshot(), before);
}

#[tokio::test]
async fn the_longest_that_is_allowed_is_taken() {
    let server = start_with_pages().await;
    server
        .deploy(&json!({
            "content": "x", "name": "n".repeat(63), "title": "ü".repeat(200), "password": "p".repeat(1024),
        }))
        .await;
    let report = json!({
        "slug": "page", "reason": "other", "details": "ü".repeat(4000), "contact": "ü".repeat(320),
    });
    server.json(REPORTS, &report).answer().await.expect(202);
    let nothing = json!({
        "content": "x", "type": null, "name": null, "title": null, "one_time": null, "password": null,
    });
    server.deploy(&nothing).await;
    let report = json!({ "slug": "page", "reason": "other", "details": null, "contact": null });
    server.json(REPORTS, &report).answer().await.expect(202);
}

#[tokio::test]
async fn what_is_no_json_is_invalid_json() {
    let server = start_with_pages().await;
    let before = server.snapshot();
    for body in [
        &b""[..],
        b"{",
        b"{\"content\":\"x\"",
        b"{\"content\":\"x\"} {}",
        b"{'content':'x'}",
        b"{\"content\":\"x\",}",
        b"content=x",
        b"\xff\xfe",
        b"{\"content\":\"\xff\"}",
        b"{\"content\":\"\\ud800\"}",
        b"{\"content\":\"a\nb\"}",
        b"\xef\xbb\xbf",
        b"nul",
    ] {
        for path in [DEPLOY, REPORTS, AUTH] {
            let answer = server.post(path).body(body).answer().await;
            let text = String::from_utf8_lossy(body);
            assert_eq!(answer.status, 400, "{path} {text}");
            assert_eq!(answer.json()["code"], "invalid_json", "{path} {text}");
        }
    }
    assert_eq!(server.snapshot(), before);
}

#[tokio::test]
async fn json_that_is_no_object_is_an_invalid_request() {
    let server = start_with_pages().await;
    let before = server.snapshot();
    let share = json!(["<p>x</p>", "html", null, null, false, null]);
    for body in [
        json!(null),
        json!(7),
        json!("x"),
        json!([]),
        json!([{}]),
        share,
        json!(["p"]),
    ] {
        for path in [DEPLOY, REPORTS, AUTH] {
            let answer = server.json(path, &body).answer().await;
            assert_eq!(answer.status, 400, "{path} {body}: {}", answer.text());
            answer.problem(400, "invalid_request");
        }
    }
    let complaint = json!(["page", "other", null, null]);
    let answer = server.json(REPORTS, &complaint).answer().await;
    answer.problem(400, "invalid_request");
    assert_eq!(server.snapshot(), before);
}

#[tokio::test]
async fn a_name_twice_is_an_invalid_request() {
    let server = start_with_pages().await;
    let body = "{\"content\":\"a\",\"content\":\"b\"}";
    let answer = server.post(DEPLOY).body(body).answer().await;
    assert_detail_names(&answer, 400, "invalid_request", "content");
}

#[tokio::test]
async fn unknown_query_parameters_are_named() {
    let server = start_with_pages().await;
    let before = server.snapshot();
    let valid = |path| match path {
        DEPLOY => json!({ "content": "x" }),
        REPORTS => json!({ "slug": "page", "reason": "other" }),
        _ => json!({ "password": "p" }),
    };
    for path in [DEPLOY, REPORTS, AUTH] {
        for (query, word) in [
            ("verbose=1", "verbose"),
            ("verbose", "verbose"),
            ("ver%62ose=1", "verbose"),
            ("a=1&b=2", "a"),
        ] {
            let request = server.json(&format!("{path}?{query}"), &valid(path));
            assert_detail_names(&request.answer().await, 400, "invalid_request", word);
        }
        if path == AUTH {
            let request = server.post(&format!("{path}?next=1"));
            let kind = "application/x-www-form-urlencoded";
            let request = request.header("content-type", kind).body("password=p");
            assert_detail_names(&request.answer().await, 400, "invalid_request", "next");
        }
    }
    let answer = server.get("/api/v1/openapi.json?x=1").answer().await;
    assert_detail_names(&answer, 400, "invalid_request", "x");
    assert_eq!(server.snapshot(), before);
    // An empty query has no parameter.
    let empty = server.json("/api/v1/deploy?", &valid(DEPLOY));
    empty.answer().await.expect(201);
    // Pages are not below /api/: links to them collect parameters.
    server.get("/page?utm_source=x").answer().await.expect(200);
}
