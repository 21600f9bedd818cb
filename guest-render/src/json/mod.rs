//! JSON pages: checked against the grammar, then shown as a tree that folds without scripts.
//!
//! The tree consists of slices of the source, never of parsed values: numbers, escapes and duplicate keys stay as written. The
//! text is valid by then, so the first byte of a token tells its kind.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::language;
use crate::page::{self, PageMetadata, PageTypeProperties};
use crate::page_writer::PageWriter;
use crate::position::malformed_error;
use crate::{Page, RenderError, Source};

/// Nesting limit of the tree; deeper containers are shown as plain source, because HTML parsers limit nesting to a few hundred
/// elements.
const MAX_DEPTH: usize = 100;
/// Depth from which containers begin folded.
const MAX_OPEN_DEPTH: usize = 4;
/// Number of entries from which containers begin folded.
const MAX_OPEN_CONTAINER_ENTRIES: u32 = 100;
/// Number of visible entries from which all further containers begin folded.
const MAX_OPEN_ENTRIES: u32 = 600;

/// Size of groups of entries in large containers, which browsers lay out when they scroll into view: an array of 140,000 numbers
/// takes a quarter of the time.
const GROUP_SIZE: u32 = 100;

/// Renders a JSON source.
pub(crate) fn render(source: &Source) -> Result<Page, RenderError> {
    let text = source.text.strip_prefix('\u{feff}').unwrap_or(&source.text);
    check_grammar(text)?;
    let description = describe_value(text);
    let shell = PageTypeProperties {
        source,
        kind: "json",
        styles: &[include_str!("../../assets/json.css")],
        own_styles: String::new(),
        metadata: PageMetadata {
            title: None,
            description: description.clone(),
            language: language::detect(language_sample(text)).map(str::to_owned),
        },
    };
    page::build_page(&shell, |out| {
        out.markup(&page::fallback_heading(source, &description))?;
        out.markup("<div class=\"tree\" role=\"region\" tabindex=\"0\" aria-label=\"JSON\">\n")?;
        JsonTreeWriter::new(out, text).write()?;
        out.markup("</div>")
    })
}

/// Bytes of a text that its language is detected from.
const SAMPLE_BYTES: usize = 1_500;

fn language_sample(text: &str) -> &str {
    &text[..text.floor_char_boundary(SAMPLE_BYTES)]
}

/// Describes a value in a sentence.
fn describe_value(text: &str) -> String {
    let outermost = index_containers(text).first().copied();
    let bytes = text.as_bytes();
    match (outermost, bytes.get(skip_space(bytes, 0))) {
        (Some(container), Some(b'[')) => {
            let noun = if container.entries == 1 {
                "item"
            } else {
                "items"
            };
            format!("A JSON array of {} {noun}", container.entries)
        }
        (Some(container), _) => {
            let noun = if container.entries == 1 {
                "entry"
            } else {
                "entries"
            };
            format!("A JSON object of {} {noun}", container.entries)
        }
        (None, _) => "A JSON value".to_owned(),
    }
}

/// Checks the grammar. The parser keeps open brackets on the heap, so nesting cannot overflow the stack.
fn check_grammar(text: &str) -> Result<(), RenderError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let outcome = IgnoredAny::deserialize(&mut reader).and_then(|_| reader.end());
    outcome.map_err(|error| {
        let message = error.to_string();
        let what = message
            .rsplit_once(" at line ")
            .map_or(message.as_str(), |(what, _)| what);
        let named = offset_of(text, error.line(), error.column());
        let offset = match what {
            _ if error.is_eof() => text.len(),
            // The parser names the last byte that it read, which here is the one before.
            _ if what.starts_with("control character") => named + 1,
            _ => named,
        };
        malformed_error(text, offset, format!("This is not valid JSON: {what}."))
    })
}

/// Returns the offset of an error by its line and its column in bytes. Column 0 is the line break before the line.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    let line_start = match line {
        0 | 1 => 0,
        _ => breaks
            .map(|(at, _)| at + 1)
            .nth(line - 2)
            .unwrap_or(text.len()),
    };
    (line_start + column).saturating_sub(1)
}

/// An array or object of the source.
#[derive(Clone, Copy, Default)]
struct IndexedContainer {
    /// Number of entries directly in the container.
    entries: u32,
    /// Offset of its end.
    end: usize,
    /// Index of the first container that opens after it has closed.
    next: usize,
}

/// Lists all containers in the order in which they open.
fn index_containers(text: &str) -> Vec<IndexedContainer> {
    let bytes = text.as_bytes();
    let mut containers: Vec<IndexedContainer> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let end = if *byte == b'"' {
            string_end(bytes, at)
        } else {
            at + 1
        };
        match byte {
            b'[' | b'{' => {
                let is_empty = matches!(bytes.get(skip_space(bytes, end)), Some(b']' | b'}'));
                open.push(containers.len());
                containers.push(IndexedContainer {
                    entries: u32::from(!is_empty),
                    end,
                    next: 0,
                });
            }
            b',' => {
                if let Some(container) = open.last().and_then(|number| containers.get_mut(*number))
                {
                    container.entries += 1;
                }
            }
            b']' | b'}' => {
                let next = containers.len();
                if let Some(container) = open.pop().and_then(|number| containers.get_mut(number)) {
                    container.end = end;
                    container.next = next;
                }
            }
            _ => {}
        }
        at = end;
    }
    containers
}

/// Progress in writing a container.
struct ContainerWriteProgress {
    is_grouped: bool,
    written: u32,
}

/// Writes the tree of a valid text.
struct JsonTreeWriter<'out, 'page, 'text> {
    out: &'out mut PageWriter<'page>,
    text: &'text str,
    at: usize,
    containers: Vec<IndexedContainer>,
    next_container: usize,
    /// The open containers around the next token.
    open_containers: Vec<ContainerWriteProgress>,
    open_entries: u32,
    /// The key that waits for its value.
    key: Option<&'text str>,
}

impl<'out, 'page, 'text> JsonTreeWriter<'out, 'page, 'text> {
    fn new(out: &'out mut PageWriter<'page>, text: &'text str) -> Self {
        let containers = index_containers(text);
        Self {
            out,
            text,
            at: 0,
            containers,
            next_container: 0,
            open_containers: Vec::new(),
            open_entries: 0,
            key: None,
        }
    }

    fn write(&mut self) -> Result<(), RenderError> {
        let bytes = self.text.as_bytes();
        loop {
            self.at = skip_space(bytes, self.at);
            let Some(first) = bytes.get(self.at) else {
                return Ok(());
            };
            match first {
                b':' | b',' => self.at += 1,
                b'[' | b'{' => self.open_container(*first)?,
                b']' | b'}' => {
                    let bracket = self.take(self.at + 1);
                    if self
                        .open_containers
                        .pop()
                        .is_some_and(|entries| entries.is_grouped)
                    {
                        self.out.markup("</div>")?;
                    }
                    self.out.markup("</div><div>")?;
                    self.out.text(bracket)?;
                    self.write_comma()?;
                    self.out.markup("</div></details>\n")?;
                }
                b'"' => {
                    let string = self.take(string_end(bytes, self.at));
                    if bytes.get(skip_space(bytes, self.at)) == Some(&b':') {
                        self.key = Some(string);
                    } else {
                        self.write_leaf("s", string)?;
                    }
                }
                b't' | b'f' | b'n' => {
                    let word = self.take(word_end(bytes, self.at));
                    self.write_leaf("w", word)?;
                }
                _ => {
                    let number = self.take(word_end(bytes, self.at));
                    self.write_leaf("n", number)?;
                }
            }
        }
    }

    /// Takes the source up to `end`.
    fn take(&mut self, end: usize) -> &'text str {
        let taken = &self.text[self.at..end];
        self.at = end;
        taken
    }

    /// Opens a container, or writes it whole if it is empty or too deep.
    fn open_container(&mut self, bracket: u8) -> Result<(), RenderError> {
        let container = self
            .containers
            .get(self.next_container)
            .copied()
            .unwrap_or_default();
        let depth = self.open_containers.len();
        if container.entries == 0 || depth >= MAX_DEPTH {
            self.next_container = container.next;
            let source = self.take(container.end);
            return self.write_leaf("r", source);
        }
        self.next_container += 1;
        self.begin_entry()?;
        let is_open = depth == 0
            || (depth < MAX_OPEN_DEPTH
                && container.entries <= MAX_OPEN_CONTAINER_ENTRIES
                && self.open_entries.saturating_add(container.entries) <= MAX_OPEN_ENTRIES);
        if is_open {
            self.open_entries = self.open_entries.saturating_add(container.entries);
        }
        let (class, one, many) = if bracket == b'[' {
            ("a", "item", "items")
        } else {
            ("o", "entry", "entries")
        };
        let noun = if container.entries == 1 { one } else { many };
        self.out.markup("<details class=\"")?;
        self.out.markup(class)?;
        self.out.markup(if is_open {
            "\" open><summary>"
        } else {
            "\"><summary>"
        })?;
        self.write_key()?;
        let bracket = self.take(self.at + 1);
        self.out.text(bracket)?;
        // The closing bracket is repeated here, to be shown and copied while the container is folded.
        let after = skip_space(self.text.as_bytes(), container.end);
        let has_next = self.text.as_bytes().get(after) == Some(&b',');
        self.out.markup(match (class, has_next) {
            ("a", true) => "<u>],</u><i>",
            ("a", false) => "<u>]</u><i>",
            (_, true) => "<u>},</u><i>",
            (_, false) => "<u>}</u><i>",
        })?;
        self.out.markup(&format!("{} {noun}", container.entries))?;
        self.out.markup("</i></summary><div>\n")?;
        self.open_containers.push(ContainerWriteProgress {
            is_grouped: container.entries > GROUP_SIZE,
            written: 0,
        });
        Ok(())
    }

    /// Begins the next entry of the innermost container.
    fn begin_entry(&mut self) -> Result<(), RenderError> {
        let Some(entries) = self.open_containers.last_mut() else {
            return Ok(());
        };
        let begins_group = entries.is_grouped && entries.written.is_multiple_of(GROUP_SIZE);
        let is_first = entries.written == 0;
        entries.written += 1;
        match (begins_group, is_first) {
            (false, _) => Ok(()),
            (true, true) => self.out.markup("<div class=\"k\">\n"),
            (true, false) => self.out.markup("</div><div class=\"k\">\n"),
        }
    }

    /// Writes a value that does not fold.
    fn write_leaf(&mut self, class: &str, source: &str) -> Result<(), RenderError> {
        self.begin_entry()?;
        self.out.markup("<div>")?;
        self.write_key()?;
        self.out.markup("<span class=\"")?;
        self.out.markup(class)?;
        self.out.markup(if class == "s" {
            "\" dir=\"auto\">"
        } else {
            "\">"
        })?;
        self.out.text(source)?;
        self.out.markup("</span>")?;
        self.write_comma()?;
        self.out.markup("</div>\n")
    }

    fn write_key(&mut self) -> Result<(), RenderError> {
        if let Some(key) = self.key.take() {
            self.out.markup(if key.is_ascii() {
                "<b>"
            } else {
                "<b dir=\"auto\">"
            })?;
            self.out.text(key)?;
            self.out.markup("</b>: ")?;
        }
        Ok(())
    }

    /// Writes the comma after a value, if there is one: text copied from the page is JSON.
    fn write_comma(&mut self) -> Result<(), RenderError> {
        let bytes = self.text.as_bytes();
        if bytes.get(skip_space(bytes, self.at)) == Some(&b',') {
            self.out.markup(",")?;
        }
        Ok(())
    }
}

/// Returns the offset of the first byte from `at` that is not white space.
fn skip_space(bytes: &[u8], at: usize) -> usize {
    let space = bytes[at..]
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    at + space.count()
}

/// Returns the end of the string that opens at `at`, after its closing quote.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'"' => return end + 1,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    bytes.len()
}

/// Returns the end of the number or word that begins at `at`.
fn word_end(bytes: &[u8], at: usize) -> usize {
    let word = bytes[at..]
        .iter()
        .take_while(|byte| matches!(byte, b'+' | b'-' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E'));
    at + word.count().max(1)
}

#[cfg(test)]
mod tests;
