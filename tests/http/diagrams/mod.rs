//! Diagrams over the wire: every type as a golden file, hostile ones, what is refused and why, and blocks in Markdown.

mod refusals;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use svc_tests::{Answer, ReadAnswer, TestServer};

use self::refusals::active_content;

/// The elements that a page of a diagram is made of.
const ELEMENTS: [&str; 37] = [
    "!DOCTYPE",
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "header",
    "h1",
    "figure",
    "label",
    "input",
    "pre",
    "code",
    "details",
    "summary",
    "svg",
    "desc",
    "g",
    "a",
    "path",
    "rect",
    "circle",
    "ellipse",
    "line",
    "polygon",
    "polyline",
    "text",
    "tspan",
    "defs",
    "marker",
    "clipPath",
    "linearGradient",
    "stop",
    "mask",
    "pattern",
];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/diagrams")
}

/// The diagrams of a folder, each as its name and its source, in order.
fn diagrams(folder: &Path) -> Vec<(String, String)> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "mmd"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    found.sort();
    found
}

async fn publish(server: &TestServer, kind: &str, content: &str) -> Answer {
    server
        .json(
            "/api/v1/deploy",
            &json!({ "type": kind, "content": content, "title": "A diagram" }),
        )
        .answer()
        .await
}

/// The page of what was published.
async fn page(server: &TestServer, answer: Answer) -> String {
    let slug = answer.expect(201).json()["slug"]
        .as_str()
        .unwrap()
        .to_owned();
    server
        .get(&format!("/{slug}"))
        .answer()
        .await
        .expect(200)
        .html()
        .to_owned()
}

/// The drawings of a page.
fn drawings(page: &str) -> Vec<&str> {
    let in_figure = |figure: &'_ str| -> Option<std::ops::Range<usize>> {
        let end = figure.find("</figure>")?;
        Some(figure.find("<svg ")?..figure[..end].rfind("</svg>")? + "</svg>".len())
    };
    page.split("<figure ")
        .skip(1)
        .filter_map(|figure| Some(&figure[in_figure(figure)?]))
        .collect()
}

#[tokio::test]
async fn every_type_is_drawn_as_it_was() {
    let server = TestServer::start().await;
    let is_rewritten = std::env::var_os("UPDATE_GOLDEN").is_some();
    let diagrams = diagrams(&corpus());
    assert!(diagrams.len() > 21);
    let mut differing = Vec::new();
    for (name, source) in diagrams {
        let page = page(&server, publish(&server, "mermaid", &source).await).await;
        assert_eq!(active_content(&page), Vec::<String>::new(), "{name}");
        let [drawing] = drawings(&page)[..] else {
            panic!("{name}: {page}")
        };
        // A line for each element, so that a change can be read.
        let drawing = drawing.replace("><", ">\n<") + "\n";
        let golden = corpus().join(format!("{name}.svg"));
        if is_rewritten {
            fs::write(&golden, &drawing).unwrap();
        } else if fs::read_to_string(&golden).unwrap_or_default() != drawing {
            differing.push(name);
        }
    }
    assert!(
        differing.is_empty(),
        "{differing:?} differ from their golden files: look at them, and run this with UPDATE_GOLDEN=1 if they are right"
    );
}

#[tokio::test]
async fn what_mermaid_draws_is_drawn() {
    let server = TestServer::start().await;
    for (source, shown) in [
        (
            "classDiagram\n  class A {\n    +String name\n    +run() void }\n  A <|-- B",
            "run()",
        ),
        (
            "flowchart TD\n  A[\"costs $$5 and $$6\"] --> B[\"a $x$ b\"]",
            "$$5",
        ),
        ("sequenceDiagram\n", "aria-label=\"Sequence diagram\""),
        (
            "treemap-beta\n\"Root\"\n  \"A\": 10\n  \"B\"\n    \"C\": 20\n",
            "Root",
        ),
    ] {
        let answer = publish(&server, "mermaid", source).await;
        let page = page(&server, answer).await;
        assert_eq!(active_content(&page), Vec::<String>::new(), "{source}");
        let [drawing] = drawings(&page)[..] else {
            panic!("{source}: {page}")
        };
        assert!(drawing.contains(shown), "{shown} in {drawing}");
    }
}

#[tokio::test]
async fn colours_of_an_author_stay_in_the_light() {
    let server = TestServer::start().await;
    let theme = |name: &str| {
        format!(
            "%%{{init: {{'theme':'{name}','themeVariables':{{'primaryColor':'#d40000','primaryTextColor':'#ffffff'}}}}}}%%\nflowchart LR\n  A --> B"
        )
    };
    let answer = publish(&server, "mermaid", &theme("base")).await;
    let page = page(&server, answer).await;
    let (light, dark) = page
        .split_once("@media screen and (prefers-color-scheme:dark){#D")
        .unwrap();
    assert!(
        light.contains(":#d40000;") && !dark.contains(":#d40000;"),
        "{page}"
    );
}

#[tokio::test]
async fn a_drawing_has_a_name_and_both_schemes() {
    let server = TestServer::start().await;
    for (source, name, role) in [
        ("flowchart TD\n  A --> B", "Flowchart", "img"),
        (
            "pie\n  accTitle: Shares & more\n  accDescr: What belongs to whom\n  \"a\" : 1",
            "Shares &amp; more",
            "img",
        ),
        (
            "flowchart TD\n  A --> B\n  click A \"https://example.com/?a=1&b=2\"",
            "Flowchart",
            "group",
        ),
    ] {
        let page = page(&server, publish(&server, "mermaid", source).await).await;
        let drawing = drawings(&page)[0];
        assert!(
            drawing.contains(&format!(" role=\"{role}\" aria-label=\"{name}\"")),
            "{drawing}"
        );
        assert!(
            drawing.contains("@media screen and (prefers-color-scheme:dark)"),
            "{drawing}"
        );
        assert_eq!(
            source.contains("accDescr"),
            drawing.contains("<desc id=\"D0-about\">What belongs to whom</desc>")
        );
        assert_eq!(
            role == "group",
            drawing.contains(
                "<a href=\"https://example.com/?a=1&amp;b=2\" rel=\"noopener noreferrer\""
            )
        );
        // The source follows the drawing, folded.
        assert!(page.contains("</svg><details><summary>Source</summary>"));
        assert!(!page.contains("mermaid-source\">"));
    }
}
