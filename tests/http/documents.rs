//! Documents as people paste them, rendered over the wire: no mark is left that should have become something.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use svc_tests::{ReadAnswer, TestServer};

/// The documents, each as its name, its type and its text.
fn documents() -> Vec<(String, &'static str, String)> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/documents");
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let kind = match path.extension()?.to_str()? {
                "md" => "markdown",
                "csv" => "csv",
                "json" => "json",
                _ => return None,
            };
            let name = path.file_stem()?.to_str()?.to_owned();
            Some((name, kind, fs::read_to_string(&path).unwrap()))
        })
        .collect();
    found.sort();
    found
}

/// Returns the text of a page as a reader sees it: without code, formulas and drawings, which may show what they like.
fn prose_text(page: &str) -> String {
    let (_, main) = page.split_once("<main>").unwrap();
    let mut rest = main.split_once("</main>").unwrap().0.to_owned();
    for element in ["pre", "code", "math", "svg"] {
        let (open, close) = (format!("<{element}"), format!("</{element}>"));
        while let Some(start) = rest.find(&open) {
            let end = rest[start..].find(&close).unwrap() + start + close.len();
            rest.replace_range(start..end, "");
        }
    }
    let mut prose = String::new();
    for part in rest.split('<') {
        prose.push_str(part.split_once('>').map_or(part, |(_, text)| text));
    }
    prose
}

#[tokio::test]
async fn no_mark_is_left_that_should_have_become_something() {
    let server = TestServer::start().await;
    let documents = documents();
    assert!(documents.len() >= 60, "{}", documents.len());
    for (name, kind, content) in documents {
        let share = json!({ "type": kind, "content": content });
        let answer = server.json("/api/v1/deploy", &share).answer().await;
        let deployed = answer.expect(201).json();
        let warnings = deployed["warnings"].as_array().map_or(0, Vec::len);
        assert_eq!(
            warnings,
            usize::from(name == "answer-broken"),
            "{name}: {deployed}"
        );
        let slug = deployed["slug"].as_str().unwrap();
        let page = server.get(&format!("/{slug}")).answer().await.expect(200);
        let page = page.text();
        assert!(
            !page.contains("class=\"math\" title"),
            "{name}: a formula is not drawn: {page}"
        );
        match kind {
            "csv" => check_table(&name, &content, page),
            "json" => assert_eq!(
                without_markup(&tree_text(page)),
                without_markup(&content),
                "{name}"
            ),
            _ => check_prose(&name, page),
        }
    }
}

/// A table is cut where its dialect has it cut, and has lost the marks of it.
fn check_table(name: &str, content: &str, page: &str) {
    let (_, main) = page.split_once("<main>").unwrap();
    let (table, _) = main.split_once("</table>").unwrap();
    let (head, body) = table.split_once("</thead>").unwrap();
    let cells = |part: &str, tag: &str| -> Vec<String> {
        let parts = part.split(tag).skip(1);
        parts
            .map(|part| text(part.split_once('>').unwrap().1.split_once("</").unwrap().0))
            .collect()
    };
    let names = cells(head, "<th ");
    assert!(names.len() > 1, "{name}: {names:?}");
    let said = content.trim_start_matches('\u{feff}');
    for cell in names.iter().chain(&cells(body, "<td")) {
        assert!(!cell.contains('\u{feff}'), "{name}: {cell}");
        assert!(!cell.starts_with("sep="), "{name}: {cell}");
        for mark in ["\";", "\",", ";\"", ",\"", "\"\""] {
            assert!(!cell.contains(mark), "{name}: {cell}");
        }
        // Nothing of the file is lost, and nothing is made up.
        assert!(
            said.contains(&cell.replace('"', "\"\"")) || said.contains(cell.as_str()),
            "{name}: {cell}"
        );
    }
    let rows = body.matches("<tr>").count();
    assert_eq!(
        body.matches("<td").count(),
        rows * names.len(),
        "{name}: every row has every column"
    );
    if let Some((_, rows_wanted, columns)) = TABLES.iter().find(|(file, ..)| *file == name) {
        assert_eq!((rows, names.len()), (*rows_wanted, *columns), "{name}");
    }
}

/// The tables that are easily misread, with their rows and columns.
const TABLES: [(&str, usize, usize); 3] = [
    ("bank-preamble", 11, 9),
    ("bank-newlines", 5, 6),
    ("bank-quoted", 5, 4),
];

/// The text of a page's tree, without the counts of entries and what stands for folded ones.
fn tree_text(page: &str) -> String {
    let (_, tree) = page.split_once("<div class=\"tree\"").unwrap();
    let (_, tree) = tree.split_once('>').unwrap();
    let mut rest = tree.split_once("</div></main>").unwrap().0.to_owned();
    for element in ["i", "u"] {
        let (open, close) = (format!("<{element}>"), format!("</{element}>"));
        while let Some(start) = rest.find(&open) {
            let end = rest[start..].find(&close).unwrap() + start + close.len();
            rest.replace_range(start..end, "");
        }
    }
    let mut shown = String::new();
    for part in rest.split('<') {
        shown.push_str(part.split_once('>').map_or(part, |(_, text)| text));
    }
    text(&shown)
}

/// Text out of HTML without elements.
fn text(html: &str) -> String {
    html.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

fn without_markup(text: &str) -> String {
    text.chars().filter(|char| !char.is_whitespace()).collect()
}

/// Prose has become what its marks say.
fn check_prose(name: &str, page: &str) {
    let (before, note) = page
        .split_once("<p class=\"not-drawn\">")
        .unwrap_or((page, "</p>"));
    let prose = prose_text(&format!("{before}{}", note.split_once("</p>").unwrap().1));
    for mark in [
        "**", "__", "~~", "$$", "`", "](", "[!", "[^", "- [", "|-", "| ", "](", "---", "&lt;b",
        "##", "\\(",
    ] {
        assert!(!prose.contains(mark), "{name}: {mark} in {prose}");
    }
    for line in prose.lines().map(str::trim_start) {
        let is_left = ["# ", "> ", "&gt; ", "- ", "title:", "lang:"]
            .iter()
            .any(|mark| line.starts_with(mark));
        assert!(!is_left, "{name}: {line}");
    }
    let words = prose.split_whitespace();
    let shortcode = words.clone().find(|word| {
        let inner = word
            .strip_prefix(':')
            .and_then(|word| word.strip_suffix(':'));
        inner.is_some_and(|inner| {
            !inner.is_empty()
                && inner
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        })
    });
    assert_eq!(shortcode, None, "{name}");
}

#[tokio::test]
async fn documents_are_in_their_languages() {
    let server = TestServer::start().await;
    let mut checked = 0;
    for (name, _, content) in documents() {
        let Some(language) = name
            .strip_prefix("notes-")
            .filter(|language| *language != "mixed")
        else {
            continue;
        };
        let share = json!({ "type": "markdown", "content": content });
        let slug = server.publish_slug(&share).await;
        let page = server.get(&format!("/{slug}")).answer().await;
        let expected = format!("<html lang=\"{language}\">");
        assert!(
            page.text().contains(&expected),
            "{name}: {:.60}",
            page.text()
        );
        checked += 1;
    }
    assert!(checked > 12);
}
