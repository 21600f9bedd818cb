//! Mermaid: a page of one diagram, and the figure that every diagram of a page stands in.

// Natively there are only its tests.
#[cfg(any(target_family = "wasm", test))]
mod drawing;

#[cfg(target_family = "wasm")]
pub(crate) use drawing::draw;

use std::cell::Cell;
use std::fmt;

use maud::html;

use crate::out::Positioned;
use crate::page::{self, Shell};
use crate::place::number;
use crate::{Diagram, Page, RenderError, Source};

/// How a diagram stands in a page.
pub(crate) const STYLES: &str = include_str!("../assets/mermaid.css");

/// Renders a page of one diagram.
pub(crate) fn render(source: &Source) -> Result<Page, RenderError> {
    let shell = Shell {
        source,
        kind: "mermaid",
        styles: &[STYLES],
        own_styles: String::new(),
    };
    let mut diagram = None;
    let html = page::build(&shell, |out| {
        let heading = html! { header { h1 { (page::title(source)) } } };
        out.markup(&heading.0)?;
        let position = Cell::new(out.position());
        let mut output = Positioned::new(out, &position);
        // Nothing but a full page stops the writer.
        diagram = figure(&mut output, &position, &source.text, "Diagram", true)
            .map_err(|fmt::Error| RenderError::TooLarge)?;
        Ok(())
    })?;
    Ok(Page {
        html,
        diagrams: diagram.into_iter().collect(),
    })
}

/// Writes a diagram's source as text, and names its place for a drawing to take.
///
/// A named one has the source once more below it, folded: the styles show it only once a drawing has taken the place of
/// the text. The place is where the writer stood, so no text that an author writes can pass for one. The
/// label is the guest's own words.
pub(crate) fn figure(
    out: &mut dyn fmt::Write,
    position: &Cell<usize>,
    text: &str,
    label: &str,
    is_named: bool,
) -> Result<Option<Diagram>, fmt::Error> {
    write!(
        out,
        "<figure class=\"diagram\" role=\"region\" tabindex=\"0\" aria-label=\"{label}\">"
    )?;
    let start = number(position.get());
    out.write_str("<pre class=\"mermaid-source\"><code>")?;
    comrak::html::escape(out, text)?;
    out.write_str("</code></pre>")?;
    let end = number(position.get());
    let diagram = is_named.then(|| Diagram {
        text: text.to_owned(),
        start,
        end,
    });
    if is_named {
        out.write_str("<details><summary>Source</summary><pre><code>")?;
        comrak::html::escape(out, text)?;
        out.write_str("</code></pre></details>")?;
    }
    out.write_str("</figure>")?;
    Ok(diagram)
}
