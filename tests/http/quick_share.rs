//! Publishing: what a 201 says, and which slug a page gets.

use serde_json::json;
use svc_tests::{NOW, ReadAnswer, TestServer};

#[tokio::test]
async fn a_201_says_where_and_until_when() {
    let server = TestServer::start().await;
    let body = json!({ "content": "<p>hi</p>", "name": "hello" });
    let answer = server.json("/api/v1/deploy", &body).answer().await;
    let answer = answer.expect(201);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let base = format!("http://localhost:{}", server.address().port());
    let url = format!("{base}/hello");
    assert_eq!(answer.header("location"), Some(url.as_str()));
    let deployed = answer.json();
    let id = deployed["id"].as_str().unwrap();
    assert_eq!((id.len(), &id[14..15]), (36, "7"), "a UUIDv7: {id}");
    assert_eq!(
        deployed,
        json!({
            "id": id,
            "slug": "hello",
            "url": url,
            "created_at": "2026-11-20T12:00:00.000Z",
            "expires_at": "2026-11-27T12:00:00.000Z",
            "title": "hello",
            "delete_token": deployed["delete_token"],
        })
    );
    assert_eq!(NOW.to_string(), "2026-11-20T12:00:00.000Z");
    assert_eq!(server.get("/hello").answer().await.text(), "<p>hi</p>");
}

#[tokio::test]
async fn the_type_is_html_and_the_title_the_wanted_name_unless_told() {
    let server = TestServer::start().await;
    let slug = server
        .publish_slug(&json!({ "content": "<i>as it is</i>" }))
        .await;
    let page = server.get(&format!("/{slug}")).answer().await;
    assert_eq!(page.text(), "<i>as it is</i>");
    let markdown =
        |title| json!({ "content": "text", "type": "markdown", "name": "notes", "title": title });
    for (title, slug, expected) in [
        (json!(null), "notes", "<title>notes</title>"),
        (
            json!("Über <b>"),
            "notes-2",
            "<title>Über &lt;b&gt;</title>",
        ),
    ] {
        assert_eq!(server.publish_slug(&markdown(title)).await, slug);
        let page = server.get(&format!("/{slug}")).answer().await;
        assert!(page.text().contains(expected), "{}", page.text());
    }
}

#[tokio::test]
async fn every_type_is_published() {
    let server = TestServer::start().await;
    for (kind, content) in [
        ("html", "<!doctype html><p>x"),
        ("markdown", "# x"),
        ("mermaid", "flowchart LR\n a --> b"),
        ("json", "[1]"),
        ("csv", "a,b\n1,2"),
    ] {
        let body = json!({ "content": content, "type": kind });
        let slug = server.publish_slug(&body).await;
        let page = server.get(&format!("/{slug}")).answer().await.expect(200);
        assert!(!page.html().is_empty(), "{kind}");
    }
}

#[tokio::test]
async fn a_chosen_slug_has_ten_characters() {
    let server = TestServer::start().await;
    let (one, two) = (
        server.publish_slug(&json!({ "content": "x" })).await,
        server
            .publish_slug(&json!({ "content": "x", "name": null }))
            .await,
    );
    for slug in [&one, &two] {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        assert!(slug.len() == 10 && slug.chars().all(good), "{slug}");
    }
    assert_ne!(one, two);
}

#[tokio::test]
async fn taken_and_reserved_names_get_suffixes() {
    let server = TestServer::start().await;
    let named = |name: &str| json!({ "content": "x", "name": name });
    assert_eq!(server.publish_slug(&named("page")).await, "page");
    for number in 2..=9 {
        assert_eq!(
            server.publish_slug(&named("page")).await,
            format!("page-{number}")
        );
    }
    let random = server.publish_slug(&named("page")).await;
    let suffix = random.strip_prefix("page-").unwrap();
    assert!(suffix.len() > 2, "{random}");
    let reserved = [
        "api", "mcp", "auth", "assets", "healthz", "readyz", "metrics", "problems",
    ];
    for name in reserved {
        assert_eq!(server.publish_slug(&named(name)).await, format!("{name}-2"));
        let page = server.get(&format!("/{name}-2")).answer().await;
        page.expect(200);
    }
    let longest = "a".repeat(63);
    assert_eq!(server.publish_slug(&named(&longest)).await, longest);
    let cut = server.publish_slug(&named(&longest)).await;
    assert_eq!(cut, format!("{}-2", "a".repeat(61)));
    for name in ["a", "7", "a-b", "a--b", "0-0"] {
        assert_eq!(server.publish_slug(&named(name)).await, name);
    }
}

#[tokio::test]
async fn racing_for_one_name_gives_everybody_a_slug_of_their_own() {
    let server = TestServer::start().await;
    let body = json!({ "content": "x", "name": "race" });
    let mut racing = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let request = server.json("/api/v1/deploy", &body);
        racing.spawn(request.answer());
    }
    let answers = racing.join_all().await;
    let slugs: std::collections::BTreeSet<_> = answers
        .into_iter()
        .map(|answer| answer.expect(201).json()["slug"].to_string())
        .collect();
    assert_eq!(slugs.len(), 8, "{slugs:?}");
    assert!(slugs.contains("\"race\""), "{slugs:?}");
}

#[tokio::test]
async fn a_credential_makes_no_difference_but_an_invalid_one_is_refused() {
    let server = TestServer::start().await;
    let command = ["namespace", "create", "acme", "--json"];
    let made = server.command(&crate::svc(), &command).await.json();
    let credential = made["credential"].as_str().unwrap();
    let body = json!({ "content": "x" });
    let with = |value: String| {
        let request = server.json("/api/v1/deploy", &body);
        request.header("authorization", value).answer()
    };
    let deployed = with(format!("Bearer {credential}")).await.expect(201);
    assert_eq!(deployed.json()["expires_at"], "2026-11-27T12:00:00.000Z");
    let before = server.snapshot();
    let mut torn = credential.to_owned();
    torn.pop();
    for value in [
        format!("Bearer {torn}"),
        format!("Bearer {credential}x"),
        "Bearer ${SVC_CREDENTIAL}".to_owned(),
        format!("Basic {credential}"),
        credential.to_owned(),
        // The right form, and the right checksum, of a key that is none.
        "Bearer svc_bbbbbbbb_0000000000000000000000000000000000000000000_000000".to_owned(),
    ] {
        let answer = with(value.clone()).await;
        answer.problem(401, "unauthorized");
        let asks = answer.header("www-authenticate").unwrap();
        assert!(asks.starts_with("Bearer"), "{value}: {asks}");
    }
    assert_eq!(server.snapshot(), before);
    // What a client sends whose variable is not set is none.
    for value in ["Bearer", "bearer ", ""] {
        with(value.to_owned()).await.expect(201);
    }
    // Anywhere else it is no credential: here it is a typo.
    let path = format!("/api/v1/deploy?access_token={credential}");
    let answer = server.json(&path, &body).answer().await;
    answer.problem(400, "invalid_request");
    let named = json!({ "content": "x", "credential": credential });
    let answer = server.json("/api/v1/deploy", &named).answer().await;
    answer.problem(400, "invalid_request");
}

#[tokio::test]
async fn json_is_read_whatever_the_content_type_says() {
    let server = TestServer::start().await;
    for kind in [
        None,
        Some("text/plain"),
        Some("application/json"),
        Some("x"),
    ] {
        let mut request = server.post("/api/v1/deploy").body("{\"content\":\"x\"}");
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        request.answer().await.expect(201);
    }
}

#[tokio::test]
async fn reports_are_taken_for_what_is_there() {
    let server = TestServer::start().await;
    server
        .publish_slug(&json!({ "content": "x", "name": "bad" }))
        .await;
    for (number, reason) in ["phishing", "malware", "abuse", "copyright", "other"]
        .into_iter()
        .enumerate()
    {
        let mut report = json!({ "slug": "bad", "reason": reason });
        if number % 2 == 1 {
            report["details"] = "d".repeat(4000).into();
            report["contact"] = "ü".repeat(320).into();
        }
        let answer = server.json("/api/v1/reports", &report).answer().await;
        let answer = answer.expect(202).json();
        let id = answer["id"].as_str().unwrap();
        assert_eq!(answer, json!({ "id": id }));
        assert_eq!(id.len(), 36);
    }
    let before = server.snapshot();
    for slug in ["nothing", "", "NOT-A-SLUG", &"a".repeat(64)] {
        let report = json!({ "slug": slug, "reason": "other" });
        let answer = server.json("/api/v1/reports", &report).answer().await;
        answer.problem(404, "not_found");
    }
    assert_eq!(server.snapshot(), before);
}
