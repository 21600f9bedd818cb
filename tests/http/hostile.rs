//! Hostile content: whatever it is, it costs its sender a clear refusal at most, and nobody else anything.

use serde::Deserialize;
use serde_json::json;
use svc_tests::{ReadAnswer, TestServer};

const CONTENT: &str = include_str!("../corpus/hostile/content.json");
const BODIES: &str = include_str!("../corpus/hostile/bodies.json");

/// A source of the corpus.
#[derive(Deserialize)]
struct HostileSource {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    parts: Vec<(String, usize)>,
}

impl HostileSource {
    fn source(&self) -> String {
        self.parts
            .iter()
            .map(|(text, times)| text.repeat(*times))
            .collect()
    }
}

#[tokio::test]
async fn every_source_ends_as_a_page_or_says_why_not() {
    let server = TestServer::start().await;
    let corpus: Vec<HostileSource> = serde_json::from_str(CONTENT).unwrap();
    assert!(corpus.len() > 50);
    let (mut pages, mut refused) = (0, 0);
    for hostile in corpus {
        let (source, what) = (
            hostile.source(),
            format!("{} {}", hostile.kind, hostile.name),
        );
        let body = json!({ "type": hostile.kind, "content": source }).to_string();
        assert!(
            body.len() <= 1_048_576,
            "{what} is larger than a body may be"
        );
        let before = server.snapshot();
        let answer = server.post("/api/v1/deploy").body(body).answer().await;
        assert!(
            matches!(answer.status, 201 | 400),
            "{what}: {}",
            answer.text()
        );
        if answer.status == 201 {
            pages += 1;
            let slug = answer.json()["slug"].as_str().unwrap().to_owned();
            let page = server.get(&format!("/{slug}")).answer().await;
            assert_eq!(page.status, 200, "{what}");
            assert!(!page.html().is_empty(), "{what}");
            let raw = server.get(&format!("/{slug}/raw")).answer().await;
            assert!(raw.body == source.as_bytes(), "{what}");
        } else {
            refused += 1;
            if source.trim().is_empty() {
                answer.problem(400, "invalid_request");
                continue;
            }
            let problem = answer.problem(400, "render_failed");
            let place =
                problem["line"].as_u64() >= Some(1) && problem["column"].as_u64() >= Some(1);
            let budget = problem["budget"].is_string();
            // Of some diagrams nobody can say where they are wrong.
            let nowhere = hostile.kind == "mermaid" && !place && !budget;
            assert!(
                place != budget || nowhere,
                "{what}: a place or a budget: {problem}"
            );
            assert_eq!(server.snapshot(), before, "{what}");
        }
    }
    assert!(
        pages > 10 && refused > 10,
        "{pages} pages, {refused} refused"
    );
    server.get("/healthz").answer().await.expect(200);
    server
        .deploy(&json!({ "content": "# fine", "type": "markdown" }))
        .await;
}

#[tokio::test]
async fn bodies_that_are_no_text_are_refused() {
    let server = TestServer::start().await;
    let before = server.snapshot();
    let bodies: Vec<String> = serde_json::from_str(BODIES).unwrap();
    for hex in bodies {
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let body: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        for path in ["/api/v1/deploy", "/api/v1/reports"] {
            let answer = server.post(path).body(body.clone()).answer().await;
            assert_eq!(answer.status, 400, "{hex}: {}", answer.text());
            let code = answer.json()["code"].as_str().unwrap().to_owned();
            assert!(code.starts_with("invalid_"), "{hex}: {code}");
        }
    }
    assert_eq!(server.snapshot(), before);
}

/// A flood of renders has its threads, and page views do not wait for them.
#[tokio::test]
async fn pages_are_served_while_renders_flood() {
    let server = TestServer::start().await;
    server
        .publish_slug(&json!({ "content": "calm", "name": "calm" }))
        .await;
    let heavy = json!({ "type": "markdown", "content": "*a **a ".repeat(60_000) });
    let mut flood = tokio::task::JoinSet::new();
    for _ in 0..8 {
        flood.spawn(server.json("/api/v1/deploy", &heavy).answer());
    }
    let mut served = 0;
    while flood.try_join_next().is_none() {
        let page = server.get("/calm").answer().await.expect(200);
        assert_eq!(page.text(), "calm");
        served += 1;
    }
    assert!(served > 1, "views went on while renders ran: {served}");
    for answer in flood.join_all().await {
        assert!(
            matches!(answer.status, 201 | 400 | 503),
            "{}",
            answer.text()
        );
    }
}
