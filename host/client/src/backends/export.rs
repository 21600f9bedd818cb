//! `svc backend export`.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::json;

use super::ProjectArgs;
use crate::endpoints;
use crate::error::{Failure, Result};
use crate::files::{Directory, PRIVATE_MODE, TemporaryFile};
use crate::output::{is_terminal, json_text, print_bytes};
use crate::progress::Progress;
use crate::responses::MAX_EXPORT_BYTES;
use crate::source::STDIN;

/// Copies the database into a file, or to standard output.
pub(super) async fn export(output: Option<PathBuf>, force: bool, args: &ProjectArgs) -> Result<()> {
    let at = args.find().await?;
    let path = output.unwrap_or_else(|| format!("{}.db", at.project.host_label).into());
    let copy = at.api.call(&endpoints::EXPORT, &at.path_parts());
    if path.as_os_str() == STDIN {
        if is_terminal() {
            return Err(Failure::local(
                "A database is nothing for a terminal: name a file by `--output`, or lead standard output to one.",
            ));
        }
        let begin = |_| Ok(());
        copy.send_and_stream(MAX_EXPORT_BYTES, begin, |(), part| print_bytes(part, false))
            .await?;
        return Ok(());
    }
    let (folder, name) = Directory::open_parent(&path)?;
    // Looked at before anything is asked for, and once more when the copy is whole.
    if folder.exists(&name)? && !force {
        return Err(Failure::local(format!(
            "{} is there already: `--force` replaces it.",
            path.display()
        )));
    }
    let failed = |error: std::io::Error| Failure::file_system("Writing", &path, &error);
    // A copy that is cut short is never left under the name that was asked for.
    let begin = |announced| {
        let draft = folder.create_temporary(&name, PRIVATE_MODE)?;
        Ok((draft, Progress::bytes("export", announced)))
    };
    let take = |(draft, bar): &mut (TemporaryFile, Progress), part: &[u8]| {
        bar.add(part.len());
        draft.file.write_all(part).map_err(failed)
    };
    let ((draft, bar), bytes) = copy.send_and_stream(MAX_EXPORT_BYTES, begin, take).await?;
    drop(bar);
    draft.file.sync_all().map_err(failed)?;
    draft.persist(force)?;
    let document = json!({ "file": path.display().to_string(), "bytes": bytes });
    args.output()
        .print_answer(&document, &json_text(&document["file"]))
}
