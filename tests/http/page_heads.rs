//! Surroundings of the content in a rendered page: title, language, previews of links, foot; and the notes on diagrams
//! that are not drawn.

use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

/// Publishes; returns what publishing did and the page.
async fn publish(server: &TestServer, share: &Value) -> (Value, String) {
    let answer = server.json("/api/v1/deploy", share).answer().await;
    let deployed = answer.expect(201).json();
    let slug = deployed["slug"].as_str().unwrap();
    let page = server.get(&format!("/{slug}")).answer().await;
    (deployed, page.text().to_owned())
}

#[tokio::test]
async fn titles_come_from_the_content() {
    let server = TestServer::start().await;
    for (share, title, is_headed) in [
        (
            json!({ "type": "markdown", "content": "---\ntitle: A trip\n---\n# Other" }),
            "A trip",
            true,
        ),
        (
            json!({ "type": "markdown", "content": "# Weekend *trip* :tada:\n\nText." }),
            "Weekend trip 🎉",
            true,
        ),
        (
            json!({ "type": "markdown", "content": "Only text.", "name": "only-text" }),
            "only-text",
            false,
        ),
        (
            json!({ "type": "markdown", "content": "Only text." }),
            "Untitled",
            false,
        ),
        (
            json!({ "type": "html", "content": "<title>Guest &amp; book</title>" }),
            "Guest & book",
            false,
        ),
        (
            json!({ "content": "<p>x", "title": "Given" }),
            "Given",
            false,
        ),
        (
            json!({ "type": "json", "content": "[1]" }),
            "Untitled",
            false,
        ),
        (
            json!({ "type": "json", "content": "[1]", "name": "numbers" }),
            "numbers",
            true,
        ),
        (
            json!({ "type": "csv", "content": "a,b", "title": "Table" }),
            "Table",
            true,
        ),
        (
            json!({ "type": "mermaid", "content": "pie\n \"a\": 1" }),
            "Untitled",
            false,
        ),
        (
            json!({ "type": "mermaid", "content": "pie\n \"a\": 1", "title": "Pie" }),
            "Pie",
            true,
        ),
    ] {
        let (deployed, page) = publish(&server, &share).await;
        assert_eq!(deployed["title"], title, "{share}");
        assert!(deployed.get("warnings").is_none(), "{share}");
        assert_eq!(page.contains("<h1"), is_headed, "{share}: {page}");
        if share["type"].is_string() && share["type"] != "html" {
            assert!(
                page.contains(&format!("<title>{title}</title>")),
                "{share}: {page}"
            );
            assert!(
                page.contains(&format!("<meta property=\"og:title\" content=\"{title}\">")),
                "{page}"
            );
            assert!(
                page.contains("<meta name=\"description\" content=\""),
                "{page}"
            );
        }
    }
}

#[tokio::test]
async fn the_foot_leads_to_the_source_and_the_report() {
    let server = TestServer::start().await;
    for kind in ["markdown", "json", "csv", "mermaid"] {
        let content = if kind == "mermaid" {
            "pie\n \"a\": 1"
        } else {
            "[1]"
        };
        let (deployed, page) = publish(&server, &json!({ "type": kind, "content": content })).await;
        let slug = deployed["slug"].as_str().unwrap();
        let end = deployed["expires_at"].as_str().unwrap();
        assert!(
            page.contains(&format!("<a href=\"/{slug}/raw\">Source</a>")),
            "{page}"
        );
        assert!(
            page.contains(&format!("<time datetime=\"{end}\">")),
            "{page}"
        );
        let (_, report) = page.split_once("href=\"http").unwrap();
        assert!(
            report
                .split('"')
                .next()
                .unwrap()
                .ends_with(&format!("/_svc/report/{slug}"))
        );
    }
    let once =
        json!({ "type": "markdown", "content": "# Secret", "one_time": true, "name": "once" });
    let made = server.json("/api/v1/deploy", &once).answer().await;
    assert_eq!(made.expect(201).json()["title"], "Secret");
    let page = server.post("/once").answer().await.expect(200);
    assert!(!page.text().contains("<footer"), "{}", page.text());
    assert!(
        page.text()
            .contains("og:title\" content=\"A private page\"")
    );
}

#[tokio::test]
async fn protected_pages_tell_previews_nothing() {
    let server = TestServer::start().await;
    let share = json!({ "type": "markdown", "content": "# Secret plan\n\nDetails.", "password": "p", "name": "plan" });
    server
        .json("/api/v1/deploy", &share)
        .answer()
        .await
        .expect(201);
    let locked = server.get("/plan").answer().await.expect(401);
    assert!(
        locked
            .text()
            .contains("og:title\" content=\"This page is protected\""),
        "{}",
        locked.text()
    );
    assert!(!locked.text().contains("Secret"));
}

#[tokio::test]
async fn languages_are_said_where_they_are_sure() {
    let server = TestServer::start().await;
    for (content, language) in [
        ("---\nlang: pt-BR\n---\nText", "pt-BR"),
        (
            "# Protokoll\n\nWir haben das heute besprochen und es ist noch nicht fertig.",
            "de",
        ),
        ("# ملاحظات\n\nهذا نص قصير عن الرحلة إلى البحيرة.", "ar"),
        ("# メモ\n\nこれは短い文章です。", "ja"),
        ("x = 1", "en"),
    ] {
        let (_, page) = publish(&server, &json!({ "type": "markdown", "content": content })).await;
        assert!(
            page.contains(&format!("<html lang=\"{language}\">")),
            "{content}: {page:.80}"
        );
    }
}

#[tokio::test]
async fn a_diagram_that_is_not_drawn_says_why_and_where() {
    let server = TestServer::start().await;
    let content = "---\ntitle: x\n---\n\nBefore.\n\n```mermaid\nflowchart TD\n  A --> B\n```\n\n```mermaid\n<b>nothing</b>\n```\n\n```mermaid\npie\n  \"a\" : x\n```\n";
    let (deployed, page) =
        publish(&server, &json!({ "type": "markdown", "content": content })).await;
    let warnings = deployed["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 2, "{deployed}");
    assert!(
        warnings
            .iter()
            .all(|warning| warning["code"] == "diagram_not_drawn")
    );
    assert_eq!(warnings[0]["line"], 13, "{deployed}");
    assert!(
        [16, 17, 18].contains(&warnings[1]["line"].as_u64().unwrap()),
        "{deployed}"
    );
    assert_eq!(page.matches("<p class=\"not-drawn\">").count(), 2);
    assert!(page.contains("Line 13: "), "{page}");
    assert_eq!(page.matches("<svg").count(), 1);
    assert!(!page.contains("<b>nothing"));
    let many = "```mermaid\npie\n \"a\": 1\n```\n\n".repeat(22);
    let (deployed, page) = publish(&server, &json!({ "type": "markdown", "content": many })).await;
    let lines: Vec<_> = deployed["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["line"].clone())
        .collect();
    assert_eq!(lines, [json!(102), json!(107)]);
    assert_eq!(page.matches("<svg").count(), 20);
}

#[tokio::test]
async fn sources_are_compressed() {
    let server = TestServer::start().await;
    let content = "| a | b |\n|---|---|\n".to_owned() + &"| one | two |\n".repeat(500);
    let slug = server
        .publish_slug(&json!({ "type": "markdown", "content": content }))
        .await;
    let address = format!("/{slug}/raw");
    let plain = server
        .get(&address)
        .header("accept-encoding", "identity")
        .answer()
        .await
        .expect(200);
    assert_eq!(plain.text(), content);
    assert_eq!(plain.headers["vary"], "Accept-Encoding");
    let packed = server
        .get(&address)
        .header("accept-encoding", "gzip, br")
        .answer()
        .await
        .expect(200);
    assert_eq!(packed.headers["content-encoding"], "gzip");
    assert_ne!(packed.headers["etag"], plain.headers["etag"]);
    assert!(packed.body.len() * 5 < content.len());
    let tag = packed.headers["etag"].to_str().unwrap().to_owned();
    let again = server
        .get(&address)
        .header("accept-encoding", "gzip")
        .header("if-none-match", &tag);
    again.answer().await.expect(304);
    let small = server
        .publish_slug(&json!({ "type": "markdown", "content": "small" }))
        .await;
    let answer = server
        .get(&format!("/{small}/raw"))
        .header("accept-encoding", "gzip")
        .answer()
        .await;
    assert!(!answer.expect(200).headers.contains_key("content-encoding"));
}
