//! Markdown in, pages out: the extensions, the places of diagrams, and sources that mean harm.

use crate::tests::{body, page, source};
use crate::{ContentType, RenderError, RuntimeScript, render};

fn markdown(text: &str) -> String {
    body(&page(ContentType::Markdown, text).html)
}

#[test]
fn commonmark_and_gfm() {
    for (text, expected) in [
        (
            "*a* **b** `c` [d](/e 'f')",
            "<p><em>a</em> <strong>b</strong> <code>c</code> <a href=\"/e\" title=\"f\">d</a></p>\n",
        ),
        ("a  \nb\\\nc", "<p>a<br />\nb<br />\nc</p>\n"),
        (
            "> q\n>> r",
            "<blockquote>\n<p>q</p>\n<blockquote>\n<p>r</p>\n</blockquote>\n</blockquote>\n",
        ),
        (
            "3. a\n4. b",
            "<ol start=\"3\">\n<li>a</li>\n<li>b</li>\n</ol>\n",
        ),
        ("***", "<hr />\n"),
        (
            "<b onclick=\"x\">raw</b>",
            "<p><b onclick=\"x\">raw</b></p>\n",
        ),
        (
            "<div>\n<script>1</script>\n</div>",
            "<div>\n<script>1</script>\n</div>\n",
        ),
        (
            "<title>not filtered</title>",
            "<title>not filtered</title>\n",
        ),
        (
            "~~gone~~ https://a.example/b?c=d",
            "<p><del>gone</del> <a href=\"https://a.example/b?c=d\">https://a.example/b?c=d</a></p>\n",
        ),
        (
            "[x](javascript:y)",
            "<p><a href=\"javascript:y\">x</a></p>\n",
        ),
        (
            "---\nfront: matter\n---",
            "<hr />\n<h2 id=\"front-matter\">front: matter<a class=\"anchor\" href=\"#front-matter\" aria-label=\"Link to “front: matter”\"></a></h2>\n",
        ),
        (
            "    code <b>",
            "<div class=\"code\" role=\"region\" tabindex=\"0\" aria-label=\"Code 1\">\n<pre><code>code &lt;b&gt;\n</code></pre>\n</div>\n",
        ),
        ("a\0b", "<p>a\u{fffd}b</p>\n"),
        ("", ""),
    ] {
        assert_eq!(markdown(text), expected, "{text:?}");
    }
}

#[test]
fn headings_link_to_themselves() {
    let html = markdown("# A *b* <i>&\n## A b\n# !?\n#\n# Ünï—cödé");
    for id in ["a-b-", "a-b", "section", "section-1", "ünïcödé"] {
        assert!(html.contains(&format!(" id=\"{id}\">")), "{id} in {html}");
        assert!(
            html.contains(&format!(
                "<a class=\"anchor\" href=\"#{id}\" aria-label=\"Link to “"
            )),
            "{id} in {html}"
        );
    }
}

#[test]
fn tables_tasks_and_footnotes() {
    let html = markdown(
        "| a | b |\n|:-:|--:|\n| 1 | <i> |\n| 2 |\n\n- [x] done\n- [ ] open\n\nnote[^n]\n\n[^n]: Foot.",
    );
    for part in [
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Table 1\">\n<table>",
        "<th style=\"text-align:center\">a</th>",
        "<td style=\"text-align:right\"></td>",
        "</table>\n</div>",
        "<li class=\"task\"><input type=\"checkbox\" checked disabled aria-label=\"Done\"> done</li>",
        "<li class=\"task\"><input type=\"checkbox\" disabled aria-label=\"To do\"> open</li>",
        "<section class=\"footnotes\"",
        "href=\"#fn-n\" id=\"fnref-n\"",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
}

#[test]
fn fences_are_highlighted_and_never_markup() {
    let html = markdown(
        "```rust,ignore\nfn main() { \"</code><script>\" }\n```\n\n~~~\"><script>\n<script>\n~~~",
    );
    assert!(html.contains("<pre><code class=\"language-rust\"><span class=\"hk\">fn</span> <span class=\"hf\">main</span>"), "{html}");
    assert!(
        html.contains("<pre><code class=\"language-&quot;&gt;&lt;script&gt;\">&lt;script&gt;"),
        "{html}"
    );
    assert!(!html.contains("<script"), "{html}");
}

#[test]
fn diagrams_are_named_with_their_places() {
    let fallback =
        "<pre class=\"mermaid-source\"><code>graph TD; A--&gt;B &amp; &quot;C&quot;\n</code></pre>";
    let text = format!(
        "{fallback}\n\n# ü\n\n```mermaid\ngraph TD; A-->B & \"C\"\n```\n\n- > ``` Mermaid x\n  > ü\n  > ```\n\n<!-- {fallback} -->\n\n    ```mermaid\n    no\n"
    );
    let mut source = source(ContentType::Markdown, &text);
    source.title = fallback.to_owned();
    source.runtime = Some(RuntimeScript {
        src: fallback.to_owned(),
        slug: "ü".to_owned(),
    });
    let page = render(&source).unwrap();
    let found: Vec<_> = page
        .diagrams
        .iter()
        .map(|d| {
            (
                d.text.as_str(),
                &page.html[d.start as usize..d.end as usize],
            )
        })
        .collect();
    let other = "<pre class=\"mermaid-source\"><code>ü\n</code></pre>";
    assert_eq!(
        found,
        [("graph TD; A-->B & \"C\"\n", fallback), ("ü\n", other)]
    );
}

#[test]
fn at_most_twenty_diagrams_are_named() {
    let text = "```mermaid\npie\n```\n\n".repeat(25);
    let page = page(ContentType::Markdown, &text);
    assert_eq!(page.diagrams.len(), 20);
    assert_eq!(
        page.html.matches("<pre class=\"mermaid-source\">").count(),
        25
    );
    assert!(
        page.diagrams
            .windows(2)
            .all(|pair| pair[0].end < pair[1].start)
    );
}

#[test]
fn a_page_goes_without_colours_before_it_goes_without_code() {
    let mut source = source(
        ContentType::Markdown,
        &format!("```c\n{}\n```", "1 2 ".repeat(500)),
    );
    source.page_bytes = 12_000;
    let page = render(&source).unwrap();
    assert!(!page.html.contains("<span class=\"hn\">") && page.html.contains("1 2 1 2"));
    source.page_bytes = 2_500;
    assert_eq!(render(&source), Err(RenderError::TooLarge));
}

#[test]
fn hostile_sources_end() {
    let wide = |columns: usize, rows: usize| {
        format!(
            "|{}\n|{}\n{}",
            "a|".repeat(columns),
            "-|".repeat(columns),
            "a\n".repeat(rows)
        )
    };
    for text in [
        ">".repeat(50_000),
        "[".repeat(50_000),
        "![".repeat(50_000),
        "*".repeat(100_000),
        "*a _b ".repeat(20_000),
        "a".repeat(1_000_000),
        "`".repeat(100_000),
        "<".repeat(200_000),
        "<!--".repeat(50_000),
        "- ".repeat(2_000),
        "\0".repeat(100_000),
        "[a](".repeat(20_000),
        "[^1]".repeat(20_000),
        "[^a]: b\n".repeat(5_000),
        "# a\n".repeat(20_000),
        "&".repeat(100_000),
        "~".repeat(100_000),
        "www.".repeat(20_000),
        "a@b.".repeat(20_000),
        "```\n".repeat(20_001),
        wide(2_000, 10),
    ] {
        let mut source = source(ContentType::Markdown, &text);
        source.page_bytes = 32 << 20;
        assert!(render(&source).is_ok(), "{}", &text[..20]);
    }
    let source = source(ContentType::Markdown, &wide(2_000, 3_000));
    assert!(render(&source).is_err_and(|error| error == RenderError::TooLarge));
}
