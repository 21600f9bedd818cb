//! What operators do to visitors beside the server: list them, erase one.

use super::model::Visitor;
use super::store;
use crate::clock::Timestamp;
use crate::control::events::{self, Deed};
use crate::control::{Control, Error};
use crate::ids::ProjectId;

/// Visitors of a project, newest first, `most` at most.
///
/// # Errors
/// The database's.
pub async fn list(control: &Control, project: ProjectId, most: u32) -> Result<Vec<Visitor>, Error> {
    let read = control.read(move |c| store::of_project(c, &project, None, most));
    read.await
}

/// Erases what is known of a visitor, and tells the server; answers whether there was one.
///
/// # Errors
/// The database's.
pub async fn forget(
    control: &Control,
    project: ProjectId,
    id: String,
    now: Timestamp,
    deed: Deed,
) -> Result<bool, Error> {
    control
        .write(move |tx| {
            let gone = store::forget(tx, &project, &id, now)?;
            if gone {
                events::tell(
                    tx,
                    events::VISITORS_CHANGED,
                    &project.to_string(),
                    &deed,
                    now,
                )?;
            }
            Ok(gone)
        })
        .await
}
