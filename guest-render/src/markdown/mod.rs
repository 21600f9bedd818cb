//! Markdown pages: CommonMark and the GFM extensions, with raw HTML passed through.

mod blocks;
mod dollars;
mod front_matter;
mod images;
mod math;
mod metadata;

use std::cell::Cell;
use std::fmt;

use comrak::html::format_document_with_formatter;
use comrak::nodes::Node;
use comrak::options::Plugins;
use comrak::{Arena, Options};

use crate::page::{self, PageTypeProperties};
use crate::page_writer::PositionTracker;
use crate::position::to_u32;
use crate::{Page, RenderError, Source, mermaid};
use blocks::{BlockFormatter, format_node};

/// Limit of missing cells in tables, which the parser would add.
const MAX_PADDED_CELLS: u64 = 100_000;

/// Renders a Markdown source.
pub(crate) fn render(source: &Source) -> Result<Page, RenderError> {
    if count_padded_cells(&source.text) > MAX_PADDED_CELLS {
        return Err(RenderError::TooLarge);
    }
    let (front, start) = front_matter::split_front_matter(&source.text).unwrap_or_default();
    let (matter, text) = source.text.split_at(start);
    let lines_before = to_u32(matter.bytes().filter(|byte| *byte == b'\n').count());
    let options = comrak_options();
    let arena = Arena::new();
    let document = dollars::parse(&arena, text, &options);
    let metadata = metadata::collect_metadata(front, document);
    // Highlighting takes space: a page that would fit without it is rendered without it.
    let shell = PageTypeProperties {
        source,
        kind: "markdown",
        styles: &[include_str!("../../assets/markdown.css"), mermaid::STYLES],
        own_styles: String::new(),
        metadata,
    };
    match build_markdown_page(&shell, document, &options, lines_before, true) {
        Err(RenderError::TooLarge) => {
            build_markdown_page(&shell, document, &options, lines_before, false)
        }
        outcome => outcome,
    }
}

fn comrak_options() -> Options<'static> {
    let mut options = Options::default();
    options.extension.alerts = true;
    options.extension.autolink = true;
    options.extension.footnotes = true;
    options.extension.math_code = true;
    options.extension.math_dollars = true;
    options.extension.strikethrough = true;
    options.extension.table = true;
    options.extension.tasklist = true;
    options.render.r#unsafe = true;
    options
}

fn build_markdown_page(
    shell: &PageTypeProperties<'_>,
    document: Node<'_>,
    options: &Options<'_>,
    lines_before: u32,
    is_highlighted: bool,
) -> Result<Page, RenderError> {
    let mut diagrams = Vec::new();
    let page = page::build_page(shell, |out| {
        let position = Cell::new(out.position());
        let mut output = PositionTracker::new(out, &position);
        let plugins = Plugins::default();
        let blocks = BlockFormatter::new(&position, lines_before, is_highlighted);
        // Only the writer can fail, when the page is full.
        format_document_with_formatter(
            document,
            options,
            &mut output,
            &plugins,
            format_node,
            blocks,
        )
        .map(|blocks| diagrams = blocks.diagrams)
        .map_err(|fmt::Error| RenderError::TooLarge)
    })?;
    Ok(Page { diagrams, ..page })
}

/// Returns an upper bound of the cells that tables lack.
///
/// A short row of a wide table costs its author two bytes and the parser thousands of nodes, more than a guest has memory for. So
/// rows are counted before parsing: from the line that makes a table, whose cells are all dashes, to the next blank line. A text
/// that only looks like a table is refused only if it is as wide and as long as a refused table.
fn count_padded_cells(text: &str) -> u64 {
    let mut columns = 0;
    let mut cells = 0;
    for line in text.lines() {
        if line
            .bytes()
            .all(|byte| byte.is_ascii_whitespace() || byte == b'>')
        {
            columns = 0;
            continue;
        }
        let pipes = line.bytes().filter(|byte| *byte == b'|').count() as u64;
        if line
            .bytes()
            .all(|byte| matches!(byte, b'|' | b'-' | b':' | b'>' | b' ' | b'\t'))
            && line.contains('-')
        {
            columns = columns.max(pipes.saturating_sub(1));
        } else {
            cells += columns.saturating_sub(pipes + 1);
        }
    }
    cells
}

#[cfg(test)]
mod tests;
