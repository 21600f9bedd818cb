//! CSV in, tables out: quoting, ragged rows, blank lines and blow-ups.

use crate::tests::{body, page, source};
use crate::{ContentType, Malformed, Place, RenderError, render};

/// The rows of the table, cells with bars between.
fn rows(text: &str) -> Vec<String> {
    let html = body(&page(ContentType::Csv, text).html);
    let cells = html
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
fn the_table_says_what_it_is() {
    let html = page(ContentType::Csv, "name,price\nA,1.50\nB,\"2,000\"\n").html;
    for part in [
        "<caption>2 rows, 2 columns</caption>\n<thead>\n<tr><th scope=\"col\">name</th>",
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Table\">",
        "tr>:nth-child(2){text-align:right}",
        "</thead>\n<tbody>\n<tr><td>A</td>",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(!html.contains("nth-child(1)"));
    assert!(
        page(ContentType::Csv, "a\n1\n")
            .html
            .contains("<caption>1 row, 1 column</caption>")
    );
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
        let outcome = render(&source(ContentType::Csv, text));
        let message = "This quote is never closed.".to_owned();
        let malformed = Malformed {
            message,
            place: Place { line, column },
        };
        assert_eq!(outcome, Err(RenderError::Malformed(malformed)), "{text:?}");
    }
}

#[test]
fn padding_is_refused_before_it_is_built() {
    let wide = format!("{}\n{}", ",".repeat(100_000), "a\n".repeat(100_000));
    assert_eq!(
        render(&source(ContentType::Csv, &wide)),
        Err(RenderError::TooLarge)
    );
    for text in [
        "a".repeat(2_000_000),
        "a\n".repeat(100_000),
        ",\n".repeat(50_000),
        "\"\"\"\"".repeat(200_000),
    ] {
        assert!(render(&source(ContentType::Csv, &text)).is_ok());
    }
}
