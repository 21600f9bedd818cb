//! The render guest: the exports that the host calls, and the plain functions behind them.
//!
//! Everything is a pure function from a stranger's source to a finished page, from a site's files of rules to the rules, or from a
//! visitor's file to what is kept of it; no state outlives a call.

mod csv;
mod emoji;
pub mod files;
mod foot;
mod highlight;
mod html;
mod json;
mod language;
mod markdown;
mod mermaid;
mod page;
mod page_writer;
mod position;
pub mod rules;

/// Bindings that `wit-bindgen` generates from the contract between host and guest.
#[allow(
    unreachable_pub,
    unsafe_code,
    clippy::all,
    clippy::cast_possible_truncation
)]
mod bindings {
    wit_bindgen::generate!({
        path: "../wit/render",
        world: "render",
        additional_derives: [PartialEq, Eq],
    });
}

/// Bindings of the contract about the rules of sites.
#[allow(
    unreachable_pub,
    unsafe_code,
    clippy::all,
    clippy::cast_possible_truncation
)]
mod rule_bindings {
    wit_bindgen::generate!({
        path: "../wit/rules",
        world: "rules",
        additional_derives: [PartialEq, Eq],
    });
}

/// Bindings of the contract about visitors' files.
#[allow(
    unreachable_pub,
    unsafe_code,
    clippy::all,
    clippy::cast_possible_truncation
)]
mod file_bindings {
    wit_bindgen::generate!({
        path: "../wit/files",
        world: "files",
        additional_derives: [PartialEq, Eq],
    });
}

pub use bindings::svc::render::types::{
    Diagram, DrawError, Foot, Malformed, Page, Place, RenderError, RuntimeScript, Source,
};

/// Function that renders pages of one content type.
type RenderFunction = fn(&Source) -> Result<Page, RenderError>;

/// Content types that this guest renders, by name. To add a type, add a line.
pub const RENDERERS: [(&str, RenderFunction); 5] = [
    ("html", html::render),
    ("markdown", markdown::render),
    ("mermaid", mermaid::render),
    ("json", json::render),
    ("csv", csv::render),
];

/// Renders a page.
pub fn render(source: &Source) -> Result<Page, RenderError> {
    let known = RENDERERS
        .iter()
        .find(|(name, _)| *name == source.content_type);
    known.map_or(Err(RenderError::Unsupported), |(_, make)| make(source))
}

/// Draws one diagram as an SVG element; `number` is its index in the page, from 0.
///
/// Only in the component, because the drawing library is compiled for it alone.
#[cfg(target_family = "wasm")]
pub fn draw(text: &str, number: u32) -> Result<String, DrawError> {
    mermaid::draw(text, number)
}

#[cfg(test)]
mod tests;

/// Export of the component.
#[cfg(target_family = "wasm")]
struct RendererComponent;

#[cfg(target_family = "wasm")]
impl bindings::exports::svc::render::renderer::Guest for RendererComponent {
    fn render(source: Source) -> Result<Page, RenderError> {
        render(&source)
    }

    fn draw(text: String, number: u32) -> Result<String, DrawError> {
        draw(&text, number)
    }
}

#[cfg(target_family = "wasm")]
impl rule_bindings::exports::svc::rules::judge::Guest for RendererComponent {
    fn judge(files: rules::RuleFiles) -> Result<rules::SiteRules, rules::Fault> {
        rules::judge(&files)
    }
}

#[cfg(target_family = "wasm")]
impl file_bindings::exports::svc::files::cleaner::Guest for RendererComponent {
    fn recognise(head: Vec<u8>) -> files::Recognition {
        files::recognise(&head)
    }

    fn is_text(file: Vec<u8>) -> bool {
        files::is_text(&file)
    }

    fn clean(file: Vec<u8>, keep_metadata: bool) -> Result<files::Cleaned, files::Fault> {
        files::clean(&file, keep_metadata)
    }

    fn resize(file: Vec<u8>, size: u32) -> Result<files::SmallerCopy, files::Fault> {
        files::resize(&file, size)
    }
}

#[cfg(target_family = "wasm")]
#[allow(
    unsafe_code,
    reason = "the generated export is what makes the component"
)]
mod export {
    use super::{RendererComponent, bindings, file_bindings, rule_bindings};

    bindings::export!(RendererComponent with_types_in bindings);
    rule_bindings::export!(RendererComponent with_types_in rule_bindings);
    file_bindings::export!(RendererComponent with_types_in file_bindings);
}
