//! Requests about shares, and their checks: for REST and for tools alike.

use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::config::Limits;
use crate::deployments::quick_share::NewShare;
use crate::deployments::requests::{TITLE, check_content, check_life, check_slug};
use crate::http::extract::{check_characters, invalid};
use crate::http::problem::Problem;
use svc_sandbox::ContentType;
use svc_sources::files;

/// A share to move into a project.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// The share's id.
    #[schema(format = "uuid")]
    pub id: String,
    /// The token that publishing it answered.
    pub delete_token: String,
}

/// How a file is published.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UploadOptions {
    /// The slug that you would like; with a suffix if it is taken.
    #[param(pattern = "^[a-z0-9]([a-z0-9\\-]*[a-z0-9])?$", max_length = 63)]
    pub name: Option<String>,
    /// The page's title; the file's name if absent.
    #[param(max_length = 200)]
    pub title: Option<String>,
    /// Type of the file; as its name says, if absent.
    #[serde(rename = "type")]
    #[param(value_type = Option<ContentType>)]
    pub content_type: Option<ContentType>,
    /// How long the page lives, in seconds; as long as a share may if absent.
    #[param(minimum = 60)]
    pub expires_in: Option<u64>,
    /// Whether the first reader is the last.
    pub one_time: Option<bool>,
}

impl UploadOptions {
    /// The share that a file of a name and with these bytes is to become.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self, file: &str, bytes: &[u8], limits: &Limits) -> Result<NewShare, Problem> {
        check_slug("name", self.name.as_deref())?;
        check_characters("title", self.title.as_deref(), TITLE)?;
        check_life(self.expires_in, limits)?;
        let text = files::decode_text(bytes).map_err(|error| invalid(error.to_string()))?;
        check_content(text)?;
        let (content_type, content) = files::source_from_file(file, self.content_type, text);
        let named = || (!file.is_empty()).then(|| file.chars().take(TITLE).collect());
        Ok(NewShare {
            content,
            content_type,
            name: self.name,
            title: self.title.filter(|title| !title.is_empty()).or_else(named),
            expires_in: self.expires_in,
            one_time: self.one_time.unwrap_or(false),
            password: None,
        })
    }
}
