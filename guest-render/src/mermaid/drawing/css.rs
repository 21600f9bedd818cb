//! Styles of a drawing: declarations by an allow-list, selectors limited to the drawing's own id.
//!
//! This is no CSS parser. It reads the one form in which drawings are written, and leaves out everything else: at-rules, other
//! selectors, properties that reach beyond the drawing, values with functions.

use std::collections::HashSet;

use super::colours::{BLEND_MODE_VARIABLE, Palette};
use super::names::{IdAndClassMap, fragment_id};

/// Properties whose value is a colour, one of [`NO_COLOUR`], or a gradient of the drawing.
const COLOUR_PROPERTIES: [&str; 4] = ["fill", "stroke", "color", "stop-color"];

/// Values that are allowed instead of a colour.
const NO_COLOUR: [&str; 5] = [
    "none",
    "transparent",
    "currentColor",
    "currentcolor",
    "inherit",
];

/// Properties that refer to a part of the drawing.
const REFERENCE_PROPERTIES: [&str; 5] = [
    "marker-start",
    "marker-mid",
    "marker-end",
    "clip-path",
    "mask",
];

/// Properties with words and numbers as values. The font family is not among them: labels were measured for one font.
const PLAIN_PROPERTIES: [&str; 27] = [
    "alignment-baseline",
    "baseline-shift",
    "clip-rule",
    "display",
    "dominant-baseline",
    "fill-opacity",
    "fill-rule",
    "font-size",
    "font-style",
    "font-weight",
    "letter-spacing",
    "opacity",
    "paint-order",
    "rx",
    "ry",
    "shape-rendering",
    "stop-opacity",
    "stroke-dasharray",
    "stroke-dashoffset",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-miterlimit",
    "stroke-opacity",
    "stroke-width",
    "text-anchor",
    "text-decoration",
    "visibility",
];

/// Rewriter of a drawing's styles.
pub(super) struct StyleRewriter<'a> {
    pub(super) names: IdAndClassMap<'a>,
    pub(super) palette: Palette,
}

impl StyleRewriter<'_> {
    /// Rewrites the value of a property; `None` if the property or the value is not allowed.
    pub(super) fn value(&mut self, property: &str, value: &str) -> Option<String> {
        let value = value.trim();
        if COLOUR_PROPERTIES.contains(&property) {
            if NO_COLOUR.contains(&value) {
                return Some(value.to_owned());
            }
            return self
                .palette
                .reference(value)
                .or_else(|| self.reference(value));
        }
        if property == "mix-blend-mode" && value == "multiply" {
            // A layer that darkens on light pages must brighten on dark ones.
            return Some(BLEND_MODE_VARIABLE.to_owned());
        }
        if property == "transform" {
            return is_geometry(value).then(|| value.to_owned());
        }
        if REFERENCE_PROPERTIES.contains(&property) {
            return if value == "none" {
                Some(value.to_owned())
            } else {
                self.reference(value)
            };
        }
        (PLAIN_PROPERTIES.contains(&property) && is_plain(value)).then(|| value.to_owned())
    }

    fn reference(&self, value: &str) -> Option<String> {
        let id = self.names.id(fragment_id(value)?)?;
        Some(format!("url(#{id})"))
    }

    /// Rewrites the declarations of a rule or of a `style` attribute.
    pub(super) fn declarations(&mut self, text: &str) -> String {
        let mut kept = String::new();
        for (property, value, is_important) in declarations(text) {
            if let Some(value) = self.value(&property, value) {
                if !kept.is_empty() {
                    kept.push(';');
                }
                kept.push_str(&property);
                kept.push(':');
                kept.push_str(&value);
                if is_important {
                    kept.push_str("!important");
                }
            }
        }
        kept
    }

    /// Rewrites the rules of a drawing. `root` is the drawing's original id, `types` the names of its elements: a selector that
    /// matches none of them is left out.
    pub(super) fn rules(&mut self, text: &str, root: &str, types: &HashSet<&str>) -> String {
        let mut kept = String::new();
        for (selectors, body) in rules(text) {
            let selectors: Vec<String> = selectors
                .split(',')
                .flat_map(|selector| self.selector(selector.trim(), root, types))
                .collect();
            if selectors.is_empty() {
                continue;
            }
            let body = self.declarations(body);
            if !body.is_empty() {
                kept.push_str(&selectors.join(","));
                kept.push('{');
                kept.push_str(&body);
                kept.push('}');
            }
        }
        kept
    }

    /// Rewrites a selector for the page. It becomes several if it matches ids by their ends, and none if it is unknown.
    fn selector(&self, selector: &str, root: &str, types: &HashSet<&str>) -> Vec<String> {
        let below = selector
            .strip_prefix('#')
            .and_then(|rest| rest.strip_prefix(root));
        let Some(mut rest) = below.filter(|rest| !rest.starts_with(is_word)) else {
            return Vec::new();
        };
        let mut found = vec![format!("#{}", self.names.root())];
        while let Some(first) = rest.chars().next() {
            let part = &rest[first.len_utf8()..];
            let word = part.find(|char| !is_word(char)).unwrap_or(part.len());
            let mut endings = Vec::new();
            match first {
                ' ' | '>' | '*' => {
                    endings.push(first.to_string());
                    rest = part;
                }
                '.' => {
                    endings.extend(
                        self.names
                            .class(&part[..word])
                            .map(|class| format!(".{class}")),
                    );
                    rest = &part[word..];
                }
                '#' => {
                    endings.extend(self.names.id(&part[..word]).map(|id| format!("#{id}")));
                    rest = &part[word..];
                }
                '[' => {
                    let Some((condition, after)) = part.split_once(']') else {
                        return Vec::new();
                    };
                    endings.extend(self.ids(condition).into_iter().map(|id| format!("#{id}")));
                    rest = after;
                }
                first if first.is_ascii_alphabetic() => {
                    let name = &rest[..=word];
                    endings.extend(element_selector(name, types).map(str::to_owned));
                    rest = &part[word..];
                }
                _ => {}
            }
            found = found
                .iter()
                .flat_map(|begun| endings.iter().map(move |ending| format!("{begun}{ending}")))
                .collect();
            if found.is_empty() {
                return found;
            }
        }
        found
    }

    /// Returns the ids that `id="…"` or `id$="…"` matches.
    fn ids(&self, condition: &str) -> Vec<String> {
        let quoted = |value: &str| value.trim_matches('"').to_owned();
        if let Some(whole) = condition.strip_prefix("id=") {
            self.names.ids(&quoted(whole), true)
        } else if let Some(suffix) = condition.strip_prefix("id$=") {
            self.names.ids(&quoted(suffix), false)
        } else {
            Vec::new()
        }
    }
}

/// Returns the background colour of edge labels: labels are text on the page, and have no background of their own.
pub(super) fn label_background(text: &str) -> Option<&str> {
    let mut plate = None;
    for (selectors, body) in rules(text) {
        let is_behind = |selector: &str| {
            let selector = selector.trim();
            selector.ends_with(".edgeLabel p")
                || selector.ends_with(".edgeLabel .label span")
                || selector.ends_with(".labelBkg")
        };
        if !selectors.split(',').any(is_behind) {
            continue;
        }
        let background = declarations(body)
            .find(|(property, ..)| matches!(property.as_str(), "background" | "background-color"));
        // The label's own colour covers that of its container.
        if let Some((_, colour, _)) = background
            && (plate.is_none() || !selectors.trim().ends_with(".labelBkg"))
        {
            plate = Some(colour);
        }
    }
    plate
}

/// Returns the value of a property in the rule for the whole drawing.
pub(super) fn root_property<'a>(text: &'a str, root: &str, wanted: &str) -> Option<&'a str> {
    rules(text)
        .filter(|(selector, _)| selector.trim().strip_prefix('#') == Some(root))
        .flat_map(|(_, body)| declarations(body))
        .find(|(property, ..)| property == wanted)
        .map(|(_, value, _)| value)
}

/// Returns the last value of a property in a `style` attribute.
pub(super) fn style_property<'a>(style: &'a str, wanted: &str) -> Option<&'a str> {
    let found = declarations(style).filter(|(property, ..)| property == wanted);
    found.last().map(|(_, value, _)| value)
}

/// Splits a style sheet into rules, each with its selectors and its body. At-rules are skipped with their content.
fn rules(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (prelude, body) = rest.split_once('{')?;
            if !prelude.trim_start().starts_with('@') {
                let (body, after) = body.split_once('}')?;
                rest = after;
                return Some((prelude, body));
            }
            let mut depth = 1;
            let end = body.bytes().position(|byte| {
                match byte {
                    b'{' => depth += 1,
                    b'}' => depth -= 1,
                    _ => {}
                }
                depth == 0
            })?;
            rest = &body[end + 1..];
        }
    })
}

/// Splits declarations into property, value, and whether it is important.
fn declarations(text: &str) -> impl Iterator<Item = (String, &str, bool)> {
    text.split(';').filter_map(|declaration| {
        let (property, value) = declaration.split_once(':')?;
        let value = value.trim();
        let plain = value.strip_suffix("important").map(str::trim_end);
        let plain = plain.and_then(|value| value.strip_suffix('!'));
        let is_important = plain.is_some();
        let value = plain.unwrap_or(value).trim_end();
        Some((property.trim().to_ascii_lowercase(), value, is_important))
    })
}

/// Rewrites an element selector: HTML labels have become text.
fn element_selector<'a>(name: &'a str, types: &HashSet<&str>) -> Option<&'a str> {
    match name {
        "span" => Some("tspan"),
        "div" => Some("text"),
        name => types.contains(name).then_some(name),
    }
}

fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '-' | '_')
}

/// Whether a value consists of numbers, lengths, words and functions of numbers.
pub(super) fn is_geometry(value: &str) -> bool {
    let allowed = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b' ' | b'\n' | b'.' | b',' | b'-' | b'+' | b'%' | b'(' | b')'
            )
    };
    let is_no_number = |word: &&str| value.contains(*word);
    value.bytes().all(allowed)
        && !["NaN", "undefined", "Infinity", "inf", "url"]
            .iter()
            .any(is_no_number)
}

/// Whether a value consists of words and numbers, without calls, quotes and escapes.
fn is_plain(value: &str) -> bool {
    let allowed = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'.' | b',' | b'%' | b'-' | b'+')
    };
    value.len() <= 100 && !value.is_empty() && value.bytes().all(allowed)
}
