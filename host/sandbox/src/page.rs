//! Values of rendering: sources, pages, and messages about malformed sources.

use std::fmt;

use bytes::Bytes;

use super::values::GuestDigest;
use svc_sources::ContentType;

/// The script that a page with a runtime gets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuntimeScript {
    /// The URL path of the script.
    pub src: String,
    /// Slug of the page that it runs in.
    pub slug: String,
}

/// Foot of a page: lines below the content.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PageFooter {
    /// URL path of the source.
    pub raw: Option<String>,
    /// Time at which the page expires, as RFC 3339.
    pub expires_at: Option<String>,
    /// URL of the page that takes reports.
    pub report: Option<String>,
}

/// A page to render.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RenderSource {
    /// Type of `text`.
    pub content_type: ContentType,
    /// Title that the page was given, as plain text.
    pub title: Option<String>,
    /// Slug that the author asked for.
    pub name: Option<String>,
    /// The source as it was published.
    pub text: String,
    /// Script of the runtime; absent for pages that have none.
    pub runtime: Option<RuntimeScript>,
    /// Size limit of the page, in bytes; more than 4 GiB counts as 4 GiB.
    pub page_bytes: usize,
    /// Foot of the page; absent for previews and embedded pages.
    pub foot: Option<PageFooter>,
    /// Whether link previews must not show content.
    pub is_private: bool,
}

/// A diagram that is not drawn: the page shows its source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UndrawnDiagram {
    /// Reason, as one sentence for the author.
    pub reason: String,
    /// Line of the page's source with the fault, from 1.
    pub line: u32,
}

/// A finished page.
#[derive(Clone, Debug)]
pub struct RenderedPage {
    /// A complete HTML5 document.
    pub html: Bytes,
    /// Title of the page: the given one, else that of the content, else the name.
    pub title: Option<String>,
    /// Fuel of all calls that made the page.
    pub fuel: u64,
    /// Number of drawn diagrams.
    pub drawn: usize,
    /// Diagrams that are not drawn: broken, unsupported, over budget, or past the 20th.
    pub undrawn: Vec<UndrawnDiagram>,
    /// Digest of the guest that rendered it.
    pub guest: GuestDigest,
}

/// A position in a page's source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SourcePosition {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// A message for the author, with the position if it is known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MalformedSource {
    /// One sentence.
    pub message: String,
    /// Position, if the guest knows it.
    pub place: Option<SourcePosition>,
}

impl fmt::Display for MalformedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.place {
            Some(place) => write!(f, " (line {}, column {})", place.line, place.column),
            None => Ok(()),
        }
    }
}
