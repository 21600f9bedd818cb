//! Truths about every page, whichever guest rendered it.

use html5gum::{Token, Tokenizer};

/// Where the runtime script of a fuzzed page lies.
pub(crate) const RUNTIME: &str = "/runtime.0123456789abcdef.js";

/// The elements that pages of data are made of, a drawing's among them.
const ELEMENTS: [&[u8]; 56] = [
    b"a",
    b"b",
    b"body",
    b"button",
    b"caption",
    b"circle",
    b"clippath",
    b"code",
    b"defs",
    b"desc",
    b"details",
    b"div",
    b"ellipse",
    b"em",
    b"figure",
    b"footer",
    b"g",
    b"h1",
    b"head",
    b"header",
    b"html",
    b"i",
    b"input",
    b"label",
    b"li",
    b"line",
    b"lineargradient",
    b"main",
    b"marker",
    b"mask",
    b"meta",
    b"ol",
    b"p",
    b"path",
    b"pattern",
    b"polygon",
    b"polyline",
    b"pre",
    b"radialgradient",
    b"rect",
    b"span",
    b"stop",
    b"style",
    b"summary",
    b"svg",
    b"table",
    b"tbody",
    b"td",
    b"text",
    b"th",
    b"thead",
    b"time",
    b"title",
    b"tr",
    b"tspan",
    b"u",
];

/// Checks a page of a source.
pub(crate) fn check(html: &str, kind: &str, source: &str, runtime: bool) -> Result<(), String> {
    if kind == "html" {
        return check_html(html, source, runtime);
    }
    if !html.starts_with("<!DOCTYPE html><html lang=\"") {
        return Err("it does not begin as a document".to_owned());
    }
    if !html.ends_with("</main></body></html>") {
        return Err("it does not end as a document".to_owned());
    }
    for needed in [
        "<meta charset=\"utf-8\">",
        "<meta name=\"viewport\"",
        "<title>",
    ] {
        if !html.contains(needed) {
            return Err(format!("it has no {needed}"));
        }
    }
    // Markdown may hold any HTML of its author's; in data nothing is ever live.
    if kind == "markdown" {
        return Ok(());
    }
    check_data(html, runtime)
}

/// A page of HTML is its source, with the runtime's script put in.
fn check_html(html: &str, source: &str, runtime: bool) -> Result<(), String> {
    let added = html.len().checked_sub(source.len());
    let added = added.ok_or("it is shorter than its source")?;
    if !runtime {
        return if html == source {
            Ok(())
        } else {
            Err("it is not its source".to_owned())
        };
    }
    let place = html
        .bytes()
        .zip(source.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    // The text after the script may begin like the script, so the first difference may come late.
    let put_in = (0..=place).rev().any(|at| {
        let script = html.get(at..at + added);
        let rest = html.get(at + added..).zip(source.get(at..));
        script.is_some_and(|script| script.starts_with("<script src=\"/runtime."))
            && rest.is_some_and(|(ours, theirs)| ours == theirs)
    });
    if put_in {
        Ok(())
    } else {
        Err("it is not its source and the script".to_owned())
    }
}

fn check_data(html: &str, runtime: bool) -> Result<(), String> {
    let mut scripts = 0;
    for Ok(token) in Tokenizer::new(html) {
        let Token::StartTag(tag) = token else {
            continue;
        };
        let name = String::from_utf8_lossy(&tag.name).into_owned();
        if name == "script" {
            scripts += 1;
            let src = tag.attributes.get(b"src".as_slice());
            if src.is_none_or(|src| ***src != *RUNTIME.as_bytes()) {
                return Err("it has a script of its own".to_owned());
            }
        } else if !ELEMENTS.contains(&tag.name.as_slice()) {
            return Err(format!("it has an element {name}"));
        }
        for (attribute, value) in &tag.attributes {
            let value = String::from_utf8_lossy(value);
            let is_live = attribute.starts_with(b"on")
                || (name != "script" && ***attribute == *b"src")
                || (***attribute == *b"href"
                    && !["#", "https://", "mailto:"]
                        .iter()
                        .any(|start| value.starts_with(start)));
            if is_live {
                let attribute = String::from_utf8_lossy(attribute);
                return Err(format!("its {name} has {attribute}=\"{value}\""));
            }
        }
    }
    if scripts == usize::from(runtime) {
        Ok(())
    } else {
        Err(format!("it has {scripts} scripts"))
    }
}
