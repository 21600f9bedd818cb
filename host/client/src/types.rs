//! `svc types`: TypeScript declarations of a project's actions, by which the typings of a page's runtime check their calls.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::api::ApiClient;
use super::backends::{BackendTargetArgs, ProjectHandle};
use super::error::{CliFailure, FailureExitCode, Result};
use super::files::{DirectoryHandle, FileComparison};
use super::output::{escape_line, print_source, server_note};
use super::projects::RemoteProject;
use super::source::STDIN;
use super::{endpoints, report_failure, run_until_interrupt};
use svc_base::pluralize;
use svc_base::terminal;

/// Time between two looks at the actions.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The most bytes of the typings of the runtime.
const MAX_TYPINGS_BYTES: u64 = 1 << 20;
/// Beginning of the files that the command writes, by which it knows them.
const MARK: &str = "// Made by `svc types`";
/// Type of a value that a bind takes.
const PARAM_TYPE: &str = "type SvcParam = string | number | boolean | null | { base64: string };";
/// Type of a value of an unknown kind that is not NULL.
const ANY_VALUE: &str = "string | number | { base64: string }";

/// Writes TypeScript declarations of a project's actions.
#[derive(Debug, clap::Args)]
pub struct TypesCommand {
    /// Write them into a file in place of standard output, which `-` is
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a file that the command has not made
    #[arg(long, requires = "output")]
    force: bool,
    /// Go on, and write the file anew when the actions or the tables change
    #[arg(long, requires = "output")]
    watch: bool,
    /// Begin with the typings of the server's runtime, so that no other file is needed
    #[arg(long)]
    runtime: bool,
    #[command(flatten)]
    args: BackendTargetArgs,
}

/// File of declarations.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypesFile<'a> {
    pub(super) folder: &'a DirectoryHandle,
    /// Name of the file in its folder.
    pub(super) name: &'a Path,
    /// Whether it begins with the typings of the runtime.
    pub(super) has_runtime: bool,
    /// Whether a file that the command has not made is replaced.
    pub(super) replaces_others: bool,
}

/// Declarations of a project's actions.
#[derive(Debug)]
struct Declarations {
    text: String,
    actions: usize,
}

impl TypesCommand {
    pub(super) async fn run(self) -> Result<()> {
        let out = self.args.output();
        let at = self.args.find().await?;
        let is_file = |path: &&PathBuf| path.as_os_str() != STDIN;
        let Some(path) = self.output.as_ref().filter(is_file) else {
            if self.watch {
                return Err(CliFailure::local(
                    "`--watch` writes a file anew: name one by `--output`.",
                ));
            }
            let made = declare(&at.api, &at.project, self.runtime).await?;
            let document = json!({ "declarations": made.text, "actions": made.actions });
            return match out.json {
                true => out.print_answer(&document, ""),
                false => print_source(&made.text),
            };
        };
        let (folder, name) = DirectoryHandle::open_parent(path)?;
        let file = TypesFile {
            folder: &folder,
            name: &name,
            has_runtime: self.runtime,
            replaces_others: self.force,
        };
        let told = |actions: usize| {
            let document = json!({ "file": path.display().to_string(), "actions": actions });
            let text = format!("{}: {}", path.display(), pluralize(actions, "action"));
            out.print_answer(&document, &text)
        };
        let (actions, _) = write_types(&at.api, &at.project, file).await?;
        told(actions)?;
        if !self.watch {
            return Ok(());
        }
        run_until_interrupt(self.follow(&at, file, told), "The file stays as it is.").await
    }

    /// Writes the file anew whenever something changes.
    async fn follow(
        &self,
        at: &ProjectHandle,
        file: TypesFile<'_>,
        told: impl Fn(usize) -> Result<()>,
    ) -> Result<()> {
        let mut failed = String::new();
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            match write_types(&at.api, &at.project, file).await {
                Ok((actions, is_new)) => {
                    failed.clear();
                    if is_new {
                        told(actions)?;
                    }
                }
                Err(failure) if failure.exit == FailureExitCode::Credential => return Err(failure),
                // The server may be starting anew, and the backend be made again. One failure is told once.
                Err(failure) if failure.to_text() != failed => {
                    failed = failure.to_text();
                    report_failure(self.args.output().json, &failure);
                }
                Err(_) => {}
            }
        }
    }
}

/// Writes declarations of a project's actions; returns their number, and whether the file has changed.
///
/// # Errors
/// When the project has no backend, or the file is another's.
pub(super) async fn write_types(
    api: &ApiClient,
    project: &RemoteProject,
    file: TypesFile<'_>,
) -> Result<(usize, bool)> {
    let made = declare(api, project, file.has_runtime).await?;
    let bytes = made.text.as_bytes();
    let is_new = match file.folder.compare(file.name, bytes)? {
        FileComparison::Same => false,
        FileComparison::Missing => true,
        FileComparison::Different => {
            let old = file.folder.read(file.name)?;
            if !file.replaces_others && !old.starts_with(MARK.as_bytes()) {
                return Err(CliFailure::local(format!(
                    "{} is there already, and is not of `svc types`: `--force` replaces it.",
                    file.folder.display_path(file.name).display()
                )));
            }
            true
        }
    };
    if is_new {
        file.folder.write(file.name, bytes, true)?;
    }
    Ok((made.actions, is_new))
}

/// Declares the actions of a project.
async fn declare(
    api: &ApiClient,
    project: &RemoteProject,
    has_runtime: bool,
) -> Result<Declarations> {
    let listed = api.call(&endpoints::ACTIONS, &[&project.id]).send().await?;
    let actions = listed["actions"].as_array().map_or(&[][..], Vec::as_slice);
    let mut text = format!(
        "{MARK}: declarations of the actions of `{}`. Change the actions, not this file.\n",
        escape_line(&project.name)
    );
    if has_runtime {
        text.push('\n');
        text.push_str(fetch_typings(api).await?.trim_end());
        text.push('\n');
    }
    text.push_str(&declare_actions(actions));
    Ok(Declarations {
        text,
        actions: actions.len(),
    })
}

/// Reads the typings of the server's runtime.
async fn fetch_typings(api: &ApiClient) -> Result<String> {
    let asked = api.call(&endpoints::TYPINGS, &[]).bearer(None);
    let take = |bytes: &mut Vec<u8>, part: &[u8]| {
        bytes.extend_from_slice(part);
        Ok(())
    };
    let read = asked.send_and_stream(MAX_TYPINGS_BYTES, |_| Ok(Vec::new()), take);
    let (bytes, _) = read.await?;
    String::from_utf8(bytes).map_err(|_| {
        CliFailure::new(
            FailureExitCode::NoAnswer,
            "Not an answer",
            "The server answered with typings that are no text. Nothing was written.",
        )
    })
}

/// Declares the actions that the typings of the runtime look at.
fn declare_actions(actions: &[Value]) -> String {
    let mut text = format!("\n{PARAM_TYPE}\n\ninterface SvcActions {{\n");
    for action in actions {
        if let Some(note) = action["note"].as_str().filter(|note| !note.is_empty()) {
            // The end of a comment must not be in it.
            text.push_str(&format!(
                "  /** {} */\n",
                server_note(note).replace("*/", "*\\/")
            ));
        }
        text.push_str(&format!(
            "  {}: {{ params: {}; row: {} }};\n",
            property(action["name"].as_str().unwrap_or_default()),
            params_type(action),
            row_type(&action["columns"])
        ));
    }
    text.push_str("}\n");
    text
}

/// Type of the params of an action. Those with defaults may be left out.
fn params_type(action: &Value) -> String {
    let defaults = action["defaults"].as_object();
    let params = action["params"].as_array().into_iter().flatten();
    let params = params.filter_map(Value::as_str).map(|name| {
        let is_optional = defaults.is_some_and(|defaults| defaults.contains_key(name));
        format!(
            "{}{}: SvcParam",
            property(name),
            if is_optional { "?" } else { "" }
        )
    });
    object_type(&params.collect::<Vec<_>>())
}

/// Type of the rows of an action, by its columns; any row, where the columns are not known.
fn row_type(columns: &Value) -> String {
    let Some(columns) = columns.as_array() else {
        return format!("Record<string, {ANY_VALUE} | null>");
    };
    let columns = columns.iter().map(|column| {
        let declared = column["type"].as_str();
        let null = if column["not_null"] == true {
            ""
        } else {
            " | null"
        };
        let name = property(column["name"].as_str().unwrap_or_default());
        format!("{name}: {}{null}", value_type(declared))
    });
    object_type(&columns.collect::<Vec<_>>())
}

/// Type of an object with these members and no other.
fn object_type(members: &[String]) -> String {
    match members.is_empty() {
        true => "Record<string, never>".to_owned(),
        false => format!("{{ {} }}", members.join("; ")),
    }
}

/// Type of the values of a column by its declared type, as SQLite reads it. A text that is no number stays one in a numeric column.
fn value_type(declared: Option<&str>) -> &'static str {
    let declared = declared.unwrap_or_default().to_ascii_uppercase();
    let has = |parts: &[&str]| parts.iter().any(|part| declared.contains(part));
    match declared.as_str() {
        "" | "ANY" => ANY_VALUE,
        _ if has(&["INT"]) => "number",
        _ if has(&["CHAR", "CLOB", "TEXT"]) => "string",
        _ if has(&["BLOB"]) => "{ base64: string }",
        _ if has(&["REAL", "FLOA", "DOUB"]) => "number",
        _ => "string | number",
    }
}

/// Name of a member, in quotes unless it is an identifier.
fn property(name: &str) -> String {
    let is_identifier = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match is_identifier {
        true => name.to_owned(),
        false => terminal::escape_json(&Value::from(name).to_string()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_declared() {
        let actions = [
            json!({
                "name": "recent", "note": "Newest first.\n*/ type A = 1; /*", "params": ["n", "by"], "defaults": { "n": 5 },
                "columns": [
                    { "name": "id", "type": "INTEGER", "not_null": true },
                    { "name": "max(\"a\")", "type": null, "not_null": false },
                    { "name": "text", "type": "varchar(20)", "not_null": false },
                ],
            }),
            json!({ "name": "clear", "note": null, "params": [], "columns": [] }),
            json!({ "name": "broken", "params": [], "columns": null }),
        ];
        assert_eq!(
            declare_actions(&actions),
            "\ntype SvcParam = string | number | boolean | null | { base64: string };\n\n\
             interface SvcActions {\n  \
             /** Newest first.\\n*\\/ type A = 1; /* */\n  \
             recent: { params: { n?: SvcParam; by: SvcParam }; row: { id: number; \
             \"max(\\\"a\\\")\": string | number | { base64: string } | null; text: string | null } };\n  \
             clear: { params: Record<string, never>; row: Record<string, never> };\n  \
             broken: { params: Record<string, never>; row: Record<string, string | number | { base64: string } | null> };\n\
             }\n"
        );
    }

    #[test]
    fn declared_types_are_read_as_sqlite_reads_them() {
        for (declared, expected) in [
            (None, ANY_VALUE),
            (Some("any"), ANY_VALUE),
            (Some("BIGINT"), "number"),
            (Some("text"), "string"),
            (Some("BLOB"), "{ base64: string }"),
            (Some("double precision"), "number"),
            (Some("BOOLEAN"), "string | number"),
            (Some("DATE"), "string | number"),
            // SQLite finds the INT first.
            (Some("POINT TEXT"), "number"),
        ] {
            assert_eq!(value_type(declared), expected, "{declared:?}");
        }
    }

    #[test]
    fn names_that_are_no_identifiers_are_quoted() {
        for (name, expected) in [
            ("a_1", "a_1"),
            ("1a", "\"1a\""),
            ("a b", "\"a b\""),
            ("a\"b\\", "\"a\\\"b\\\\\""),
            ("ä\u{202e}", "\"ä\\u202e\""),
        ] {
            assert_eq!(property(name), expected);
        }
    }
}
