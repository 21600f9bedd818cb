//! `svc backend export`.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::json;

use super::BackendTargetArgs;
use crate::endpoints;
use crate::error::{CliFailure, Result};
use crate::files::{DirectoryHandle, PRIVATE_MODE, TemporaryFile};
use crate::output::{is_terminal, pretty_escaped_json, print_part};
use crate::progress::TerminalProgressBar;
use crate::responses::MAX_EXPORT_BYTES;
use crate::source::STDIN;

/// Copies the database into a file, or to standard output.
pub(super) async fn export(
    output: Option<PathBuf>,
    force: bool,
    args: &BackendTargetArgs,
) -> Result<()> {
    let at = args.find().await?;
    let path = output.unwrap_or_else(|| format!("{}.db", at.project.host_label).into());
    let copy = at.api.call(&endpoints::EXPORT, &at.path_parts());
    if path.as_os_str() == STDIN {
        if is_terminal() {
            return Err(CliFailure::local(
                "A database is nothing for a terminal: name a file by `--output`, or lead standard output to one.",
            ));
        }
        let begin = |_| Ok(());
        copy.send_and_stream(MAX_EXPORT_BYTES, begin, |(), part| print_part(part))
            .await?;
        return Ok(());
    }
    let (folder, name) = DirectoryHandle::open_parent(&path)?;
    // Checked before the request, and again when the copy is complete.
    if folder.exists(&name)? && !force {
        return Err(CliFailure::local(format!(
            "{} is there already: `--force` replaces it.",
            path.display()
        )));
    }
    let failed = |error: std::io::Error| CliFailure::file_system("Writing", &path, &error);
    // An incomplete copy never gets the final name.
    let begin = |announced| {
        let draft = folder.create_temporary(&name, PRIVATE_MODE)?;
        Ok((draft, TerminalProgressBar::bytes("export", announced)))
    };
    let take = |(draft, bar): &mut (TemporaryFile, TerminalProgressBar), part: &[u8]| {
        bar.add(part.len());
        draft.file.write_all(part).map_err(failed)
    };
    let ((draft, bar), bytes) = copy.send_and_stream(MAX_EXPORT_BYTES, begin, take).await?;
    drop(bar);
    draft.file.sync_all().map_err(failed)?;
    draft.persist(force)?;
    let document = json!({ "file": path.display().to_string(), "bytes": bytes });
    args.output()
        .print_answer(&document, &pretty_escaped_json(&document["file"]))
}
