//! Mermaid: a page of one diagram, and the figure that every diagram of a page stands in.

// Natively there are only its tests.
#[cfg(any(target_family = "wasm", test))]
mod drawing;

#[cfg(target_family = "wasm")]
pub(crate) use drawing::draw;

use std::cell::Cell;
use std::fmt;

use crate::page::{self, PageMetadata, PageShell};
use crate::page_writer::PositionTracker;
use crate::position::to_u32;
use crate::{Diagram, Page, RenderError, Source};

/// How a diagram stands in a page.
pub(crate) const STYLES: &str = include_str!("../../assets/mermaid.css");

/// Renders a page of one diagram.
pub(crate) fn render(source: &Source) -> Result<Page, RenderError> {
    let shell = PageShell {
        source,
        kind: "mermaid",
        styles: &[STYLES],
        own_styles: String::new(),
        metadata: PageMetadata {
            title: None,
            description: format!("A diagram: {}", kind(&source.text)),
            language: None,
        },
    };
    let mut diagram = None;
    let page = page::build_page(&shell, |out| {
        out.markup(&page::fallback_heading(source, "Diagram"))?;
        let position = Cell::new(out.position());
        let mut output = PositionTracker::new(out, &position);
        // Nothing but a full page stops the writer.
        diagram = write_figure(&mut output, &position, &source.text, "Diagram", 1)
            .map_err(|fmt::Error| RenderError::TooLarge)
            .map(Some)?;
        Ok(())
    })?;
    Ok(Page {
        diagrams: diagram.into_iter().collect(),
        ..page
    })
}

/// The word that a diagram begins with, which names its kind.
fn kind(text: &str) -> &str {
    let mut lines = text
        .lines()
        .map(str::trim)
        .skip_while(|line| line.is_empty());
    let mut first = lines.next().unwrap_or_default();
    if first == "---" {
        first = lines
            .skip_while(|line| *line != "---")
            .nth(1)
            .unwrap_or_default();
    }
    first.split_whitespace().next().unwrap_or("empty")
}

/// A switch for narrow screens: a drawing fits them, or has the size that it was drawn in.
const ZOOM_SWITCH: &str = "<label class=\"zoom\"><input type=\"checkbox\"> Full size</label>";

/// Writes a diagram's source as text, and names its place for a drawing to take.
///
/// It has the source once more below it, folded: the styles show it only once a drawing has taken the place of
/// the text. The place is where the writer stood, so no text that an author writes can pass for one. The
/// label is the guest's own words.
pub(crate) fn write_figure(
    out: &mut dyn fmt::Write,
    position: &Cell<usize>,
    text: &str,
    label: &str,
    line: u32,
) -> Result<Diagram, fmt::Error> {
    write!(
        out,
        "<figure class=\"diagram\" role=\"region\" tabindex=\"0\" aria-label=\"{label}\">"
    )?;
    // Before the place of the drawing, so that the styles know it for one that was drawn.
    out.write_str(ZOOM_SWITCH)?;
    let start = to_u32(position.get());
    out.write_str("<pre class=\"mermaid-source\"><code>")?;
    comrak::html::escape(out, text)?;
    out.write_str("</code></pre>")?;
    let end = to_u32(position.get());
    out.write_str("<details><summary>Source</summary><pre><code>")?;
    comrak::html::escape(out, text)?;
    out.write_str("</code></pre></details></figure>")?;
    Ok(Diagram {
        text: text.to_owned(),
        start,
        end,
        line,
    })
}
