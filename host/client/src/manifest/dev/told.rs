//! Errors of a folder, each told once, and that they are mended.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;

use crate::error::{CliFailure, FailureLine};
use crate::output::{OutputFormat, escape_line, print_error};
use crate::report_failure;

/// Errors that were told, until they are mended.
#[derive(Debug, Default)]
pub(super) struct ToldErrors {
    /// Lines of the latest failure.
    latest: Vec<FailureLine>,
    /// Files in which something was wrong since the folder was last applied.
    files: BTreeSet<PathBuf>,
}

impl ToldErrors {
    /// Tells of a failure, unless it is the latest one still.
    pub(super) fn tell(&mut self, failure: &CliFailure, out: OutputFormat) {
        let Some(lines) = self.note(failure) else {
            return;
        };
        match out.json {
            true => report_failure(true, failure),
            false => lines.iter().for_each(|line| print_error(&line.text)),
        }
    }

    /// Tells which files were mended, after the folder was applied.
    pub(super) fn tell_mended(&mut self, out: OutputFormat) {
        let files = self.take_mended();
        for file in &files {
            out.print_note(&format!("mended: {file}"));
        }
        if out.json && !files.is_empty() {
            print_error(&json!({ "mended": files }).to_string());
        }
    }

    /// Notes a failure; returns its lines if it is another than the latest.
    fn note(&mut self, failure: &CliFailure) -> Option<&[FailureLine]> {
        let lines = failure.lines();
        self.files
            .extend(lines.iter().filter_map(|line| line.file.clone()));
        if lines == self.latest {
            return None;
        }
        self.latest = lines;
        Some(&self.latest)
    }

    fn take_mended(&mut self) -> Vec<String> {
        self.latest.clear();
        let files = std::mem::take(&mut self.files).into_iter();
        files
            .map(|file| escape_line(&file.display().to_string()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn an_error_is_told_once_and_what_was_wrong_is_mended_once() {
        let wrong = |file: &str, detail: &str| CliFailure::local(detail).with_file(Path::new(file));
        let mut told = ToldErrors::default();
        let mut is_told = |failure: &CliFailure| told.note(failure).is_some();
        assert!(is_told(&wrong("a.sql", "No.")));
        assert!(!is_told(&wrong("a.sql", "No.")));
        assert!(is_told(&wrong("a.sql", "Still no.")));
        assert!(is_told(&wrong("b.sql", "No.")));
        // It is wrong again.
        assert!(is_told(&wrong("a.sql", "Still no.")));
        assert!(is_told(&CliFailure::local("No answer.")));
        assert_eq!(told.take_mended(), ["a.sql", "b.sql"]);
        assert!(told.take_mended().is_empty());
        assert!(told.note(&wrong("a.sql", "Still no.")).is_some());
    }
}
