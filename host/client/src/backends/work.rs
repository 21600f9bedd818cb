//! Work of `svc backend`, a function for each command.

use std::path::Path;

use serde_json::json;

use super::views::{details_text, dry_run_text, warnings};
use super::{ProjectArgs, script};
use crate::error::{Failure, Result};
use crate::output::{member, quote_shell_word};
use crate::params::params;
use crate::source::STDIN;
use crate::{calls, confirm, results};

pub(super) async fn show(on: &ProjectArgs) -> Result<()> {
    let at = on.find().await?;
    let detail = at.api.call(&calls::BACKEND, &at.parts()).answer().await?;
    on.out().answer(&detail, &details_text(&detail))
}

pub(super) async fn create(file: &Path, realtime: bool, on: &ProjectArgs) -> Result<()> {
    let ddl = script(file)?;
    let at = on.find().await?;
    let body = json!({ "ddl": ddl, "realtime": realtime.then_some(true) });
    let made = at.send(&calls::CREATE_BACKEND, body).await;
    let made = made.map_err(|failure| refused(failure, file))?;
    on.out().answer(&made, &details_text(&made))
}

pub(super) async fn migrate(
    file: &Path,
    dry_run: bool,
    note: Option<String>,
    on: &ProjectArgs,
) -> Result<()> {
    let ddl = script(file)?;
    let at = on.find().await?;
    let note = note.filter(|_| !dry_run);
    let asked = at.api.call(&calls::UPDATE_BACKEND, &at.parts());
    let asked = asked.query("dry_run", dry_run.then_some(true));
    let done = asked
        .body(json!({ "ddl": ddl, "note": note }))
        .answer()
        .await;
    let done = done.map_err(|failure| refused(failure, file))?;
    let text = match dry_run {
        true => dry_run_text(&done),
        false => format!(
            "{} as migration {}",
            member(&done, "status"),
            member(&done, "version")
        ),
    };
    on.out().answer(&done, &[text, warnings(&done)].join("\n"))
}

/// Names the file of a script that the server refused.
fn refused(failure: Failure, file: &Path) -> Failure {
    match file.as_os_str() == STDIN {
        true => failure,
        false => failure.in_file(file),
    }
}

pub(super) async fn query(
    sql: String,
    given: &[String],
    page: Option<String>,
    on: &ProjectArgs,
) -> Result<()> {
    let sql = match sql.as_str() {
        STDIN => script(Path::new(STDIN))?,
        _ => sql,
    };
    let body = json!({ "sql": sql, "params": params(given)? });
    let at = on.find().await?;
    let page = at.page(page).await?;
    let asked = at.api.call(&calls::QUERY, &[&page]);
    let result = asked.body(body).answer().await?;
    results::show(on.out(), &result)
}

/// Switches a member of the backend, which people know by a name.
pub(super) async fn switch(member: &str, name: &str, state: &str, on: &ProjectArgs) -> Result<()> {
    let at = on.find().await?;
    let body = json!({ member: state == "on" });
    let changed = at.send(&calls::UPDATE_BACKEND, body).await?;
    on.out().answer(&changed, &format!("{name} are {state}"))
}

pub(super) async fn history(limit: u32, before: Option<String>, on: &ProjectArgs) -> Result<()> {
    let at = on.find().await?;
    let asked = at.api.call(&calls::HISTORY, &at.parts());
    let asked = asked.query("limit", Some(limit)).query("before", before);
    let history = asked.answer().await?;
    if let Some(next) = history["next_before"].as_str() {
        on.out().note(&format!(
            "There are more: --before {}",
            quote_shell_word(next)
        ));
    }
    let moments = history["moments"].as_array().into_iter().flatten();
    let moments: Vec<_> = moments.map(|moment| member(moment, "at")).collect();
    on.out().answer(&history, &moments.join("\n"))
}

pub(super) async fn restore(moment: &str, yes: bool, on: &ProjectArgs) -> Result<()> {
    let at = on.find().await?;
    let name = &at.project.name;
    let what = format!("Make every row of `{name}` what it was at {moment}");
    confirm(on.out(), yes, &at.api, &what)?;
    let restored = at.send(&calls::RESTORE, json!({ "at": moment })).await?;
    let text = format!(
        "restored to {}\nto undo this: svc backend restore {}",
        member(&restored, "restored_to"),
        quote_shell_word(&member(&restored, "previous"))
    );
    on.out().answer(&restored, &text)
}

pub(super) async fn delete(yes: bool, on: &ProjectArgs) -> Result<()> {
    let at = on.find().await?;
    let what = format!("Delete the database of `{}`", at.project.name);
    confirm(on.out(), yes, &at.api, &what)?;
    at.api
        .call(&calls::DELETE_BACKEND, &at.parts())
        .answer()
        .await?;
    let document = json!({ "project": at.project.id, "deleted": true });
    let text = format!("deleted the database of {}", at.project.host_label);
    on.out().answer(&document, &text)
}
