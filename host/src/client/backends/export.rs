//! `svc backend export`.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::On;
use crate::client::calls;
use crate::client::error::{Exit, Failure, Result};
use crate::client::output::{print, text_of};
use crate::client::progress::Progress;
use crate::client::source::STDIN;

/// Copies the database into a file, or to standard output.
pub(super) async fn export(output: Option<PathBuf>, force: bool, on: &On) -> Result<()> {
    let at = on.find().await?;
    let path = output.unwrap_or_else(|| format!("{}.db", at.project.host_label).into());
    let to_stdout = path.as_os_str() == STDIN;
    if !to_stdout && !force && path.exists() {
        return Err(Failure::here(format!(
            "{} is there already: `--force` replaces it.",
            path.display()
        )));
    }
    let mut response = at
        .api
        .call(&calls::EXPORT, &[&at.project.id])
        .send()
        .await?;
    let bar = Progress::bytes("export", response.content_length());
    let failed = |error: std::io::Error| Failure::file("Writing", &path, &error);
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    // A copy that is cut short is never left under the name that was asked for.
    let mut file = match to_stdout {
        true => None,
        false => Some(
            tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?,
        ),
    };
    let mut bytes = 0;
    while let Some(part) = response.chunk().await.map_err(|error| {
        Failure::new(
            Exit::NoAnswer,
            "The copy is not whole",
            format!("The server ended before its end: {error}. Nothing is kept; try again."),
        )
    })? {
        bytes += part.len();
        bar.add(part.len());
        match &mut file {
            Some(file) => std::io::Write::write_all(file, &part).map_err(failed)?,
            None => print(&part, false)?,
        }
    }
    drop(bar);
    let Some(file) = file else {
        return Ok(());
    };
    file.as_file().sync_all().map_err(failed)?;
    match force {
        true => file.persist(&path),
        false => file.persist_noclobber(&path),
    }
    .map_err(|error| failed(error.error))?;
    let document = json!({ "file": path.display().to_string(), "bytes": bytes });
    on.out().answer(&document, &text_of(&document["file"]))
}
