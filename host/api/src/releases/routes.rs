//! The route of releases.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;

use super::requests::{ReleaseProject, with_unreadable_part};
use super::views::ProjectReleaseView;
use super::{ProjectReleases, operations};
use crate::access::Editor;
use crate::access::idempotency::{IdempotencyScope, IdempotentRequest};
use crate::http::extract::{UnreadBody, parse_json, read_document};
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;

/// Release parts of a project together
///
/// Everything is judged, rendered and stored first. Then the migrations run, in their order; then one transaction makes actions, pages
/// and home what they shall be, so that no visitor finds a new page with an old action. A refusal is the problem that the single
/// operation would answer, with the `part` that it is about, and changes nothing. A crash between the migrations and the transaction leaves
/// the migrations alone: the same body sent again goes on. Each slug and each name stands in a release once. With `dry_run` nothing is
/// kept, and the answer says what would change.
#[utoipa::path(
    operation_id = "release_project",
    post, path = "/api/v1/projects/{id}/release", tag = "projects",
    params(
        ("id" = String, Path, description = "The project."),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")
    ),
    request_body = ReleaseProject,
    responses((status = 200, description = "Released, and durable; or, of a trial, what would be released.", body = ProjectReleaseView)),
    extensions(("x-problems" = json!("owner body idempotency_conflict forbidden not_found type_mismatch render_failed ddl_refused statement_refused statement_failed query_timeout constraint_violation backend_exists migration_not_recorded slug_conflict release_conflict path_refused plan_limit files_missing digest_mismatch storage_full database_full database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn release(
    State(releases): State<Arc<ProjectReleases>>,
    request: IdempotentRequest,
    at: AuthorizedProject<Editor>,
    body: Request,
) -> Result<Response, Problem> {
    let most = releases.config().limits.site_body_bytes;
    let body = UnreadBody::new(body, most)?.bytes().await?;
    // In memory as it was sent, for the key, and as it was read, until all of it is released.
    let _counted = releases.reserve_body(2 * body.len()).await?;
    let input = read_document(&body, parse_json::<ReleaseProject>).await?;
    let input = input.map_err(|problem| with_unreadable_part(problem, &body))?;
    let (caller, parent) = (at.authority.caller.clone(), at.project.id.to_string());
    let route = IdempotencyScope {
        name: "release",
        parent: &parent,
    };
    let work = |keep| operations::release(releases, at, input, keep);
    request
        .run_once(Some(&caller), route, &body, StatusCode::OK, work)
        .await
}
