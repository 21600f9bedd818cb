//! Mermaid: pages of one diagram, and the figures of diagrams in other pages.

// Native builds have only its tests.
#[cfg(any(target_family = "wasm", test))]
mod drawing;

#[cfg(target_family = "wasm")]
pub(crate) use drawing::draw;

use std::cell::Cell;
use std::fmt;

use crate::page::{self, PageMetadata, PageTypeProperties};
use crate::page_writer::PositionTracker;
use crate::position::to_u32;
use crate::{Diagram, Page, RenderError, Source};

/// Styles of a diagram in a page.
pub(crate) const STYLES: &str = include_str!("../../assets/mermaid.css");

/// Renders a page of one diagram.
pub(crate) fn render(source: &Source) -> Result<Page, RenderError> {
    let shell = PageTypeProperties {
        source,
        kind: "mermaid",
        styles: &[STYLES],
        own_styles: String::new(),
        metadata: PageMetadata {
            title: None,
            description: format!("A diagram: {}", diagram_kind(&source.text)),
            language: None,
        },
    };
    let mut diagram = None;
    let page = page::build_page(&shell, |out| {
        out.markup(&page::fallback_heading(source, "Diagram"))?;
        let position = Cell::new(out.position());
        let mut output = PositionTracker::new(out, &position);
        // The writer fails only when the page is full.
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

/// Returns the first word of a diagram, which names its kind.
fn diagram_kind(text: &str) -> &str {
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

/// Switch for narrow screens: a drawing fits the screen, or has its original size.
const ZOOM_SWITCH: &str = "<label class=\"zoom\"><input type=\"checkbox\"> Full size</label>";

/// Writes a diagram's source as text, and returns its span, which a drawing replaces.
///
/// The source is written once more below, folded: the styles show it only after a drawing has replaced the text. The span is the
/// writer's own position, so that no text of an author can pass for one. The label consists of the guest's own words.
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
    // Comes before the drawing's span, so that the styles can tell a drawn figure.
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
