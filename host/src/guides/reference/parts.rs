//! Parts of the reference, each a page of its own: links from one to another name its page.

use std::collections::BTreeMap;

use super::ReferencePart;

/// Heading of a call or a type, in a section of the whole reference.
const ENTRY: &str = "### <a id=\"";
/// Heading of it in a page of its own section.
const ENTRY_OF_PAGE: &str = "## <a id=\"";

/// Section of the reference.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: String,
    /// Sentence about it; empty if there is nothing to say.
    pub(super) about: String,
    /// Calls or types, each with a heading.
    pub(super) body: String,
}

impl Section {
    /// Writes the heading of the section at a level, with the sentence about it.
    pub(super) fn heading(&self, level: &str) -> String {
        match self.about.is_empty() {
            true => format!("{level} {}\n\n", self.title),
            false => format!("{level} {}\n\n{}\n\n", self.title, self.about),
        }
    }

    /// Returns the ids of its entries.
    fn ids(&self) -> impl Iterator<Item = &str> {
        let entries = self.body.split(ENTRY).skip(1);
        entries.filter_map(|entry| Some(entry.split_once('"')?.0))
    }
}

/// Pages of the parts, by the ids that are in them.
#[derive(Debug)]
pub(super) struct Parts<'s> {
    list: &'s str,
    pages: BTreeMap<&'s str, String>,
}

impl<'s> Parts<'s> {
    /// Makes the pages of sections, beside the list of calls at the page `list`.
    pub(super) fn new(list: &'s str, sections: &'s [Section]) -> Self {
        let pages = sections.iter().flat_map(|section| {
            let page = page_name(list, section);
            section.ids().map(move |id| (id, page.clone()))
        });
        Self {
            list,
            pages: pages.collect(),
        }
    }

    /// Writes the page of each section.
    pub(super) fn write(&self, sections: &[Section]) -> Vec<ReferencePart> {
        let part = |section: &Section| {
            let name = page_name(self.list, section);
            let title = format!("API: {}", section.title.to_lowercase());
            let head = Section {
                title: title.clone(),
                about: section.about.clone(),
                body: String::new(),
            };
            let text = head.heading("#") + &section.body.replace(ENTRY, ENTRY_OF_PAGE);
            ReferencePart {
                text: self.link(&text, Some(&name)),
                name,
                title,
            }
        };
        sections.iter().map(part).collect()
    }

    /// Has the links of a text to ids lead to their pages; those of the page `own` stay.
    pub(super) fn link(&self, text: &str, own: Option<&str>) -> String {
        let mut parts = text.split("](#");
        let mut linked = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let id = part.split_once(')').map_or(part, |(id, _)| id);
            let page = self.pages.get(id).map(String::as_str);
            let page = page.filter(|page| Some(*page) != own);
            linked.push_str("](");
            linked.push_str(page.unwrap_or_default());
            linked.push('#');
            linked.push_str(part);
        }
        linked
    }
}

/// Returns the name of the page of a section.
fn page_name(list: &str, section: &Section) -> String {
    format!("{list}-{}", section.title.to_lowercase().replace(' ', "-"))
}
