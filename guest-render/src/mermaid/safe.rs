//! The drawing that a page gets: the first one, read as XML and written anew through an allow-list.
//!
//! Nothing of the first drawing is copied. What is not named here does not exist on the page: an element that is not
//! known ends the drawing, an attribute that is not known is left out, links lead to https or nowhere, and values
//! are those of [`super::css`]. Labels in HTML become lines of text ([`super::label`]).

use std::collections::HashSet;
use std::fmt::Write as _;

use roxmltree::{Document, Node, ParsingOptions};

use super::colours::{self, Palette};
use super::css::{self, Sheet};
use super::label::{self, Align, Label, Run};
use super::names::{self, Names};

/// The elements that a drawing is made of.
const ELEMENTS: [&str; 21] = [
    "a",
    "circle",
    "clipPath",
    "defs",
    "ellipse",
    "g",
    "line",
    "linearGradient",
    "marker",
    "mask",
    "path",
    "pattern",
    "polygon",
    "polyline",
    "radialGradient",
    "rect",
    "stop",
    "svg",
    "text",
    "title",
    "tspan",
];

/// Elements that are left out with what is in them: a drawing is the same without, or says it elsewhere.
const LEFT_OUT: [&str; 6] = ["desc", "filter", "image", "style", "symbol", "use"];

/// Attributes whose values are numbers, lengths, words and functions of numbers.
const GEOMETRY: [&str; 40] = [
    "cx", "cy", "d", "dx", "dy", "fx", "fy", "gradientTransform", "gradientUnits", "height", "lengthAdjust",
    "markerHeight", "markerUnits", "markerWidth", "maskUnits", "offset", "orient", "overflow", "patternTransform",
    "patternUnits", "points", "preserveAspectRatio", "r", "refX", "refY", "rotate", "rx", "ry", "spreadMethod",
    "textLength", "transform", "transform-origin", "viewBox", "width", "x", "x1", "x2", "y", "y1", "y2",
];

/// The namespace of everything that is drawn.
const SVG: &str = "http://www.w3.org/2000/svg";

/// The fonts whose measure labels were given. Without one of these a label may be a little wider than its place.
const FONTS: &str = "Arial,\"Liberation Sans\",Arimo,Helvetica,sans-serif";

/// How much smaller than it was drawn a drawing may be shown before it scrolls.
const SMALLEST: f64 = 0.6;

/// The largest side of a drawing that has a meaning to a browser, in CSS pixels.
const LARGEST: f64 = 1_000_000.0;

/// Why a drawing does not become one of the page's.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unsafe {
    /// It is no XML.
    #[error("the drawing cannot be read: {0}")]
    Unreadable(#[from] roxmltree::Error),
    /// It is not one element of SVG with a size.
    #[error("the drawing has no size")]
    NoSize,
    /// It contains what no drawing should.
    #[error("the drawing contains {0:?}")]
    Element(String),
}

/// Writes a drawing anew, as the page's drawing of this `number`. `drawn_as` is its id as it was drawn.
pub(super) fn rewrite(svg: &str, drawn_as: &str, number: u32) -> Result<String, Unsafe> {
    let options = ParsingOptions {
        allow_dtd: false,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(svg, options)?;
    let root = document.root_element();
    if !is_svg(root, "svg") {
        return Err(Unsafe::Element(root.tag_name().name().to_owned()));
    }
    let styles: String = root
        .descendants()
        .filter(|node| is_svg(*node, "style"))
        .flat_map(|style| style.children())
        .filter_map(|child| child.text())
        .collect();
    let mut writer = Writer {
        out: String::with_capacity(svg.len() / 2),
        sheet: Sheet {
            names: Names::collect(&document, number),
            palette: Palette::default(),
        },
        plate: css::plate(&styles),
        font_size: css::of_root(&styles, drawn_as, "font-size")
            .and_then(label::pixels)
            .unwrap_or(label::FONT_SIZE),
        types: HashSet::from(["tspan", "text"]),
        ids: HashSet::new(),
        has_links: false,
    };
    for child in root.children() {
        writer.tree(child)?;
    }
    let rules = writer.sheet.rules(&styles, drawn_as, &writer.types);
    let ink = css::of_root(&styles, drawn_as, "fill").and_then(colours::luminance_of);
    writer.finish(root, &rules, ink.is_some_and(|luminance| luminance > 0.5))
}

struct Writer<'a> {
    out: String,
    sheet: Sheet<'a>,
    /// The colour behind the labels of edges.
    plate: Option<&'a str>,
    /// The size of the drawing's labels, in CSS pixels.
    font_size: f64,
    /// The names of the elements that were written.
    types: HashSet<&'a str>,
    /// The ids that were written.
    ids: HashSet<String>,
    has_links: bool,
}

/// What comes after the beginning of a node.
#[derive(Eq, PartialEq)]
enum After {
    /// What is in it, and its end.
    Content,
    /// The next node.
    Next,
}

impl<'a> Writer<'a> {
    /// Writes a node and what is in it. Without recursion: how deep a drawing nests is up to its author.
    fn tree(&mut self, top: Node<'a, 'a>) -> Result<(), Unsafe> {
        let mut node = top;
        loop {
            let after = self.open(node)?;
            if after == After::Content
                && let Some(child) = node.first_child()
            {
                node = child;
                continue;
            }
            let mut is_open = after == After::Content;
            loop {
                if is_open {
                    self.close(node);
                }
                if node == top {
                    return Ok(());
                }
                if let Some(next) = node.next_sibling() {
                    node = next;
                    break;
                }
                let Some(parent) = node.parent() else {
                    return Ok(());
                };
                node = parent;
                is_open = true;
            }
        }
    }

    fn open(&mut self, node: Node<'a, 'a>) -> Result<After, Unsafe> {
        if node.is_text() {
            let is_shown = node
                .parent_element()
                .is_some_and(|parent| matches!(parent.tag_name().name(), "text" | "tspan" | "title"));
            if is_shown {
                escape(&mut self.out, node.text().unwrap_or_default());
            }
            return Ok(After::Next);
        }
        if !node.is_element() {
            return Ok(After::Next);
        }
        let is_second = node.prev_sibling_element().is_some();
        if is_second && node.parent_element().is_some_and(|parent| is_svg(parent, "switch")) {
            // What a browser would not show either.
            return Ok(After::Next);
        }
        let name = node.tag_name().name();
        if node.tag_name().namespace() != Some(SVG) {
            return Err(Unsafe::Element(name.to_owned()));
        }
        if LEFT_OUT.contains(&name) {
            return Ok(After::Next);
        }
        if name == "foreignObject" {
            self.label(node);
            return Ok(After::Next);
        }
        let Some(name) = written_as(node) else {
            return Err(Unsafe::Element(name.to_owned()));
        };
        self.out.push('<');
        self.out.push_str(name);
        self.types.insert(name);
        if let Some(target) = link(node) {
            self.has_links = true;
            self.attribute("href", target);
            self.attribute("rel", "noopener noreferrer");
        }
        self.attributes(node);
        self.out.push('>');
        Ok(After::Content)
    }

    fn close(&mut self, node: Node<'a, 'a>) {
        if let Some(name) = written_as(node) {
            let _ = write!(self.out, "</{name}>");
        }
    }

    fn attributes(&mut self, node: Node<'a, 'a>) {
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            if attribute.namespace().is_some() {
                if name == "space" && value == "preserve" {
                    self.attribute("xml:space", value);
                }
                continue;
            }
            match name {
                "class" => {
                    let classes: Vec<_> = names::classes(node)
                        .filter_map(|class| self.sheet.names.class(class))
                        .collect();
                    self.attribute("class", &classes.join(" "));
                }
                "id" => {
                    if let Some(id) = self.sheet.names.id(value)
                        && self.ids.insert(id.clone())
                    {
                        self.attribute("id", &id);
                    }
                }
                "style" => {
                    let declarations = self.sheet.declarations(value);
                    self.attribute("style", &declarations);
                }
                name if GEOMETRY.contains(&name) => {
                    if is_geometry(value) {
                        self.attribute(name, &shortened(value));
                    }
                }
                name => {
                    if let Some(value) = self.sheet.value(name, value) {
                        self.attribute(name, &value);
                    }
                }
            }
        }
    }

    /// An attribute, unless it is empty. Its name is one of this file's or of the styles'.
    fn attribute(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            let _ = write!(self.out, " {name}=\"");
            escape(&mut self.out, value);
            self.out.push('"');
        }
    }

    /// Writes a label that was drawn as HTML.
    fn label(&mut self, object: Node<'a, 'a>) {
        let number = |name| object.attribute(name).and_then(label::pixels).unwrap_or(0.0);
        let [x, y, width, height] = ["x", "y", "width", "height"].map(number);
        let label = Label::read(object, width, self.font_size);
        if label.lines.is_empty() || !(0.0..LARGEST).contains(&width) || !(0.0..LARGEST).contains(&height) {
            return;
        }
        if label.classes.iter().any(|class| class == "labelBkg")
            && let Some(fill) = self.plate.and_then(|colour| self.sheet.value("fill", colour))
        {
            let _ = write!(
                self.out,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" style=\"fill:{fill};opacity:1;stroke:none\"></rect>",
                decimal(x), decimal(y), decimal(width), decimal(height)
            );
        }
        let (anchor, x) = match label.align {
            Align::Start => ("start", x),
            Align::Middle => ("middle", x + width / 2.0),
            Align::End => ("end", x + width),
        };
        let _ = write!(self.out, "<text style=\"text-anchor:{anchor}\">");
        let mut classes: Vec<_> = label.classes.iter().filter_map(|class| self.sheet.names.class(class)).collect();
        classes.push("l".to_owned());
        let classes = classes.join(" ");
        let style = self.sheet.declarations(&label.style);
        let mut middle = y;
        // Some writers count lines that they do not draw; the lines fill the box either way.
        let line_height = height / f64::from(u32::try_from(label.lines.len()).unwrap_or(u32::MAX));
        for line in &label.lines {
            let _ = write!(
                self.out,
                "<tspan class=\"{classes}\" x=\"{}\" y=\"{}\" dy=\".35em\"",
                decimal(x),
                decimal(middle + line_height / 2.0)
            );
            self.attribute("style", &style);
            self.out.push('>');
            line.iter().for_each(|run| self.run(run));
            self.out.push_str("</tspan>");
            middle += line_height;
        }
        self.out.push_str("</text>");
    }

    fn run(&mut self, run: &Run) {
        if !run.face.is_bold && !run.face.is_italic {
            escape(&mut self.out, &run.text);
            return;
        }
        self.out.push_str("<tspan");
        if run.face.is_bold {
            self.out.push_str(" font-weight=\"bold\"");
        }
        if run.face.is_italic {
            self.out.push_str(" font-style=\"italic\"");
        }
        self.out.push('>');
        escape(&mut self.out, &run.text);
        self.out.push_str("</tspan>");
    }

    /// The whole element, around what was written.
    fn finish(mut self, root: Node<'a, 'a>, rules: &str, is_dark: bool) -> Result<String, Unsafe> {
        let view_box = root.attribute("viewBox").unwrap_or_default();
        let sides: Vec<f64> = view_box.split_ascii_whitespace().filter_map(|side| side.parse().ok()).collect();
        let (width, height) = match sides.as_slice() {
            [_, _, width, height] if *width > 0.0 && *height > 0.0 => (*width, *height),
            _ => return Err(Unsafe::NoSize),
        };
        if !sides.iter().all(|side| side.abs() < LARGEST) {
            return Err(Unsafe::NoSize);
        }
        let content = std::mem::take(&mut self.out);
        let id = self.sheet.names.root().to_owned();
        let _ = write!(
            self.out,
            "<svg id=\"{id}\" viewBox=\"{}\" width=\"{}\" height=\"{}\" style=\"min-width:{}px\"",
            shortened(view_box), decimal(width), decimal(height), decimal((width * SMALLEST).floor())
        );
        let classes: Vec<_> = names::classes(root).filter_map(|class| self.sheet.names.class(class)).collect();
        self.attribute("class", &classes.join(" "));
        // An image has no links inside of it.
        self.attribute("role", if self.has_links { "group" } else { "img" });
        let kind = kind(root.attribute("aria-roledescription").unwrap_or_default());
        self.attribute("aria-label", said(root, "title").unwrap_or(kind));
        let description = said(root, "desc");
        if description.is_some() {
            self.attribute("aria-describedby", &format!("{id}-about"));
        }
        let _ = write!(self.out, "><style>#{id}{{font-family:{FONTS}}}");
        self.sheet.palette.write(&mut self.out, &id, is_dark);
        self.out.push_str(rules);
        let _ = write!(self.out, "#{id} .l{{fill:currentColor!important}}</style>");
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

/// What an author says of the drawing as a whole.
fn said<'a>(root: Node<'a, 'a>, name: &str) -> Option<&'a str> {
    let said = root.children().find(|child| is_svg(*child, name))?.text()?.trim();
    (!said.is_empty()).then_some(said)
}

/// What a drawing is called whose author does not say.
fn kind(role: &str) -> &'static str {
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
        "xychart" => "Chart",
        _ if role.starts_with("flowchart") => "Flowchart",
        _ => "Diagram",
    }
}

fn is_svg(node: Node<'_, '_>, name: &str) -> bool {
    node.has_tag_name((SVG, name))
}

/// The name under which the page has an element; a link that leads nowhere is a group.
fn written_as(node: Node<'_, '_>) -> Option<&'static str> {
    let name = match node.tag_name().name() {
        "switch" => "g",
        "a" if link(node).is_none() => "g",
        name => name,
    };
    ELEMENTS.into_iter().find(|known| *known == name)
}

/// Where a link leads, if that is an address by https.
fn link<'a>(node: Node<'a, 'a>) -> Option<&'a str> {
    if !is_svg(node, "a") {
        return None;
    }
    let target = node.attributes().find(|attribute| attribute.name() == "href")?.value();
    let is_safe = |char: char| !char.is_control() && !char.is_whitespace();
    (target.starts_with("https://") && target.chars().all(is_safe)).then_some(target)
}

fn is_geometry(value: &str) -> bool {
    let allowed = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'\n' | b'.' | b',' | b'-' | b'+' | b'%' | b'(' | b')')
    };
    value.bytes().all(allowed) && !["NaN", "undefined", "Infinity", "inf", "url"].iter().any(|word| value.contains(word))
}

/// Geometry with no more than three decimals to a number: what a screen can show.
fn shortened(value: &str) -> String {
    let mut short = String::with_capacity(value.len());
    let mut decimals = None;
    for char in value.chars() {
        decimals = match (decimals, char) {
            (_, '.') => Some(0),
            (Some(count), '0'..='9') => Some(count + 1),
            _ => None,
        };
        if decimals.is_none_or(|count| count <= 3) {
            short.push(char);
        }
    }
    short
}

/// A number of pixels, with no more than three decimals.
fn decimal(value: f64) -> String {
    let rounded = format!("{value:.3}");
    rounded.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Writes text that nothing of can become markup, in an element or in an attribute.
fn escape(out: &mut String, text: &str) {
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\0' => out.push('\u{fffd}'),
            char => out.push(char),
        }
    }
}
