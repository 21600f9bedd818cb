//! What a request to publish looks like, and what is wrong with it: for REST and for tools alike.

use serde::Deserialize;
use utoipa::ToSchema;

use super::model::is_slug;
use super::password::PASSWORD_BYTES;
use super::quick_share::NewShare;
use crate::http::extract::{check_characters, invalid};
use crate::http::problem::Problem;
use crate::sandbox::ContentType;

/// The longest title of a page, in characters.
pub const TITLE: usize = 200;

/// What to publish.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeployRequest {
    /// The source; never empty.
    #[schema(example = "# Hello\n\nThis is a page.", min_length = 1)]
    content: String,
    /// What the source is written in; `html` if absent.
    #[serde(rename = "type")]
    #[schema(default = "html", value_type = Option<ContentType>)]
    content_type: Option<ContentType>,
    /// The slug that you would like; with a suffix if it is taken.
    #[schema(pattern = "^[a-z0-9]([a-z0-9\\-]*[a-z0-9])?$", max_length = 63)]
    name: Option<String>,
    /// The page's title; if absent its content's own, else the wanted name.
    #[schema(max_length = 200)]
    title: Option<String>,
    /// Whether the first reader is the last.
    one_time: Option<bool>,
    /// What readers must know; never empty.
    #[schema(min_length = 1, max_length = 1024)]
    password: Option<String>,
}

impl DeployRequest {
    /// The share that is asked for.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<NewShare, Problem> {
        check_content(&self.content)?;
        if self.name.as_deref().is_some_and(|name| !is_slug(name)) {
            return Err(invalid(
                "`name`, the wanted slug, cannot be one: use 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit.",
            ));
        }
        check_characters("title", self.title.as_deref(), TITLE)?;
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
            one_time: self.one_time.unwrap_or(false),
            password: self.password,
        })
    }
}

/// Refuses an empty source.
///
/// # Errors
/// `invalid_request`.
pub fn check_content(content: &str) -> Result<(), Problem> {
    if content.is_empty() {
        return Err(invalid("`content` is empty: send the source of the page."));
    }
    Ok(())
}
