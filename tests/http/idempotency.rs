//! `Idempotency-Key`: the same request again answers what the first did, and does nothing more.

use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

const DEPLOY: &str = "/api/v1/deploy";

async fn send(server: &TestServer, path: &str, key: &str, body: &Value) -> Answer {
    let request = server.json(path, body).header("idempotency-key", key);
    request.answer().await
}

fn is_replayed(answer: &Answer) -> bool {
    answer.header("idempotency-replayed") == Some("true")
}

#[tokio::test]
async fn the_first_answer_is_replayed() {
    let server = TestServer::start().await;
    let body = json!({ "content": "x", "name": "page" });
    let first = send(&server, DEPLOY, "k", &body).await.expect(201);
    assert_eq!(first.header("idempotency-replayed"), None);
    let stored = server.snapshot();
    let again = send(&server, DEPLOY, "k", &body).await.expect(201);
    assert!(is_replayed(&again));
    assert_eq!(again.body, first.body);
    for name in ["content-type", "location"] {
        assert!(first.header(name).is_some(), "{name}");
        assert_eq!(again.header(name), first.header(name), "{name}");
    }
    assert_eq!(server.snapshot(), stored);
    let other = send(&server, DEPLOY, "other", &body).await.expect(201);
    assert_eq!(other.json()["slug"], "page-2");
    let none = server.json(DEPLOY, &body).answer().await.expect(201);
    assert_eq!(none.json()["slug"], "page-3");

    let report = json!({ "slug": "page", "reason": "other" });
    let first = send(&server, "/api/v1/reports", "k", &report)
        .await
        .expect(202);
    let again = send(&server, "/api/v1/reports", "k", &report)
        .await
        .expect(202);
    assert!(
        !is_replayed(&first) && is_replayed(&again),
        "a key is its route's"
    );
    assert_eq!(again.body, first.body);
}

#[tokio::test]
async fn another_body_is_a_conflict() {
    let server = TestServer::start().await;
    let body = json!({ "content": "x" });
    send(&server, DEPLOY, "k", &body).await.expect(201);
    let stored = server.snapshot();
    let answer = send(&server, DEPLOY, "k", &json!({ "content": "y" })).await;
    answer.problem(409, "idempotency_conflict");
    assert_eq!(answer.header("idempotency-replayed"), None);
    assert_eq!(server.snapshot(), stored);
}

#[tokio::test]
async fn what_failed_is_not_kept() {
    let server = TestServer::start().await;
    for (body, status) in [
        (json!({ "content": "" }), 400),
        (json!({ "content": "{", "type": "json" }), 400),
        (json!({ "content": "x", "title": "t".repeat(201) }), 400),
    ] {
        for _ in 0..2 {
            let answer = send(&server, DEPLOY, "k", &body).await.expect(status);
            assert!(!is_replayed(&answer));
        }
    }
    send(&server, DEPLOY, "k", &json!({ "content": "x" }))
        .await
        .expect(201);
}

#[tokio::test]
async fn one_of_many_at_once_does_the_work() {
    let server = TestServer::start().await;
    let body = json!({ "content": "# x\n".repeat(20_000), "type": "markdown" });
    let mut racing = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let request = server.json(DEPLOY, &body).header("idempotency-key", "k");
        racing.spawn(request.answer());
    }
    let mut made = 0;
    let mut slugs = std::collections::HashSet::new();
    for answer in racing.join_all().await {
        if answer.status == 201 {
            made += usize::from(!is_replayed(&answer));
            slugs.insert(answer.json()["slug"].to_string());
        } else {
            answer.problem(409, "idempotency_conflict");
            assert_eq!(answer.header("retry-after"), Some("1"));
        }
    }
    assert_eq!((made, slugs.len()), (1, 1));
    assert_eq!(server.rows()[0], ("deployments".to_owned(), 1));
}

/// The client that repeats a request because its connection broke must not publish twice.
#[tokio::test]
async fn a_client_who_hangs_up_and_repeats_gets_one_page() {
    let server = TestServer::start().await;
    for round in 0..10 {
        let key = format!("round-{round}");
        let body = json!({ "content": "# x\n".repeat(500), "type": "markdown" });
        let request = format!(
            "POST {DEPLOY} HTTP/1.1\r\nHost: {}\r\nIdempotency-Key: {key}\r\nContent-Length: {}\r\n\r\n{body}",
            server.address(),
            body.to_string().len()
        );
        let address = server.address();
        let hang_up = move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        };
        tokio::task::spawn_blocking(hang_up).await.unwrap();
        let repeat = async || {
            let answer = send(&server, DEPLOY, &key, &body).await;
            (answer.status == 201).then_some(())
        };
        svc_tests::wait_until("the answer", repeat).await;
        assert_eq!(server.rows()[0], ("deployments".to_owned(), round + 1));
    }
}

#[tokio::test]
async fn answers_survive_a_restart_and_last_a_day() {
    let server = TestServer::start().await;
    let body = json!({ "content": "x", "name": "page" });
    let first = send(&server, DEPLOY, "k", &body).await.expect(201);
    let server = server.restart().await;
    server.advance(24 * 3600 - 1);
    let again = send(&server, DEPLOY, "k", &body).await.expect(201);
    assert!(is_replayed(&again));
    assert_eq!(again.body, first.body);
    server.advance(1);
    let anew = send(&server, DEPLOY, "k", &body).await.expect(201);
    assert!(!is_replayed(&anew));
    assert_eq!(anew.json()["slug"], "page-2");
}

#[tokio::test]
async fn a_key_belongs_to_its_principal() {
    let server = TestServer::builder()
        .settings(|s| s.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()])
        .start()
        .await;
    let mut callers = vec![
        ("x-forwarded-for", "203.0.113.1".to_owned()),
        ("x-forwarded-for", "203.0.113.2".to_owned()),
    ];
    for name in ["one", "two"] {
        let command = ["namespace", "create", name, "--json"];
        let made = server.command(&crate::svc(), &command).await.json();
        let credential = made["credential"].as_str().unwrap();
        callers.push(("authorization", format!("Bearer {credential}")));
    }
    let body = json!({ "content": "x" });
    let send = async |(header, value): &(&'static str, String)| {
        let request = server.json(DEPLOY, &body).header("idempotency-key", "k");
        request.header(*header, value).answer().await.expect(201)
    };
    let mut slugs = std::collections::HashSet::new();
    for caller in &callers {
        let first = send(caller).await;
        assert!(!is_replayed(&first), "{caller:?}");
        slugs.insert(first.json()["slug"].to_string());
    }
    assert_eq!(slugs.len(), callers.len());
    for caller in &callers {
        assert!(is_replayed(&send(caller).await), "{caller:?}");
    }
}

#[tokio::test]
async fn keys_are_visible_ascii() {
    let server = TestServer::start().await;
    let body = json!({ "content": "x" });
    for key in ["a", "~!#{}", &"k".repeat(128)] {
        send(&server, DEPLOY, key, &body).await.expect(201);
    }
    let stored = server.snapshot();
    for key in ["", "a b", "a\tb", &"k".repeat(129)] {
        let answer = send(&server, DEPLOY, key, &body).await;
        let problem = answer.problem(400, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("Idempotency-Key"), "{detail}");
    }
    let request = server.json(DEPLOY, &body);
    let request = request.header("idempotency-key", "schlüssel");
    request.answer().await.problem(400, "invalid_request");
    assert_eq!(server.snapshot(), stored);
}

#[tokio::test]
async fn elsewhere_the_header_is_ignored() {
    let server = TestServer::start().await;
    let body = json!({ "content": "x", "name": "safe", "password": "p" });
    server.publish_slug(&body).await;
    for password in ["p", "q", "p"] {
        let body = json!({ "password": password });
        let answer = send(&server, "/api/v1/auth/safe", "k", &body).await;
        assert_eq!(answer.status == 200, password == "p");
        assert!(!is_replayed(&answer));
    }
}

#[tokio::test]
async fn a_body_is_compared_without_being_kept() {
    let server = TestServer::start().await;
    let body = json!({ "content": "words-of-the-body", "one_time": true, "password": "p" });
    let deployed = send(&server, DEPLOY, "k", &body).await.expect(201).json();
    let slug = deployed["slug"].as_str().unwrap();
    let cookie = server.unlock(slug, "p").await;
    let request = server.post(&format!("/{slug}")).header("cookie", cookie);
    request.answer().await.expect(200);
    let held = svc_tests::disk::holding(server.data(), "words-of-the-body");
    assert!(held.is_empty(), "{held:?}");
}
