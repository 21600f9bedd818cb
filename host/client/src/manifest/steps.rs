//! Steps of a plan, and the lines that describe them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::release::ReleasePart;
use crate::output::{escape_excerpt, escape_line, server_note};

/// Most characters of a name and of a file in a line for people.
const MAX_SHOWN_CHARACTERS: usize = 200;

/// A change on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlanStep {
    /// Makes the project.
    CreateProject,
    /// Releases these parts, with the slug of the home page where it changes.
    Release {
        parts: Vec<ReleasePart>,
        home: Option<String>,
    },
    /// Opens or closes the rooms.
    SwitchRooms(bool),
    /// Offers the actions to agents as tools, or stops that.
    SwitchTools(bool),
    /// Puts the price of this index on sale, in the place of the one with this id.
    AddPrice {
        price: usize,
        replaces: Option<String>,
    },
    /// Adds the domain of this name.
    AddDomain(String),
    /// Takes the price with this id off the catalog.
    WithdrawPrice(String),
    /// Changes the project's description or home.
    UpdateProject {
        description: Option<String>,
        home: Option<String>,
    },
}

impl PlanStep {
    /// Name of the fault point after the step, at which tests end the process.
    pub(super) fn fault_point(&self) -> &'static str {
        match self {
            Self::CreateProject => "apply.project",
            Self::Release { .. } => "apply.released",
            Self::SwitchRooms(_) => "apply.rooms",
            Self::SwitchTools(_) => "apply.tools",
            Self::AddPrice { .. } | Self::WithdrawPrice(_) => "apply.price",
            Self::AddDomain(_) => "apply.domain",
            Self::UpdateProject { .. } => "apply.about",
        }
    }
}

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Create,
    Update,
    Remove,
    /// Nothing is changed; the line says why.
    Keep,
}

impl Change {
    /// Change of a part that is new, or is there.
    pub(super) fn of(is_new: bool) -> Self {
        if is_new { Self::Create } else { Self::Update }
    }

    /// Name for programs, and sign for people.
    fn names(self) -> (&'static str, char) {
        match self {
            Self::Create => ("create", '+'),
            Self::Update => ("update", '~'),
            Self::Remove => ("remove", '-'),
            Self::Keep => ("keep", '='),
        }
    }
}

/// Description of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlanStepDescription {
    change: Change,
    kind: &'static str,
    name: String,
    details: Vec<String>,
    /// Path of the file that is sent.
    file: Option<PathBuf>,
}

impl PlanStepDescription {
    pub(super) fn new(change: Change, kind: &'static str, name: &str) -> Self {
        Self {
            change,
            kind,
            name: name.to_owned(),
            details: Vec::new(),
            file: None,
        }
    }

    /// Adds how much changes, or why nothing does.
    #[must_use]
    pub(super) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }

    /// Adds the file that is sent, so that nobody publishes one unseen.
    #[must_use]
    pub(super) fn with_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// Adds a detail to the line of a part, before the others.
    pub(super) fn add_first(&mut self, detail: String) {
        self.details.insert(0, detail);
    }

    /// Whether the line is about this part.
    pub(super) fn is_about(&self, kind: &str, name: &str) -> bool {
        self.kind == kind && self.name == name
    }

    /// Whether the line is about this file.
    pub(super) fn is_for(&self, file: &Path) -> bool {
        self.file.as_deref() == Some(file)
    }

    /// Renames the part, with the reason.
    pub(super) fn rename(&mut self, name: &str, detail: String) {
        self.name = name.to_owned();
        if self.details.last() != Some(&detail) {
            self.details.push(detail);
        }
    }

    /// Whether something changes.
    pub(super) fn is_change(&self) -> bool {
        self.change != Change::Keep
    }

    /// Whether something ends that cannot be put back.
    pub(super) fn is_end(&self) -> bool {
        self.change == Change::Remove
    }

    /// Formats the change for people, as one line of bounded length.
    pub(super) fn to_text(&self) -> String {
        let (_, sign) = self.change.names();
        let name = escape_excerpt(&self.name, MAX_SHOWN_CHARACTERS);
        let detail = match self.details[..] {
            [] => String::new(),
            _ => format!(" ({})", server_note(&self.details.join(", "))),
        };
        let file = self.file.as_ref().map_or_else(String::new, |file| {
            format!(": {}", shorten_path(&file.display().to_string()))
        });
        format!("{sign} {:9} {name}{detail}{file}", self.kind)
    }

    /// Formats the change for programs.
    pub(super) fn to_json(&self) -> Value {
        let (change, _) = self.change.names();
        let mut document = json!({ "change": change, "kind": self.kind, "name": self.name });
        if !self.is_change() {
            document["detail"] = self.details.join(", ").into();
        }
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
        let line =
            PlanStepDescription::new(Change::Create, "page", "a\nb").with_file(Path::new(&long));
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
