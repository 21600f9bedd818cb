//! Questions before a change. Each names the server, the workspace, the project and the environment that the change is about.

use std::io::Write as _;

use super::api::ApiClient;
use super::error::{CliFailure, FailureExitCode, Result};
use super::output::{OutputFormat, escape_line};
use super::projects::RemoteProject;

/// A change that a command asks about.
#[derive(Clone, Debug)]
pub(super) struct ChangeQuestion<'a> {
    /// The change in the imperative, such as `Delete the database`.
    pub(super) change: &'a str,
    /// Address of the server.
    pub(super) server: &'a str,
    /// Slug of the workspace, where it is known.
    pub(super) workspace: Option<&'a str>,
    /// Name of the project.
    pub(super) project: &'a str,
    /// Environment of the folder, where one was chosen.
    pub(super) environment: Option<&'a str>,
}

impl<'a> ChangeQuestion<'a> {
    /// Question about a change of a project that is on the server.
    pub(super) fn about(api: &'a ApiClient, project: &'a RemoteProject, change: &'a str) -> Self {
        let workspace = project.workspace.as_ref();
        Self {
            change,
            server: api.server_address(),
            workspace: workspace.map(|workspace| workspace.slug.as_str()),
            project: &project.name,
            environment: api.environment(),
        }
    }

    /// Text of the question.
    fn text(&self) -> String {
        let names = [
            ("project", Some(self.project)),
            ("workspace", self.workspace),
            ("environment", self.environment),
        ];
        let names = names
            .into_iter()
            .filter_map(|(kind, name)| name.map(|name| format!("{kind} `{name}`")));
        let names: Vec<_> = names.chain([format!("server {}", self.server)]).collect();
        format!("{}? ({})", self.change, names.join(", "))
    }

    /// Asks for confirmation, unless `--yes` was given.
    ///
    /// # Errors
    /// When the answer is not yes, or there is nobody to ask.
    pub(super) fn confirm(&self, out: OutputFormat, yes: bool) -> Result<()> {
        if yes {
            return Ok(());
        }
        let not_done = |detail: &str| {
            Err(CliFailure::new(
                FailureExitCode::Planned,
                "Nothing was changed",
                detail,
            ))
        };
        if !out.is_interactive() {
            return not_done("`--yes` does it without asking.");
        }
        match ask_yes_no(&self.text()) {
            true => Ok(()),
            false => not_done("You said no."),
        }
    }
}

/// Asks a question at the terminal; anything but yes means no.
pub(super) fn ask_yes_no(question: &str) -> bool {
    let mut terminal = std::io::stderr();
    let shown = write!(terminal, "{} [y/N] ", escape_line(question));
    let mut answer = String::new();
    let read = shown
        .and_then(|()| terminal.flush())
        .and_then(|()| std::io::stdin().read_line(&mut answer));
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_everything() {
        let mut question = ChangeQuestion {
            change: "Delete the database",
            server: "https://svc.example",
            workspace: Some("acme"),
            project: "Web shop",
            environment: Some("staging"),
        };
        assert_eq!(
            question.text(),
            "Delete the database? (project `Web shop`, workspace `acme`, environment `staging`, server https://svc.example)"
        );
        (question.workspace, question.environment) = (None, None);
        assert_eq!(
            question.text(),
            "Delete the database? (project `Web shop`, server https://svc.example)"
        );
    }
}
