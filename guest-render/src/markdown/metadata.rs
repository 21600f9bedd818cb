//! Metadata of a Markdown document: title, description and language.

use comrak::arena_tree::NodeEdge;
use comrak::nodes::{Node, NodeValue};
use html5gum::Token;

use super::front_matter::FrontMatter;
use crate::html::tokenize;
use crate::page::PageMetadata;
use crate::{emoji, language};

/// Bytes of text that a document's language is detected from.
const SAMPLE_BYTES: usize = 1_500;
/// Bytes of a paragraph that are enough for a description.
const MAX_DESCRIPTION_BYTES: usize = 1_000;

/// Collects the metadata of a document; front matter comes first.
pub(super) fn collect_metadata(front: FrontMatter, document: Node<'_>) -> PageMetadata {
    let title = front.title.or_else(|| first_heading(document));
    let description = front.description.or_else(|| first_paragraph(document));
    let language = front
        .language
        .or_else(|| language::detect(&language_sample(document)).map(str::to_owned));
    PageMetadata {
        title,
        description: description.unwrap_or_default(),
        language,
    }
}

/// Returns the text of the first heading, in Markdown or HTML.
fn first_heading(document: Node<'_>) -> Option<String> {
    document.descendants().find_map(|node| {
        let title = match &node.data().value {
            NodeValue::Heading(_) => emoji::replace_shortcodes(&node.collect_text()),
            NodeValue::HtmlBlock(block) => heading_of_html(&block.literal)?,
            _ => return None,
        };
        (!title.trim().is_empty()).then_some(title)
    })
}

/// Returns the text between the tags of a heading.
fn heading_of_html(html: &str) -> Option<String> {
    html.find("<h").or_else(|| html.find("<H"))?;
    let is_heading = |name: &[u8]| matches!(name, [b'h', b'1'..=b'6']);
    let mut words: Option<String> = None;
    for token in tokenize(html, false) {
        match (token, &mut words) {
            (Token::StartTag(tag), None) if is_heading(&tag.name) => words = Some(String::new()),
            (Token::String(text), Some(words)) => words.push_str(&String::from_utf8_lossy(&text)),
            (Token::EndTag(tag), Some(_)) if is_heading(&tag.name) => break,
            _ => {}
        }
    }
    words
}

/// Returns the text of the first paragraph that has any beside its pictures.
fn first_paragraph(document: Node<'_>) -> Option<String> {
    let paragraphs = document
        .children()
        .filter(|node| matches!(node.data().value, NodeValue::Paragraph));
    paragraphs
        .map(plain_text)
        .find(|words| !words.trim().is_empty())
}

fn plain_text(node: Node<'_>) -> String {
    let mut words = String::new();
    let mut pictures = 0;
    for edge in node.traverse() {
        match edge {
            NodeEdge::Start(node) => match &node.data().value {
                NodeValue::Image(_) => pictures += 1,
                _ if pictures > 0 => {}
                NodeValue::Text(text) => words.push_str(&emoji::replace_shortcodes(text)),
                NodeValue::Code(code) => words.push_str(&code.literal),
                NodeValue::Math(math) => words.push_str(&math.literal),
                NodeValue::SoftBreak | NodeValue::LineBreak => words.push(' '),
                _ => {}
            },
            NodeEdge::End(node) => {
                if matches!(node.data().value, NodeValue::Image(_)) {
                    pictures -= 1;
                }
            }
        }
        if words.len() > MAX_DESCRIPTION_BYTES {
            break;
        }
    }
    words
}

/// Returns the beginning of the text, without code and markup.
fn language_sample(document: Node<'_>) -> String {
    let mut sample = String::new();
    for node in document.descendants() {
        if let NodeValue::Text(text) = &node.data().value {
            sample.push_str(text);
            sample.push(' ');
            if sample.len() > SAMPLE_BYTES {
                break;
            }
        }
    }
    sample
}
