//! Shell of every page that the guest builds: one document head, one set of styles, one body.

use std::cell::{Cell, RefCell};

use maud::{DOCTYPE, Markup, PreEscaped, Render, html};

use crate::page_writer::PageWriter;
use crate::{Page, RenderError, RuntimeScript, Source, foot};

/// Colours and typefaces of every page; the host's own pages use them, too.
const TOKEN_STYLES: &str = include_str!("../assets/tokens.css");
/// Colours of code, notes and marks, which the host's own pages do without.
const CONTENT_TOKEN_STYLES: &str = include_str!("../assets/content-tokens.css");
/// Styles of elements that all pages share.
const BASE_STYLES: &str = include_str!("../assets/base.css");

/// Length limit of a title taken from the content, in characters: that of a given title.
const MAX_TITLE_CHARS: usize = 200;
/// Length limit of a description, in characters: what link previews show.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// Properties in which pages of different types differ.
pub(crate) struct PageTypeProperties<'a> {
    /// The source that becomes the page.
    pub(crate) source: &'a Source,
    /// Class of the body, which the type's styles use.
    pub(crate) kind: &'static str,
    /// Styles of the type.
    pub(crate) styles: &'static [&'static str],
    /// Styles that depend on the source, made of the guest's own words and numbers only.
    pub(crate) own_styles: String,
    /// Metadata of the content.
    pub(crate) metadata: PageMetadata,
}

/// Metadata of a page's content, as plain text.
#[derive(Default)]
pub(crate) struct PageMetadata {
    /// Title in the content.
    pub(crate) title: Option<String>,
    /// Description in a sentence or two.
    pub(crate) description: String,
    /// Language tag: letters, digits and dashes.
    pub(crate) language: Option<String>,
}

/// Chooses the title of a page: the given one, else that of the content, else the name that the author asked for.
pub(crate) fn choose_title(source: &Source, own: Option<&str>) -> Option<String> {
    let given = |text: &Option<String>| text.as_deref().and_then(non_blank).map(str::to_owned);
    given(&source.title)
        .or_else(|| {
            own.and_then(non_blank)
                .map(|own| truncate(own, MAX_TITLE_CHARS))
        })
        .or_else(|| given(&source.name))
}

/// Trims white space; `None` if nothing is left.
fn non_blank(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty()).then_some(text)
}

/// Shortens a text to one line, with an ellipsis where it is cut.
pub(crate) fn truncate(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len().min(most * 4));
    // Where the last character stands for which there is room: an ellipsis takes its place if more follow.
    let (mut count, mut last) = (0, 0);
    let words = text.split_whitespace().enumerate();
    let characters =
        words.flat_map(|(at, word)| (at > 0).then_some(' ').into_iter().chain(word.chars()));
    for char in characters {
        if count == most {
            line.truncate(last);
            line.truncate(line.trim_end().len());
            line.push('…');
            return line;
        }
        last = line.len();
        line.push(if char == '\0' { '\u{fffd}' } else { char });
        count += 1;
    }
    line
}

/// Builds a page; `body` writes the content of `<main>`.
///
/// The body is written directly into the page, so that positions in it are positions in the page.
pub(crate) fn build_page<B>(shell: &PageTypeProperties<'_>, body: B) -> Result<Page, RenderError>
where
    B: FnOnce(&mut PageWriter<'_>) -> Result<(), RenderError>,
{
    let limit = usize::try_from(shell.source.page_bytes).unwrap_or(usize::MAX);
    let title = choose_title(shell.source, shell.metadata.title.as_deref());
    let shown_title = title
        .as_deref()
        .unwrap_or("Untitled")
        .replace('\0', "\u{fffd}");
    let body = WriteOnceBody {
        write: Cell::new(Some(body)),
        limit,
        outcome: RefCell::new(Ok(())),
    };
    let page = html! {
        (DOCTYPE)
        html lang=(shell.metadata.language.as_deref().unwrap_or("en")) {
            head {
                @if let Some(runtime) = &shell.source.runtime { (runtime_script(runtime)) }
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (shown_title) }
                (preview_tags(shell, &shown_title))
                style { (PreEscaped(TOKEN_STYLES)) (PreEscaped(CONTENT_TOKEN_STYLES)) (PreEscaped(BASE_STYLES)) @for styles in shell.styles { (PreEscaped(styles)) } (PreEscaped(&shell.own_styles)) }
            }
            body class=(shell.kind) {
                main { (body) }
                @if let Some(foot) = &shell.source.foot { (foot::footer_markup(foot)) }
            }
        }
    };
    body.outcome.into_inner()?;
    if page.0.len() > limit {
        return Err(RenderError::TooLarge);
    }
    Ok(Page {
        html: page.0,
        diagrams: Vec::new(),
        title,
    })
}

/// Writes the tags for link previews. Private pages reveal nothing.
fn preview_tags(shell: &PageTypeProperties<'_>, title: &str) -> Markup {
    let description = truncate(&shell.metadata.description, MAX_DESCRIPTION_CHARS);
    let (title, description) = if shell.source.is_private {
        (
            "A private page",
            "This page is for those who were given its address.",
        )
    } else if description.is_empty() {
        (title, title)
    } else {
        (title, description.as_str())
    };
    html! {
        meta name="description" content=(description);
        meta property="og:title" content=(title);
        meta property="og:description" content=(description);
        meta property="og:type" content="article";
    }
}

/// Returns a heading for a page whose content has none. Only a given title or name is visible; otherwise screen readers get a
/// description of the page.
pub(crate) fn fallback_heading(source: &Source, what: &str) -> String {
    let heading = match choose_title(source, None) {
        Some(title) => html! { header { h1 dir="auto" { (title.replace('\0', "\u{fffd}")) } } },
        None => html! { p.unseen lang="en" role="heading" aria-level="1" { (what) } },
    };
    heading.into_string()
}

/// Renders the script tag of the runtime.
pub(crate) fn runtime_script(runtime: &RuntimeScript) -> Markup {
    html! { script src=(runtime.src) data-slug=(runtime.slug) {} }
}

/// A body that is written where the template has it.
struct WriteOnceBody<B> {
    write: Cell<Option<B>>,
    limit: usize,
    outcome: RefCell<Result<(), RenderError>>,
}

impl<B> Render for WriteOnceBody<B>
where
    B: FnOnce(&mut PageWriter<'_>) -> Result<(), RenderError>,
{
    fn render_to(&self, buffer: &mut String) {
        if let Some(write) = self.write.take() {
            *self.outcome.borrow_mut() = write(&mut PageWriter::new(buffer, self.limit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::truncate;

    #[test]
    fn a_text_is_cut_where_there_is_no_room_for_all_of_it() {
        for (text, line) in [
            ("abcde", "abcde"),
            ("abcdef", "abcd…"),
            ("abcd e", "abcd…"),
            ("abc de", "abc…"),
            ("abcde f", "abcd…"),
            (" a  b\tc ", "a b c"),
            ("äöüäö", "äöüäö"),
            ("äöüäöü", "äöüä…"),
            ("a\0b", "a\u{fffd}b"),
            ("", ""),
        ] {
            assert_eq!(truncate(text, 5), line, "{text:?}");
        }
    }
}
