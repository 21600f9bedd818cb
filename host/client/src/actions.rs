//! `svc action …`: the statements that visitors may call.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::backends::{BackendTargetArgs, ProjectHandle, dry_run_text, read_script};
use super::error::{CliFailure, FailureExitCode, Result};
use super::file_rules::{self, FileRules};
use super::output::{key_values, member_text, quote_shell_word, table_of};
use super::params::parse_params;
use super::{endpoints, result_table};

/// Default number of listed versions.
const DEFAULT_LIMIT: u32 = 20;
/// Beginning of a comment that gives a bind a default.
const DEFAULT_WORD: &str = "default";

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
    /// List the versions of an action, newest first
    Versions {
        /// Name of the action
        name: String,
        /// How many
        #[arg(long, default_value_t = DEFAULT_LIMIT)]
        limit: u32,
        /// `next_cursor` of the answer before
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Make an earlier version of an action the newest one again
    Rollback {
        /// Name of the action
        name: String,
        /// Number of the earlier version
        #[arg(value_name = "VERSION")]
        number: u64,
        /// Version that you believe the action has: if it has another, nothing happens
        #[arg(long, value_name = "VERSION")]
        expected_version: Option<u64>,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Delete an action with its versions
    Delete {
        /// Name of the action
        name: String,
        /// Version that you believe the action has: if it has another, nothing happens
        #[arg(long, value_name = "VERSION")]
        expected_version: Option<u64>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
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
    /// Values of binds that a call may leave out.
    pub(super) defaults: Map<String, Value>,
    /// Rules for visitors' files, of an action that takes or gives them.
    pub(super) files: FileRules,
    /// Path of the file for messages.
    pub(super) path: PathBuf,
}

impl ActionFile {
    /// Reads an action from a file, which is named like the action.
    ///
    /// # Errors
    /// When it cannot be read, or a default or rules for files in it are wrong.
    pub(super) fn read(path: &Path) -> Result<Self> {
        Self::new(path, read_script(path)?)
    }

    /// Builds an action from the text of a file.
    ///
    /// # Errors
    /// When a default or rules for files in it are wrong; names the line.
    pub(super) fn new(path: &Path, sql: String) -> Result<Self> {
        let stem = path.file_stem().unwrap_or_default();
        Ok(Self {
            name: stem.to_string_lossy().into_owned(),
            defaults: read_defaults(path, &sql)?,
            files: file_rules::read_rules(path, &sql)?,
            sql,
            path: path.to_owned(),
        })
    }

    /// Adds the files of actions to a failure.
    pub(super) fn with_action_files<'a>(
        failure: CliFailure,
        files: impl IntoIterator<Item = &'a Self>,
    ) -> CliFailure {
        let files = files.into_iter();
        failure.with_files(files.map(|file| (file.name.clone(), file.path.clone())))
    }

    /// Body to define the action with. A comment in the first line is its note, unless it gives a default or rules for files.
    pub(super) fn to_json(&self) -> Value {
        let first = self.sql.lines().next().unwrap_or_default();
        let note = comment_of(first).filter(|note| !is_definition(note));
        let mut body = json!({ "name": self.name, "sql": self.sql });
        if let Some(note) = note.filter(|note| !note.is_empty()) {
            body["note"] = note.into();
        }
        if !self.defaults.is_empty() {
            body["defaults"] = self.defaults.clone().into();
        }
        if !self.files.is_empty() {
            body["files"] = self.files.clone().into();
        }
        body
    }
}

/// Text of the file of an action that a server has: its statement, with lines for defaults and rules that were defined beside it.
pub(super) fn file_text(sql: &str, defaults: &Map<String, Value>, files: &FileRules) -> String {
    let path = Path::new("");
    let has_defaults = read_defaults(path, sql).is_ok_and(|written| written == *defaults);
    let rules = file_rules::plain(files);
    let has_rules =
        file_rules::read_rules(path, sql).is_ok_and(|written| file_rules::plain(&written) == rules);
    if has_defaults && has_rules {
        return sql.to_owned();
    }
    let lines = defaults.iter();
    let lines = lines.map(|(name, value)| format!("-- {DEFAULT_WORD} {name} = {value}\n"));
    let rest = sql.split_inclusive('\n');
    let rest = rest.filter(|line| !comment_of(line).is_some_and(is_definition));
    let lines = lines.chain(file_rules::line_of(&rules));
    lines.chain(rest.map(str::to_owned)).collect()
}

/// Whether a comment defines something beside the statement.
fn is_definition(comment: &str) -> bool {
    default_of(comment).is_some() || file_rules::rules_of(comment).is_some()
}

/// Reads the defaults before a statement: lines such as `-- default most = 5`, with a JSON value.
fn read_defaults(path: &Path, sql: &str) -> Result<Map<String, Value>> {
    let mut defaults = Map::new();
    let mut is_before_statement = true;
    let mut offset = 0;
    for line in sql.split_inclusive('\n') {
        let begin = offset;
        offset += line.len();
        let line = line.trim_end_matches(['\r', '\n']);
        let wrong = |detail: String| {
            let place = begin + (line.len() - line.trim_start().len());
            Err(CliFailure::in_text("Not valid", detail, (path, sql), place))
        };
        let comment = comment_of(line);
        is_before_statement &= comment.is_some() || line.trim().is_empty();
        let Some((name, text)) = comment.and_then(default_of) else {
            continue;
        };
        if !is_before_statement {
            return wrong(format!(
                "The default of `{name}` stands after the statement's beginning: move the line before the statement."
            ));
        }
        let value = match parse_default(text) {
            Ok(value) => value,
            Err(why) => return wrong(format!("The default of `{name}` {why}.")),
        };
        if defaults.insert(name.to_owned(), value).is_some() {
            return wrong(format!(
                "`{name}` has a default already: remove one of them."
            ));
        }
    }
    Ok(defaults)
}

/// Returns the text of a line that is a comment.
pub(super) fn comment_of(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("--").map(str::trim)
}

/// Splits a comment that gives a default, such as `default most = 5`, into the bind and the value.
fn default_of(comment: &str) -> Option<(&str, &str)> {
    let (name, value) = comment.strip_prefix(DEFAULT_WORD)?.split_once('=')?;
    let is_apart = name.starts_with(char::is_whitespace);
    let name = name.trim();
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    (is_apart && is_name).then_some((name, value.trim()))
}

/// Parses the value of a default, which must not lose a digit on its way.
fn parse_default(text: &str) -> std::result::Result<Value, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        format!(
            "is not JSON: {error}. Write a number, null, true, false, or a text in double quotes"
        )
    })?;
    let is_integer = value.is_number() && !text.contains(['.', 'e', 'E']);
    if is_integer && text.parse::<i64>().is_err() {
        return Err("is an integer outside of 64 bits".to_owned());
    }
    Ok(value)
}

impl ActionCommand {
    pub(super) async fn run(self) -> Result<()> {
        match self {
            Self::List { args } => {
                let at = args.find().await?;
                let actions = fetch_actions(&at).await?;
                let members = [
                    "name", "version", "kind", "params", "defaults", "files", "note",
                ];
                let text = table_of(&actions, &members);
                args.output()
                    .print_answer(&json!({ "actions": actions }), &text)
            }
            Self::Show { name, args } => show(&name, &args).await,
            Self::Define {
                files,
                dry_run,
                args,
            } => define(&files, dry_run, &args).await,
            Self::Versions {
                name,
                limit,
                cursor,
                args,
            } => versions(&name, limit, cursor, &args).await,
            Self::Rollback {
                name,
                number,
                expected_version,
                args,
            } => roll_back(&name, number, expected_version, &args).await,
            Self::Delete {
                name,
                expected_version,
                yes,
                args,
            } => delete(&name, expected_version, yes, &args).await,
            Self::Call {
                name,
                params: given,
                page,
                visitor,
                args,
            } => call(&name, &given, (page, visitor), &args).await,
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

async fn show(name: &str, args: &BackendTargetArgs) -> Result<()> {
    let at = args.find().await?;
    let actions = fetch_actions(&at).await?;
    let mut known = actions.as_array().into_iter().flatten();
    let action = known.find(|action| action["name"] == name).ok_or_else(|| {
        let detail = format!(
            "`{}` has no action `{name}`: `svc action list` has those that there are.",
            at.project.name
        );
        CliFailure::new(FailureExitCode::NotFound, "No such action", detail)
    })?;
    let names = [
        "name",
        "version",
        "kind",
        "params",
        "defaults",
        "files",
        "requires_identity",
        "note",
        "created_at",
    ];
    let head = key_values(&names.map(|name| (name, member_text(action, name))));
    args.output()
        .print_answer(action, &format!("{head}\n\n{}", member_text(action, "sql")))
}

async fn roll_back(
    name: &str,
    version: u64,
    expected_version: Option<u64>,
    args: &BackendTargetArgs,
) -> Result<()> {
    let mut body = json!({ "version": version });
    if let Some(expected) = expected_version {
        body["expected_version"] = expected.into();
    }
    let at = args.find().await?;
    let path = [&*at.project.id, name];
    let asked = at.api.call(&endpoints::ROLLBACK_ACTION, &path);
    let action = asked.body(body).send().await?;
    let made = member_text(&action, "version");
    let text = format!("{name} is as in version {version}, and has version {made} now");
    args.output().print_answer(&action, &text)
}

async fn delete(
    name: &str,
    expected_version: Option<u64>,
    yes: bool,
    args: &BackendTargetArgs,
) -> Result<()> {
    let at = args.find().await?;
    let change = format!("Delete the action `{name}`");
    at.question(&change).confirm(args.output(), yes)?;
    let path = [&*at.project.id, name];
    let asked = at.api.call(&endpoints::DELETE_ACTION, &path);
    let asked = asked.query("expected_version", expected_version);
    asked.send().await?;
    let document = json!({ "action": name, "deleted": true });
    args.output()
        .print_answer(&document, &format!("deleted the action {name}"))
}

async fn call(
    name: &str,
    given: &[String],
    (page, visitor): (Option<String>, Option<String>),
    args: &BackendTargetArgs,
) -> Result<()> {
    let params = parse_params(given)?;
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
        false => {
            let members = ["name", "version", "kind", "params", "defaults"];
            table_of(&done["actions"], &members)
        }
    };
    args.output().print_answer(&done, &text)
}

async fn versions(
    name: &str,
    limit: u32,
    cursor: Option<String>,
    args: &BackendTargetArgs,
) -> Result<()> {
    let at = args.find().await?;
    let path = [&*at.project.id, name];
    let asked = at.api.call(&endpoints::ACTION_VERSIONS, &path);
    let asked = asked.query("limit", Some(limit)).query("cursor", cursor);
    let list = asked.send().await?;
    let members = ["version", "created_at", "defaults", "note"];
    if let Some(next) = list["next_cursor"].as_str() {
        let note = format!("There are more: --cursor {}", quote_shell_word(next));
        args.output().print_note(&note);
    }
    let text = table_of(&list["versions"], &members);
    args.output().print_answer(&list, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> std::result::Result<Value, String> {
        let file = ActionFile::new(Path::new("actions/recent.sql"), sql.to_owned());
        file.map(|file| file.to_json())
            .map_err(|failure| failure.to_text())
    }

    #[test]
    fn a_file_has_the_defaults_that_the_server_has() {
        let defaults = json!({ "most": 5 });
        let defaults = defaults.as_object().unwrap();
        for (sql, expected) in [
            (
                "-- default most = 5\nSELECT :most",
                "-- default most = 5\nSELECT :most",
            ),
            ("SELECT :most\n", "-- default most = 5\nSELECT :most\n"),
            (
                "-- The newest\n-- default most = 9\nSELECT :most",
                "-- default most = 5\n-- The newest\nSELECT :most",
            ),
        ] {
            let text = file_text(sql, defaults, &FileRules::new());
            assert_eq!(text, expected);
            let file = ActionFile::new(Path::new("recent.sql"), text).unwrap();
            assert_eq!(file.defaults, *defaults);
        }
        let nothing = Map::new();
        assert_eq!(file_text("SELECT 1", &nothing, &nothing), "SELECT 1");
    }

    #[test]
    fn a_file_has_the_rules_that_the_server_has() {
        let rules = json!({ "sizes": [64, 256] });
        let rules = rules.as_object().unwrap();
        for (sql, expected) in [
            (
                "-- files {\"sizes\": [256, 64]}\nSELECT :svc_file",
                "-- files {\"sizes\": [256, 64]}\nSELECT :svc_file",
            ),
            (
                "-- See\n-- files {}\nSELECT :svc_file",
                "-- files {\"sizes\":[64,256]}\n-- See\nSELECT :svc_file",
            ),
        ] {
            let text = file_text(sql, &Map::new(), rules);
            assert_eq!(text, expected);
            let body = read(&text).unwrap();
            assert!(body["files"]["sizes"].is_array());
            assert_eq!(body["note"], Value::Null);
        }
    }

    #[test]
    fn defaults_stand_before_the_statement() {
        for (sql, note, defaults) in [
            ("SELECT 1", Value::Null, Value::Null),
            ("-- The newest\nSELECT 1", json!("The newest"), Value::Null),
            (
                "-- The newest\n\n-- default most = 5\n  --default from=\"a = b\"\nSELECT :most, :from",
                json!("The newest"),
                json!({ "most": 5, "from": "a = b" }),
            ),
            (
                "-- default n = 9223372036854775807\r\n-- default r = 1.5\r\n-- default b = {\"base64\": \"AA==\"}\r\nSELECT 1",
                Value::Null,
                json!({ "n": i64::MAX, "r": 1.5, "b": { "base64": "AA==" } }),
            ),
            // Words that only begin like one.
            (
                "-- default is the newest\nSELECT 1",
                json!("default is the newest"),
                Value::Null,
            ),
            (
                "-- defaults n = 5\nSELECT 1",
                json!("defaults n = 5"),
                Value::Null,
            ),
            (
                "-- default sort order = name\nSELECT 1",
                json!("default sort order = name"),
                Value::Null,
            ),
        ] {
            let body = read(sql).unwrap();
            assert_eq!(
                (&body["note"], &body["defaults"]),
                (&note, &defaults),
                "{sql}"
            );
            assert_eq!(body["sql"], sql);
        }
    }

    #[test]
    fn a_wrong_default_is_told_with_its_line() {
        for (sql, says) in [
            (
                "-- default n = five\nSELECT :n",
                "error: actions/recent.sql:1:1: Not valid: The default of `n` is not JSON",
            ),
            (
                "\n  -- default n =\nSELECT :n",
                "actions/recent.sql:2:3: Not valid: The default of `n` is not JSON",
            ),
            (
                "-- default n = 1\n-- default n = 2\nSELECT :n",
                "recent.sql:2:1: Not valid: `n` has a default already",
            ),
            (
                "SELECT :n\n-- default n = 2",
                "recent.sql:2:1: Not valid: The default of `n` stands after",
            ),
            (
                "-- default n = 18446744073709551616\nSELECT :n",
                "outside of 64 bits",
            ),
        ] {
            let refused = read(sql).unwrap_err();
            assert!(refused.contains(says), "{sql}: {refused}");
        }
    }
}
