//! Root element of a drawing: its size, its name, its styles.

use std::fmt::Write as _;

use roxmltree::Node;

use super::markup::{escape, format_decimal, round_numbers};
use super::names;
use super::safe::{DrawingRejection, MAX_SIDE, SafeDrawingWriter, is_svg};

/// Fonts with the metrics that labels were measured for. With other fonts a label may be a little wider than its place.
const FONTS: &str = "Arial,\"Liberation Sans\",Arimo,Helvetica,sans-serif";

/// Smallest scale at which a drawing is shown before it scrolls.
const MIN_SCALE: f64 = 0.45;

impl<'a> SafeDrawingWriter<'a> {
    /// Writes the root element around the content.
    pub(super) fn finish(
        mut self,
        root: Node<'a, 'a>,
        rules: &str,
        is_dark: bool,
    ) -> Result<String, DrawingRejection> {
        let view_box = root.attribute("viewBox").unwrap_or_default();
        let (width, height) = view_box_size(view_box)?;
        let content = std::mem::take(&mut self.out);
        let id = self.sheet.names.root().to_owned();
        let _ = write!(
            self.out,
            "<svg id=\"{id}\" viewBox=\"{}\" width=\"{}\" height=\"{}\" style=\"min-width:{}px\"",
            round_numbers(view_box),
            format_decimal(width),
            format_decimal(height),
            format_decimal((width * MIN_SCALE).floor())
        );
        let classes: Vec<_> = names::classes(root)
            .filter_map(|class| self.sheet.names.class(class))
            .collect();
        self.attribute("class", &classes.join(" "));
        // An element with the role of an image has no links inside.
        self.attribute("role", if self.has_links { "group" } else { "img" });
        let kind = kind_label(root.attribute("aria-roledescription").unwrap_or_default());
        self.attribute("aria-label", author_text(root, "title").unwrap_or(kind));
        let description = author_text(root, "desc");
        if description.is_some() {
            self.attribute("aria-describedby", &format!("{id}-about"));
        }
        let _ = write!(self.out, "><style>#{id}{{font-family:{FONTS}}}");
        self.sheet.palette.write(&mut self.out, &id, is_dark);
        self.out.push_str(rules);
        if kind == "C4 diagram" {
            // A relation's label may lie across a box: it gets an outline in the background colour.
            let _ = write!(
                self.out,
                "#{id} text[dominant-baseline]{{stroke:var(--soft,#fff);stroke-width:4px;stroke-linejoin:round;paint-order:stroke}}"
            );
        }
        if kind == "Radar chart" {
            // The title of a radar chart touches the upper edge.
            let _ = write!(self.out, "#{id}{{overflow:visible}}");
        }
        // These rules are important, and their selectors are less specific than the drawing's own.
        let _ = write!(
            self.out,
            "#{id} .l.l.l.l{{fill:currentColor!important;stroke:none!important}}</style>"
        );
        if let Some(description) = description {
            let _ = write!(self.out, "<desc id=\"{id}-about\">");
            escape(&mut self.out, description);
            self.out.push_str("</desc>");
        }
        self.out.push_str(&content);
        self.out.push_str("</svg>");
        Ok(self.out)
    }
}

/// Reads the width and the height of a view box.
fn view_box_size(view_box: &str) -> Result<(f64, f64), DrawingRejection> {
    let sides: Vec<f64> = view_box
        .split_ascii_whitespace()
        .filter_map(|side| side.parse().ok())
        .collect();
    let (width, height) = match sides.as_slice() {
        [_, _, width, height] if *width > 0.0 && *height > 0.0 => (*width, *height),
        _ => return Err(DrawingRejection::NoSize),
    };
    match sides.iter().all(|side| side.abs() < MAX_SIDE) {
        true => Ok((width, height)),
        false => Err(DrawingRejection::TooLarge),
    }
}

/// Returns a text of the author about the whole drawing.
fn author_text<'a>(root: Node<'a, 'a>, name: &str) -> Option<&'a str> {
    let said = root
        .children()
        .find(|child| is_svg(*child, name))?
        .text()?
        .trim();
    (!said.is_empty()).then_some(said)
}

/// Returns a name for a drawing without one.
fn kind_label(role: &str) -> &'static str {
    match role {
        "architecture" => "Architecture diagram",
        "block" => "Block diagram",
        "c4" => "C4 diagram",
        "class" | "classDiagram" => "Class diagram",
        "er" => "Entity relationship diagram",
        "gantt" => "Gantt chart",
        "gitGraph" => "Git graph",
        "journey" => "User journey",
        "kanban" => "Kanban board",
        "mindmap" => "Mind map",
        "packet" => "Packet diagram",
        "pie" => "Pie chart",
        "quadrantChart" => "Quadrant chart",
        "radar" => "Radar chart",
        "requirement" => "Requirement diagram",
        "sankey" => "Sankey diagram",
        "sequence" => "Sequence diagram",
        "stateDiagram" => "State diagram",
        "timeline" => "Timeline",
        "treemap" => "Treemap",
        "xychart" => "Chart",
        _ if role.starts_with("flowchart") => "Flowchart",
        _ => "Diagram",
    }
}
