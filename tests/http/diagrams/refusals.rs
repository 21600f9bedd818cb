//! Diagrams that are not drawn: each is told why and where, and none is live or too much.

use std::collections::BTreeSet;
use std::fs;

use svc_tests::TestServer;

use super::{ELEMENTS, corpus, diagrams, drawings, page, publish};

/// The attributes with which something could run or load.
const LIVE: [&str; 8] = [
    "src",
    "srcset",
    "srcdoc",
    "action",
    "formaction",
    "data",
    "background",
    "ping",
];

/// Finds what could run, load or lead somewhere it should not, in a page that is written as ours are.
///
/// It shares nothing with what wrote the page: it cuts the page into tags, and knows what may be in them.
pub(super) fn active_content(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    // The foot is the platform's, and leads to its own pages.
    let mut rest = match page.split_once("<footer class=\"foot\"") {
        Some((before, foot)) => {
            assert_eq!(foot.matches("<a href=").count(), 2, "{foot}");
            before
        }
        None => page,
    };
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, after) = after.split_once('>').expect("a tag that ends");
        rest = after;
        if tag.starts_with('/') {
            continue;
        }
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if !ELEMENTS.contains(&name) {
            found.push(format!("<{tag}>"));
        }
        if name == "style" {
            let (styles, _) = rest.split_once("</style>").expect("styles that end");
            let outside = styles
                .split("url(")
                .skip(1)
                .any(|reference| !reference.starts_with("#D"));
            if outside
                || styles.contains(['\\', '<'])
                || styles.contains("@import")
                || styles.contains("expression")
            {
                found.push(format!("styles: {styles}"));
            }
        }
        while let Some((before, after)) = attributes.split_once("=\"") {
            let attribute = before.trim();
            let (value, after) = after.split_once('"').expect("a value that ends");
            attributes = after;
            // A name is text, whatever it says.
            let outside = attribute != "aria-label"
                && value
                    .split("url(")
                    .skip(1)
                    .any(|reference| !reference.starts_with("#D"));
            let elsewhere = attribute.ends_with("href") && !value.starts_with("https://");
            if LIVE.contains(&attribute) || attribute.starts_with("on") || outside || elsewhere {
                found.push(format!("{name} {attribute}={value:?}"));
            }
        }
    }
    found
}

#[tokio::test]
async fn nothing_in_a_diagram_is_live() {
    // One client publishes them all.
    let builder = TestServer::builder().limits(|limits| limits.cap_client_percent = 100);
    let server = builder.start().await;
    let hostile = corpus().join("hostile");
    let payloads = fs::read_to_string(hostile.join("payloads.json")).unwrap();
    let payloads: Vec<String> = serde_json::from_str(&payloads).unwrap();
    let mut drawn = BTreeSet::new();
    let diagrams = diagrams(&hostile);
    for (name, template) in &diagrams {
        for payload in &payloads {
            // As it is, and as it would have to be to stand between quotes.
            for payload in [
                payload.clone(),
                payload.replace(['\'', '"'], "").replace(['(', ')'], ""),
            ] {
                let source = template.replace("EVIL", &payload);
                let answer = publish(&server, "mermaid", &source).await;
                if answer.status == 400 {
                    let problem = answer.problem(400, "render_failed");
                    let detail = problem["detail"].as_str().unwrap();
                    assert!(
                        !detail.is_empty() && !detail.contains("merman"),
                        "{name}: {problem}"
                    );
                    continue;
                }
                drawn.insert(name.clone());
                let page = page(&server, answer).await;
                assert_eq!(
                    active_content(&page),
                    Vec::<String>::new(),
                    "{name} with {payload}"
                );
            }
        }
    }
    let never: Vec<_> = diagrams
        .iter()
        .filter(|(name, _)| !drawn.contains(name))
        .collect();
    assert!(
        never.is_empty(),
        "no hostile form of these is drawn, so nothing was tried: {never:?}"
    );
}

#[tokio::test]
async fn what_cannot_be_drawn_is_refused_with_its_place() {
    let server = TestServer::start().await;
    for (source, line) in [
        ("flowchart TD\n  A --> B\n  B --> [[[\n", 3),
        ("sequenceDiagram\n  A->>B: hi\n  Z z z\n", 3),
        ("---\ntitle: x\n---\nflowchart TD\n  A --> (\n", 5),
        ("no diagram at all", 1),
        ("\n\nno diagram at all", 3),
        ("pie\n  \"a\" : 1\n  \"b\" : x\n  \"c\" : 2\n", 3),
        (
            "gantt\n  title x\n  dateFormat YYYY-MM-DD\n  section A\n  T :a1, 2026-99-99, 3d\n",
            5,
        ),
        (
            "flowchart TD\n  A --> B\n  B[one (two)] --> C\n  C --> D\n",
            3,
        ),
        (
            "flowchart TD\n  A --> B\n  linkStyle 7 stroke:red\n  B --> C\n",
            3,
        ),
        ("stateDiagram-v2\n  A --> B\n  B ->\n  C --> D\n", 3),
        ("", 0),
    ] {
        let answer = publish(&server, "mermaid", source).await;
        if line == 0 {
            answer.problem(400, "invalid_request");
            continue;
        }
        let problem = answer.problem(400, "render_failed");
        assert_eq!(problem["line"], line, "{source}: {problem}");
        assert!(problem["column"].as_u64() >= Some(1), "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert_eq!(
            detail.contains("flowchart TD"),
            source.contains("no diagram at all"),
            "{problem}"
        );
        for theirs in [
            "Diagram parse error",
            "capability",
            "semantic model",
            "merman",
        ] {
            assert!(!detail.contains(theirs), "{problem}");
        }
    }
}

#[tokio::test]
async fn diagrams_that_are_too_much_end_in_a_budget() {
    let server = TestServer::start().await;
    let names = |count: usize| -> String {
        (0..count)
            .map(|number| format!("{number:x}&"))
            .collect::<String>()
            + "z"
    };
    for (source, budgets) in [
        (
            format!("flowchart TD\n{}", names(10_000)),
            ["fuel", "parts", "memory", "time"].as_slice(),
        ),
        (
            "flowchart TD\n".to_owned() + &"A --> B\n".repeat(7_000),
            &["source_bytes"],
        ),
    ] {
        let problem = publish(&server, "mermaid", &source)
            .await
            .problem(400, "render_failed");
        let budget = problem["budget"].as_str().unwrap_or_default();
        assert!(budgets.contains(&budget), "{problem}");
    }
    let small = publish(&server, "mermaid", "flowchart TD\n  A --> B").await;
    page(&server, small).await;
}

#[tokio::test]
async fn a_type_that_is_not_drawn_is_told_what_is() {
    let server = TestServer::start().await;
    for source in ["zenuml\n  A.b()", "venn-beta\n  set A"] {
        let answer = publish(&server, "mermaid", source).await;
        let problem = answer.problem(400, "render_failed").to_string();
        assert!(
            problem.contains("is not drawn here: use another"),
            "{problem}"
        );
    }
}

#[tokio::test]
async fn a_broken_block_in_markdown_shows_its_source() {
    let server = TestServer::start().await;
    let block = |source: &str| format!("```mermaid\n{source}\n```\n\n");
    let mut source = "# D0\n\n".to_owned() + &block("flowchart LR\n  A --> [[[");
    for number in 0..22 {
        source += &block(&format!("flowchart LR\n  A{number} --> B{number}"));
    }
    let page = page(&server, publish(&server, "markdown", &source).await).await;
    // The broken one counts among the twenty that are tried.
    assert_eq!(drawings(&page).len(), 19, "{page}");
    assert!(page.contains("A --&gt; [[["));
    assert!(page.contains("<pre class=\"mermaid-source\"><code>flowchart LR\n  A21 --&gt; B21"));
    for drawing in drawings(&page) {
        assert_eq!(active_content(drawing), Vec::<String>::new());
    }
    let mut ids = BTreeSet::new();
    for (_, after) in page
        .match_indices(" id=\"")
        .map(|(at, found)| page.split_at(at + found.len()))
    {
        let id = after.split('"').next().unwrap();
        assert!(ids.insert(id), "{id} stands twice");
    }
}
