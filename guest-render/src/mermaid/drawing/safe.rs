//! The drawing that a page gets: the first one, read as XML and written anew through an allow-list.
//!
//! Nothing of the first drawing is copied. What is not named here does not exist on the page: an element that is not
//! known ends the drawing, an attribute that is not known is left out, links lead to https or nowhere, and values
//! are those of [`super::css`]. Labels in HTML become lines of text ([`super::label`]).

use std::collections::HashSet;
use std::fmt::Write as _;

use roxmltree::{Document, Node, ParsingOptions};

use super::colours::{self, Palette};
use super::css::{self, StyleRewriter};
use super::label;
use super::markup::{escape, shortened};
use super::names::{self, NameMap};

/// The elements that a drawing is made of.
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

/// Elements that are left out with what is in them: a drawing is the same without, or says it elsewhere.
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

/// The namespace of everything that is drawn.
const SVG_NAMESPACE: &str = "http://www.w3.org/2000/svg";

/// The largest side of a drawing, in CSS pixels.
pub(super) const MAX_SIDE: f64 = 100_000.0;

/// Why a drawing does not become one of the page's.
#[derive(Debug, thiserror::Error)]
pub(super) enum DrawingRejection {
    /// It is no XML.
    #[error("the drawing cannot be read: {0}")]
    Unreadable(#[from] roxmltree::Error),
    /// It is not one element of SVG with a size.
    #[error("the drawing has no size")]
    NoSize,
    /// It is larger than anybody could look at.
    #[error("the drawing is larger than {MAX_SIDE} pixels")]
    TooLarge,
    /// It contains what no drawing should.
    #[error("the drawing contains {0:?}")]
    Element(String),
}

/// Writes a drawing anew, as the page's drawing of this `number`. `drawn_as` is its id as it was drawn.
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
    let mut writer = Writer {
        out: String::with_capacity(svg.len() / 2),
        sheet: StyleRewriter {
            names: NameMap::collect(&document, number),
            palette: Palette::default(),
        },
        plate: css::label_background(&styles),
        font_size: css::root_property(&styles, drawn_as, "font-size")
            .and_then(label::pixels)
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

/// The page's drawing, as far as it is written.
pub(super) struct Writer<'a> {
    pub(super) out: String,
    pub(super) sheet: StyleRewriter<'a>,
    /// The colour behind the labels of edges.
    pub(super) plate: Option<&'a str>,
    /// The size of the drawing's labels, in CSS pixels.
    pub(super) font_size: f64,
    /// Whether labels begin where their boxes do: their boxes are as wide as they are, and stand below one another.
    pub(super) is_list: bool,
    /// The names of the elements that were written.
    pub(super) types: HashSet<&'a str>,
    /// The ids that were written.
    pub(super) ids: HashSet<String>,
    pub(super) has_links: bool,
}

/// Rest of a node, after its beginning.
#[derive(Eq, PartialEq)]
enum AfterOpening {
    /// Content of the node, and its end.
    Content,
    /// The next node.
    Next,
}

impl<'a> Writer<'a> {
    /// Writes a node and what is in it. Without recursion: how deep a drawing nests is up to its author.
    fn tree(&mut self, top: Node<'a, 'a>) -> Result<(), DrawingRejection> {
        let mut node = top;
        loop {
            let after = self.open(node)?;
            if after == AfterOpening::Content
                && let Some(child) = node.first_child()
            {
                node = child;
                continue;
            }
            let mut is_open = after == AfterOpening::Content;
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

    fn open(&mut self, node: Node<'a, 'a>) -> Result<AfterOpening, DrawingRejection> {
        if node.is_text() {
            let is_shown = node.parent_element().is_some_and(|parent| {
                matches!(parent.tag_name().name(), "text" | "tspan" | "title")
            });
            if is_shown {
                escape(&mut self.out, node.text().unwrap_or_default());
            }
            return Ok(AfterOpening::Next);
        }
        if !node.is_element() {
            return Ok(AfterOpening::Next);
        }
        let is_second = node.prev_sibling_element().is_some();
        if is_second
            && node
                .parent_element()
                .is_some_and(|parent| is_svg(parent, "switch"))
        {
            // What a browser would not show either.
            return Ok(AfterOpening::Next);
        }
        let name = node.tag_name().name();
        if node.tag_name().namespace() != Some(SVG_NAMESPACE) {
            return Err(DrawingRejection::Element(name.to_owned()));
        }
        if IGNORED_ELEMENTS.contains(&name) {
            return Ok(AfterOpening::Next);
        }
        if name == "foreignObject" {
            self.label(node);
            return Ok(AfterOpening::Next);
        }
        let Some(name) = element_name(node) else {
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
        Ok(AfterOpening::Content)
    }

    fn close(&mut self, node: Node<'a, 'a>) {
        if let Some(name) = element_name(node) {
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

/// The name under which the page has an element; a link that leads nowhere is a group.
fn element_name(node: Node<'_, '_>) -> Option<&'static str> {
    let name = match node.tag_name().name() {
        "switch" => "g",
        "a" if https_link(node).is_none() => "g",
        name => name,
    };
    ALLOWED_ELEMENTS.into_iter().find(|known| *known == name)
}

/// Where a link leads, if that is an address by https.
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
