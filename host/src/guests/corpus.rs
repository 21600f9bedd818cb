//! Corpus that every guest has to pass before it may serve. Renderers: sources of every type, hostile ones among them, and rules
//! for the pages. Gates: the whole corpus of SQL; the verdicts must be those of the built-in gate.

use svc_sandbox::{ContentType, SqlPurpose};

/// A source to render.
pub(super) struct RenderTestCase {
    pub(super) name: &'static str,
    pub(super) content_type: ContentType,
    pub(super) text: &'static str,
    /// Whether the source is malformed: the guest may refuse it.
    pub(super) broken: bool,
}

const fn render_case(
    name: &'static str,
    content_type: ContentType,
    text: &'static str,
) -> RenderTestCase {
    RenderTestCase {
        name,
        content_type,
        text,
        broken: false,
    }
}

const fn malformed_case(
    name: &'static str,
    content_type: ContentType,
    text: &'static str,
) -> RenderTestCase {
    RenderTestCase {
        name,
        content_type,
        text,
        broken: true,
    }
}

/// Title of every case.
pub(super) const CASE_TITLE: &str = "Fish & <chips> \"for\" 'two'";

/// Cases for renderers.
pub(super) const RENDER_CASES: [RenderTestCase; 22] = [
    render_case(
        "html document",
        ContentType::Html,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><title>Mine</title></head><body><script>let a = 1 < 2;</script>ü</body></html>\n",
    ),
    render_case("html fragment", ContentType::Html, "<p>hello <b>world"),
    render_case(
        "html with broken tags",
        ContentType::Html,
        "<<p <!-- <head> --> \u{feff}\r\n</b",
    ),
    render_case("html empty", ContentType::Html, " "),
    render_case(
        "markdown text",
        ContentType::Markdown,
        "# Heading\n\nA *paragraph* with `code`, a [link](https://example.com) and ~~nothing~~.\n\n- [x] one\n- [ ] two\n\n> quoted\n",
    ),
    render_case(
        "markdown table and footnote",
        ContentType::Markdown,
        "| a | b |\n|---|--:|\n| 1 | 2 |\n\nText[^1].\n\n[^1]: Note.\n",
    ),
    render_case(
        "markdown code",
        ContentType::Markdown,
        "```rust\nfn main() { println!(\"</code></pre><script>alert(1)</script>\"); }\n```\n\n    indented <script>\n",
    ),
    render_case(
        "markdown diagrams",
        ContentType::Markdown,
        "Before.\n\n```mermaid\nflowchart TD\n  A[One] --> B[Two]\n```\n\nBetween.\n\n```mermaid\nthis is none\n```\n\nAfter.\n",
    ),
    render_case(
        "markdown deep",
        ContentType::Markdown,
        ">>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>[[[[[[[[[[[[[[[[[[[[[[[[******************************** x",
    ),
    render_case("markdown empty", ContentType::Markdown, "\n"),
    render_case(
        "json value",
        ContentType::Json,
        "{\"a\": [1, 2.50, 1e400, -0, true, null], \"a\": \"ü\\u0000\", \"\": {}}",
    ),
    render_case(
        "json hostile",
        ContentType::Json,
        "{\"</script><script>alert(1)</script>\": \"<img src=x onerror=alert(1)>\", \"u\": \"javascript:alert(1)\"}",
    ),
    render_case("json scalar", ContentType::Json, " 17 "),
    malformed_case("json broken", ContentType::Json, "{\"a\": oops}"),
    render_case(
        "csv table",
        ContentType::Csv,
        "\u{feff}name,note\r\n\"a, b\",\"two\r\nlines\"\r\nragged\r\n\"say \"\"hi\"\"\",1,2\r\n",
    ),
    render_case(
        "csv hostile",
        ContentType::Csv,
        "<script>alert(1)</script>,\"<img src=x onerror=alert(1)>\"\n=1+1,</td></table><iframe src=//e.example>\n",
    ),
    malformed_case("csv broken", ContentType::Csv, "a,\"b\nc"),
    render_case("csv one cell", ContentType::Csv, "x"),
    render_case(
        "mermaid flowchart",
        ContentType::Mermaid,
        "flowchart LR\n  A[Start] --> B{Choice}\n  B -->|yes| C\n  B -->|no| D\n",
    ),
    render_case(
        "mermaid sequence",
        ContentType::Mermaid,
        "sequenceDiagram\n  Alice->>Bob: Hello\n  Bob-->>Alice: Hi\n",
    ),
    render_case(
        "mermaid hostile",
        ContentType::Mermaid,
        "flowchart TD\n  A[\"<img src=x onerror=alert(1)>\"] --> B[\"<script>alert(1)</script>\"]\n  click A href \"javascript:alert(1)\"\n",
    ),
    malformed_case(
        "mermaid broken",
        ContentType::Mermaid,
        "flowchart TD\n  A --> [[[\n",
    ),
];

/// An SQL text to judge.
#[derive(Clone, Debug)]
pub(super) struct GateTestCase {
    pub(super) name: String,
    pub(super) purpose: SqlPurpose,
    pub(super) sql: String,
    /// Whether the gate must allow it.
    pub(super) accepted: bool,
}

macro_rules! sql {
    ($folder:literal: $($name:literal)+) => {
        [$((concat!($folder, "/", $name), include_str!(concat!("../../../tests/corpus/sql/", $folder, "/", $name, ".sql")))),+]
    };
}

const ACCEPTED_SQL: [(&str, &str); 15] = sql!("accepted": "comments_and_space" "compounds" "ctes" "files" "functions" "insert" "joins" "json"
    "migrations" "queries" "schemas" "select" "unusual" "update_and_delete" "windows");

const REFUSED_SQL: [(&str, &str); 10] = sql!("refused": "binds" "classes" "files" "functions" "reserved_names" "scripts" "several"
    "sqlites_own" "stored" "syntax");

/// Returns all SQL texts of the corpus; `tests/corpus/sql/README.md` describes the files.
pub(super) fn gate_cases() -> Vec<GateTestCase> {
    let files = ACCEPTED_SQL.map(|file| (file, true)).into_iter();
    files
        .chain(REFUSED_SQL.map(|file| (file, false)))
        .flat_map(|((name, text), accepted)| {
            let text = text.strip_suffix('\n').unwrap_or(text);
            let pieces = text.split("\n-- ----\n").enumerate();
            pieces.map(move |(number, piece)| {
                parse_case(format!("{name} {}", number + 1), piece, accepted)
            })
        })
        .collect()
}

fn parse_case(name: String, piece: &str, accepted: bool) -> GateTestCase {
    let mut rest = piece;
    let mut header = |name: &str| {
        let line = rest.split('\n').next()?;
        let value = line.strip_prefix("-- ")?.strip_prefix(name)?;
        rest = rest.get(line.len() + 1..).unwrap_or("");
        Some(value.trim_start_matches(':').trim())
    };
    let purpose = match header("purpose:") {
        Some("query") => SqlPurpose::Query,
        Some("schema") => SqlPurpose::Schema,
        Some("migration") => SqlPurpose::Migration,
        _ => SqlPurpose::Action,
    };
    // Positions and reasons belong to the built-in gate: other gates may choose their own.
    let _ = (header("at:"), header("says:"));
    let escaped = header("escapes").is_some();
    GateTestCase {
        name,
        purpose,
        sql: if escaped {
            unescape(rest)
        } else {
            rest.to_owned()
        },
        accepted,
    }
}

fn unescape(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after.strip_prefix('u').and_then(|code| code.get(..4));
        let (character, length) = match (after.chars().next(), code) {
            (Some('0'), _) => (Some('\0'), 1),
            (Some('t'), _) => (Some('\t'), 1),
            (Some('v'), _) => (Some('\u{b}'), 1),
            (_, Some(code)) => (
                u32::from_str_radix(code, 16).ok().and_then(char::from_u32),
                5,
            ),
            _ => (None, 0),
        };
        out.extend(character);
        rest = after.get(length..).unwrap_or("");
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_corpus_is_among_them() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/sql");
        for (kind, known) in [
            ("accepted", &ACCEPTED_SQL[..]),
            ("refused", &REFUSED_SQL[..]),
        ] {
            let mut found: Vec<String> = std::fs::read_dir(folder.join(kind))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .map(|path| format!("{kind}/{}", path.file_stem().unwrap().to_str().unwrap()))
                .collect();
            found.sort();
            let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            assert_eq!(found, known);
        }
    }

    #[test]
    fn every_type_of_content_is_asked_about() {
        for kind in ContentType::ALL {
            let asked = RENDER_CASES.iter().any(|case| case.content_type == kind);
            assert!(asked, "no source of {kind}");
        }
    }

    #[test]
    fn pieces_are_read_with_their_headers() {
        let cases = gate_cases();
        assert!(cases.len() > 700, "{}", cases.len());
        let of = |accepted| {
            cases
                .iter()
                .filter(|case| case.accepted == accepted)
                .count()
        };
        assert!(of(true) > 400 && of(false) > 250);
        let piece = "-- purpose: query\n-- at: 1:2\n-- says: no\n-- escapes\nSELECT\\t1\\u0041\\0";
        let case = parse_case("x".to_owned(), piece, false);
        assert_eq!(
            (case.purpose, case.sql.as_str()),
            (SqlPurpose::Query, "SELECT\t1A\0")
        );
    }
}
