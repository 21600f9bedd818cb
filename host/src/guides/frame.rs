//! Frame around a rendered guide: a bar with a search, a table of contents, the pages before and after, and the list of all.

use std::sync::LazyLock;

use http::HeaderValue;
use maud::{Markup, PreEscaped, html};

use super::rewriting::WAY_BACK;
use super::{INDEX_NAME, ListedPage};
use crate::http::content_policy::hash_source;

const STYLE: &str = include_str!("../../assets/guides/frame.css");
const SCRIPT: &str = include_str!("../../assets/guides/search.js");
/// Fewest headings of a page that has a table of contents.
const MIN_HEADINGS: usize = 3;

/// Content-Security-Policy of the pages: the search's script and what it fetches, and nothing else.
pub(super) static CONTENT_SECURITY_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; script-src '{}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash_source(SCRIPT)
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// Heading of a page.
#[derive(Debug, PartialEq, Eq)]
struct Heading<'h> {
    is_deep: bool,
    id: &'h str,
    /// Text, escaped as it is in the page.
    text: String,
}

/// Puts a frame around a page; `None` if it is not built as the platform's guest builds pages.
pub(super) fn frame(page: &str, name: &str, pages: &[ListedPage]) -> Option<String> {
    let (head, rest) = page.split_once("</head>")?;
    let (before, rest) = rest.split_once("<main>")?;
    let (content, after) = rest.rsplit_once("</main>")?;
    let content = content.replacen(WAY_BACK, "", 1);
    let is_index = name == INDEX_NAME;
    let class = if is_index { "frame" } else { "frame listed" };
    let framed = html! {
        (PreEscaped(head))
        style { (PreEscaped(STYLE)) }
        (PreEscaped("</head>"))
        (PreEscaped(before))
        (bar())
        div class=(class) {
            (table_of_contents(&content))
            main { (PreEscaped(&content)) }
            @if !is_index {
                (turning(name, pages))
                (list(name, pages))
            }
        }
        script type="module" { (PreEscaped(SCRIPT)) }
        (PreEscaped(after))
    };
    Some(framed.into_string())
}

/// Bar with the way to the list of guides, and the search, which a script shows.
fn bar() -> Markup {
    html! {
        header.bar {
            a href="./" { "Guides" }
            form role="search" hidden {
                input type="search" aria-label="Search the guides" placeholder="Search the guides" autocomplete="off" spellcheck="false";
                p.unseen role="status" {}
                ol aria-label="Found" {}
            }
        }
    }
}

fn table_of_contents(content: &str) -> Markup {
    let headings = headings(content);
    html! {
        @if headings.len() >= MIN_HEADINGS {
            details.toc {
                summary { "On this page" }
                nav aria-label="On this page" {
                    ul {
                        @for heading in &headings {
                            li class=[heading.is_deep.then_some("deep")] { a href={ "#" (heading.id) } { (PreEscaped(&heading.text)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Links to the pages before and after one.
fn turning(name: &str, pages: &[ListedPage]) -> Markup {
    let at = pages.iter().position(|page| page.name == name);
    let before = at
        .and_then(|at| at.checked_sub(1))
        .and_then(|at| pages.get(at));
    let after = at.and_then(|at| pages.get(at + 1));
    html! {
        nav.turn aria-label="Pages before and after" {
            @if let Some(page) = before { a rel="prev" href=(page.name) { span { "Before" } (page.title) } }
            @if let Some(page) = after { a rel="next" href=(page.name) { span { "Next" } (page.title) } }
        }
    }
}

/// List of all pages, in which the one that is shown is marked.
fn list(name: &str, pages: &[ListedPage]) -> Markup {
    let current = |page: &ListedPage| (page.name == name).then_some("page");
    html! {
        nav.side aria-label="All guides" {
            p { a href="./" { "All guides" } }
            ul {
                @for page in pages {
                    li { a href=(page.name) aria-current=[current(page)] { (page.title) } }
                }
            }
        }
    }
}

/// Finds the headings below a page's own, in order.
fn headings(content: &str) -> Vec<Heading<'_>> {
    let mut found = Vec::new();
    let mut rest = content;
    while let Some(at) = rest.find("<h") {
        rest = &rest[at + 2..];
        let is_deep = match rest.as_bytes() {
            [b'2', b' ', ..] => false,
            [b'3', b' ', ..] => true,
            _ => continue,
        };
        let end = if is_deep { "</h3>" } else { "</h2>" };
        let Some((heading, after)) = rest.split_once(end) else {
            break;
        };
        rest = after;
        let Some((tag, inner)) = heading.split_once('>') else {
            continue;
        };
        let id = tag
            .split_once("id=\"")
            .and_then(|(_, id)| id.split_once('"'));
        if let Some((id, _)) = id {
            let text = without_tags(inner);
            found.push(Heading { is_deep, id, text });
        }
    }
    found
}

/// Leaves the tags of a heading out.
fn without_tags(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut is_tag = false;
    for char in html.chars() {
        match char {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            char if !is_tag => text.push(char),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: &str) -> String {
        format!(
            "<!DOCTYPE html><html lang=\"en\"><head><title>t</title></head><body class=\"markdown\"><main>{body}</main></body></html>"
        )
    }

    fn pages() -> Vec<ListedPage> {
        ["one", "two", "three"]
            .map(|name| ListedPage {
                name: name.to_owned(),
                title: format!("The {name}"),
            })
            .into()
    }

    #[test]
    fn a_page_has_what_leads_on() {
        let body = "<nav><a href=\"./\">All guides</a></nav>\n<h1 id=\"t\">T</h1><h2 id=\"a\" dir=\"auto\"><code>svc</code> &amp; b<a class=\"anchor\" href=\"#a\" aria-label=\"Link to “b”\"></a></h2><h3 id=\"b\">B</h3><hr /><h2 id=\"c\">C</h2>";
        let framed = frame(&page(body), "two", &pages()).unwrap();
        for part in [
            "</style></head><body class=\"markdown\"><header class=\"bar\">",
            "<li><a href=\"#a\">svc &amp; b</a></li><li class=\"deep\"><a href=\"#b\">B</a></li>",
            "<a rel=\"prev\" href=\"one\"><span>Before</span>The one</a>",
            "<a rel=\"next\" href=\"three\"><span>Next</span>The three</a>",
            "<a href=\"two\" aria-current=\"page\">The two</a>",
            "</script></body></html>",
        ] {
            assert!(framed.contains(part), "{part}\nin\n{framed}");
        }
        assert_eq!(framed.matches("All guides</a>").count(), 1);
        let first = frame(&page("<p>x</p>"), "one", &pages()).unwrap();
        assert!(!first.contains("rel=\"prev\"") && !first.contains("<details"));
        let index = frame(&page("<p>x</p>"), INDEX_NAME, &pages()).unwrap();
        assert!(!index.contains("class=\"side\"") && index.contains("role=\"search\""));
    }

    #[test]
    fn a_page_of_another_form_has_no_frame() {
        for page in ["", "plain", "<html><body>begun by one</body></html>"] {
            assert_eq!(frame(page, "one", &pages()), None);
        }
    }

    #[test]
    fn the_policy_allows_the_script_that_is_served() {
        let policy = CONTENT_SECURITY_POLICY.to_str().unwrap();
        assert!(policy.contains("script-src 'sha256-") && !policy.contains("script-src 'self'"));
        assert!(
            !SCRIPT.contains("</"),
            "it stands in an element of the page"
        );
    }
}
