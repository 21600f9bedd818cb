//! The layer of owner routes: a valid credential, then the bucket of whoever it belongs to.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};

use super::extract::{Presented, credential_invalid, credential_missing};
use super::problem::Problem;
use crate::app::App;
use crate::workspaces::Principal;

/// Admits a request with a valid credential and puts its principal where the `Owner` extractor finds it.
pub async fn admit(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let header = request.headers().get(header::AUTHORIZATION).cloned();
    let principal = match authenticate(&app, header).await {
        Ok(principal) => principal,
        Err(problem) => return problem.into_response(),
    };
    let bucket = principal.to_string();
    request.extensions_mut().insert(principal);
    app.rate_limits.owner.draw(&bucket, request, next).await
}

async fn authenticate(app: &App, header: Option<HeaderValue>) -> Result<Principal, Problem> {
    let presented = header
        .as_ref()
        .map_or(Presented::Nothing, Presented::in_value);
    let found = match presented {
        Presented::Nothing => return Err(credential_missing()),
        Presented::Malformed => None,
        Presented::Token(token) => app.workspaces.authenticate(token).await?,
    };
    found.ok_or_else(credential_invalid)
}
