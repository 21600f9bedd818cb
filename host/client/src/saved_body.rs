//! Answers that are saved as a file, or led to standard output.

use std::io::Write as _;
use std::path::Path;

use serde_json::json;

use super::api::ApiRequestBuilder;
use super::error::{CliFailure, Result};
use super::files::{DirectoryHandle, PRIVATE_MODE, TemporaryFile};
use super::output::{OutputFormat, is_terminal, pretty_escaped_json, print_part};
use super::progress::TerminalProgressBar;
use super::responses::MAX_EXPORT_BYTES;
use super::source::STDIN;

/// Place of an answer that is saved.
#[derive(Debug)]
pub(super) struct SavePlace<'a> {
    /// Path of the file; `-` is standard output.
    pub(super) path: &'a Path,
    /// Whether a file that is there is replaced.
    pub(super) force: bool,
    /// Name of the work beside its progress.
    pub(super) work: &'static str,
}

impl SavePlace<'_> {
    /// Sends a request, and saves the bytes of the answer.
    ///
    /// # Errors
    /// When the file is there, or cannot be written, and those of the request.
    pub(super) async fn save(
        self,
        call: ApiRequestBuilder<'_>,
        output: OutputFormat,
    ) -> Result<()> {
        let Self { path, force, work } = self;
        if path.as_os_str() == STDIN {
            if is_terminal() {
                return Err(CliFailure::local(
                    "Such bytes are nothing for a terminal: name a file by `--output`, or lead standard output to one.",
                ));
            }
            let begin = |_| Ok(());
            call.send_and_stream(MAX_EXPORT_BYTES, begin, |(), part| print_part(part))
                .await?;
            return Ok(());
        }
        let (folder, name) = DirectoryHandle::open_parent(path)?;
        // Checked before the request, and again when the bytes are complete.
        if folder.exists(&name)? && !force {
            return Err(CliFailure::local(format!(
                "{} is there already: `--force` replaces it.",
                path.display()
            )));
        }
        let failed = |error: std::io::Error| CliFailure::file_system("Writing", path, &error);
        // An incomplete file never gets the final name.
        let begin = |announced| {
            let draft = folder.create_temporary(&name, PRIVATE_MODE)?;
            Ok((draft, TerminalProgressBar::bytes(work, announced)))
        };
        let take = |(draft, bar): &mut (TemporaryFile, TerminalProgressBar), part: &[u8]| {
            bar.add(part.len());
            draft.file.write_all(part).map_err(failed)
        };
        let ((draft, bar), bytes) = call.send_and_stream(MAX_EXPORT_BYTES, begin, take).await?;
        drop(bar);
        draft.file.sync_all().map_err(failed)?;
        draft.persist(force)?;
        let document = json!({ "file": path.display().to_string(), "bytes": bytes });
        output.print_answer(&document, &pretty_escaped_json(&document["file"]))
    }
}
