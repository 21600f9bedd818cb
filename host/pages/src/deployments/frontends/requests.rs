//! Requests about frontends, and their checks: for REST and for tools alike.

use std::collections::BTreeSet;

use serde::Deserialize;
use utoipa::ToSchema;

use super::{NewFrontend, NewSiteFrontend};
use crate::deployments::files::NewSite;
use crate::deployments::files::requests::{
    FileSource, FileSources, SiteType, checked_files, checked_options, unique_files,
};
use crate::deployments::requests::{
    MAX_TITLE_CHARACTERS, OtherTypesField, check_content, check_slug,
};
use crate::deployments::sites::SiteOptions;
use crate::http::extract::check_characters;
use crate::http::problem::Problem;
use svc_base::json_object::optional_object;
use svc_sandbox::ContentType;

/// Fields of a quick share that a frontend does not have.
const SHARE_FIELDS: [&str; 3] = ["password", "one_time", "expires_in"];

/// Adds to the refusal of a field that only quick shares have what a frontend is like instead.
pub fn explain_share_fields(mut problem: Problem) -> Problem {
    let is_named = |field: &str| problem.detail.contains(&format!("unknown field `{field}`"));
    if SHARE_FIELDS.into_iter().any(is_named) {
        problem.detail.to_mut().push_str(
            " Only a quick share (POST /api/v1/deploy, or the tool deploy_asset) has `password`, `one_time` and `expires_in`: \
             a frontend is public, and lives as long as its project.",
        );
    }
    problem
}

/// A frontend to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateFrontend {
    /// Type of the source, for good.
    #[serde(rename = "type")]
    pub content_type: ContentType,
    /// The source; never empty.
    #[schema(min_length = 1)]
    pub content: String,
    /// The slug that you would like; with a suffix if it is taken.
    #[schema(pattern = "^[a-z0-9]([a-z0-9\\-]*[a-z0-9])?$", max_length = 63)]
    pub requested_slug: Option<String>,
    /// The page's title; if absent its content's own, else the wanted slug.
    #[schema(max_length = 200)]
    pub title: Option<String>,
    /// Only a site has files.
    #[serde(default)]
    #[schema(ignore)]
    pub files: OtherTypesField,
    /// Only a site has options.
    #[serde(default)]
    #[schema(ignore)]
    pub options: OtherTypesField,
}

impl CreateFrontend {
    /// The frontend that is asked for.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<NewFrontend, Problem> {
        check_content(&self.content)?;
        check_characters("title", self.title.as_deref(), MAX_TITLE_CHARACTERS)?;
        let requested_slug = self.requested_slug.filter(|slug| !slug.is_empty());
        check_slug("requested_slug", requested_slug.as_deref())?;
        Ok(NewFrontend {
            content_type: self.content_type,
            content: self.content,
            requested_slug,
            title: self.title.filter(|title| !title.is_empty()),
        })
    }
}

/// A site to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSite {
    /// Says that this is a site.
    #[serde(rename = "type")]
    pub site_type: SiteType,
    /// Files by their paths; one at least.
    #[serde(deserialize_with = "unique_files")]
    #[schema(value_type = BTreeMap<String, FileSource>)]
    pub files: FileSources,
    /// Options of the site.
    #[serde(default, deserialize_with = "optional_object")]
    pub options: Option<SiteOptions>,
    /// The slug that you would like; with a suffix if it is taken.
    #[schema(pattern = "^([a-z0-9]([a-z0-9\\-]*[a-z0-9])?)?$", max_length = 63)]
    pub requested_slug: Option<String>,
    /// The site's title; if absent that of its `index.html`, else the wanted slug.
    #[schema(max_length = 200)]
    pub title: Option<String>,
    /// Only a page has a source.
    #[serde(default)]
    #[schema(ignore)]
    pub content: OtherTypesField,
}

/// A page or a site to make, as the description has it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum CreateFrontendRequest {
    /// A page of a source.
    Page(CreateFrontend),
    /// A site of files.
    Site(CreateSite),
}

impl CreateSite {
    /// The site that is asked for.
    ///
    /// # Errors
    /// `invalid_request`, `path_refused`.
    pub fn checked(self) -> Result<NewSiteFrontend, Problem> {
        check_characters("title", self.title.as_deref(), MAX_TITLE_CHARACTERS)?;
        let requested_slug = self.requested_slug.filter(|slug| !slug.is_empty());
        check_slug("requested_slug", requested_slug.as_deref())?;
        Ok(NewSiteFrontend {
            site: NewSite {
                files: checked_files(self.files)?,
                options: checked_options(self.options.unwrap_or_default())?,
                deleted: BTreeSet::new(),
            },
            requested_slug,
            title: self.title.filter(|title| !title.is_empty()),
        })
    }
}
