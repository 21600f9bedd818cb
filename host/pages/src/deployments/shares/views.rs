//! Views of quick shares.

use serde::Serialize;
use utoipa::ToSchema;

use super::DeleteToken;
use crate::deployments::views::Warning;
use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;

/// A published share.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Deployed {
    /// The deployment's id.
    #[schema(value_type = String, format = "uuid")]
    pub id: DeploymentId,
    /// Where it answers; with a suffix if the wanted name was taken.
    #[schema(example = "release-notes")]
    pub slug: String,
    /// The link to pass on.
    #[schema(format = "uri")]
    pub url: String,
    /// The page's title: as it was given, else its content's own, else the wanted name.
    #[schema(example = "Release notes")]
    pub title: String,
    /// When it was published.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it ends.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
    /// Deletes the share, or moves it into a project; shown this once.
    #[schema(example = "svcd_0qGuRUxbAdo2yAjmOQ5QhpkKAUJgRZFqNEUVMo2qhdN")]
    pub delete_token: DeleteToken,
    /// Warnings for the author; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}
