//! Pages of each type, as visitors get them. What the renderer does in detail, its own tests say.

use serde_json::json;
use svc_tests::{ReadAnswer, TestServer};

async fn render_page(server: &TestServer, kind: &str, content: &str) -> String {
    let body = json!({ "type": kind, "content": content, "title": "A & <B>" });
    let slug = server.publish_slug(&body).await;
    let page = server.get(&format!("/{slug}")).answer().await.expect(200);
    page.html().to_owned()
}

#[tokio::test]
async fn html_is_served_byte_for_byte() {
    let server = TestServer::start().await;
    for content in [
        "<p>no head at all",
        "\u{feff}<!DOCTYPE html>\r\n<html><head><title>x</title></head></html>\r\n",
        "<script>alert('&amp;\u{0}')</script>",
        "plain text",
    ] {
        assert_eq!(render_page(&server, "html", content).await, content);
    }
}

#[tokio::test]
async fn every_other_page_is_complete_and_loads_nothing() {
    let server = TestServer::start().await;
    for (kind, content) in [
        (
            "markdown",
            "# Title\n\n```rust\nfn main() {}\n```\n\n| a |\n|---|\n| 1 |",
        ),
        ("json", "{\"a\":[1,{\"b\":null}]}"),
        ("csv", "a,b\n1,2"),
        ("mermaid", "flowchart LR\n  a --> b"),
    ] {
        let page = render_page(&server, kind, content).await;
        assert!(page.to_lowercase().starts_with("<!doctype html>"), "{kind}");
        for part in [
            "<html lang=\"",
            "charset=\"utf-8\"",
            "name=\"viewport\"",
            "<title>A &amp; &lt;B&gt;</title>",
            "</html>",
        ] {
            assert!(page.contains(part), "{kind}: {part}");
        }
        for loads in [
            "<script",
            "<link",
            "src=\"http",
            "src=\"//",
            "url(http",
            "url(//",
            "@import",
        ] {
            assert!(!page.contains(loads), "{kind}: {loads}");
        }
    }
}

#[tokio::test]
async fn markdown_has_what_its_dialects_have() {
    let server = TestServer::start().await;
    let source = "# One Heading\n\n## Same\n\n## Same\n\nA [link](https://example.com), ~~struck~~, \
        https://auto.example and a note[^1].\n\n[^1]: The note.\n\n- [x] done\n- [ ] open\n\n\
        | left | right |\n|:--|--:|\n| 1 | 2 |\n\n```rust\nlet x = 1;\n```\n\n<b class=\"raw\">raw</b>\n";
    let page = render_page(&server, "markdown", source).await;
    for part in [
        "id=\"one-heading\"",
        "id=\"same\"",
        "id=\"same-1\"",
        "href=\"https://example.com\"",
        "<del>struck</del>",
        "href=\"https://auto.example\"",
        "The note.",
        "type=\"checkbox\"",
        "<table",
        "<b class=\"raw\">raw</b>",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    assert!(
        !page.contains("let x = 1;"),
        "fenced code is highlighted, in pieces"
    );
}

#[tokio::test]
async fn nothing_in_json_csv_and_mermaid_becomes_markup() {
    let server = TestServer::start().await;
    let evil = "<img src=x onerror=alert(1)></td></pre></svg></script>";
    for (kind, content) in [
        ("json", json!({ evil: [evil] }).to_string()),
        ("csv", format!("{evil},b\n1,{evil}")),
        ("mermaid", format!("flowchart LR\n a[\"{evil}\"] --> b")),
        ("mermaid", evil.to_owned()),
    ] {
        let body = json!({ "type": kind, "content": content, "title": evil });
        let answer = server.json("/api/v1/deploy", &body).answer().await;
        if answer.status == 400 {
            answer.problem(400, "render_failed");
            continue;
        }
        let slug = answer.expect(201).json()["slug"]
            .as_str()
            .unwrap()
            .to_owned();
        let page = server.get(&format!("/{slug}")).answer().await;
        assert!(!page.text().contains("<img"), "{kind}: {}", page.text());
        assert!(page.text().contains("&lt;img"), "{kind}: {}", page.text());
    }
}

#[tokio::test]
async fn json_keeps_the_order_and_spelling_of_its_source() {
    let server = TestServer::start().await;
    let source =
        "{\"zeta\":1.50,\"alpha\":1e400,\"zeta\":-0,\"big\":123456789012345678901234567890}";
    let page = render_page(&server, "json", source).await;
    let mut rest = page.as_str();
    for part in [
        "zeta",
        "1.50",
        "alpha",
        "1e400",
        "zeta",
        "-0",
        "big",
        "123456789012345678901234567890",
    ] {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("{part} in its place\n{page}"));
        rest = &rest[at + part.len()..];
    }
}

#[tokio::test]
async fn csv_shows_every_row() {
    let server = TestServer::start().await;
    let mut source = "\u{feff}name,\"a \"\"quoted\"\"\r\nheader\"\r\n".to_owned();
    for number in 0..500 {
        source.push_str(&format!("row-{number}-end\r\n"));
    }
    source.push_str("one,two,three\r\n");
    let page = render_page(&server, "csv", &source).await;
    for number in 0..500 {
        assert!(page.contains(&format!("row-{number}-end")), "{number}");
    }
    assert!(
        page.contains("a \"quoted\"\r\nheader") || page.contains("a &quot;quoted&quot;\r\nheader"),
        "{page:.3000}"
    );
    assert!(!page.contains('\u{feff}'), "the byte order mark is dropped");
    // Ragged rows are padded to the widest, the header among them.
    let count = |tag: &str| page.matches(tag).count();
    assert_eq!(
        count("<th") - count("<thead"),
        3,
        "the first row is the header"
    );
    assert_eq!(count("<td"), 501 * 3);
}

#[tokio::test]
async fn the_same_source_gives_the_same_page() {
    let server = TestServer::start().await;
    let source = "# x\n\n```js\nlet a;\n```\n[^a]\n\n[^a]: b";
    // The foot of a page names its address.
    let main = |page: String| page.split_once("</main>").unwrap().0.to_owned();
    let first = main(render_page(&server, "markdown", source).await);
    assert_eq!(main(render_page(&server, "markdown", source).await), first);
}
