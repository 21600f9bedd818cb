//! The shell of every page that the guest builds: one document head, one set of styles, one place for the body.

use std::cell::{Cell, RefCell};

use maud::{DOCTYPE, Markup, PreEscaped, Render, html};

use crate::out::Out;
use crate::{RenderError, RuntimeScript, Source};

/// The colours and typefaces of every page; the host's own pages have them, too.
const TOKENS: &str = include_str!("../assets/tokens.css");
/// The elements that all pages share.
const BASE: &str = include_str!("../assets/base.css");

/// What differs between the pages of different types.
pub(crate) struct Shell<'a> {
    /// The source that becomes the page.
    pub(crate) source: &'a Source,
    /// The class of the body, which the styles of the type hang on.
    pub(crate) kind: &'static str,
    /// The styles of the type.
    pub(crate) styles: &'static [&'static str],
    /// Styles that depend on the source. Made of the guest's own words and numbers only.
    pub(crate) own_styles: String,
}

/// Builds a page around what `body` writes between `<main>` and `</main>`.
///
/// The body goes straight into the page, so that positions in it are positions in the page.
pub(crate) fn build<B>(shell: &Shell<'_>, body: B) -> Result<String, RenderError>
where
    B: FnOnce(&mut Out<'_>) -> Result<(), RenderError>,
{
    let limit = usize::try_from(shell.source.page_bytes).unwrap_or(usize::MAX);
    let body = Body {
        write: Cell::new(Some(body)),
        limit,
        outcome: RefCell::new(Ok(())),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                @if let Some(runtime) = &shell.source.runtime { (runtime_script(runtime)) }
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title(shell.source)) }
                style { (PreEscaped(TOKENS)) (PreEscaped(BASE)) @for styles in shell.styles { (PreEscaped(styles)) } (PreEscaped(&shell.own_styles)) }
            }
            body class=(shell.kind) {
                main { (body) }
            }
        }
    };
    body.outcome.into_inner()?;
    if page.0.len() > limit {
        return Err(RenderError::TooLarge);
    }
    Ok(page.0)
}

/// The one script that a page may be given.
pub(crate) fn runtime_script(runtime: &RuntimeScript) -> Markup {
    html! { script src=(runtime.src) data-slug=(runtime.slug) {} }
}

/// The title of a document. A page without one is announced by its address, which helps nobody.
pub(crate) fn title(source: &Source) -> String {
    match source.title.trim() {
        "" => String::from("Untitled"),
        title => title.replace('\0', "\u{fffd}"),
    }
}

/// A body that is written where the template has it.
struct Body<B> {
    write: Cell<Option<B>>,
    limit: usize,
    outcome: RefCell<Result<(), RenderError>>,
}

impl<B> Render for Body<B>
where
    B: FnOnce(&mut Out<'_>) -> Result<(), RenderError>,
{
    fn render_to(&self, buffer: &mut String) {
        if let Some(write) = self.write.take() {
            *self.outcome.borrow_mut() = write(&mut Out::new(buffer, self.limit));
        }
    }
}
