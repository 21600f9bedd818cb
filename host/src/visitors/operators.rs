//! Operators' work on visitors: listing them, and erasing one.

use super::model::Visitor;
use super::store;
use crate::control::{Control, Error};
use svc_base::clock::Timestamp;
use svc_base::ids::ProjectId;

/// Visitors of a project, newest first, `most` at most.
pub async fn list(control: &Control, project: ProjectId, most: u32) -> Result<Vec<Visitor>, Error> {
    let read = control.read(move |c| store::list_of_project(c, &project, None, most));
    read.await
}

/// Erases a visitor's profile and sessions; returns whether there was one.
pub async fn forget(
    control: &Control,
    project: ProjectId,
    id: String,
    now: Timestamp,
) -> Result<bool, Error> {
    let write = control.write(move |tx| store::forget(tx, &project, &id, now));
    write.await
}
