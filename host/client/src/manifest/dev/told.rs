//! Errors of a folder, each told once, and that they are mended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::error::{CliFailure, FailureLine};
use crate::output::{OutputFormat, escape_line, print_error};
use crate::report_failure;

/// Errors that were told, until they are mended.
#[derive(Debug, Default)]
pub(super) struct ToldErrors {
    /// Errors of files.
    files: BTreeMap<PathBuf, ToldError>,
    /// Lines of the latest failure that is about no file.
    others: Vec<String>,
}

/// Error of a file.
#[derive(Debug)]
struct ToldError {
    text: String,
    /// Whether the failure listed all actions that are wrong.
    is_listed: bool,
}

impl ToldErrors {
    /// Tells of the errors that were not told yet, and which files a list does not have any more.
    pub(super) fn tell(&mut self, failure: &CliFailure, out: OutputFormat) {
        let (lines, mended) = self.note(failure);
        print_mended(&mended, out);
        match out.json {
            true if !lines.is_empty() => report_failure(true, failure),
            true => {}
            false => lines.iter().for_each(|line| print_error(line)),
        }
    }

    /// Tells which files were mended, after the folder was applied.
    pub(super) fn tell_mended(&mut self, out: OutputFormat) {
        let files = self.take_mended();
        print_mended(&files, out);
    }

    /// Notes a failure; returns the lines that were not told yet, and the files that are mended.
    fn note(&mut self, failure: &CliFailure) -> (Vec<String>, Vec<String>) {
        let lines = failure.lines();
        let is_listed = failure.is_whole_list();
        let is_named = |file: &PathBuf| lines.iter().any(|line| line.file.as_ref() == Some(file));
        // Any other failure may hide what else is wrong.
        let is_mended =
            |file: &PathBuf, told: &mut ToldError| is_listed && told.is_listed && !is_named(file);
        let gone = self.files.extract_if(.., is_mended);
        let mended = gone.map(|(file, _)| shown(&file)).collect();
        let (mut new, mut others) = (Vec::new(), Vec::new());
        for FailureLine { file, text } in lines {
            let is_told = match file {
                None => {
                    others.push(text.clone());
                    self.others.contains(&text)
                }
                Some(file) => {
                    let told = ToldError {
                        text: text.clone(),
                        is_listed,
                    };
                    let before = self.files.insert(file, told);
                    before.is_some_and(|before| before.text == text)
                }
            };
            if !is_told {
                new.push(text);
            }
        }
        self.others = others;
        (new, mended)
    }

    fn take_mended(&mut self) -> Vec<String> {
        self.others.clear();
        let files = std::mem::take(&mut self.files).into_keys();
        files.map(|file| shown(&file)).collect()
    }
}

fn shown(file: &Path) -> String {
    escape_line(&file.display().to_string())
}

fn print_mended(files: &[String], out: OutputFormat) {
    for file in files {
        out.print_note(&format!("mended: {file}"));
    }
    if out.json && !files.is_empty() {
        print_error(&json!({ "mended": files }).to_string());
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::Value;

    use super::*;

    fn wrong(file: &str, detail: &str) -> CliFailure {
        CliFailure::local(detail).with_file(Path::new(file))
    }

    /// Refusal of a list of actions.
    fn list(errors: &[(&str, &str)]) -> CliFailure {
        let errors = errors.iter();
        let entries: Vec<_> = errors
            .clone()
            .map(|(name, detail)| json!({ "name": name, "detail": detail }))
            .collect();
        let Value::Object(problem) = json!({ "title": "Statement refused", "errors": entries })
        else {
            panic!("no object");
        };
        let files =
            errors.map(|(name, _)| ((*name).to_owned(), PathBuf::from(format!("{name}.sql"))));
        CliFailure::from_problem(StatusCode::BAD_REQUEST, problem).with_files(files)
    }

    #[test]
    fn an_error_is_told_once_and_what_was_wrong_is_mended_once() {
        let mut told = ToldErrors::default();
        let mut is_told = |failure: &CliFailure| !told.note(failure).0.is_empty();
        assert!(is_told(&wrong("a.sql", "No.")));
        assert!(!is_told(&wrong("a.sql", "No.")));
        assert!(is_told(&wrong("a.sql", "Still no.")));
        assert!(is_told(&wrong("b.sql", "No.")));
        // The other error has hidden it meanwhile.
        assert!(!is_told(&wrong("a.sql", "Still no.")));
        assert!(is_told(&CliFailure::local("No answer.")));
        assert!(!is_told(&CliFailure::local("No answer.")));
        assert_eq!(told.take_mended(), ["a.sql", "b.sql"]);
        assert!(told.take_mended().is_empty());
        assert!(!told.note(&wrong("a.sql", "Still no.")).0.is_empty());
    }

    #[test]
    fn a_list_tells_what_is_new_and_what_has_left_it() {
        let mut told = ToldErrors::default();
        let none: [&str; 0] = [];
        let both = [("e1", "No."), ("e2", "No.")];
        for (failure, new, mended) in [
            (list(&both), &["e1.sql: No.", "e2.sql: No."][..], &none[..]),
            (list(&both[1..]), &[], &["e1.sql"]),
            (wrong("svc.toml", "No."), &["svc.toml: No."], &[]),
            // What a list does not have was hidden before.
            (list(&both[1..]), &[], &[]),
            (list(&both), &["e1.sql: No."], &[]),
            (
                list(&[("e3", "No.")]),
                &["e3.sql: No."],
                &["e1.sql", "e2.sql"],
            ),
        ] {
            let found = told.note(&failure);
            let expected = [new, mended].map(|list| {
                list.iter()
                    .map(|text| (*text).to_owned())
                    .collect::<Vec<_>>()
            });
            assert_eq!([found.0, found.1], expected, "{failure:?}");
        }
        assert_eq!(told.take_mended(), ["e3.sql", "svc.toml"]);
    }
}
