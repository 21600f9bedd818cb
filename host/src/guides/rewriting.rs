//! Guides as a server shows them: their links lead from page to page, and their addresses are the server's own.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::{GUIDES, IMAGES, INDEX, REFERENCE};
use crate::config::Config;

/// The address of the server that the guides show their commands with, and what stands before its projects' origins.
const SAMPLE: &str = "localhost:8080";

/// The text that a page is rendered from: in the language that it is in, and with a link to the list of all.
pub(super) fn page_source(name: &str, text: &str) -> String {
    let way_back = match name {
        INDEX => "",
        _ => "<nav><a href=\"./\">All guides</a></nav>\n\n",
    };
    format!("---\nlang: en\n---\n{way_back}{text}")
}

/// The list of all pages, which a phone shows without a table's columns.
pub(super) fn index() -> String {
    let mut text = String::from("# Guides\n\n");
    for guide in GUIDES {
        let (title, name, about) = (guide.title(), guide.name, guide.about);
        // Writing to a string does not fail.
        let _ = writeln!(text, "- [{title}]({name})\\\n  {about}");
    }
    let _ = writeln!(
        text,
        "- [API reference]({REFERENCE})\\\n  You look up a call: its path, its fields, its answers.\n\n\
         Each page is there as Markdown, too: `.md` behind its address.\n\
         `GET /api/v1/openapi.json` has the reference for programs, and `GET /llms.txt` is the guide for agents."
    );
    text
}

/// A guide for a server's readers.
pub(super) fn rewrite_guide(text: &str, config: &Config) -> String {
    let mut served = String::with_capacity(text.len());
    let mut is_code = false;
    for line in text.lines() {
        // What tests read.
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

/// A line whose links lead to other pages by their addresses; what has no page is its text alone.
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

/// Where a link of a guide leads, if there is something.
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

/// A text with this server's addresses in place of the sample's.
fn replace_server_address(text: &str, config: &Config) -> String {
    let text = text.replace(&format!("http://{SAMPLE}"), &config.base_url);
    match &config.sites_domain {
        None => text,
        Some(domain) => replace_project_origins(&text, &format!("{}://", config.scheme), domain),
    }
}

/// A text in which the origins of the sample's projects are below another domain.
fn replace_project_origins(text: &str, scheme: &str, domain: &str) -> String {
    let mut parts = text.split("http://");
    let mut done = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let label = part
            .find(|char: char| !(char.is_ascii_alphanumeric() || char == '-'))
            .unwrap_or_default();
        let rest = part[label..].strip_prefix('.');
        match rest.and_then(|rest| rest.strip_prefix(SAMPLE)) {
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
