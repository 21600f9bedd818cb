//! Operations of owners on visitors. Their erasure, which may take their files along, is with these.

use std::sync::Arc;

use super::Visitors;
use super::requests::ListVisitors;
use super::views::VisitorList;
use crate::access::Viewer;
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;

/// Lists the visitors of a project, newest first.
///
/// # Errors
/// `invalid_request`.
pub async fn list(
    visitors: Arc<Visitors>,
    at: AuthorizedProject<Viewer>,
    input: ListVisitors,
) -> Result<VisitorList, Problem> {
    let (before, most) = input.checked()?;
    let mut found = visitors.list(at.project.id, before, most + 1).await?;
    let more = found.len() > most as usize;
    found.truncate(most as usize);
    let last = found.last().map(|visitor| visitor.number.to_string());
    Ok(VisitorList {
        next_cursor: last.filter(|_| more),
        visitors: found.into_iter().map(Into::into).collect(),
    })
}
