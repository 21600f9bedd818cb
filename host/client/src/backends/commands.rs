//! Commands of `svc backend`, a function each.

use std::path::Path;

use serde_json::json;

use super::views::{details_text, dry_run_text, warnings};
use super::{BackendTargetArgs, read_script};
use crate::error::{CliFailure, Result};
use crate::output::member_text;
use crate::params::parse_params;
use crate::source::STDIN;
use crate::{endpoints, result_table};

pub(super) async fn show(args: &BackendTargetArgs) -> Result<()> {
    let at = args.find().await?;
    let detail = at
        .api
        .call(&endpoints::BACKEND, &at.path_parts())
        .send()
        .await?;
    args.output().print_answer(&detail, &details_text(&detail))
}

pub(super) async fn create(file: &Path, realtime: bool, args: &BackendTargetArgs) -> Result<()> {
    let ddl = read_script(file)?;
    let at = args.find().await?;
    let body = json!({ "ddl": ddl, "realtime": realtime.then_some(true) });
    let made = at.send(&endpoints::CREATE_BACKEND, body).await;
    let made = made.map_err(|failure| with_script_file(failure, file))?;
    args.output().print_answer(&made, &details_text(&made))
}

pub(super) async fn migrate(
    file: &Path,
    dry_run: bool,
    note: Option<String>,
    args: &BackendTargetArgs,
) -> Result<()> {
    let ddl = read_script(file)?;
    let at = args.find().await?;
    let note = note.filter(|_| !dry_run);
    let asked = at.api.call(&endpoints::UPDATE_BACKEND, &at.path_parts());
    let asked = asked.query("dry_run", dry_run.then_some(true));
    let done = asked.body(json!({ "ddl": ddl, "note": note })).send().await;
    let done = done.map_err(|failure| with_script_file(failure, file))?;
    let text = match dry_run {
        true => dry_run_text(&done),
        false => format!(
            "{} as migration {}",
            member_text(&done, "status"),
            member_text(&done, "version")
        ),
    };
    args.output()
        .print_answer(&done, &[text, warnings(&done)].join("\n"))
}

/// Adds the file of a script to a failure.
fn with_script_file(failure: CliFailure, file: &Path) -> CliFailure {
    match file.as_os_str() == STDIN {
        true => failure,
        false => failure.with_file(file),
    }
}

pub(super) async fn query(
    sql: String,
    given: &[String],
    page: Option<String>,
    args: &BackendTargetArgs,
) -> Result<()> {
    let sql = match sql.as_str() {
        STDIN => read_script(Path::new(STDIN))?,
        _ => sql,
    };
    let body = json!({ "sql": sql, "params": parse_params(given)? });
    let at = args.find().await?;
    let asked = match &page {
        Some(page) => at.api.call(&endpoints::QUERY, &[page]),
        None => at.api.call(&endpoints::OWNER_QUERY, &at.path_parts()),
    };
    let result = asked.body(body).send().await?;
    result_table::print(args.output(), &result)
}

/// Switches a member of the backend on or off; `name` is for messages.
pub(super) async fn set_switch(
    member: &str,
    name: &str,
    state: &str,
    args: &BackendTargetArgs,
) -> Result<()> {
    let at = args.find().await?;
    let body = json!({ member: state == "on" });
    let changed = at.send(&endpoints::UPDATE_BACKEND, body).await?;
    args.output()
        .print_answer(&changed, &format!("{name} are {state}"))
}

pub(super) async fn delete(yes: bool, args: &BackendTargetArgs) -> Result<()> {
    let at = args.find().await?;
    at.question("Delete the database with its actions")
        .confirm(args.output(), yes)?;
    at.api
        .call(&endpoints::DELETE_BACKEND, &at.path_parts())
        .send()
        .await?;
    let document = json!({ "project": at.project.id, "deleted": true });
    let text = format!("deleted the database of {}", at.project.host_label);
    args.output().print_answer(&document, &text)
}
