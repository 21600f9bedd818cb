//! Labels that were drawn as HTML inside of the drawing, rewritten as lines of text.
//!
//! Only their text, weight, slant, alignment and colours are kept; lines break where a browser would have broken them.

use std::fmt::Write as _;

use roxmltree::Node;

use super::css;
use super::markup::{escape, format_decimal};
use super::safe::{MAX_SIDE, SafeDrawingWriter};
use super::text;

/// Default size of labels, in CSS pixels.
pub(super) const FONT_SIZE: f64 = 16.0;

/// Font style of a part of a label.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
struct FontStyle {
    is_bold: bool,
    is_italic: bool,
}

/// A part of a line with one font style.
#[derive(Debug, Eq, PartialEq)]
struct TextRun {
    text: String,
    face: FontStyle,
}

/// Alignment of a label's lines in its box.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LabelAlignment {
    Start,
    Middle,
    End,
}

/// A label as lines of text.
struct Label {
    lines: Vec<Vec<TextRun>>,
    align: LabelAlignment,
    /// Declarations of all elements that the label was made of, unchecked, from the outermost inwards.
    style: String,
    /// Classes of the spans.
    classes: Vec<String>,
}

impl std::fmt::Debug for FontStyle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match (self.is_bold, self.is_italic) {
            (true, true) => "bold italic",
            (true, false) => "bold",
            (false, true) => "italic",
            (false, false) => "plain",
        })
    }
}

/// Builder of a label.
struct LabelBuilder {
    lines: Vec<Vec<TextRun>>,
    /// Width limit of a line, in CSS pixels.
    limit: f64,
    font_size: f64,
    /// Width of the last line so far.
    width: f64,
    /// A space before the next word, if that is on the same line.
    has_space: bool,
}

impl Label {
    /// Reads the label inside of a `foreignObject` that is `width` wide; `font_size` is the drawing's own.
    fn read(object: Node<'_, '_>, width: f64, font_size: f64) -> Self {
        let mut style = String::new();
        let mut classes = Vec::new();
        let mut is_wrapped = true;
        let mut align = LabelAlignment::Middle;
        // Elements around the whole text, nested in each other.
        let mut around = object.first_element_child();
        while let Some(element) = around {
            let own = element.attribute("style").unwrap_or_default();
            style.push_str(own);
            style.push(';');
            classes.extend(super::names::classes(element).map(str::to_owned));
            if let Some(spaces) = css::style_property(own, "white-space") {
                is_wrapped = spaces != "nowrap";
            }
            match css::style_property(own, "text-align") {
                Some("left" | "start") => align = LabelAlignment::Start,
                Some("right" | "end") => align = LabelAlignment::End,
                Some("center") => align = LabelAlignment::Middle,
                _ => {}
            }
            let is_alone = element
                .children()
                .filter(|child| !child.is_comment())
                .count()
                == 1;
            around = element.first_element_child().filter(|_| is_alone);
        }
        let mut builder = LabelBuilder {
            lines: vec![Vec::new()],
            limit: if is_wrapped {
                width + 0.5
            } else {
                f64::INFINITY
            },
            font_size: css::style_property(&style, "font-size")
                .and_then(parse_pixels)
                .unwrap_or(font_size),
            width: 0.0,
            has_space: false,
        };
        builder.element(object, FontStyle::default());
        builder.lines.retain(|line| !line.is_empty());
        Self {
            lines: builder.lines,
            align,
            style,
            classes,
        }
    }
}

impl LabelBuilder {
    fn element(&mut self, element: Node<'_, '_>, face: FontStyle) {
        for child in element.children() {
            if child.is_text() {
                self.text(child.text().unwrap_or_default(), face);
                continue;
            }
            let mut face = face;
            let mut is_block = false;
            match child.tag_name().name() {
                "b" | "strong" => face.is_bold = true,
                "i" | "em" => face.is_italic = true,
                "br" => self.break_line(),
                "p" | "div" | "li" | "ul" | "ol" => is_block = true,
                _ => {}
            }
            if is_block {
                self.begin_block();
            }
            let style = child.attribute("style").unwrap_or_default();
            face.is_bold |= css::style_property(style, "font-weight").is_some_and(text::is_bold);
            face.is_italic |= css::style_property(style, "font-style") == Some("italic");
            self.element(child, face);
            if is_block {
                self.begin_block();
            }
        }
    }

    fn begin_block(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.break_line();
        }
    }

    fn break_line(&mut self) {
        self.lines.push(Vec::new());
        self.width = 0.0;
        self.has_space = false;
    }

    fn text(&mut self, text: &str, face: FontStyle) {
        let is_space = |char: char| matches!(char, ' ' | '\t' | '\n' | '\r');
        let mut rest = text;
        while !rest.is_empty() {
            let trimmed = rest.trim_start_matches(is_space);
            self.has_space |= trimmed.len() < rest.len();
            let end = trimmed.find(is_space).unwrap_or(trimmed.len());
            if end > 0 {
                self.word(&trimmed[..end], face);
            }
            rest = &trimmed[end..];
        }
    }

    fn word(&mut self, word: &str, face: FontStyle) {
        let measure = |text: &str| text::line_width(text, face.is_bold, self.font_size);
        let is_first = self.lines.last().is_none_or(Vec::is_empty);
        let space = if self.has_space && !is_first {
            measure(" ")
        } else {
            0.0
        };
        let width = measure(word);
        if !is_first && self.has_space && self.width + space + width > self.limit {
            self.break_line();
            self.width = width;
            self.push(word, face);
            return;
        }
        self.width += space + width;
        if space > 0.0 {
            self.push(" ", face);
        }
        self.has_space = false;
        self.push(word, face);
    }

    fn push(&mut self, text: &str, face: FontStyle) {
        let Some(line) = self.lines.last_mut() else {
            return;
        };
        match line.last_mut() {
            Some(run) if run.face == face => run.text.push_str(text),
            _ => line.push(TextRun {
                text: text.to_owned(),
                face,
            }),
        }
    }
}

impl<'a> SafeDrawingWriter<'a> {
    /// Writes a label that was drawn as HTML.
    pub(super) fn label(&mut self, object: Node<'a, 'a>) {
        let number = |name| object.attribute(name).and_then(parse_pixels).unwrap_or(0.0);
        let [x, y, width, height] = ["x", "y", "width", "height"].map(number);
        let mut label = Label::read(object, width, self.font_size);
        if self.is_list {
            label.align = LabelAlignment::Start;
        }
        if label.lines.is_empty()
            || !(0.0..MAX_SIDE).contains(&width)
            || !(0.0..MAX_SIDE).contains(&height)
        {
            return;
        }
        if label.classes.iter().any(|class| class == "labelBkg")
            && let Some(fill) = self
                .plate
                .and_then(|colour| self.sheet.value("fill", colour))
        {
            let _ = write!(
                self.out,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" style=\"fill:{fill};opacity:1;stroke:none\"></rect>",
                format_decimal(x),
                format_decimal(y),
                format_decimal(width),
                format_decimal(height)
            );
        }
        let (anchor, x) = match label.align {
            LabelAlignment::Start => ("start", x),
            LabelAlignment::Middle => ("middle", x + width / 2.0),
            LabelAlignment::End => ("end", x + width),
        };
        let _ = write!(self.out, "<text style=\"text-anchor:{anchor}\">");
        let mut classes: Vec<_> = label
            .classes
            .iter()
            .filter_map(|class| self.sheet.names.class(class))
            .collect();
        classes.push("l".to_owned());
        let classes = classes.join(" ");
        let style = self.sheet.declarations(&label.style);
        let mut middle = y;
        // Some drawings count lines that are not drawn; the lines fill the box either way.
        let line_height = height / f64::from(u32::try_from(label.lines.len()).unwrap_or(u32::MAX));
        for line in &label.lines {
            let _ = write!(
                self.out,
                "<tspan class=\"{classes}\" x=\"{}\" y=\"{}\" dy=\".35em\"",
                format_decimal(x),
                format_decimal(middle + line_height / 2.0)
            );
            self.attribute("style", &style);
            self.out.push('>');
            line.iter().for_each(|run| self.run(run));
            self.out.push_str("</tspan>");
            middle += line_height;
        }
        self.out.push_str("</text>");
    }

    fn run(&mut self, run: &TextRun) {
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
}

/// Parses a length in pixels.
pub(super) fn parse_pixels(value: &str) -> Option<f64> {
    value
        .trim()
        .strip_suffix("px")
        .unwrap_or(value)
        .trim()
        .parse()
        .ok()
}
