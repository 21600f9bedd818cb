//! Source of a page, and its future address.

use svc_base::clock::Timestamp;
use svc_sandbox::ContentType;

/// Source of a page.
#[derive(Clone, Copy, Debug)]
pub struct PageSource<'a> {
    /// Type of the text.
    pub content_type: ContentType,
    /// The title that it is given; an empty one is none.
    pub title: &'a str,
    /// Slug that the author wants.
    pub name: Option<&'a str>,
    /// The source.
    pub text: &'a str,
}

impl<'a> PageSource<'a> {
    /// Makes a source whose title is given, so that it is not derived from a name.
    pub fn titled(content_type: ContentType, title: &'a str, text: &'a str) -> Self {
        Self {
            content_type,
            title,
            name: None,
            text,
        }
    }
}

/// Place of a page that is about to be published: its address, its end and its readers.
#[derive(Clone, Copy, Debug)]
pub(in crate::deployments) struct PagePlacement<'a> {
    pub(in crate::deployments) slug: &'a str,
    pub(in crate::deployments) expires_at: Option<Timestamp>,
    /// Whether its first reader is its last, which leaves nothing to link to.
    pub(in crate::deployments) one_time: bool,
    /// Whether readers need a password.
    pub(in crate::deployments) is_private: bool,
}

impl<'a> PagePlacement<'a> {
    /// Makes the place of a page that everybody may read.
    pub(in crate::deployments) fn public(slug: &'a str, expires_at: Option<Timestamp>) -> Self {
        Self {
            slug,
            expires_at,
            one_time: false,
            is_private: false,
        }
    }
}
