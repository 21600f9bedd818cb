//! Integrity check of backends: their files, and whether they contain what the ledger records.

use std::collections::HashSet;

use super::store;
use crate::control::ControlDatabase;
use svc_base::ids::BackendId;
use svc_database::{DatabasesDirectory, IntegrityReport, check_integrity};

/// Result of the check.
#[derive(Clone, Debug, Default)]
pub struct BackendCheckFindings {
    /// Damage and losses.
    pub errors: Vec<String>,
    /// Leftovers that the next start removes or that the owner must send again; not an error.
    pub leftovers: Vec<String>,
    /// Parts that could not be checked because of a tenant's own schema, and other notes; not an error.
    pub notes: Vec<String>,
}

/// Checks every backend, also while a server uses them; `watch` is told how many of how many are checked.
///
/// # Errors
/// When the control database or the directory cannot be read.
pub async fn check(
    control: &ControlDatabase,
    files: &DatabasesDirectory,
    watch: impl Fn(u64, u64),
) -> anyhow::Result<BackendCheckFindings> {
    let mut found = BackendCheckFindings::default();
    let owned = control.read(store::ids).await?;
    let all = owned.len() as u64;
    for (done, id) in (0..).zip(&owned) {
        watch(done, all);
        if let Err(line) = check_backend(control, files, *id, &mut found).await? {
            // A backend that was deleted meanwhile is not damaged.
            let id = *id;
            if control.read(move |c| store::exists(c, &id)).await? {
                found.errors.push(line);
            }
        }
    }
    watch(all, all);
    let owned: HashSet<BackendId> = owned.into_iter().collect();
    for id in control.read(store::referenced_ids).await? {
        let there = match id.parse::<BackendId>() {
            Ok(id) => owned.contains(&id) || control.read(move |c| store::exists(c, &id)).await?,
            Err(_) => false,
        };
        if !there {
            let line = format!("backend {id}: it is gone, and its migrations or actions are not");
            found.errors.push(line);
        }
    }
    for id in files.list()? {
        // A backend that is being created has no row yet.
        if !owned.contains(&id) && !control.read(move |c| store::exists(c, &id)).await? {
            found
                .leftovers
                .push(format!("backends/{id} belongs to no project"));
        }
    }
    Ok(found)
}

async fn check_backend(
    control: &ControlDatabase,
    files: &DatabasesDirectory,
    id: BackendId,
    found: &mut BackendCheckFindings,
) -> anyhow::Result<Result<(), String>> {
    let ledger = control.read(move |c| store::ledger(c, &id)).await?;
    let directory = files.clone();
    let examined = tokio::task::spawn_blocking(move || check_integrity(&directory, &id)).await?;
    let IntegrityReport {
        damage,
        cut_short,
        notes,
        markers,
    } = match examined {
        Ok(examined) => examined,
        Err(error) => return Ok(Err(format!("backend {id}: {error}"))),
    };
    found.errors.extend(
        damage
            .into_iter()
            .map(|line| format!("backend {id}: {line}")),
    );
    let notes = notes.into_iter();
    found
        .notes
        .extend(notes.map(|line| format!("backend {id}: {line}")));
    found
        .notes
        .extend(cut_short.map(|why| format!("backend {id}: not wholly looked at: {why}")));
    for entry in &ledger {
        let there = markers
            .iter()
            .any(|m| m.version == entry.version && m.checksum == entry.checksum);
        if !there {
            found.errors.push(format!(
                "backend {id}: migration {} is recorded but not in the database",
                entry.version
            ));
        }
    }
    let unrecorded = markers
        .iter()
        .filter(|marker| ledger.iter().all(|entry| entry.version != marker.version));
    found.leftovers.extend(
        unrecorded.map(|m| format!("backend {id}: migration {} is not recorded", m.version)),
    );
    Ok(Ok(()))
}
