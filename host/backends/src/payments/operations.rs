//! Operations on payments.

use std::sync::Arc;

use super::Payments;
use super::requests::{AddPrice, ListSessions};
use super::views::{CatalogView, PricedView, SessionList};
use crate::access::{Editor, Viewer};
use crate::control::kept_answers::AnswerRecorder;
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;

/// Lists the catalog of a project.
pub async fn catalog(
    payments: Arc<Payments>,
    at: AuthorizedProject<Viewer>,
) -> Result<CatalogView, Problem> {
    let prices = payments.catalog(at.project.id).await?;
    Ok(CatalogView::new(prices))
}

/// Adds a price to a project's catalog.
///
/// # Errors
/// `invalid_request`, `price_key_taken`, and `price_inactive` or `not_found` of the price that it replaces.
pub async fn add_price(
    payments: Arc<Payments>,
    at: AuthorizedProject<Editor>,
    input: AddPrice,
    keep: AnswerRecorder<PricedView>,
) -> Result<PricedView, Problem> {
    let new = input.checked()?;
    let keep = keep.map_view(|price| PricedView::from(price));
    let price = payments.add_price(at.project.id, new, keep).await?;
    Ok(PricedView::from(&price))
}

/// Deactivates a price of a project.
///
/// # Errors
/// `not_found`.
pub async fn deactivate_price(
    payments: Arc<Payments>,
    at: AuthorizedProject<Editor>,
    price: String,
) -> Result<PricedView, Problem> {
    let price = payments.deactivate(at.project.id, price).await?;
    Ok(PricedView::from(&price))
}

/// Lists a project's latest sessions.
///
/// # Errors
/// `invalid_request`.
pub async fn sessions(
    payments: Arc<Payments>,
    at: AuthorizedProject<Viewer>,
    input: ListSessions,
) -> Result<SessionList, Problem> {
    let sessions = payments.sessions(at.project.id, input.checked()?).await?;
    Ok(SessionList::new(sessions))
}
