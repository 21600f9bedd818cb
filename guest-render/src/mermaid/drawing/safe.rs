//! Rewriting of a draft into the served drawing: read as XML, and written through an allow-list.
//!
//! Nothing of the draft is copied. An unknown element rejects the drawing, an unknown attribute is left out, links lead to https
//! or are removed, and values are those of [`super::css`]. HTML labels become lines of text ([`super::label`]).

use std::collections::HashSet;
use std::fmt::Write as _;

use roxmltree::{Document, Node, ParsingOptions};

use super::colours::{self, Palette};
use super::css::{self, StyleRewriter};
use super::label;
use super::markup::{escape, round_numbers};
use super::names::{self, IdAndClassMap};

/// Elements that a drawing may consist of.
const ALLOWED_ELEMENTS: [&str; 21] = [
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

/// Elements that are left out with their content: a drawing does not need them.
const IGNORED_ELEMENTS: [&str; 6] = ["desc", "filter", "image", "style", "symbol", "use"];

/// Attributes whose values are numbers, lengths, words and functions of numbers.
const GEOMETRY_ATTRIBUTES: [&str; 40] = [
    "cx",
    "cy",
    "d",
    "dx",
    "dy",
    "fx",
    "fy",
    "gradientTransform",
    "gradientUnits",
    "height",
    "lengthAdjust",
    "markerHeight",
    "markerUnits",
    "markerWidth",
    "maskUnits",
    "offset",
    "orient",
    "overflow",
    "patternTransform",
    "patternUnits",
    "points",
    "preserveAspectRatio",
    "r",
    "refX",
    "refY",
    "rotate",
    "rx",
    "ry",
    "spreadMethod",
    "textLength",
    "transform",
    "transform-origin",
    "viewBox",
    "width",
    "x",
    "x1",
    "x2",
    "y",
    "y1",
    "y2",
];

/// Namespace of SVG.
const SVG_NAMESPACE: &str = "http://www.w3.org/2000/svg";

/// Limit of a drawing's sides, in CSS pixels.
pub(super) const MAX_SIDE: f64 = 100_000.0;

/// Reason why a draft is rejected.
#[derive(Debug, thiserror::Error)]
pub(super) enum DrawingRejection {
    /// The draft is not XML.
    #[error("the drawing cannot be read: {0}")]
    Unreadable(#[from] roxmltree::Error),
    /// The draft is not an SVG element with a size.
    #[error("the drawing has no size")]
    NoSize,
    /// The drawing is too large to be looked at.
    #[error("the drawing is larger than {MAX_SIDE} pixels")]
    TooLarge,
    /// The draft contains a forbidden element.
    #[error("the drawing contains {0:?}")]
    Element(String),
}

/// Rewrites a draft as the drawing with index `number` in the page. `drawn_as` is the draft's id.
///
/// A drawing that is made for dark pages keeps its colours there.
pub(super) fn rewrite(
    svg: &str,
    drawn_as: &str,
    number: u32,
    is_made_for_dark: bool,
) -> Result<String, DrawingRejection> {
    let options = ParsingOptions {
        allow_dtd: false,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(svg, options)?;
    let root = document.root_element();
    if !is_svg(root, "svg") {
        return Err(DrawingRejection::Element(root.tag_name().name().to_owned()));
    }
    let styles: String = root
        .descendants()
        .filter(|node| is_svg(*node, "style"))
        .flat_map(|style| style.children())
        .filter_map(|child| child.text())
        .collect();
    let mut writer = SafeDrawingWriter {
        out: String::with_capacity(svg.len() / 2),
        sheet: StyleRewriter {
            names: IdAndClassMap::collect(&document, number),
            palette: Palette::default(),
        },
        plate: css::label_background(&styles),
        font_size: css::root_property(&styles, drawn_as, "font-size")
            .and_then(label::parse_pixels)
            .unwrap_or(label::FONT_SIZE),
        is_list: root.attribute("aria-roledescription") == Some("requirement"),
        types: HashSet::from(["tspan", "text"]),
        ids: HashSet::new(),
        has_links: false,
    };
    for child in root.children() {
        writer.tree(child)?;
    }
    let rules = writer.sheet.rules(&styles, drawn_as, &writer.types);
    let ink = css::root_property(&styles, drawn_as, "fill").and_then(colours::luminance_of);
    let is_dark = is_made_for_dark && ink.is_some_and(|luminance| luminance > 0.5);
    writer.finish(root, &rules, is_dark)
}

/// The drawing, as far as it is written.
pub(super) struct SafeDrawingWriter<'a> {
    pub(super) out: String,
    pub(super) sheet: StyleRewriter<'a>,
    /// Background colour of edge labels.
    pub(super) plate: Option<&'a str>,
    /// Size of the drawing's labels, in CSS pixels.
    pub(super) font_size: f64,
    /// Whether labels are aligned at the start of their boxes, which are below one another and equally wide.
    pub(super) is_list: bool,
    /// Names of the written elements.
    pub(super) types: HashSet<&'a str>,
    /// Ids that were written.
    pub(super) ids: HashSet<String>,
    pub(super) has_links: bool,
}

/// Part of the tree that follows the opening of a node.
#[derive(Eq, PartialEq)]
enum NextTraversalStep {
    /// The node's content and its end.
    Content,
    /// The next node: this one is complete.
    Next,
}

impl<'a> SafeDrawingWriter<'a> {
    /// Writes a node with its content. It does not recurse, because the author controls the nesting.
    fn tree(&mut self, top: Node<'a, 'a>) -> Result<(), DrawingRejection> {
        let mut node = top;
        loop {
            let after = self.open(node)?;
            if after == NextTraversalStep::Content
                && let Some(child) = node.first_child()
            {
                node = child;
                continue;
            }
            let mut is_open = after == NextTraversalStep::Content;
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

    fn open(&mut self, node: Node<'a, 'a>) -> Result<NextTraversalStep, DrawingRejection> {
        if node.is_text() {
            let is_shown = node.parent_element().is_some_and(|parent| {
                matches!(parent.tag_name().name(), "text" | "tspan" | "title")
            });
            if is_shown {
                escape(&mut self.out, node.text().unwrap_or_default());
            }
            return Ok(NextTraversalStep::Next);
        }
        if !node.is_element() {
            return Ok(NextTraversalStep::Next);
        }
        let is_second = node.prev_sibling_element().is_some();
        if is_second
            && node
                .parent_element()
                .is_some_and(|parent| is_svg(parent, "switch"))
        {
            // Browsers would not show it either.
            return Ok(NextTraversalStep::Next);
        }
        let name = node.tag_name().name();
        if node.tag_name().namespace() != Some(SVG_NAMESPACE) {
            return Err(DrawingRejection::Element(name.to_owned()));
        }
        if IGNORED_ELEMENTS.contains(&name) {
            return Ok(NextTraversalStep::Next);
        }
        if name == "foreignObject" {
            self.label(node);
            return Ok(NextTraversalStep::Next);
        }
        let Some(name) = output_element_name(node) else {
            return Err(DrawingRejection::Element(name.to_owned()));
        };
        self.out.push('<');
        self.out.push_str(name);
        self.types.insert(name);
        if let Some(target) = https_link(node) {
            self.has_links = true;
            self.attribute("href", target);
            self.attribute("rel", "noopener noreferrer");
        }
        self.attributes(node);
        self.out.push('>');
        Ok(NextTraversalStep::Content)
    }

    fn close(&mut self, node: Node<'a, 'a>) {
        if let Some(name) = output_element_name(node) {
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
                name if GEOMETRY_ATTRIBUTES.contains(&name) => {
                    if css::is_geometry(value) {
                        self.attribute(name, &round_numbers(value));
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

    /// Writes an attribute, unless it is empty. The name comes from this file or the styles, never from the draft.
    pub(super) fn attribute(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            let _ = write!(self.out, " {name}=\"");
            escape(&mut self.out, value);
            self.out.push('"');
        }
    }
}

pub(super) fn is_svg(node: Node<'_, '_>, name: &str) -> bool {
    node.has_tag_name((SVG_NAMESPACE, name))
}

/// Returns the name of an element on the page; a link without a target becomes a group.
fn output_element_name(node: Node<'_, '_>) -> Option<&'static str> {
    let name = match node.tag_name().name() {
        "switch" => "g",
        "a" if https_link(node).is_none() => "g",
        name => name,
    };
    ALLOWED_ELEMENTS.into_iter().find(|known| *known == name)
}

/// Returns the target of a link, if it is an https address.
fn https_link<'a>(node: Node<'a, 'a>) -> Option<&'a str> {
    if !is_svg(node, "a") {
        return None;
    }
    let target = node
        .attributes()
        .find(|attribute| attribute.name() == "href")?
        .value();
    let is_safe = |char: char| !char.is_control() && !char.is_whitespace();
    (target.starts_with("https://") && target.chars().all(is_safe)).then_some(target)
}
