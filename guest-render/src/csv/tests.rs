//! CSV in, tables out: quoting, ragged rows, blank lines and blow-ups.

use crate::tests::{body, page, source};
use crate::{Malformed, Place, RenderError, RuntimeScript, render};

/// The rows of the table, cells with bars between.
fn rows(text: &str) -> Vec<String> {
    let html = body(&page("csv", text).html);
    let cells = html
        .replace(" dir=\"auto\"", "")
        .replace("<th scope=\"col\">", "|")
        .replace("<td>", "|")
        .replace("</th>", "")
        .replace("</td>", "");
    cells
        .split("<tr>")
        .skip(1)
        .map(|row| row.split_once("</tr>").unwrap().0.to_owned())
        .collect()
}

#[test]
fn rows_and_cells() {
    for (text, expected) in [
        ("a,b\n1,2\n", &["|a|b", "|1|2"][..]),
        ("\u{feff}a,b\r\n1,2", &["|a|b", "|1|2"]),
        ("a\n\"x\r\ny\"\n\"q\"\"q\"", &["|a", "|x\r\ny", "|q&quot;q"]),
        ("a,b,c\n1\n1,2,3,4\n", &["|a|b|c|", "|1|||", "|1|2|3|4"]),
        ("a\n<b>&'\0", &["|a", "|&lt;b&gt;&amp;&#39;\u{fffd}"]),
        ("a\n\n1\n\"\"\n\n", &["|a", "|", "|1", "|"]),
        ("\r\n\r\na\r\n\r\n1\r\n\r\n", &["|a", "|", "|1"]),
        ("a,\"b\nc\"\n,\n", &["|a|b\nc", "||"]),
        ("a\"b\",\"c\"d\n", &["|a&quot;b&quot;|cd"]),
        ("", &[]),
        ("\n\n", &[]),
    ] {
        assert_eq!(rows(text), expected, "{text:?}");
    }
}

#[test]
fn dialects_are_told_apart() {
    for (text, expected) in [
        ("a;b\n1,50;2\n", &["|a|b", "|1,50|2"][..]),
        ("a\tb\n1,5\t\"x\ty\"\n", &["|a|b", "|1,5|x\ty"]),
        ("sep=;\na,b;c\n1;2", &["|a,b|c", "|1|2"]),
        ("\u{feff}SEP=|\r\na|b\r\n", &["|a|b"]),
        ("sep=\t\na\tb", &["|a|b"]),
        ("sep=ab\n", &["|sep=ab"]),
        ("sep=\"\n\"", &["|sep=&quot;", "|"]),
        ("a;b,c\n", &["|a;b|c"]),
        ("\"a,b\";c\n", &["|a,b|c"]),
        ("a;b\tc;d\n", &["|a|b\tc|d"]),
        ("a\n1;2\n", &["|a", "|1;2"]),
    ] {
        if text.ends_with("\n\"") {
            assert!(render(&source("csv", text)).is_err(), "{text:?}");
            continue;
        }
        assert_eq!(rows(text), expected, "{text:?}");
    }
}

#[test]
fn numbers_are_known_in_every_countrys_writing() {
    for number in [
        "1",
        "-1.5",
        "+3",
        "1,234.50",
        "1.234,56",
        "1 234,56",
        "1'234.50",
        "1\u{a0}234",
        "€ 5,00",
        "12,5 %",
        "1e-5",
        "2E10",
        ".5",
        "(1.00)",
        "-1.234,56 €",
        "1.200 EUR",
        "CHF 7.–".trim_end_matches('–'),
        "1_000",
    ] {
        assert!(super::is_number(number), "{number}");
    }
    for text in [
        "",
        "a",
        "2026-01-02",
        "01.02.2026",
        "10:30",
        "1.2.3",
        "192.168.0.1",
        "0171 1234567",
        "v1",
        "1a",
        "e5",
        "12/3",
        "+",
        "DE89 3704 0044",
    ] {
        assert!(!super::is_number(text), "{text}");
    }
}

#[test]
fn only_what_was_given_is_a_heading() {
    for (title, name, heading) in [
        (None, None, None),
        (Some("Sales"), None, Some("Sales")),
        (None, Some("q3"), Some("q3")),
    ] {
        let mut source = source("csv", "a,b\n1,2\n");
        source.title = title.map(str::to_owned);
        source.name = name.map(str::to_owned);
        let page = render(&source).unwrap();
        assert_eq!(page.title.as_deref(), heading);
        let shown = heading.map(|heading| format!("<h1 dir=\"auto\">{heading}</h1>"));
        assert_eq!(page.html.contains("<h1"), shown.is_some());
        let unseen = "<p class=\"unseen\" lang=\"en\" role=\"heading\" aria-level=\"1\">Table of 1 row, 2 columns</p>";
        assert_eq!(page.html.contains(unseen), shown.is_none());
        assert!(shown.is_none_or(|shown| page.html.contains(&shown)));
        assert!(
            page.html.contains(
                "<meta name=\"description\" content=\"A table of 1 row, 2 columns: a, b\">"
            )
        );
    }
}

#[test]
fn wide_tables_take_several_lines_on_paper() {
    let wide = page("csv", &format!("{}\n", "a,".repeat(20))).html;
    assert!(wide.contains("@media print{tr{display:flex;flex-wrap:wrap;"));
    assert!(
        !page("csv", "a,b\n")
            .html
            .contains("@media print{tr{display:flex")
    );
}

#[test]
fn the_table_says_what_it_is() {
    let html = page("csv", "name,price\nA,1.50\nB,\"2,000\"\n").html;
    for part in [
        "<caption>2 rows, 2 columns</caption>\n<thead>\n<tr><th scope=\"col\" dir=\"auto\">name</th>",
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Table\">",
        "tr>:nth-child(2){text-align:right;white-space:nowrap}",
        "</thead>\n<tbody>\n<tr><td dir=\"auto\">A</td>",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(!html.contains("nth-child(1)"));
    assert!(
        page("csv", "a\n1\n")
            .html
            .contains("<caption>1 row, 1 column</caption>")
    );
}

#[test]
fn a_table_scrolls_only_where_it_is_long() {
    for (rows, is_tall) in [(0, false), (40, false), (199, false), (200, true)] {
        let html = page("csv", &format!("a\n{}", "1\n".repeat(rows))).html;
        assert_eq!(
            html.contains("<div class=\"scroll tall\" "),
            is_tall,
            "{rows}"
        );
    }
}

#[test]
fn there_is_room_for_tools_where_the_runtime_brings_them() {
    let mut source = source("csv", "a\n1\n");
    assert!(!render(&source).unwrap().html.contains("class=\"tools\""));
    source.runtime = Some(RuntimeScript {
        src: "/r.js".to_owned(),
        slug: "s".to_owned(),
    });
    let html = render(&source).unwrap().html;
    assert!(
        html.contains("<div class=\"tools\"></div>\n<div class=\"scroll\""),
        "{html}"
    );
    source.text = String::new();
    assert!(!render(&source).unwrap().html.contains("class=\"tools\""));
}

#[test]
fn an_open_quote_has_a_place() {
    for (text, line, column) in [
        ("\"", 1, 1),
        ("a,b\nü,\"x\ny\n", 2, 3),
        ("a\n\"b\"\"", 2, 1),
        ("\"a\",\"\"\"", 1, 5),
        ("\u{feff}\"a", 1, 1),
        ("a\r\nb,\"c\"d,\"e", 2, 8),
    ] {
        let outcome = render(&source("csv", text));
        let message = "This quote is never closed.".to_owned();
        let malformed = Malformed {
            message,
            place: Some(Place { line, column }),
        };
        assert_eq!(outcome, Err(RenderError::Malformed(malformed)), "{text:?}");
    }
}

#[test]
fn padding_is_refused_before_it_is_built() {
    let wide = format!("{}\n{}", ",".repeat(100_000), "a\n".repeat(100_000));
    assert_eq!(render(&source("csv", &wide)), Err(RenderError::TooLarge));
    for text in [
        "a".repeat(2_000_000),
        "a\n".repeat(100_000),
        ",\n".repeat(50_000),
        "\"\"\"\"".repeat(200_000),
    ] {
        assert!(render(&source("csv", &text)).is_ok());
    }
}
