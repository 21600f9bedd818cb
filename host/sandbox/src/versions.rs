//! Renderers of all accepted interfaces behind one API: an adapter for the previous interface.
//!
//! A guest of `svc:render@1.0.0` knows five content types by an enumeration, always needs a title, and returns neither the page's
//! title nor the lines of diagrams. It writes no foot, and nothing for link previews.
//!
//! A renderer of either interface may judge the rules of sites, and clean files of visitors, too. One that does not says so of each.

use wasmtime::component::InstancePre;
use wasmtime::{Result, Store};

use super::bindings::files::exports::svc::files::cleaner;
use super::bindings::render::svc::render::types;
use super::bindings::rules::exports::svc::rules::judge;
use super::bindings::{render, render_1};
use super::interface::InterfaceVersion;
use super::renderer::MAX_DIAGRAMS;
use super::wasi::CallStoreState;
use render_1::svc::render::types as before;

/// Interface by which a renderer judges the rules of sites.
const RULES_INTERFACE: &str = "svc:rules/judge@1.0.0";
/// Interface by which a renderer cleans files of visitors.
const FILES_INTERFACE: &str = "svc:files/cleaner@1.0.0";

/// A renderer, prepared for calls.
pub(super) struct PreparedRenderer {
    renderer: PreparedInterface,
    /// Judge of the rules of sites, if the component has one.
    judge: Option<judge::GuestIndices>,
    /// Cleaner of visitors' files, if the component has one.
    cleaner: Option<cleaner::GuestIndices>,
}

/// Interface of a renderer, prepared for calls.
enum PreparedInterface {
    /// Renderer of the current interface.
    Current(render::RenderPre<CallStoreState>),
    /// Renderer of the previous interface.
    Previous(render_1::RenderPre<CallStoreState>),
}

/// Instance of a renderer, for one call.
pub(super) enum RendererInstance {
    Current(render::Render),
    Previous(render_1::Render),
}

impl PreparedRenderer {
    /// Prepares the newest interface that the component exports.
    pub(super) fn new(instance: InstancePre<CallStoreState>) -> Result<Self> {
        let before = InterfaceVersion::Render1.export();
        let current = InterfaceVersion::Render2.export();
        let component = instance.component();
        let exports = |name: &str| component.get_export_index(None, name).is_some();
        let judge = match exports(RULES_INTERFACE) {
            true => Some(judge::GuestIndices::new(&instance)?),
            false => None,
        };
        let cleaner = match exports(FILES_INTERFACE) {
            true => Some(cleaner::GuestIndices::new(&instance)?),
            false => None,
        };
        let renderer = match exports(before) && !exports(current) {
            true => PreparedInterface::Previous(render_1::RenderPre::new(instance)?),
            false => PreparedInterface::Current(render::RenderPre::new(instance)?),
        };
        Ok(Self {
            renderer,
            judge,
            cleaner,
        })
    }

    /// Returns the interface of the component.
    pub(super) const fn interface(&self) -> InterfaceVersion {
        match &self.renderer {
            PreparedInterface::Current(_) => InterfaceVersion::Render2,
            PreparedInterface::Previous(_) => InterfaceVersion::Render1,
        }
    }

    /// Creates an instance in a store.
    pub(super) fn instantiate(
        &self,
        store: &mut Store<CallStoreState>,
    ) -> Result<RendererInstance> {
        match &self.renderer {
            PreparedInterface::Current(guest) => {
                guest.instantiate(store).map(RendererInstance::Current)
            }
            PreparedInterface::Previous(guest) => {
                guest.instantiate(store).map(RendererInstance::Previous)
            }
        }
    }

    /// Creates an instance in a store, and checks the types of all that the host calls.
    pub(super) fn type_check(&self, store: &mut Store<CallStoreState>) -> Result<()> {
        let instance = self.template().instantiate(&mut *store)?;
        match &self.renderer {
            PreparedInterface::Current(_) => {
                render::Render::new(&mut *store, &instance)?;
            }
            PreparedInterface::Previous(_) => {
                render_1::Render::new(&mut *store, &instance)?;
            }
        }
        if let Some(judge) = &self.judge {
            judge.load(&mut *store, &instance)?;
        }
        match &self.cleaner {
            Some(cleaner) => cleaner.load(store, &instance).map(drop),
            None => Ok(()),
        }
    }

    fn template(&self) -> &InstancePre<CallStoreState> {
        match &self.renderer {
            PreparedInterface::Current(guest) => guest.instance_pre(),
            PreparedInterface::Previous(guest) => guest.instance_pre(),
        }
    }

    /// Judges the rules of a site; `None` if the component judges none.
    pub(super) fn judge_rules(
        &self,
        store: &mut Store<CallStoreState>,
        files: &judge::RuleFiles,
    ) -> Result<Option<std::result::Result<judge::SiteRules, judge::Fault>>> {
        let Some(judge) = &self.judge else {
            return Ok(None);
        };
        let instance = self.template().instantiate(&mut *store)?;
        let guest = judge.load(&mut *store, &instance)?;
        guest.call_judge(store, files).map(Some)
    }

    /// Creates an instance that cleans files; `None` if the component cleans none.
    pub(super) fn cleaner(
        &self,
        store: &mut Store<CallStoreState>,
    ) -> Result<Option<cleaner::Guest>> {
        let Some(cleaner) = &self.cleaner else {
            return Ok(None);
        };
        let instance = self.template().instantiate(&mut *store)?;
        cleaner.load(store, &instance).map(Some)
    }
}

impl RendererInstance {
    /// Renders a page.
    pub(super) fn render(
        &self,
        store: &mut Store<CallStoreState>,
        source: &types::Source,
    ) -> Result<std::result::Result<types::Page, types::RenderError>> {
        match self {
            Self::Current(guest) => guest.svc_render_renderer().call_render(store, source),
            Self::Previous(guest) => {
                let Some(earlier) = source_to_previous(source) else {
                    return Ok(Err(types::RenderError::Unsupported));
                };
                let rendered = guest.svc_render_renderer().call_render(store, &earlier)?;
                Ok(rendered
                    .map(|page| page_from_previous(page, source))
                    .map_err(render_error_from_previous))
            }
        }
    }

    /// Draws the page's diagram with an index, from 0.
    pub(super) fn draw(
        &self,
        store: &mut Store<CallStoreState>,
        text: &str,
        number: u32,
    ) -> Result<std::result::Result<String, types::DrawError>> {
        match self {
            Self::Current(guest) => guest.svc_render_renderer().call_draw(store, text, number),
            Self::Previous(guest) => {
                let drawn = guest.svc_render_renderer().call_draw(store, text, number)?;
                Ok(drawn.map_err(draw_error_from_previous))
            }
        }
    }
}

/// Returns the given title, else the name that the author asked for.
fn given_title(source: &types::Source) -> Option<&String> {
    source.title.as_ref().or(source.name.as_ref())
}

/// Converts a source for the previous interface; `None` for a type that it does not know.
fn source_to_previous(source: &types::Source) -> Option<before::Source> {
    let content_type = match source.content_type.as_str() {
        "html" => before::ContentType::Html,
        "markdown" => before::ContentType::Markdown,
        "mermaid" => before::ContentType::Mermaid,
        "json" => before::ContentType::Json,
        "csv" => before::ContentType::Csv,
        _ => return None,
    };
    Some(before::Source {
        content_type,
        // Guests of that interface write "Untitled" for an empty title.
        title: given_title(source).cloned().unwrap_or_default(),
        text: source.text.clone(),
        runtime: source.runtime.as_ref().map(|script| before::RuntimeScript {
            src: script.src.clone(),
            slug: script.slug.clone(),
        }),
        page_bytes: source.page_bytes,
    })
}

fn page_from_previous(page: before::Page, source: &types::Source) -> types::Page {
    let mut lines = DiagramLineFinder::new(&source.text);
    // Further diagrams are not drawn, and each search takes a pass over the source that no budget bounds.
    let diagrams = page
        .diagrams
        .into_iter()
        .enumerate()
        .map(|(number, diagram)| types::Diagram {
            line: match number < MAX_DIAGRAMS {
                true => lines.next(&diagram.text),
                false => lines.line,
            },
            text: diagram.text,
            start: diagram.start,
            end: diagram.end,
        });
    types::Page {
        html: page.html,
        diagrams: diagrams.collect(),
        title: given_title(source).cloned(),
    }
}

fn malformed_from_previous(malformed: before::Malformed) -> types::Malformed {
    types::Malformed {
        message: malformed.message,
        place: Some(types::Place {
            line: malformed.place.line,
            column: malformed.place.column,
        }),
    }
}

fn render_error_from_previous(error: before::RenderError) -> types::RenderError {
    match error {
        before::RenderError::Malformed(malformed) => {
            types::RenderError::Malformed(malformed_from_previous(malformed))
        }
        before::RenderError::TooLarge => types::RenderError::TooLarge,
    }
}

fn draw_error_from_previous(error: before::DrawError) -> types::DrawError {
    match error {
        before::DrawError::Malformed(malformed) => {
            types::DrawError::Malformed(malformed_from_previous(malformed))
        }
        before::DrawError::Unsupported => types::DrawError::Unsupported,
        before::DrawError::TooLarge(bytes) => types::DrawError::TooLarge(bytes),
        before::DrawError::TooComplex => types::DrawError::TooComplex,
    }
}

/// Finds the lines on which the diagrams of a source begin, in their order.
struct DiagramLineFinder<'s> {
    left: &'s str,
    line: u32,
}

impl<'s> DiagramLineFinder<'s> {
    fn new(source: &'s str) -> Self {
        Self {
            left: source,
            line: 1,
        }
    }

    /// Returns the line on which the next diagram with this text begins. If the source does not hold the text literally, as in a
    /// quotation, returns the line on which the previous diagram ends.
    fn next(&mut self, text: &str) -> u32 {
        let text = text.trim_end();
        let Some(at) = self.left.find(text).filter(|_| !text.is_empty()) else {
            return self.line;
        };
        let (before, rest) = self.left.split_at(at);
        let begins = self.line.saturating_add(count_line_breaks(before));
        self.line = begins.saturating_add(count_line_breaks(text));
        self.left = &rest[text.len()..];
        begins
    }
}

fn count_line_breaks(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_diagrams_are_found_in_their_order() {
        let source = "# x\n\n```mermaid\ngraph TD\nA-->B\n```\n\n> ```mermaid\n> pie\n> ```\n\n```mermaid\ngraph TD\nA-->B\n```\n";
        let mut lines = DiagramLineFinder::new(source);
        assert_eq!(lines.next("graph TD\nA-->B\n"), 4);
        assert_eq!(
            lines.next("pie\n\"a\": 1"),
            5,
            "it is not in the source as it is"
        );
        assert_eq!(lines.next("\n"), 5);
        assert_eq!(lines.next("graph TD\nA-->B\n"), 13);
    }

    #[test]
    fn a_type_that_the_interface_before_does_not_know_is_not_sent() {
        let source = |content_type: &str| types::Source {
            content_type: content_type.to_owned(),
            title: None,
            name: Some("name".to_owned()),
            text: "x".to_owned(),
            runtime: None,
            page_bytes: 1,
            foot: None,
            is_private: false,
        };
        for known in ["html", "markdown", "mermaid", "json", "csv"] {
            let earlier = source_to_previous(&source(known)).unwrap();
            assert_eq!(earlier.title, "name");
        }
        assert!(source_to_previous(&source("asciidoc")).is_none());
    }
}
