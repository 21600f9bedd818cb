//! Ids and classes of a drawing, renamed so that they are unique on a page.

use std::collections::{HashMap, HashSet};

use roxmltree::{Document, Node};

/// Attributes that may hold a reference to a part of the drawing.
const HREF_ATTRIBUTES: [&str; 1] = ["href"];

/// Map from the draft's ids and classes to those on the page.
pub(super) struct IdAndClassMap<'a> {
    prefix: String,
    /// Ids that are referred to, each with its number.
    ids: HashMap<&'a str, usize>,
    /// Classes that an element has.
    classes: HashSet<&'a str>,
}

impl<'a> IdAndClassMap<'a> {
    /// Collects the names of the drawing with index `number` in the page.
    ///
    /// The anchors of headings are in lower case, so the prefix is not.
    pub(super) fn collect(document: &'a Document<'a>, number: u32) -> Self {
        let mut present = Vec::new();
        let mut referenced = HashSet::new();
        let mut classes = HashSet::new();
        for node in document.descendants() {
            if node.is_text()
                && node
                    .parent_element()
                    .is_some_and(|parent| parent.has_tag_name("style"))
            {
                referenced.extend(fragment_ids(node.text().unwrap_or_default()));
            }
            for attribute in node.attributes() {
                let value = attribute.value();
                match attribute.name() {
                    "id" => present.push(value),
                    "class" => classes.extend(value.split_ascii_whitespace()),
                    name if HREF_ATTRIBUTES.contains(&name) => {
                        referenced.extend(value.strip_prefix('#'));
                    }
                    _ => referenced.extend(fragment_ids(value)),
                }
            }
        }
        let mut ids = HashMap::new();
        for id in present {
            if referenced.contains(id) {
                let next = ids.len();
                ids.entry(id).or_insert(next);
            }
        }
        Self {
            prefix: format!("D{number}"),
            ids,
            classes,
        }
    }

    /// Returns the id of the whole drawing.
    pub(super) fn root(&self) -> &str {
        &self.prefix
    }

    /// Returns the page's name of an id, if something refers to it.
    pub(super) fn id(&self, id: &str) -> Option<String> {
        let number = self.ids.get(id)?;
        Some(format!("{}-{number}", self.prefix))
    }

    /// Returns the page's names of the ids that end in `suffix`, or are equal to it, in their order.
    pub(super) fn ids(&self, suffix: &str, is_whole: bool) -> Vec<String> {
        let mut numbers: Vec<_> = self
            .ids
            .iter()
            .filter(|(id, _)| {
                if is_whole {
                    **id == suffix
                } else {
                    id.ends_with(suffix)
                }
            })
            .map(|(_, number)| *number)
            .collect();
        numbers.sort_unstable();
        numbers
            .into_iter()
            .map(|number| format!("{}-{number}", self.prefix))
            .collect()
    }

    /// Returns the page's name of a class, if an element has it and it is a plain word.
    pub(super) fn class(&self, class: &str) -> Option<String> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (self.classes.contains(class) && class.bytes().all(is_word)).then(|| format!("m-{class}"))
    }
}

/// Returns the id in a value that is a single `url(#…)`.
pub(super) fn fragment_id(value: &str) -> Option<&str> {
    value
        .trim()
        .strip_prefix("url(")?
        .strip_suffix(')')?
        .trim_matches(['"', '\''])
        .strip_prefix('#')
}

/// Returns the ids of all `url(#…)` in a text.
fn fragment_ids(text: &str) -> impl Iterator<Item = &str> {
    text.split("url(").skip(1).filter_map(|rest| {
        let end = rest.find(')')?;
        rest[..end].trim_matches(['"', '\'']).strip_prefix('#')
    })
}

/// Returns the words of an element's `class`.
pub(super) fn classes<'a>(node: Node<'a, 'a>) -> impl Iterator<Item = &'a str> {
    node.attribute("class")
        .unwrap_or_default()
        .split_ascii_whitespace()
}
