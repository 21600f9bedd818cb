//! The routes of what owners see.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;

use super::follow::LogFollowing;
use super::operations;
use super::requests::{LogQuery, StatsQuery};
use super::views::{LogView, StatsView};
use crate::access::{Authenticator, Viewer};
use crate::activity::Activity;
use crate::config::Config;
use crate::http::event_stream::EVENT_STREAM;
use crate::http::extract::UnparsedQuery;
use crate::http::negotiate;
use crate::http::problem::Problem;
use crate::projects::Projects;
use crate::projects::scope::AuthorizedProject;
use svc_base::clock::Clock;

/// Services that show owners what their pages do.
#[derive(Clone, Debug)]
pub struct StatsServices {
    pub activity: Arc<Activity>,
    pub authenticator: Authenticator,
    pub projects: Projects,
    pub clock: Clock,
    pub config: Arc<Config>,
}

/// Say what the pages of a project did
///
/// Counts by the hour or the day, for at most 400 points. Counts are kept for 90 days, by the hour, and have what happened until now. They are
/// written down every minute: a server that is killed loses those of the last one.
#[utoipa::path(
    operation_id = "get_stats",
    get, path = "/api/v1/projects/{id}/stats", tag = "projects",
    params(("id" = String, Path, description = "The project."), StatsQuery),
    responses((status = 200, description = "The counts.", body = StatsView)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn stats(
    State(services): State<StatsServices>,
    at: AuthorizedProject<Viewer>,
    query: UnparsedQuery,
) -> Result<Json<StatsView>, Problem> {
    let input = query.read::<StatsQuery>()?;
    let counted = (services.activity, services.clock);
    operations::stats(counted, at, input).await.map(Json)
}

/// List the latest requests of a project's pages
///
/// Newest first: the newest 2,000 of a day at most, fewer where many projects share the memory of the server. They are in memory alone, so a
/// restart forgets them. What visitors sent is in none of them: no params, rows, codes or addresses. A batch is one entry.
///
/// With `Accept: text/event-stream` the answer goes on: each new entry is an `entry` event, whose `id` may be sent as `Last-Event-ID` to go
/// on after it. Ten such streams of a project may be open.
#[utoipa::path(
    operation_id = "list_log",
    get, path = "/api/v1/projects/{id}/log", tag = "projects",
    params(("id" = String, Path, description = "The project."), LogQuery),
    responses((status = 200, description = "The entries, or the stream of events.", content((LogView = "application/json"), (String = "text/event-stream")))),
    extensions(("x-problems" = json!("owner forbidden not_found rate_limited"))),
    security(("bearer" = []))
)]
pub async fn log(
    State(services): State<StatsServices>,
    at: AuthorizedProject<Viewer>,
    query: UnparsedQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let input = query.read::<LogQuery>()?;
    if negotiate::accepts_by_name(&headers, EVENT_STREAM) {
        return LogFollowing::begin(services, &at, input, headers).map(LogFollowing::response);
    }
    let counted = (services.activity, services.clock);
    let found = operations::log(counted, at, input).await?;
    Ok(Json(found).into_response())
}
