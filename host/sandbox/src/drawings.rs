//! Places of a page's drawings: each drawing replaces its fallback, or a note says why there is none.

use std::ops::Range;

use maud::html;

use super::bindings::render::svc::render::types;
use super::values::{RenderFailure, UndrawnDiagram};

/// Writes the note that readers see at a diagram that is not drawn.
pub(super) fn undrawn_note(undrawn: &UndrawnDiagram) -> String {
    let UndrawnDiagram { reason, line } = undrawn;
    html! { p.not-drawn { "This diagram is not drawn. Line " (line) ": " (reason) } }.into_string()
}

/// Checks and returns the spans of the diagrams' fallbacks.
pub(super) fn diagram_spans(
    html: &str,
    diagrams: &[types::Diagram],
) -> Result<Vec<Range<usize>>, RenderFailure> {
    let mut spans = Vec::with_capacity(diagrams.len());
    let mut free_from = 0;
    for diagram in diagrams {
        let ends = usize::try_from(diagram.start).ok();
        let span = ends
            .zip(usize::try_from(diagram.end).ok())
            .map(|(start, end)| start..end)
            .filter(|span| span.start >= free_from && html.get(span.clone()).is_some())
            .ok_or_else(|| {
                RenderFailure::Broken(anyhow::anyhow!(
                    "the guest names a diagram at {}..{} of a page of {} bytes, where there can be none",
                    diagram.start,
                    diagram.end,
                    html.len()
                ))
            })?;
        free_from = span.end;
        spans.push(span);
    }
    Ok(spans)
}

/// Replaces spans of a page, which ascend and do not overlap.
pub(super) fn replace_ranges(html: String, pieces: &[(Range<usize>, String)]) -> String {
    if pieces.is_empty() {
        return html;
    }
    let added: usize = pieces.iter().map(|(_, piece)| piece.len()).sum();
    let mut page = String::with_capacity(html.len() + added);
    let mut done = 0;
    for (span, piece) in pieces {
        page.push_str(&html[done..span.start]);
        page.push_str(piece);
        done = span.end;
    }
    page.push_str(&html[done..]);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagram(start: u32, end: u32) -> types::Diagram {
        types::Diagram {
            text: String::new(),
            start,
            end,
            line: 1,
        }
    }

    #[test]
    fn drawings_replace_their_fallbacks() {
        let html = "<p>é</p><i>a</i>-<i>b</i><p>".to_owned();
        let named = [diagram(9, 17), diagram(18, 26)];
        let spans = diagram_spans(&html, &named).unwrap();
        let svg = |name: &str| format!("<svg>{name}</svg>");
        let both = [
            (spans[0].clone(), svg("one")),
            (spans[1].clone(), svg("two")),
        ];
        assert_eq!(
            replace_ranges(html.clone(), &both),
            "<p>é</p><svg>one</svg>-<svg>two</svg><p>"
        );
        assert_eq!(
            replace_ranges(html.clone(), &both[1..]),
            "<p>é</p><i>a</i>-<svg>two</svg><p>"
        );
        assert_eq!(replace_ranges(html.clone(), &[]), html);
    }

    #[test]
    fn a_guest_that_misplaces_a_diagram_is_broken() {
        let html = "abcdéfgh";
        for named in [
            vec![diagram(3, 2)],
            vec![diagram(0, 10)],
            vec![diagram(9, 12)],
            vec![diagram(5, 6)],
            vec![diagram(0, 3), diagram(2, 4)],
            vec![diagram(4, 6), diagram(0, 1)],
            vec![diagram(0, u32::MAX)],
        ] {
            let spans = diagram_spans(html, &named);
            assert!(matches!(spans, Err(RenderFailure::Broken(_))), "{named:?}");
        }
        let whole = diagram_spans(html, &[diagram(0, 0), diagram(0, 4), diagram(4, 9)]);
        assert_eq!(whole.unwrap(), [0..0, 0..4, 4..9]);
    }
}
