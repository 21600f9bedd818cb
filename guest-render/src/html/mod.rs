//! HTML pages: the source byte for byte, with the runtime's script inserted if the page has one.

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{Token, Tokenizer};

use crate::page::{self, runtime_script};
use crate::{Page, RenderError, Source};

/// Renders an HTML source.
pub(crate) fn render(source: &Source) -> Result<Page, RenderError> {
    let script = source
        .runtime
        .as_ref()
        .map_or_else(String::new, |runtime| runtime_script(runtime).0);
    let bytes = source.text.len() + script.len();
    if usize::try_from(source.page_bytes).is_ok_and(|limit| bytes > limit) {
        return Err(RenderError::TooLarge);
    }
    let (before, after) = if script.is_empty() {
        (source.text.as_str(), "")
    } else {
        source.text.split_at(script_position(&source.text))
    };
    let mut html = String::with_capacity(bytes);
    for part in [before, &script, after] {
        html.push_str(part);
    }
    Ok(Page {
        html,
        diagrams: Vec::new(),
        title: page::choose_title(source, find_title(&source.text).as_deref()),
    })
}

/// Tokenizes HTML; with `switches`, the tokenizer knows the elements whose text is no markup.
///
/// All tokens have spans, used or not: a second kind of tokenizer would add a hundredth to the component's size.
pub(crate) fn tokenize(text: &str, switches: bool) -> impl Iterator<Item = Token<usize>> {
    let mut emitter = DefaultEmitter::<usize>::new_with_span();
    emitter.naively_switch_states(switches);
    Tokenizer::new_with_emitter(text, emitter).flatten()
}

/// Bytes of a document that are searched for its title.
const TITLE_SEARCH_BYTES: usize = 64 << 10;

/// Returns a document's first `<title>` that is not a drawing's.
fn find_title(text: &str) -> Option<String> {
    let head = &text[..text.floor_char_boundary(TITLE_SEARCH_BYTES)];
    let mut title: Option<String> = None;
    for token in tokenize(head, true) {
        match (token, &mut title) {
            (Token::StartTag(tag), None) if **tag.name == *b"title" => title = Some(String::new()),
            (Token::StartTag(tag), None) if **tag.name == *b"svg" => return None,
            (Token::String(text), Some(title)) => title.push_str(&String::from_utf8_lossy(&text)),
            (Token::EndTag(_), Some(_)) => break,
            _ => {}
        }
    }
    title
}

/// Returns the offset for the first script of a document's head.
///
/// A browser opens the head implicitly at the first content that cannot precede it: any text but white space, and any tag but
/// those of `html` and `head`. So only the text before that is searched; it holds ordinary HTML text alone, and browsers ignore a
/// later `<head>`, too.
fn script_position(text: &str) -> usize {
    const BOM: &str = "\u{feff}";
    let start = if text.starts_with(BOM) { BOM.len() } else { 0 };
    let document = &text[start..];
    let mut found = HeadInsertionPoint::Nothing;
    let mut position = 0;
    for token in tokenize(document, false) {
        let (what, end) = match token {
            Token::Error(_) | Token::Comment(_) => continue,
            Token::String(text) if text.iter().all(u8::is_ascii_whitespace) => continue,
            Token::Doctype(doctype) => (HeadInsertionPoint::Doctype, doctype.span.end),
            Token::StartTag(tag) if **tag.name == *b"html" => {
                (HeadInsertionPoint::Html, tag.span.end)
            }
            Token::StartTag(tag) if **tag.name == *b"head" => {
                (HeadInsertionPoint::Head, tag.span.end)
            }
            Token::EndTag(tag)
                if found != HeadInsertionPoint::Nothing && !opens_head_or_body(&tag.name) =>
            {
                continue;
            }
            _ => break,
        };
        // Only the first `<html>` opens the element, and only a first doctype counts.
        if what > found {
            found = what;
            position = end;
        }
        if found == HeadInsertionPoint::Head {
            break;
        }
    }
    start + document.floor_char_boundary(position)
}

/// The best position found so far, in rising order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HeadInsertionPoint {
    Nothing,
    Doctype,
    Html,
    Head,
}

/// Whether an end tag makes a browser open the head and the body; all others are ignored at this point.
fn opens_head_or_body(name: &[u8]) -> bool {
    matches!(name, b"head" | b"body" | b"html" | b"br")
}

#[cfg(test)]
mod tests;
