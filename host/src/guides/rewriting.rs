//! Rewriting of guides for a server: links between pages, and the server's own addresses.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::{GUIDES, IMAGES, INDEX_NAME, ListedPage, REFERENCE};
use crate::config::Config;

/// Address of the sample server in the guides, and domain of its projects' origins.
const SAMPLE_ADDRESS: &str = "localhost:8080";

/// Link to the list of all guides, in pages without a frame.
pub(super) const WAY_BACK: &str = "<nav><a href=\"./\">All guides</a></nav>";

/// Returns the Markdown that a page is rendered from: with its language, and a link to the list of all guides.
pub(super) fn page_source(name: &str, text: &str) -> String {
    match name {
        INDEX_NAME => format!("---\nlang: en\n---\n{text}"),
        _ => format!("---\nlang: en\n---\n{WAY_BACK}\n\n{text}"),
    }
}

/// Returns the Markdown of the list of all pages: a list, since tables are hard to read on phones. The parts of the reference are a line.
pub(super) fn index(listed: &[ListedPage]) -> String {
    let mut text = String::from("# Guides\n\n");
    for guide in GUIDES {
        let (title, name, about) = (guide.title(), guide.name, guide.about);
        // Writing to a string does not fail.
        let _ = writeln!(text, "- [{title}]({name})\\\n  {about}");
    }
    let parts = listed.iter().filter_map(|page| {
        let title = page.title.strip_prefix("API: ")?;
        Some(format!("[{title}]({})", page.name))
    });
    let parts: Vec<String> = parts.collect();
    let _ = writeln!(
        text,
        "- [API reference]({REFERENCE})\\\n  You look up a call: its path, its fields, its answers. In parts: {}.\n\n\
         Each page is there as Markdown, too: `.md` behind its address; `{REFERENCE}.md` is the whole reference.\n\
         `GET /api/v1/openapi.json` has the reference for programs, and `GET /llms.txt` is the guide for agents.",
        parts.join(", ")
    );
    text
}

/// Rewrites a guide for a server.
pub(super) fn rewrite_guide(text: &str, config: &Config) -> String {
    let mut served = String::with_capacity(text.len());
    let mut is_code = false;
    for line in text.lines() {
        // A comment for tests.
        if line.starts_with("<!-- ") && line.ends_with(" -->") {
            continue;
        }
        is_code ^= line.starts_with("```");
        let line = match is_code {
            true => Cow::Borrowed(line),
            false => rewrite_links(line),
        };
        served.push_str(&line);
        served.push('\n');
    }
    replace_server_address(&served, config)
}

/// Rewrites the links of a line; a link without a page becomes its text.
fn rewrite_links(line: &str) -> Cow<'_, str> {
    if !line.contains("](") {
        return Cow::Borrowed(line);
    }
    let mut parts = line.split("](");
    let mut done = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (target, rest) = part.split_once(')').unwrap_or((part, ""));
        match resolve_link(target) {
            Some(address) => {
                let _ = write!(done, "]({address}){rest}");
            }
            None => {
                if let Some(at) = done.rfind('[') {
                    done.remove(at);
                }
                done.push_str(rest);
            }
        }
    }
    Cow::Owned(done)
}

/// Returns the address of a link's target, if there is one.
fn resolve_link(target: &str) -> Option<Cow<'_, str>> {
    if target.contains("://") || target.starts_with(['#', '/']) {
        return Some(Cow::Borrowed(target));
    }
    let image = target.strip_prefix("images/");
    if image.is_some_and(|image| IMAGES.iter().any(|(name, _)| *name == image)) {
        return Some(Cow::Borrowed(target));
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let name = path.strip_suffix(".md")?;
    GUIDES.iter().find(|guide| guide.name == name)?;
    Some(match anchor {
        Some(anchor) => Cow::Owned(format!("{name}#{anchor}")),
        None => Cow::Borrowed(name),
    })
}

/// Replaces the sample's addresses with the server's.
fn replace_server_address(text: &str, config: &Config) -> String {
    let text = text.replace(&format!("http://{SAMPLE_ADDRESS}"), &config.base_url);
    match &config.sites_domain {
        None => text,
        Some(domain) => replace_project_origins(&text, &format!("{}://", config.scheme), domain),
    }
}

/// Replaces the domain of the sample's projects.
fn replace_project_origins(text: &str, scheme: &str, domain: &str) -> String {
    let mut parts = text.split("http://");
    let mut done = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let label = part
            .find(|char: char| !(char.is_ascii_alphanumeric() || char == '-'))
            .unwrap_or_default();
        let rest = part[label..].strip_prefix('.');
        match rest.and_then(|rest| rest.strip_prefix(SAMPLE_ADDRESS)) {
            Some(rest) if label > 0 => {
                let _ = write!(done, "{scheme}{}.{domain}{rest}", &part[..label]);
            }
            _ => {
                let _ = write!(done, "http://{part}");
            }
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages() {
        for (line, expected) in [
            ("no link", "no link"),
            (
                "[a](share.md) and [b](api.md#limits).",
                "[a](share) and [b](api#limits).",
            ),
            ("[here](#there)", "[here](#there)"),
            (
                "[out](https://example.com/x.md)",
                "[out](https://example.com/x.md)",
            ),
            (
                "([wit/README.md](../wit/README.md)) says",
                "(wit/README.md) says",
            ),
            ("[a](nowhere.md), [b](client.md)", "a, [b](client)"),
            ("![a](images/page.webp)", "![a](images/page.webp)"),
        ] {
            assert_eq!(rewrite_links(line), expected);
        }
    }

    #[test]
    fn origins_of_projects_are_the_servers_own() {
        let text = "http://web-shop-dev.localhost:8080/shop http://x.example/ http://localhost:8080/ http://";
        assert_eq!(
            replace_project_origins(text, "https://", "pages.example"),
            "https://web-shop-dev.pages.example/shop http://x.example/ http://localhost:8080/ http://"
        );
    }
}
