//! Operations on what owners see.

use std::sync::Arc;

use super::requests::{LogQuery, StatsQuery};
use super::views::{LogView, StatsView};
use crate::access::Viewer;
use crate::activity::Activity;
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;
use svc_base::clock::Clock;

/// Returns what a project's pages did in a range of time.
///
/// # Errors
/// `invalid_request`.
pub async fn stats(
    (activity, clock): (Arc<Activity>, Clock),
    at: AuthorizedProject<Viewer>,
    input: StatsQuery,
) -> Result<StatsView, Problem> {
    let range = input.checked(clock.now())?;
    let counts = activity.sums(at.project.id, range.hours(), range.step.hours());
    Ok(StatsView::new(range, counts.await?))
}

/// Lists the latest requests of a project's pages, newest first.
///
/// # Errors
/// `invalid_request`.
pub async fn log(
    (activity, clock): (Arc<Activity>, Clock),
    at: AuthorizedProject<Viewer>,
    input: LogQuery,
) -> Result<LogView, Problem> {
    let wanted = input.checked()?;
    let found = activity.find(&at.project.id).map(|project| {
        let (before, most) = (wanted.before, wanted.most);
        project.log_page(&wanted.filter, before, most, clock.now())
    });
    Ok(LogView::new(&found.unwrap_or_default()))
}
