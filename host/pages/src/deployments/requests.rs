//! Checks that requests to publish share.

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};

use crate::http::extract::invalid_request;
use crate::http::problem::Problem;
use svc_base::names::{is_slug, is_uuid};

/// The longest title of a page, in characters.
pub const MAX_TITLE_CHARACTERS: usize = 200;

/// Field that only another type of deployment has: `null` is its absence, and anything else is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct OtherTypesField;

impl<'de> Deserialize<'de> for OtherTypesField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Option::<IgnoredAny>::deserialize(deserializer)? {
            None => Ok(Self),
            Some(_) => Err(D::Error::custom(
                "a field that this `type` does not have: leave it out",
            )),
        }
    }
}

/// Refuses a wanted slug that cannot be one, by the name of its field.
///
/// # Errors
/// `invalid_request`.
pub fn check_slug(field: &str, wanted: Option<&str>) -> Result<(), Problem> {
    match wanted.and_then(slug_fault) {
        Some(fault) => Err(invalid_request(format!("`{field}` {fault}"))),
        None => Ok(()),
    }
}

/// Says why a text is no slug that a page may be given, as the end of a sentence about its field.
pub fn slug_fault(slug: &str) -> Option<&'static str> {
    if !is_slug(slug) {
        return Some(
            "cannot be a slug: use 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit.",
        );
    }
    is_uuid(slug).then_some(
        "has the form of an id, by which pages are found, too: choose words for the slug.",
    )
}

/// Refuses a source of nothing but white space, which would be an empty page.
///
/// # Errors
/// `invalid_request`.
pub fn check_content(content: &str) -> Result<(), Problem> {
    let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    if content.chars().all(blank) {
        return Err(invalid_request(
            "`content` is empty: send the source of the page.",
        ));
    }
    Ok(())
}
