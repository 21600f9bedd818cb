//! Steps of a plan, and the lines that describe them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::output::{escape_excerpt, escape_line};

/// Most characters of a name and of a file in a line for people.
const MAX_SHOWN_CHARACTERS: usize = 200;

/// A change on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlanStep {
    /// Makes the project.
    CreateProject,
    /// Makes the backend from the first migration.
    CreateBackend,
    /// Applies the migration of this index.
    Migrate(usize),
    /// Defines the actions of these indexes.
    DefineActions(Vec<usize>),
    /// Opens or closes the rooms.
    SwitchRooms(bool),
    /// Offers the actions to agents as tools, or stops that.
    SwitchTools(bool),
    /// Makes the page of this index.
    CreatePage(usize),
    /// Changes the page of this index. It has this slug and this live source on the server.
    ChangePage {
        page: usize,
        slug: String,
        live: Option<String>,
    },
    /// Changes the project's description or home.
    UpdateProject,
}

impl PlanStep {
    /// Name of the fault point after the step, at which tests end the process.
    pub(super) fn fault_point(&self) -> &'static str {
        match self {
            Self::CreateProject => "apply.project",
            Self::CreateBackend => "apply.backend",
            Self::Migrate(_) => "apply.migration",
            Self::DefineActions(_) => "apply.actions",
            Self::SwitchRooms(_) => "apply.rooms",
            Self::SwitchTools(_) => "apply.tools",
            Self::CreatePage(_) => "apply.page",
            Self::ChangePage { .. } => "apply.change",
            Self::UpdateProject => "apply.about",
        }
    }
}

/// Description of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlanStepDescription {
    is_new: bool,
    kind: &'static str,
    name: String,
    detail: String,
    /// Path of the file that is sent.
    file: Option<PathBuf>,
}

impl PlanStepDescription {
    pub(super) fn new(is_new: bool, kind: &'static str, name: &str) -> Self {
        Self {
            is_new,
            kind,
            name: name.to_owned(),
            detail: String::new(),
            file: None,
        }
    }

    /// Adds how much changes.
    #[must_use]
    pub(super) fn with_detail(mut self, detail: String) -> Self {
        self.detail = detail;
        self
    }

    /// Adds the file that is sent, so that nobody publishes one unseen.
    #[must_use]
    pub(super) fn with_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// Formats the change for people, as one line of bounded length.
    pub(super) fn to_text(&self) -> String {
        let sign = if self.is_new { '+' } else { '~' };
        let name = escape_excerpt(&self.name, MAX_SHOWN_CHARACTERS);
        let detail = match self.detail.as_str() {
            "" => String::new(),
            detail => format!(" ({detail})"),
        };
        let file = self.file.as_ref().map_or_else(String::new, |file| {
            format!(": {}", shorten_path(&file.display().to_string()))
        });
        format!("{sign} {:9} {name}{detail}{file}", self.kind)
    }

    /// Formats the change for programs.
    pub(super) fn to_json(&self) -> Value {
        let change = if self.is_new { "create" } else { "update" };
        let mut document = json!({ "change": change, "kind": self.kind, "name": self.name });
        if let Some(file) = &self.file {
            document["file"] = file.display().to_string().into();
        }
        document
    }
}

/// Formats a path as one line of bounded length. It is shortened in the middle: the end says most of what is sent.
fn shorten_path(path: &str) -> String {
    const HEAD: usize = MAX_SHOWN_CHARACTERS / 4;
    let length = path.chars().count();
    if length <= MAX_SHOWN_CHARACTERS {
        return escape_line(path);
    }
    let head = path.chars().take(HEAD);
    let tail = path.chars().skip(length - (MAX_SHOWN_CHARACTERS - HEAD));
    let short: String = head.chain(['…']).chain(tail).collect();
    escape_line(&short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_bounded_and_steers_no_terminal() {
        let long = format!("a/\u{1b}[2J{}.md", "b".repeat(1000));
        let line = PlanStepDescription::new(true, "page", "a\nb").with_file(Path::new(&long));
        let text = line.to_text();
        assert!(
            text.starts_with("+ page      a\\nb: a/\\u{1b}[2Jbbb"),
            "{text}"
        );
        assert!(text.ends_with("bb.md") && text.len() < 300, "{text}");
        assert!(text.contains("b…b"), "{text}");
        assert_eq!(line.to_json()["file"], long);
    }
}
