//! Bad input: every field of every route, wrong in every way, is refused by name, and nothing is stored.

mod order;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

/// A request that must be refused, and the word that its detail must name.
struct Bad {
    path: &'static str,
    body: Value,
    names: &'static str,
}

fn bad(path: &'static str, body: Value, names: &'static str) -> Bad {
    Bad { path, body, names }
}

async fn with_pages() -> TestServer {
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
fn names(answer: &Answer, status: u16, code: &str, word: &str) {
    let problem = answer.problem(status, code);
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(word), "{word}: {detail}");
}

fn wrong_types(path: &'static str, valid: &Value, field: &'static str, fits: &str) -> Vec<Bad> {
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
            bad(path, body, field)
        })
        .collect()
}

const DEPLOY: &str = "/api/v1/deploy";
const REPORTS: &str = "/api/v1/reports";
const AUTH: &str = "/api/v1/auth/safe";

fn table() -> Vec<Bad> {
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
        bad(DEPLOY, json!({}), "content"),
        bad(DEPLOY, json!({ "content": null }), "content"),
        bad(DEPLOY, json!({ "content": "" }), "content"),
        bad(DEPLOY, json!({ "content": " \n" }), "content"),
        bad(DEPLOY, json!({ "type": "html" }), "content"),
        bad(DEPLOY, deploy("type", json!("HTML")), "type"),
        bad(DEPLOY, deploy("type", json!("")), "type"),
        bad(DEPLOY, deploy("type", json!("pdf")), "type"),
        bad(DEPLOY, deploy("title", json!("t".repeat(201))), "title"),
        bad(DEPLOY, deploy("title", json!("ü".repeat(201))), "title"),
        bad(DEPLOY, deploy("password", json!("")), "password"),
        bad(
            DEPLOY,
            deploy("password", json!("p".repeat(1025))),
            "password",
        ),
        bad(
            DEPLOY,
            deploy("password", json!("ü".repeat(513))),
            "password",
        ),
        bad(DEPLOY, deploy("slug", json!("x")), "slug"),
        bad(DEPLOY, deploy("ttl_seconds", json!(60)), "ttl_seconds"),
        bad(DEPLOY, deploy("Content", json!("x")), "Content"),
        bad(REPORTS, json!({}), "slug"),
        bad(REPORTS, json!({ "slug": "page" }), "reason"),
        bad(REPORTS, json!({ "reason": "other" }), "slug"),
        bad(REPORTS, report("slug", json!(null)), "slug"),
        bad(REPORTS, report("reason", json!(null)), "reason"),
        bad(REPORTS, report("reason", json!("spam")), "reason"),
        bad(REPORTS, report("reason", json!("")), "reason"),
        bad(
            REPORTS,
            report("details", json!("d".repeat(4001))),
            "details",
        ),
        bad(
            REPORTS,
            report("contact", json!("c".repeat(321))),
            "contact",
        ),
        bad(REPORTS, report("email", json!("a@b")), "email"),
        bad(AUTH, json!({}), "password"),
        bad(AUTH, json!({ "password": null }), "password"),
        bad(AUTH, json!({ "password": "p".repeat(1025) }), "password"),
        bad(AUTH, json!({ "password": "p", "user": "u" }), "user"),
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
        table.push(bad(DEPLOY, deploy("name", json!(name)), "name"));
    }
    table
}

#[tokio::test]
async fn every_bad_field_is_named_and_nothing_is_stored() {
    let server = with_pages().await;
    let before = server.snapshot();
    let table = table();
    assert!(table.len() > 80);
    for Bad {
        path,
        body,
        names: word,
    } in table
    {
        let answer = server.json(path, &body).answer().await;
        assert_eq!(answer.status, 400, "{path} {body}: {}", answer.text());
        names(&answer, 400, "invalid_request", word);
    }
    assert_eq!(server.snapshot(), before);
}

#[tokio::test]
async fn the_longest_that_is_allowed_is_taken() {
    let server = with_pages().await;
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
    let server = with_pages().await;
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
    let server = with_pages().await;
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
    let server = with_pages().await;
    let body = "{\"content\":\"a\",\"content\":\"b\"}";
    let answer = server.post(DEPLOY).body(body).answer().await;
    names(&answer, 400, "invalid_request", "content");
}

#[tokio::test]
async fn unknown_query_parameters_are_named() {
    let server = with_pages().await;
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
            names(&request.answer().await, 400, "invalid_request", word);
        }
        if path == AUTH {
            let request = server.post(&format!("{path}?next=1"));
            let kind = "application/x-www-form-urlencoded";
            let request = request.header("content-type", kind).body("password=p");
            names(&request.answer().await, 400, "invalid_request", "next");
        }
    }
    let answer = server.get("/api/v1/openapi.json?x=1").answer().await;
    names(&answer, 400, "invalid_request", "x");
    assert_eq!(server.snapshot(), before);
    // An empty query has no parameter.
    let empty = server.json("/api/v1/deploy?", &valid(DEPLOY));
    empty.answer().await.expect(201);
    // Pages are not below /api/: links to them collect parameters.
    server.get("/page?utm_source=x").answer().await.expect(200);
}
