//! Rules about pages of every type, and the helpers that the tests of each share.

use crate::{Page, RenderError, RuntimeScript, Source, render};

const BUILT: [&str; 4] = ["markdown", "json", "csv", "mermaid"];

pub(crate) fn source(content_type: &str, text: &str) -> Source {
    Source {
        content_type: content_type.to_owned(),
        title: Some("Title".to_owned()),
        name: None,
        text: text.to_owned(),
        runtime: None,
        page_bytes: 1 << 24,
        foot: None,
        is_private: false,
    }
}

pub(crate) fn page(content_type: &str, text: &str) -> Page {
    render(&source(content_type, text)).unwrap()
}

/// Returns the text between `<main>` and `</main>`.
pub(crate) fn body(html: &str) -> String {
    let start = html.find("<main>").unwrap() + "<main>".len();
    html[start..html.rfind("</main>").unwrap()].to_owned()
}

#[test]
fn pages_are_complete_documents_without_scripts_or_other_hosts() {
    for content_type in BUILT {
        let mut source = source(content_type, "1");
        source.title = Some("<script>\"&'\0".to_owned());
        let html = render(&source).unwrap().html;
        source.foot = None;
        let start = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">\
            <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">";
        assert!(html.starts_with(start), "{html}");
        assert!(
            html.contains("<title>&lt;script&gt;&quot;&amp;'\u{fffd}</title>"),
            "{html}"
        );
        assert!(html.ends_with("</main></body></html>"));
        for unwanted in [
            "<script", "http:", "https:", "@import", "url(", " src=", "\0",
        ] {
            assert!(!html.contains(unwanted), "{unwanted} in {html}");
        }
        assert_eq!(render(&source).unwrap().html, html);
    }
}

#[test]
fn the_runtime_script_comes_first_in_the_head() {
    for content_type in BUILT {
        let mut source = source(content_type, "1");
        source.runtime = Some(RuntimeScript {
            src: "/a?b&c\"".to_owned(),
            slug: "<s>'".to_owned(),
        });
        let html = render(&source).unwrap().html;
        let script =
            "<head><script src=\"/a?b&amp;c&quot;\" data-slug=\"&lt;s&gt;'\"></script><meta";
        assert!(html.contains(script), "{html}");
    }
}

#[test]
fn the_bound_on_pages_holds_to_the_byte() {
    for content_type in [BUILT.as_slice(), &["html"]].concat() {
        let mut source = source(content_type, "[\"a\"]");
        let page = render(&source).unwrap();
        source.page_bytes = u32::try_from(page.html.len()).unwrap();
        assert_eq!(render(&source), Ok(page));
        source.page_bytes -= 1;
        assert_eq!(
            render(&source),
            Err(RenderError::TooLarge),
            "{content_type:?}"
        );
    }
}

#[test]
fn a_mermaid_page_is_one_diagram() {
    let text = "graph TD;\n  A[\"<b>\"]-->B";
    let page = page("mermaid", text);
    let [diagram] = page.diagrams.as_slice() else {
        panic!("{:?}", page.diagrams)
    };
    assert_eq!(diagram.text, text);
    assert_eq!(
        &page.html[diagram.start as usize..diagram.end as usize],
        "<pre class=\"mermaid-source\"><code>graph TD;\n  A[&quot;&lt;b&gt;&quot;]--&gt;B</code></pre>"
    );
}

#[test]
fn a_page_has_a_foot_where_it_is_given_one() {
    for content_type in BUILT {
        let mut source = source(content_type, "1");
        source.foot = Some(crate::Foot {
            raw: Some("/s/raw".to_owned()),
            expires_at: Some("2026-11-29T12:00:00.000Z".to_owned()),
            report: Some("/r?\"".to_owned()),
        });
        let html = render(&source).unwrap().html;
        let foot = "</main><footer class=\"foot\" lang=\"en\" dir=\"ltr\"><a href=\"/s/raw\">Source</a> <span>Expires \
            <time datetime=\"2026-11-29T12:00:00.000Z\">November 29, 2026</time></span> \
            <a href=\"/r?&quot;\" rel=\"nofollow\">Report</a></footer></body></html>";
        assert!(html.ends_with(foot), "{html}");
    }
    let source = Source {
        foot: Some(crate::Foot {
            raw: Some("/s/raw".to_owned()),
            expires_at: None,
            report: None,
        }),
        ..source("html", "<p>mine")
    };
    assert_eq!(render(&source).unwrap().html, "<p>mine");
}

#[test]
fn a_page_for_few_tells_previews_nothing() {
    for content_type in BUILT {
        let source = Source {
            title: Some("Secret title".to_owned()),
            is_private: true,
            ..source(content_type, "\"secret words\"")
        };
        let html = render(&source).unwrap().html;
        let (head, _) = html.split_once("<style>").unwrap();
        assert!(head.contains("<meta property=\"og:title\" content=\"A private page\">"));
        assert_eq!(head.matches("ecret").count(), 1, "{head}");
    }
}

#[test]
fn every_page_has_one_heading_of_the_first_level_and_shows_only_what_was_given() {
    for (content_type, text, what) in [
        ("json", "[1, 2]", "A JSON array of 2 items"),
        ("csv", "a\n1\n2", "Table of 2 rows, 1 column"),
        ("mermaid", "pie\n\"<b>\" : 1", "Diagram"),
    ] {
        let mut source = source(content_type, text);
        let level_1 =
            |html: &str| html.matches("<h1").count() + html.matches("aria-level=\"1\"").count();
        assert_eq!(level_1(&render(&source).unwrap().html), 1, "{content_type}");
        source.title = None;
        let html = body(&render(&source).unwrap().html);
        let unseen =
            format!("<p class=\"unseen\" lang=\"en\" role=\"heading\" aria-level=\"1\">{what}</p>");
        assert!(html.starts_with(&unseen), "{html}");
        assert_eq!(level_1(&html), 1, "{content_type}");
    }
}

#[test]
fn an_unknown_type_is_unsupported() {
    assert_eq!(
        render(&source("asciidoc", "x")),
        Err(RenderError::Unsupported)
    );
}
