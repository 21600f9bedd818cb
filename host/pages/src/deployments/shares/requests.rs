//! Requests to publish and to claim shares, and their checks: for REST and for tools alike.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::shown_file::site_of_file;
use super::{NewShare, NewSiteShare};
use crate::config::Limits;
use crate::deployments::files::NewSite;
use crate::deployments::files::requests::{
    FileSource, FileSources, SiteType, checked_files, checked_options, unique_files,
};
use crate::deployments::requests::{
    MAX_TITLE_CHARACTERS, OtherTypesField, check_content, check_slug,
};
use crate::deployments::serving::password::MAX_PASSWORD_BYTES;
use crate::deployments::sites::SiteOptions;
use crate::http::extract::{check_characters, invalid_request};
use crate::http::problem::{Problem, ProblemCode};
use svc_base::json_object::optional_object;
use svc_base::numbers::optional_whole_number;
use svc_sandbox::ContentType;
use svc_sources::files;
use svc_sources::media::{MediaKind, media_by_name};

/// The shortest life that a share may be given, in seconds.
const SHORTEST_LIFE_SECONDS: u64 = 60;
/// Most files of a site that is a quick share.
pub const MAX_SHARE_FILES: usize = 100;

/// Page to publish.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeployRequest {
    /// The source; never empty.
    #[schema(example = "# Hello\n\nThis is a page.", min_length = 1)]
    pub content: String,
    /// Type of the source; `html` if absent.
    #[serde(rename = "type")]
    #[schema(default = "html", value_type = Option<ContentType>)]
    pub content_type: Option<ContentType>,
    /// The slug that you would like; with a suffix if it is taken.
    #[schema(pattern = "^[a-z0-9]([a-z0-9\\-]*[a-z0-9])?$", max_length = 63)]
    pub name: Option<String>,
    /// The page's title; if absent its content's own, else the wanted name.
    #[schema(max_length = 200)]
    pub title: Option<String>,
    /// How long the page lives, in seconds; as long as a share may if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 60)]
    pub expires_in: Option<u64>,
    /// Whether the first reader is the last.
    pub one_time: Option<bool>,
    /// Password that readers must know; never empty.
    #[schema(min_length = 1, max_length = 1024)]
    pub password: Option<String>,
    /// Only a site has files.
    #[serde(default)]
    #[schema(ignore)]
    pub files: OtherTypesField,
    /// Only a site has options.
    #[serde(default)]
    #[schema(ignore)]
    pub options: OtherTypesField,
}

impl DeployRequest {
    /// The share that is asked for.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self, limits: &Limits) -> Result<NewShare, Problem> {
        self.checked_as("name", limits)
    }

    /// Checks the request, whose caller knows the field `name` as `slug`.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked_as(self, slug: &str, limits: &Limits) -> Result<NewShare, Problem> {
        check_content(&self.content)?;
        check_slug(slug, self.name.as_deref())?;
        check_characters("title", self.title.as_deref(), MAX_TITLE_CHARACTERS)?;
        check_life(self.expires_in, limits)?;
        match self.password.as_deref().map(str::len) {
            Some(0) => {
                return Err(invalid_request(
                    "`password` is empty: leave it out for a page without one.",
                ));
            }
            Some(bytes) if bytes > MAX_PASSWORD_BYTES => {
                return Err(invalid_request(format!(
                    "`password` is {bytes} bytes; {MAX_PASSWORD_BYTES} is the most."
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

/// Site to publish as a quick share.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeploySite {
    /// Says that this is a site.
    #[serde(rename = "type")]
    pub site_type: SiteType,
    /// Files by their paths, with their bytes; from 1 to 100.
    #[serde(deserialize_with = "unique_files")]
    #[schema(value_type = BTreeMap<String, FileSource>)]
    pub files: FileSources,
    /// Options of the site.
    #[serde(default, deserialize_with = "optional_object")]
    pub options: Option<SiteOptions>,
    /// The slug that you would like; with a suffix if it is taken.
    #[schema(pattern = "^[a-z0-9]([a-z0-9\\-]*[a-z0-9])?$", max_length = 63)]
    pub name: Option<String>,
    /// The site's title; if absent that of its `index.html`, else the wanted name.
    #[schema(max_length = 200)]
    pub title: Option<String>,
    /// How long the site lives, in seconds; as long as a share may if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 60)]
    pub expires_in: Option<u64>,
    /// Only a page has a source.
    #[serde(default)]
    #[schema(ignore)]
    pub content: OtherTypesField,
    /// Only a page may be shown once.
    #[serde(default)]
    #[schema(ignore)]
    pub one_time: OtherTypesField,
    /// Only a page has a password.
    #[serde(default)]
    #[schema(ignore)]
    pub password: OtherTypesField,
}

/// Page or site to publish, as the description has it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum DeployFrontendRequest {
    /// A page of a source.
    Page(DeployRequest),
    /// A site of files.
    Site(DeploySite),
}

impl DeploySite {
    /// The share that is asked for.
    ///
    /// # Errors
    /// `invalid_request`, `path_refused`, `plan_limit`.
    pub fn checked(self, limits: &Limits) -> Result<NewSiteShare, Problem> {
        self.checked_as("name", limits)
    }

    /// Checks the request, whose caller knows the field `name` as `slug`.
    ///
    /// # Errors
    /// Those of [`DeploySite::checked`].
    pub fn checked_as(self, slug: &str, limits: &Limits) -> Result<NewSiteShare, Problem> {
        check_slug(slug, self.name.as_deref())?;
        check_characters("title", self.title.as_deref(), MAX_TITLE_CHARACTERS)?;
        check_life(self.expires_in, limits)?;
        if self.files.len() > MAX_SHARE_FILES {
            return Err(Problem::new(
                ProblemCode::PlanLimit,
                format!(
                    "A quick share has {MAX_SHARE_FILES} files at most. Publish the site in a project of your own."
                ),
            ));
        }
        if let Some((path, _)) = self.files.iter().find(|(_, file)| file.sha256.is_some()) {
            return Err(invalid_request(format!(
                "The file `{path}` is named by its SHA-256: the files of a quick share come with it, as `text` or `base64`."
            )));
        }
        Ok(NewSiteShare {
            site: NewSite {
                files: checked_files(self.files)?,
                options: checked_options(self.options.unwrap_or_default())?,
                deleted: BTreeSet::new(),
            },
            name: self.name,
            title: self.title.filter(|title| !title.is_empty()),
            expires_in: self.expires_in,
        })
    }
}

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

/// Options of publishing a file.
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

/// Share that a sent file becomes.
#[derive(Debug)]
pub(super) enum UploadedShare {
    /// A page of its text.
    Page(NewShare),
    /// A site of the file as it is, and of a page that shows it.
    Site(NewSiteShare),
}

impl UploadOptions {
    /// The share that a file of a name and with these bytes is to become.
    ///
    /// # Errors
    /// `invalid_request`.
    pub(super) fn checked(
        self,
        file: &str,
        bytes: Bytes,
        limits: &Limits,
    ) -> Result<UploadedShare, Problem> {
        check_slug("name", self.name.as_deref())?;
        check_characters("title", self.title.as_deref(), MAX_TITLE_CHARACTERS)?;
        check_life(self.expires_in, limits)?;
        match media_by_name(file).filter(|_| self.content_type.is_none()) {
            Some(media) => self.site_share(file, media, bytes).map(UploadedShare::Site),
            None => self.page_share(file, &bytes).map(UploadedShare::Page),
        }
    }

    /// Returns the title: the one that is asked for, else the file's name.
    fn title_or_name(&self, file: &str) -> Option<String> {
        let given = self.title.clone().filter(|title| !title.is_empty());
        given.or_else(|| {
            (!file.is_empty()).then(|| file.chars().take(MAX_TITLE_CHARACTERS).collect())
        })
    }

    /// Makes the share of a file that is shown as it is.
    fn site_share(
        self,
        file: &str,
        media: (&'static str, MediaKind),
        bytes: Bytes,
    ) -> Result<NewSiteShare, Problem> {
        if self.one_time == Some(true) {
            return Err(invalid_request(
                "`one_time` is for pages: a file that is shared as it is can be read until it expires.",
            ));
        }
        if bytes.is_empty() {
            return Err(invalid_request("The file is empty."));
        }
        let title = self.title_or_name(file);
        let shown = (file, title.as_deref().unwrap_or(file));
        Ok(NewSiteShare {
            site: site_of_file(shown, media, bytes),
            name: self.name,
            title,
            expires_in: self.expires_in,
        })
    }

    /// Makes the share of a text.
    fn page_share(self, file: &str, bytes: &[u8]) -> Result<NewShare, Problem> {
        let text = files::decode_text(bytes).map_err(|error| invalid_request(error.to_string()))?;
        check_content(text)?;
        let (content_type, content) = files::source_from_file(file, self.content_type, text);
        let title = self.title_or_name(file);
        Ok(NewShare {
            content,
            content_type,
            name: self.name,
            title,
            expires_in: self.expires_in,
            one_time: self.one_time.unwrap_or(false),
            password: None,
        })
    }
}

/// Refuses a life that is too short to be passed on, or longer than a share may have.
fn check_life(seconds: Option<u64>, limits: &Limits) -> Result<(), Problem> {
    let most = limits.quick_share_seconds;
    let least = SHORTEST_LIFE_SECONDS.min(most);
    match seconds {
        Some(seconds) if !(least..=most).contains(&seconds) => Err(invalid_request(format!(
            "`expires_in` must be from {least} to {most} seconds: it is {seconds}."
        ))),
        _ => Ok(()),
    }
}
