//! JSON in, trees out: spelling, places of errors, depth and size.

use crate::tests::{body, page, source};
use crate::{Malformed, Place, RenderError, render};

/// The tree as a reader sees it, the counts of entries left out.
fn shown(text: &str) -> String {
    let html = body(&page("json", text).html);
    let (_, tree) = html.split_once("aria-label=\"JSON\">\n").unwrap();
    let tree = tree.strip_suffix("</div>").unwrap();
    let mut shown = String::new();
    let mut is_count = false;
    for part in tree.split_inclusive('>') {
        let (text, tag) = part.rsplit_once('<').unwrap_or((part, ""));
        if !is_count {
            shown.push_str(text.trim_matches('\n'));
        }
        is_count = matches!(tag, "i>" | "u>");
    }
    for (entity, char) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ] {
        shown = shown.replace(entity, char);
    }
    shown
}

#[test]
fn order_and_spelling_stay() {
    for (text, expected) in [
        (" 1.0e+10 ", "1.0e+10"),
        ("\u{feff}-0.00", "-0.00"),
        (
            "123456789012345678901234567890.10",
            "123456789012345678901234567890.10",
        ),
        (r#""\u00e9\/\ud800 <b>&\"""#, r#""\u00e9\/\ud800 <b>&\"""#),
        (
            "{\"b\":1,\n\"a\" : [ ], \"b\":{ }}",
            "{\"b\": 1,\"a\": [ ],\"b\": { }}",
        ),
        (
            "[true,false,null,[\"]\",\"{,\\\\\"]]",
            "[true,false,null,[\"]\",\"{,\\\\\"]]",
        ),
    ] {
        assert_eq!(shown(text), expected);
    }
}

#[test]
fn containers_fold_and_say_their_size() {
    let html = page("json", r#"{"a":[1],"b":{"c":{"d":{"e":{}, "f":[0]}}}}"#).html;
    for part in [
        "<details class=\"o\" open><summary>{<u>}</u><i>2 entries</i></summary>",
        "<details class=\"a\" open><summary><b>&quot;a&quot;</b>: [<u>],</u><i>1 item</i></summary>",
        "<details class=\"a\"><summary><b>&quot;f&quot;</b>: [<u>]</u><i>1 item</i></summary>",
        "<div><b>&quot;e&quot;</b>: <span class=\"r\">{}</span>,</div>",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    let large = format!("[[{}0],[1]]", "0,".repeat(200));
    let html = page("json", &large).html;
    assert!(
        html.contains("<details class=\"a\"><summary>[<u>],</u><i>201 items</i>"),
        "{html}"
    );
}

#[test]
fn many_entries_stand_in_groups() {
    for (text, groups) in [
        (format!("[{}0]", "0,".repeat(99)), 0),
        (format!("[{}0]", "0,".repeat(100)), 2),
        (format!("[{}0]", "[1],".repeat(249)), 3),
        (format!("[{}{{}}]", "{\"a\":[]},".repeat(300)), 4),
        (format!("{{\"a\":[{}0]}}", "0,".repeat(100)), 2),
    ] {
        let html = page("json", &text).html;
        assert_eq!(html.matches("<div class=\"k\">").count(), groups, "{text}");
        for tag in ["div", "details", "summary"] {
            let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
            assert_eq!(html.matches(&open).count(), html.matches(&close).count());
        }
        let source = text.replace("\"a\":", "\"a\": ");
        assert_eq!(shown(&text), source);
    }
}

#[test]
fn errors_have_places() {
    for (text, line, column) in [
        ("", 1, 1),
        (" \n ", 2, 2),
        ("{\"a\": }", 1, 7),
        ("{\"ü😀\": x}", 1, 8),
        ("[1,\n2,\n]", 3, 1),
        ("[1,\r\n\"ü\" 2]", 2, 5),
        ("{\"a\":1,", 1, 8),
        ("{\"a\":1}\n\n  x", 3, 3),
        ("nul\n", 1, 4),
        ("\"a\nb\"", 1, 3),
        ("[01]", 1, 3),
        ("\"\\é\"", 1, 3),
        ("'a'", 1, 1),
        ("[1 2]", 1, 4),
        ("\0", 1, 1),
        ("\u{feff}\u{feff}1", 1, 1),
    ] {
        let Err(RenderError::Malformed(Malformed { message, place })) =
            render(&source("json", text))
        else {
            panic!("{text:?} passed");
        };
        assert_eq!(place, Some(Place { line, column }), "{text:?}: {message}");
        assert!(
            message.starts_with("This is not valid JSON: ") && !message.contains(" column "),
            "{message}"
        );
    }
}

#[test]
fn depth_ends_in_plain_source() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(shown(&deep(100_000)).len(), 200_000);
    let html = page("json", &deep(100_000)).html;
    assert_eq!(html.matches("<details").count(), 100);
    let objects = format!("{}1{}", "{\"a\":[".repeat(70), "]}".repeat(70));
    assert_eq!(
        page("json", &format!("[{objects},{objects}]"))
            .html
            .matches("<details")
            .count(),
        199
    );
    assert!(render(&source("json", &"[".repeat(1_000_000))).is_err());
    assert!(render(&source("json", &"{\"\":".repeat(200_000))).is_err());
}

#[test]
fn large_pages_are_refused() {
    let mut source = source("json", &format!("[{}0]", "0,".repeat(500_000)));
    source.page_bytes = 1 << 20;
    assert_eq!(render(&source), Err(RenderError::TooLarge));
}
