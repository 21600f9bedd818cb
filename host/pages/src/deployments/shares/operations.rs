//! Operations on shares.

use std::sync::Arc;

use super::Shares;
use super::requests::ClaimRequest;
use crate::access::Editor;
use crate::deployments::frontends::views::FrontendView;
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;

/// Makes a share a frontend of a project, for the holder of its token. Durable when it returns.
///
/// # Errors
/// `invalid_request`, `not_found`, `disabled`, `render_failed`, `capacity_reached`; the share is as it was then.
pub async fn claim(
    shares: Arc<Shares>,
    at: AuthorizedProject<Editor>,
    input: ClaimRequest,
) -> Result<FrontendView, Problem> {
    let share = shares.authorize(&input.id, &input.delete_token).await?;
    let frontend = shares.claim(at.project.clone(), share).await?;
    Ok(FrontendView::new(&frontend, &at.project, shares.config()))
}
