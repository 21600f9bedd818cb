//! Markdown in, pages out: the extensions, the places of diagrams, and sources that mean harm.

use crate::tests::{body, page, source};
use crate::{RenderError, RuntimeScript, render};

fn markdown(text: &str) -> String {
    body(&page("markdown", text).html)
}

/// Without directions, which have a test of their own.
fn undirected(text: &str) -> String {
    markdown(text).replace(" dir=\"auto\"", "")
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
            "---\nno matter\n---",
            "<hr />\n<h2 id=\"no-matter\">no matter<a class=\"anchor\" href=\"#no-matter\" aria-label=\"Link to “no matter”\"></a></h2>\n",
        ),
        (
            "    code <b>",
            "<div class=\"code\" role=\"region\" tabindex=\"0\" aria-label=\"Code 1\">\n<pre><code>code &lt;b&gt;\n</code></pre>\n</div>\n",
        ),
        ("a\0b", "<p>a\u{fffd}b</p>\n"),
        ("", ""),
    ] {
        assert_eq!(undirected(text), expected, "{text:?}");
    }
}

#[test]
fn headings_link_to_themselves() {
    let html = undirected("# A *b* <i>&\n## A b\n# !?\n#\n# Ünï—cödé");
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
    let html = undirected(
        "| a | b |\n|:-:|--:|\n| 1 | <i> |\n| 2 |\n\n- [x] done\n- [ ] open\n\nnote[^n]\n\n[^n]: Foot.",
    );
    for part in [
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Table 1\">\n<table>",
        "<th style=\"text-align:center\">a</th>",
        "<td class=\"n\" style=\"text-align:center\">1</td>",
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
    let mut source = source("markdown", &text);
    source.title = Some(fallback.to_owned());
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
fn every_diagram_is_named_with_its_line() {
    let text = format!(
        "---\ntitle: x\n---\n\n{}",
        "```mermaid\npie\n```\n\n".repeat(25)
    );
    let page = page("markdown", &text);
    let lines: Vec<u32> = page.diagrams.iter().map(|diagram| diagram.line).collect();
    let expected: Vec<u32> = (0..25).map(|number| 6 + 4 * number).collect();
    assert_eq!(lines, expected);
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
fn front_matter_names_the_page_and_is_not_shown() {
    let text =
        "---\ntitle: A <trip>\nlang: de\ndescription: What was \"seen\"\n---\n# Other\n\nText.";
    let mut source = source("markdown", text);
    source.title = None;
    let page = render(&source).unwrap();
    for part in [
        "<html lang=\"de\">",
        "<title>A &lt;trip&gt;</title>",
        "<meta name=\"description\" content=\"What was &quot;seen&quot;\">",
        "<meta property=\"og:title\" content=\"A &lt;trip&gt;\">",
        "<meta property=\"og:type\" content=\"article\">",
    ] {
        assert!(page.html.contains(part), "{part} in {}", page.html);
    }
    assert_eq!(page.title.as_deref(), Some("A <trip>"));
    assert!(
        body(&page.html).starts_with("<h1 id=\"other\""),
        "{}",
        page.html
    );
    assert!(!body(&page.html).contains("trip"));
}

#[test]
fn a_page_is_called_by_its_content() {
    for (text, name, title, description) in [
        (
            "# Weekend :tada: *trip*\n\nTo the [lake](x).",
            None,
            Some("Weekend 🎉 trip"),
            "To the lake.",
        ),
        (
            "Text first.\n\n## Then\n",
            Some("notes"),
            Some("Then"),
            "Text first.",
        ),
        (
            "<h1 align=\"center\"><img src=x>The &amp; <b>tool</b></h1>\n\n![badge](x)\n\nDoes things.",
            None,
            Some("The & tool"),
            "Does things.",
        ),
        ("Only text.", Some("notes"), Some("notes"), "Only text."),
        ("Only text.", None, None, "Only text."),
        ("#\n\n```\ncode\n```\n", None, None, "Untitled"),
    ] {
        let mut source = source("markdown", text);
        source.title = None;
        source.name = name.map(str::to_owned);
        let page = render(&source).unwrap();
        assert_eq!(page.title.as_deref(), title, "{text}");
        let description = format!("<meta name=\"description\" content=\"{description}\">");
        assert!(
            page.html.contains(&description),
            "{description} in {}",
            page.html
        );
        source.title = Some("Given".to_owned());
        assert_eq!(render(&source).unwrap().title.as_deref(), Some("Given"));
    }
}

#[test]
fn alerts_are_of_five_kinds() {
    for kind in ["Note", "Tip", "Important", "Warning", "Caution"] {
        let (upper, lower) = (kind.to_uppercase(), kind.to_lowercase());
        assert_eq!(
            markdown(&format!("> [!{upper}]\n> Text <b>x</b>")),
            format!(
                "<div class=\"markdown-alert markdown-alert-{lower}\" role=\"note\" dir=\"auto\">\n\
                 <p class=\"markdown-alert-title\" dir=\"auto\">{kind}</p>\n<p>Text <b>x</b></p>\n</div>\n"
            )
        );
    }
    assert!(markdown("> [!OTHER]\n> Text").contains("[!OTHER]"));
}

#[test]
fn math_stands_in_lines_and_in_text() {
    let html = markdown("A $x^2$ and $`y`$.\n\n$$\na < b\n$$\n\n```math\n\\frac{1}{2}\n```\n");
    assert_eq!(html.matches("<math>").count(), 2, "{html}");
    assert_eq!(
        html.matches("<math tabindex=\"0\" display=\"block\">")
            .count(),
        2,
        "{html}"
    );
    assert!(!html.contains('$') && !html.contains("```"), "{html}");
    for text in [
        "It costs $5 and $10.",
        "a $ b $ c",
        "US$5",
        "`$x$`",
        "\\$x\\$",
        "$5,000-$6,000",
    ] {
        assert!(!markdown(text).contains("<math"), "{text}");
    }
    for hostile in [
        "$\\text{</math><script>alert(1)</script>}$",
        "$$<img src=x onerror=alert(1)>$$",
        "```math\n</code><script>x</script>\n```",
    ] {
        let html = markdown(hostile);
        assert!(
            !html.contains("<script") && !html.contains("<img"),
            "{html}"
        );
    }
}

#[test]
fn shortcodes_become_emoji_outside_of_code() {
    assert_eq!(
        undirected(":tada: `:tada:` **:+1:** at 10:30:00 :no_such:"),
        "<p>🎉 <code>:tada:</code> <strong>👍</strong> at 10:30:00 :no_such:</p>\n"
    );
}

#[test]
fn blocks_find_their_own_direction() {
    let html =
        markdown("# أ\n\nب\n\n- ج\n\n  د\n\n1. ه\n\n> و\n\n| ز | 1 |\n|-|-|\n| ح | 2,50 |\n");
    for part in [
        "<h1 id=\"أ\" dir=\"auto\">",
        "<p dir=\"auto\">ب</p>",
        "<ul dir=\"auto\">",
        "<ol dir=\"auto\">",
        "<blockquote dir=\"auto\">\n<p>و</p>",
        "<th dir=\"auto\">ز</th>",
        "<td dir=\"auto\">ح</td>",
        "<td class=\"n\">2,50</td>",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(
        page("markdown", "هذا نص عربي")
            .html
            .contains("<html lang=\"ar\">")
    );
}

#[test]
fn images_tell_nobody_where_they_are_shown() {
    assert_eq!(
        undirected("![a \"b\"](https://e.example/x?a&b \"t\")"),
        "<p><img src=\"https://e.example/x?a&amp;b\" referrerpolicy=\"no-referrer\" loading=\"lazy\" alt=\"a &quot;b&quot;\" title=\"t\" /></p>\n"
    );
    assert!(
        markdown("a <img src=x>").contains("<img referrerpolicy=no-referrer loading=lazy src=x>")
    );
}

#[test]
fn a_page_goes_without_colours_before_it_goes_without_code() {
    let mut source = source("markdown", &format!("```c\n{}\n```", "1 2 ".repeat(500)));
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
        let mut source = source("markdown", &text);
        source.page_bytes = 32 << 20;
        assert!(render(&source).is_ok(), "{}", &text[..20]);
    }
    let source = source("markdown", &wide(2_000, 3_000));
    assert!(render(&source).is_err_and(|error| error == RenderError::TooLarge));
}
