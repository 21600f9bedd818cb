//! Operators' operations on visitors: list them, and erase one.

use super::model::Visitor;
use super::store;
use crate::control::{ControlDatabase, Error};
use svc_base::clock::Timestamp;
use svc_base::ids::ProjectId;

/// Lists the visitors of a project, newest first, at most `most`.
pub async fn list(
    control: &ControlDatabase,
    project: ProjectId,
    most: u32,
) -> Result<Vec<Visitor>, Error> {
    let read = control.read(move |c| store::list_of_project(c, &project, None, most));
    read.await
}

/// Erases a visitor's profile and sessions; returns whether there was one.
pub async fn forget(
    control: &ControlDatabase,
    project: ProjectId,
    id: String,
    now: Timestamp,
) -> Result<bool, Error> {
    let write = control.write(move |tx| store::forget(tx, &project, &id, now));
    write.await
}
