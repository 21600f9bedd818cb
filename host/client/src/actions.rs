//! `svc action …`: the statements that visitors may call.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::backends::{BackendTargetArgs, ProjectHandle, dry_run_text, read_script};
use super::error::{CliFailure, FailureExitCode, Result};
use super::output::{key_values, member_text, table_of};
use super::params::parse_params;
use super::{endpoints, result_table};

/// Lists, defines and calls actions.
#[derive(Debug, clap::Subcommand)]
pub enum ActionCommand {
    /// List the actions of a project
    List {
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Show an action with its statement
    Show {
        /// Name of the action
        name: String,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Define actions from files that are called as they are, all or none
    Define {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Only show what would become of them
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Call an action as a visitor does
    Call {
        /// Name of the action
        name: String,
        /// Params of the call: `name=text`, or `name:=JSON` for numbers and null
        params: Vec<String>,
        /// The page to call it through [default: any of the project]
        #[arg(long, value_name = "SLUG")]
        page: Option<String>,
        /// Call it as this signed-in visitor, whose id is `:svc_user_id` [default: as nobody]
        #[arg(long = "as", value_name = "USER_ID")]
        visitor: Option<String>,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
}

/// An action in a file.
#[derive(Clone, Debug)]
pub(super) struct ActionFile {
    pub(super) name: String,
    pub(super) sql: String,
    /// Path of the file for messages.
    pub(super) path: PathBuf,
}

impl ActionFile {
    /// Reads an action from a file, which is named like the action.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn read(path: &Path) -> Result<Self> {
        Ok(Self::new(path, read_script(path)?))
    }

    /// Builds an action from the text of a file.
    pub(super) fn new(path: &Path, sql: String) -> Self {
        let stem = path.file_stem().unwrap_or_default();
        Self {
            name: stem.to_string_lossy().into_owned(),
            sql,
            path: path.to_owned(),
        }
    }

    /// Adds the files of actions to a failure.
    pub(super) fn with_action_files<'a>(
        failure: CliFailure,
        files: impl IntoIterator<Item = &'a Self>,
    ) -> CliFailure {
        let files = files.into_iter();
        failure.with_files(files.map(|file| (file.name.clone(), file.path.clone())))
    }

    /// Body to define the action with. A comment in the first line is its note.
    pub(super) fn to_json(&self) -> Value {
        let first = self.sql.lines().next().unwrap_or_default();
        let note = first.trim_start().strip_prefix("--").map(str::trim);
        let mut body = json!({ "name": self.name, "sql": self.sql });
        if let Some(note) = note.filter(|note| !note.is_empty()) {
            body["note"] = note.into();
        }
        body
    }
}

impl ActionCommand {
    pub(super) async fn run(self) -> Result<()> {
        match self {
            Self::List { args } => {
                let at = args.find().await?;
                let actions = fetch_actions(&at).await?;
                let text = table_of(&actions, &["name", "version", "kind", "params", "note"]);
                args.output()
                    .print_answer(&json!({ "actions": actions }), &text)
            }
            Self::Show { name, args } => {
                let at = args.find().await?;
                let actions = fetch_actions(&at).await?;
                let mut known = actions.as_array().into_iter().flatten();
                let action = known.find(|action| action["name"] == name.as_str()).ok_or_else(|| {
                    let detail = format!("`{}` has no action `{name}`: `svc action list` has those that there are.", at.project.name);
                    CliFailure::new(FailureExitCode::NotFound, "No such action", detail)
                })?;
                let names = [
                    "name",
                    "version",
                    "kind",
                    "params",
                    "requires_identity",
                    "note",
                    "created_at",
                ];
                let head = key_values(&names.map(|name| (name, member_text(action, name))));
                args.output()
                    .print_answer(action, &format!("{head}\n\n{}", member_text(action, "sql")))
            }
            Self::Define {
                files,
                dry_run,
                args,
            } => define(&files, dry_run, &args).await,
            Self::Call {
                name,
                params: given,
                page,
                visitor,
                args,
            } => {
                let params = parse_params(&given)?;
                let at = args.find().await?;
                let page = at.page(page).await?;
                let asked = at.api.call(&endpoints::OP, &[&page]);
                // Visitors have no credential; only an owner calls as one of them.
                let asked = match visitor {
                    Some(_) => asked,
                    None => asked.bearer(None),
                };
                let visitor = visitor.map(|id| json!({ "user_id": id }));
                let body = json!({ "action": name, "params": params, "as": visitor });
                let result = asked.body(body).send().await?;
                result_table::print(args.output(), &result)
            }
        }
    }
}

async fn fetch_actions(at: &ProjectHandle) -> Result<Value> {
    let mut detail = at
        .api
        .call(&endpoints::BACKEND, &at.path_parts())
        .send()
        .await?;
    Ok(detail["actions"].take())
}

async fn define(files: &[PathBuf], dry_run: bool, args: &BackendTargetArgs) -> Result<()> {
    let files = files.iter().map(|file| ActionFile::read(file));
    let files = files.collect::<Result<Vec<_>>>()?;
    let at = args.find().await?;
    let actions: Vec<_> = files.iter().map(ActionFile::to_json).collect();
    let asked = at.api.call(&endpoints::DEFINE_ACTIONS, &at.path_parts());
    let asked = asked.query("dry_run", dry_run.then_some(true));
    let done = asked.body(json!({ "actions": actions })).send().await;
    let done = done.map_err(|failure| ActionFile::with_action_files(failure, &files))?;
    let text = match dry_run {
        true => dry_run_text(&done),
        false => table_of(&done["actions"], &["name", "version", "kind", "params"]),
    };
    args.output().print_answer(&done, &text)
}
