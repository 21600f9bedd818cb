//! Extractor of authority over a project: a handler with a [`AuthorizedProject`] acts for a caller who has the required role.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts, MatchedPath, Path};
use http::request::Parts;
use serde::Deserialize;

use super::Projects;
use super::model::Project;
use crate::access::{AuthenticatedCaller, AuthorizedCaller, MinimumRole, RoleProof};
use crate::config::Config;
use crate::http::extract;
use crate::http::problem::Problem;

/// Routes of releases and of publications, whose bodies have many parts. Those of one page may have less, which its handler knows.
const PUBLICATION_ROUTES: [&str; 5] = [
    "/api/v1/projects/{id}/release",
    "/api/v1/projects/{id}/frontends",
    "/api/v1/projects/{id}/frontends/claim",
    "/api/v1/projects/{id}/frontends/{target}",
    "/api/v1/projects/{id}/frontends/{target}/revisions",
];
/// Routes of files, which are not read as a whole. The plan of the project's workspace may allow less than the larger one.
const FILE_ROUTES: [&str; 2] = [
    "/api/v1/projects/{id}/blobs/{sha256}",
    "/api/v1/projects/{id}/frontends/{target}/files/{*path}",
];
/// Routes of owners' queries and calls, whose bodies are those of visitors' calls.
const CALL_ROUTES: [&str; 2] = [
    "/api/v1/projects/{id}/backend/query",
    "/api/v1/projects/{id}/backend/batch",
];

/// Live project, and a caller whose role in its workspace is `F` or above.
#[derive(Clone, Debug)]
pub struct AuthorizedProject<F> {
    pub authority: AuthorizedCaller<F>,
    pub project: Project,
}

impl<F: MinimumRole> RoleProof for AuthorizedProject<F> {
    const ROLE: crate::workspaces::Role = F::ROLE;
}

#[derive(Deserialize)]
struct ProjectPath {
    id: String,
}

impl<F: MinimumRole, S> FromRequestParts<S> for AuthorizedProject<F>
where
    S: Send + Sync,
    Projects: FromRef<S>,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    /// Checks in the specification's order: credential, declared length, existence and ownership.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let AuthenticatedCaller(caller) =
            AuthenticatedCaller::from_request_parts(parts, state).await?;
        extract::check_length(&parts.headers, body_limit(parts, &Arc::from_ref(state)))?;
        let Path(path) = Path::<ProjectPath>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::not_found())?;
        let projects = Projects::from_ref(state);
        Ok(projects.find_scoped(&caller, &path.id).await?)
    }
}

/// Returns the most bytes that the body of a request may have.
fn body_limit(parts: &Parts, config: &Config) -> u64 {
    let limits = &config.limits;
    match parts
        .extensions
        .get::<MatchedPath>()
        .map(MatchedPath::as_str)
    {
        Some(route) if PUBLICATION_ROUTES.contains(&route) => limits.site_body_bytes,
        Some(route) if CALL_ROUTES.contains(&route) => limits.op_body_bytes,
        Some(route) if FILE_ROUTES.contains(&route) => {
            limits.file_bytes_free.max(limits.file_bytes_pro)
        }
        _ => limits.body_bytes,
    }
}
