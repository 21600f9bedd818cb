//! Model of a deployment.

use super::address::PageAddress;
use crate::content::Digest;
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, DeploymentId, ProjectId};
use svc_sandbox::ContentType;

/// Slugs that the service keeps for itself.
const RESERVED_SLUGS: [&str; 8] = [
    "api", "mcp", "auth", "assets", "healthz", "readyz", "metrics", "problems",
];

/// Something published that answers at a slug.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// Identifier, which a slug's next owner does not share.
    pub id: DeploymentId,
    /// Where it answers.
    pub slug: String,
    /// Type of the source.
    pub content_type: ContentType,
    /// The page's title; empty where there is none, and for a one-time share, whose title burns with it.
    pub title: String,
    /// Whether its first reader is its last.
    pub one_time: bool,
    /// Argon2id in PHC form.
    pub password_hash: Option<String>,
    /// Digest of the source in the content store; a one-time share has none there.
    pub source: Option<Digest>,
    /// Digest of the finished page in the content store; a one-time share has none there.
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
