//! Model of a deployment.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::address::PageAddress;
use crate::content::Digest;
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, DeploymentId, ProjectId};
use svc_sandbox::{ContentType, UnknownContentType};

/// Slugs that the service keeps for itself.
const RESERVED_SLUGS: [&str; 8] = [
    "api", "mcp", "auth", "assets", "healthz", "readyz", "metrics", "problems",
];

/// Name of the type of sites, beside those of pages.
const SITE_TYPE: &str = "site";

/// Type of a deployment: that of a page's source, or a site, which is a set of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum DeploymentType {
    /// One page, made of a source of this type.
    Page(ContentType),
    /// Files at paths of their own.
    Site,
}

impl DeploymentType {
    /// Returns the name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Page(content_type) => content_type.as_str(),
            Self::Site => SITE_TYPE,
        }
    }

    /// Returns the type of a page's source; a site has none.
    pub fn page(self) -> Option<ContentType> {
        match self {
            Self::Page(content_type) => Some(content_type),
            Self::Site => None,
        }
    }

    /// Whether this is a set of files.
    pub fn is_site(self) -> bool {
        self == Self::Site
    }
}

impl From<ContentType> for DeploymentType {
    fn from(content_type: ContentType) -> Self {
        Self::Page(content_type)
    }
}

impl From<DeploymentType> for &'static str {
    fn from(deployment_type: DeploymentType) -> Self {
        deployment_type.as_str()
    }
}

impl FromStr for DeploymentType {
    type Err = UnknownContentType;

    fn from_str(name: &str) -> Result<Self, UnknownContentType> {
        match name {
            SITE_TYPE => Ok(Self::Site),
            page => page.parse().map(Self::Page),
        }
    }
}

impl TryFrom<String> for DeploymentType {
    type Error = UnknownContentType;

    fn try_from(name: String) -> Result<Self, UnknownContentType> {
        name.parse()
    }
}

impl fmt::Display for DeploymentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialSchema for DeploymentType {
    fn schema() -> RefOr<Schema> {
        let names = ContentType::NAMES.into_iter().chain([SITE_TYPE]);
        let schema = ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .description(Some(
                "Type of a page's source, or `site` for a set of files.",
            ))
            .enum_values(Some(names));
        Schema::Object(schema.build()).into()
    }
}

impl ToSchema for DeploymentType {}

/// Something published that answers at a slug.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// Identifier, which a slug's next owner does not share.
    pub id: DeploymentId,
    /// Where it answers.
    pub slug: String,
    /// Type of the source, or that it is a site.
    pub content_type: DeploymentType,
    /// The page's title; empty where there is none, and for a one-time share, whose title burns with it.
    pub title: String,
    /// Whether its first reader is its last.
    pub one_time: bool,
    /// Argon2id in PHC form.
    pub password_hash: Option<String>,
    /// Digest of the source in the content store; a one-time share has none there.
    pub source: Option<Digest>,
    /// Digest of the finished page, or of a site's manifest, in the content store; a one-time share has none there.
    pub artifact: Option<Digest>,
    /// Project of the deployment; that of quick shares is nobody's.
    pub project: ProjectId,
    /// The host label of its project; a quick share has none.
    pub host_label: Option<String>,
    /// The live backend that its page was published with.
    pub backend: Option<BackendId>,
    /// Whether the operator has taken it down.
    pub disabled: bool,
    /// When it was published.
    pub created_at: Timestamp,
    /// When it stops to resolve.
    pub expires_at: Option<Timestamp>,
    /// The SHA-256 of the token that deletes it; a frontend has none.
    pub delete_token: Option<Digest>,
}

impl Deployment {
    /// Whether the deployment still answers at `now`.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|at| at > now)
    }

    /// Where it answers.
    pub(super) fn address(&self) -> PageAddress {
        PageAddress {
            slug: self.slug.clone(),
            host_label: self.host_label.clone(),
        }
    }
}

/// Returns a page's title as answers show it.
pub fn display_title(title: &str) -> String {
    if title.is_empty() { "Untitled" } else { title }.to_owned()
}

/// Whether the service keeps a slug for itself.
pub fn is_reserved(slug: &str) -> bool {
    RESERVED_SLUGS.contains(&slug)
}
