//! Model of a frontend.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use utoipa::ToSchema;

use crate::content::Digest;
use crate::control;
use crate::deployments::files::{FileError, NewSite, SiteTarget};
use crate::deployments::model::DeploymentType;
use crate::deployments::publication::PublishError;
use crate::deployments::sites::SiteSize;
use crate::deployments::views::Warning;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, RevisionId};
use svc_sandbox::ContentType;

/// Where a frontend is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FrontendState {
    /// The slug is taken, and the page is not there yet.
    Creating,
    /// It answers.
    Active,
    /// It does not answer any more, and is about to be gone.
    Deleting,
}

impl FromStr for FrontendState {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "creating" => Ok(Self::Creating),
            "active" => Ok(Self::Active),
            "deleting" => Ok(Self::Deleting),
            _ => Err(()),
        }
    }
}

/// A frontend, as its owner sees it.
#[derive(Clone, Debug)]
pub struct Frontend {
    /// Identifier of the frontend.
    pub id: DeploymentId,
    /// Where it answers.
    pub slug: String,
    /// Type of the source, or that it is a site.
    pub content_type: DeploymentType,
    /// The live page's title; empty where neither its author nor its content has one.
    pub title: String,
    /// Warnings for the author, where this very call has published it.
    pub warnings: Vec<Warning>,
    /// Where it is in its life.
    pub state: FrontendState,
    /// The live source; of a site, the canonical form of its manifest.
    pub source: Option<Digest>,
    /// Files of a site.
    pub site: Option<SiteSize>,
    /// Number of views.
    pub visits: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its page last changed.
    pub updated_at: Timestamp,
    /// The release pointer, once it is in the revision workflow.
    pub active_revision: Option<RevisionId>,
    /// How many revisions it has, drafts too.
    pub revision_count: u64,
    /// Whether it is a site that answers at the root of its project's origin, too.
    pub at_root: bool,
}

impl Frontend {
    /// A frontend whose page is yet to be made.
    pub(in crate::deployments) fn new_creating(
        id: DeploymentId,
        slug: String,
        content_type: DeploymentType,
        title: String,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            slug,
            content_type,
            title,
            warnings: Vec::new(),
            state: FrontendState::Creating,
            source: None,
            site: None,
            visits: 0,
            created_at: now,
            updated_at: now,
            active_revision: None,
            revision_count: 0,
            at_root: false,
        }
    }

    /// Whether it answers.
    pub(super) fn is_active(&self) -> bool {
        self.state == FrontendState::Active
    }
}

impl<'t> From<&'t Frontend> for SiteTarget<'t> {
    fn from(frontend: &'t Frontend) -> Self {
        Self {
            slug: Some(&frontend.slug),
            deployment: Some(frontend.id),
        }
    }
}

/// A frontend, in short.
#[derive(Clone, Debug)]
pub struct FrontendSummary {
    /// Identifier of the frontend.
    pub id: DeploymentId,
    /// Where it answers.
    pub slug: String,
    /// Type of the source, or that it is a site.
    pub content_type: DeploymentType,
    /// Where it is in its life.
    pub state: FrontendState,
    /// Number of views.
    pub visits: u64,
}

/// How a frontend is named in an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontendSelector {
    /// Identifier: anything in the shape of a UUID. A slug of that shape, as they were given out once, is looked for after it.
    Id(DeploymentId),
    /// Everything else is a slug.
    Slug(String),
}

impl From<&str> for FrontendSelector {
    fn from(text: &str) -> Self {
        let hyphenated = text.len() == 36;
        match text.parse() {
            Ok(id) if hyphenated => Self::Id(id),
            _ => Self::Slug(text.to_owned()),
        }
    }
}

/// A frontend to make; its fields are within their bounds.
#[derive(Clone, Debug)]
pub struct NewFrontend {
    /// Type of the source, for good.
    pub content_type: ContentType,
    /// The source.
    pub content: String,
    /// The wanted slug.
    pub requested_slug: Option<String>,
    /// The page's title; its content's, if there is none.
    pub title: Option<String>,
}

/// A site to make; its fields are within their bounds.
#[derive(Debug)]
pub struct NewSiteFrontend {
    /// Files and options.
    pub site: NewSite,
    /// The wanted slug.
    pub requested_slug: Option<String>,
    /// The site's title; that of its start page, if there is none.
    pub title: Option<String>,
}

/// Why nothing was done to a frontend.
#[derive(Debug, thiserror::Error)]
pub enum FrontendError {
    /// The project has no such active frontend.
    #[error("the project has no such frontend")]
    NotFound,
    /// The page could not be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The files could not be published.
    #[error(transparent)]
    Files(#[from] FileError),
}

impl From<control::Error> for FrontendError {
    fn from(error: control::Error) -> Self {
        Self::Publish(error.into())
    }
}

impl From<svc_base::random::RandomSourceError> for FrontendError {
    fn from(error: svc_base::random::RandomSourceError) -> Self {
        Self::Publish(error.into())
    }
}

impl fmt::Display for FrontendSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Slug(slug) => f.write_str(slug),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_shape_is_an_id() {
        let id = "01a1fc20-6ee3-7da4-ae81-ade539ecfe63";
        assert!(matches!(
            FrontendSelector::from(id),
            FrontendSelector::Id(_)
        ));
        assert_eq!(
            FrontendSelector::from(&*id.replace('-', "")),
            FrontendSelector::Slug(id.replace('-', ""))
        );
        assert_eq!(
            FrontendSelector::from("notes"),
            FrontendSelector::Slug("notes".into())
        );
    }
}
