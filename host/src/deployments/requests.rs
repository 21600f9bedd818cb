//! Requests to publish, and their checks: for REST and for tools alike.

use serde::Deserialize;
use utoipa::ToSchema;

use super::password::PASSWORD_BYTES;
use super::quick_share::NewShare;
use crate::config::Limits;
use crate::http::extract::{check_characters, invalid};
use crate::http::problem::Problem;
use svc_base::names::{is_slug, is_uuid};
use svc_base::numbers::optional_whole_number;
use svc_sandbox::ContentType;

/// The shortest life that a share may be given, in seconds.
const LIFE_LEAST: u64 = 60;
/// The longest title of a page, in characters.
pub const TITLE: usize = 200;

/// Page to publish.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeployRequest {
    /// The source; never empty.
    #[schema(example = "# Hello\n\nThis is a page.", min_length = 1)]
    pub(crate) content: String,
    /// Type of the source; `html` if absent.
    #[serde(rename = "type")]
    #[schema(default = "html", value_type = Option<ContentType>)]
    pub(crate) content_type: Option<ContentType>,
    /// The slug that you would like; with a suffix if it is taken.
    #[schema(pattern = "^[a-z0-9]([a-z0-9\\-]*[a-z0-9])?$", max_length = 63)]
    pub(crate) name: Option<String>,
    /// The page's title; if absent its content's own, else the wanted name.
    #[schema(max_length = 200)]
    pub(crate) title: Option<String>,
    /// How long the page lives, in seconds; as long as a share may if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 60)]
    pub(crate) expires_in: Option<u64>,
    /// Whether the first reader is the last.
    pub(crate) one_time: Option<bool>,
    /// Password that readers must know; never empty.
    #[schema(min_length = 1, max_length = 1024)]
    pub(crate) password: Option<String>,
}

impl DeployRequest {
    /// The share that is asked for.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self, limits: &Limits) -> Result<NewShare, Problem> {
        self.checked_as("name", limits)
    }

    /// The share that is asked for by somebody to whom the wanted slug has another name.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked_as(self, slug: &str, limits: &Limits) -> Result<NewShare, Problem> {
        check_content(&self.content)?;
        check_slug(slug, self.name.as_deref())?;
        check_characters("title", self.title.as_deref(), TITLE)?;
        check_life(self.expires_in, limits)?;
        match self.password.as_deref().map(str::len) {
            Some(0) => {
                return Err(invalid(
                    "`password` is empty: leave it out for a page without one.",
                ));
            }
            Some(bytes) if bytes > PASSWORD_BYTES => {
                return Err(invalid(format!(
                    "`password` is {bytes} bytes; {PASSWORD_BYTES} is the most."
                )));
            }
            _ => {}
        }
        Ok(NewShare {
            content: self.content,
            content_type: self.content_type.unwrap_or(ContentType::Html),
            name: self.name,
            title: self.title.filter(|title| !title.is_empty()),
            expires_in: self.expires_in,
            one_time: self.one_time.unwrap_or(false),
            password: self.password,
        })
    }
}

/// Refuses a wanted slug that cannot be one, by the name of its field.
///
/// # Errors
/// `invalid_request`.
pub fn check_slug(field: &str, wanted: Option<&str>) -> Result<(), Problem> {
    if wanted.is_some_and(|slug| !is_slug(slug)) {
        return Err(invalid(format!(
            "`{field}` cannot be a slug: use 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit."
        )));
    }
    if wanted.is_some_and(is_uuid) {
        return Err(invalid(format!(
            "`{field}` has the form of an id, by which pages are found, too: choose words for the slug."
        )));
    }
    Ok(())
}

/// Refuses a source of nothing but white space, which would be an empty page.
///
/// # Errors
/// `invalid_request`.
pub fn check_content(content: &str) -> Result<(), Problem> {
    let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    if content.chars().all(blank) {
        return Err(invalid("`content` is empty: send the source of the page."));
    }
    Ok(())
}

/// Refuses a life that is too short to be passed on, or longer than a share may have.
///
/// # Errors
/// `invalid_request`.
pub fn check_life(seconds: Option<u64>, limits: &Limits) -> Result<(), Problem> {
    let most = limits.quick_share_seconds;
    let least = LIFE_LEAST.min(most);
    match seconds {
        Some(seconds) if !(least..=most).contains(&seconds) => Err(invalid(format!(
            "`expires_in` must be from {least} to {most} seconds: it is {seconds}."
        ))),
        _ => Ok(()),
    }
}
