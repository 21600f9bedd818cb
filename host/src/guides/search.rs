//! Texts of the guides for the search of their pages, which looks through them in the reader's browser.

use std::collections::HashSet;

use serde::Serialize;
use utoipa::ToSchema;

/// Texts of all guides, by page and section.
#[derive(Debug, Serialize, ToSchema)]
pub struct SearchIndex {
    /// In the order of the list.
    pub pages: Vec<SearchedPage>,
}

/// A page with its sections.
#[derive(Debug, Serialize, ToSchema)]
pub struct SearchedPage {
    /// Name of the page, below `/_svc/docs/`.
    name: String,
    title: String,
    sections: Vec<SearchedSection>,
}

/// A section of a page, from its heading to the next one.
#[derive(Debug, Serialize, ToSchema)]
pub struct SearchedSection {
    /// Where it begins in its page; empty for the page's own heading.
    id: String,
    heading: String,
    /// Words of the section, without markup.
    text: String,
}

impl SearchedPage {
    /// Reads a page from its Markdown. `with_samples` says whether code and tables are looked through, too.
    pub(super) fn read(name: &str, title: &str, markdown: &str, with_samples: bool) -> Self {
        let mut ids = HeadingIds::default();
        let mut sections: Vec<SearchedSection> = Vec::new();
        let mut is_code = false;
        for line in markdown.lines() {
            if line.starts_with("```") {
                is_code = !is_code;
                continue;
            }
            if let Some(heading) = heading_of(line).filter(|_| !is_code) {
                let text = plain(heading);
                let id = match explicit_id(heading) {
                    Some(id) => id.to_owned(),
                    None => ids.id_of(&text),
                };
                let id = if sections.is_empty() {
                    String::new()
                } else {
                    id
                };
                let (heading, text) = (text, String::new());
                sections.push(SearchedSection { id, heading, text });
                continue;
            }
            let is_sample = is_code || line.starts_with('|');
            if let Some(section) = sections.last_mut()
                && (with_samples || !is_sample)
            {
                add_words(&mut section.text, line, is_code);
            }
        }
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            sections,
        }
    }
}

/// Returns the text of a heading, if a line is one.
fn heading_of(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6)
        .contains(&level)
        .then(|| text.strip_prefix(' '))
        .flatten()
}

/// Returns the id that a heading of the reference begins with.
fn explicit_id(heading: &str) -> Option<&str> {
    let (id, _) = heading.strip_prefix("<a id=\"")?.split_once('"')?;
    Some(id)
}

/// Adds the words of a line to a text.
fn add_words(text: &mut String, line: &str, is_code: bool) {
    let line = if is_code {
        line.to_owned()
    } else {
        plain(line)
    };
    let is_rule = line.chars().all(|char| matches!(char, '-' | ':' | ' '));
    if is_rule {
        return;
    }
    for word in line.split_whitespace() {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
}

/// Leaves the marks of Markdown and the tags of HTML out of a line.
fn plain(line: &str) -> String {
    let line = line.trim_start_matches(['>', '-', ' ']);
    let mut text = String::with_capacity(line.len());
    let mut is_code = false;
    let mut rest = line;
    while let Some(char) = rest.chars().next() {
        let after = &rest[char.len_utf8()..];
        rest = match char {
            '`' => {
                is_code = !is_code;
                after
            }
            '<' if !is_code => after.split_once('>').map_or(after, |(_, after)| after),
            // The target of a link, behind its text.
            ']' if !is_code && after.starts_with('(') => {
                after.split_once(')').map_or(after, |(_, after)| after)
            }
            '[' | ']' | '*' | '!' | '|' | '\\' if !is_code => {
                if char == '|' {
                    text.push(' ');
                }
                after
            }
            char => {
                text.push(char);
                after
            }
        };
    }
    text.replace("&lt;", "<").trim().to_owned()
}

/// Ids of a page's headings, as the guest makes them of their texts.
#[derive(Debug, Default)]
struct HeadingIds(HashSet<String>);

impl HeadingIds {
    fn id_of(&mut self, text: &str) -> String {
        let kept = |char: &char| char.is_alphanumeric() || matches!(char, '_' | '-' | ' ');
        let id: String = text.to_lowercase().chars().filter(kept).collect();
        let id = id.trim().replace(' ', "-");
        let mut unique = id.clone();
        let mut number = 0;
        while !self.0.insert(unique.clone()) {
            number += 1;
            unique = format!("{id}-{number}");
        }
        unique
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_by_its_sections() {
        let markdown = "# Share a *page*\n\nYou [publish](api.md#x) with `curl <url>`.\n\n## Then\n\n```sh\n# no heading\ncurl x\n```\n\n| a | b |\n|---|:-:|\n| `c` | d |\n\n## Then\n\n### <a id=\"put_note\"></a>Write a note\n\n- one\n- two\n";
        let read = |with_samples| {
            let page = SearchedPage::read("share", "Share a page", markdown, with_samples);
            let sections = page.sections.into_iter();
            let sections = sections.map(|one| (one.id, one.heading, one.text));
            sections.collect::<Vec<_>>()
        };
        let section = |id: &str, heading: &str, text: &str| {
            (id.to_owned(), heading.to_owned(), text.to_owned())
        };
        assert_eq!(
            read(true),
            [
                section("", "Share a page", "You publish with curl <url>."),
                section("then", "Then", "# no heading curl x a b c d"),
                section("then-1", "Then", ""),
                section("put_note", "Write a note", "one two"),
            ]
        );
        assert_eq!(read(false)[1], section("then", "Then", ""));
    }

    #[test]
    fn ids_are_the_guests() {
        let mut ids = HeadingIds::default();
        for (text, id) in [
            ("What pages do", "what-pages-do"),
            ("svc.toml: the folder", "svctoml-the-folder"),
            ("A b", "a-b"),
            ("A b", "a-b-1"),
            ("Ünï—cödé", "ünïcödé"),
        ] {
            assert_eq!(ids.id_of(text), id);
        }
    }
}
