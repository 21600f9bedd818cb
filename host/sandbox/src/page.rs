//! The values of rendering: what goes in, what comes out, and what is said of a source that is wrong.

use std::fmt;

use bytes::Bytes;

use super::values::GuestDigest;
use svc_sources::ContentType;

/// The one script that a page may be given.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuntimeScript {
    /// The URL path of the script.
    pub src: String,
    /// The slug of the page that it runs in.
    pub slug: String,
}

/// Lines below a page's content.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Foot {
    /// The URL path of the source.
    pub raw: Option<String>,
    /// When the page ends, as RFC 3339.
    pub expires_at: Option<String>,
    /// The address of the page that takes reports.
    pub report: Option<String>,
}

/// A page to render.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Source {
    /// Type of `text`.
    pub content_type: ContentType,
    /// The title that the page was given, as plain text.
    pub title: Option<String>,
    /// The address that its author wished for.
    pub name: Option<String>,
    /// The source as it was published.
    pub text: String,
    /// Absent for pages that have no runtime.
    pub runtime: Option<RuntimeScript>,
    /// The largest page that is accepted, in bytes; beyond 4 GiB it means 4 GiB.
    pub page_bytes: usize,
    /// Absent for previews, and for whatever else is no page of its own.
    pub foot: Option<Foot>,
    /// Whether link previews must not learn what the page says.
    pub is_private: bool,
}

/// A diagram of a page that shows its source instead.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UndrawnDiagram {
    /// Why, as one sentence for the author.
    pub reason: String,
    /// The line of the page's source that is to blame, from 1.
    pub line: u32,
}

/// A finished page.
#[derive(Clone, Debug)]
pub struct RenderedPage {
    /// A complete HTML5 document.
    pub html: Bytes,
    /// Title of the page: the one that it was given, its content's, or its name.
    pub title: Option<String>,
    /// The fuel of all the calls that made it.
    pub fuel: u64,
    /// How many diagrams were drawn.
    pub drawn: usize,
    /// The diagrams that show their source instead: broken, unsupported, over budget, or past the 20th.
    pub undrawn: Vec<UndrawnDiagram>,
    /// Which guest made it.
    pub guest: GuestDigest,
}

/// A place in a page's source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SourcePosition {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// A sentence for an author, with the place where there is one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Malformed {
    /// One sentence.
    pub message: String,
    /// Where, if the guest knows.
    pub place: Option<SourcePosition>,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.place {
            Some(place) => write!(f, " (line {}, column {})", place.line, place.column),
            None => Ok(()),
        }
    }
}
