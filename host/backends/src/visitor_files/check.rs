//! Check of visitors' files for `svc check`: rows whose bytes are gone.

use std::collections::HashSet;

use crate::control::ControlDatabase;
use crate::deployments::files::visitors;
use svc_database::{BackupSourceDatabase, DatabasesDirectory};

/// Lists rows of `svc_files` whose bytes are gone, in words: a restore may have brought back a row of a file that ended long ago.
///
/// # Errors
/// When the control database or the directory cannot be read.
pub async fn check(
    control: &ControlDatabase,
    files: &DatabasesDirectory,
) -> anyhow::Result<Vec<String>> {
    let mut notes = Vec::new();
    for id in files.list()? {
        let directory = files.clone();
        let read = move || BackupSourceDatabase::open(&directory, &id)?.file_ids();
        // A database that cannot be read is told of elsewhere.
        let Ok(there) = tokio::task::spawn_blocking(read).await? else {
            continue;
        };
        if there.is_empty() {
            continue;
        }
        let named: HashSet<String> = visitors::named_ids(control, id).await?;
        for file in there.into_iter().filter(|file| !named.contains(file)) {
            notes.push(format!(
                "backend {id}: the bytes of {file} are gone, and its row is there"
            ));
        }
    }
    Ok(notes)
}
