//! A database that begins anew, where the migrations that were applied are not those of the folder.

use serde_json::{Value, json};

use super::super::ProjectFolder;
use super::super::plan::ApplyPlan;
use super::super::remote_state::RemoteProjectState;
use super::{FolderDevCommand, FolderServer};
use crate::endpoints;
use crate::error::{CliFailure, Result};
use crate::output::{escape_line, member_text};
use crate::question::ask_yes_no;

/// Name of the project in which a folder's migrations are tried.
pub(super) const TRIAL_PROJECT: &str = "Trial of `svc dev`";

/// Migrations with which the database did not begin anew, with what was said of that.
#[derive(Debug, Default)]
pub(super) struct KeptDatabase(Option<(Vec<String>, CliFailure)>);

impl FolderDevCommand {
    /// Deletes the project of the folder, so that its database begins anew with the folder's migrations. Nothing is deleted before the
    /// server has accepted them, nor rows that nobody has given up. `failure` says how the migrations differ.
    ///
    /// # Errors
    /// When the database is kept.
    pub(super) async fn begin_anew(
        &self,
        server: &FolderServer,
        folder: &ProjectFolder,
        old: &RemoteProjectState,
        failure: CliFailure,
        kept: &mut KeptDatabase,
    ) -> Result<()> {
        let checksums = folder.migrations.iter().map(|one| one.checksum.clone());
        let checksums: Vec<_> = checksums.collect();
        match &kept.0 {
            Some((refused, said)) if *refused == checksums => return Err(said.clone()),
            _ => kept.0 = None,
        }
        server.try_folder(folder).await?;
        let at = [old.project.id.as_str()];
        let detail = server.api.call(&endpoints::BACKEND, &at).send().await?;
        if let Err(said) = self.give_up_rows(&kept_rows(&detail), failure).await {
            kept.0 = Some((checksums, said.clone()));
            return Err(said);
        }
        let deleted = server.api.call(&endpoints::DELETE_PROJECT, &at).send();
        deleted.await.map(drop)
    }

    /// Says which rows are lost; at a terminal it asks.
    ///
    /// # Errors
    /// When there are rows, and nobody has given them up.
    async fn give_up_rows(&self, rows: &[String], failure: CliFailure) -> Result<()> {
        let out = self.output();
        let lost = match rows {
            [] => "It has no rows yet.".to_owned(),
            rows => format!(
                "Lost with it: {}, and who has signed in and paid.",
                rows.join(", ")
            ),
        };
        let is_person = out.is_interactive();
        if rows.is_empty() || (self.fresh && !is_person) {
            out.print_note(&format!(
                "The migrations that were applied are not those of the folder: the database begins anew. {lost}"
            ));
            return Ok(());
        }
        if !is_person {
            return Err(failure.with_detail(format!(
                "This is none of the migrations that were applied, and the database stays as it is, with {}. Put the file back, and the change into a new file. Or stop, and begin anew without these rows: `svc dev --fresh`.",
                rows.join(", ")
            )));
        }
        let question = format!(
            "{}\nThe migrations that were applied are not those of the folder. {lost} To keep them, put the change into a new migration. Begin the database anew?",
            failure.to_text()
        );
        let asking = tokio::task::spawn_blocking(move || ask_yes_no(&question));
        match asking.await {
            Ok(true) => Ok(()),
            _ => Err(failure),
        }
    }
}

impl FolderServer {
    /// Tries the migrations and the actions of a folder from their beginning, in a project that is deleted again.
    ///
    /// # Errors
    /// Refusal of the server, with its place.
    async fn try_folder(&self, folder: &ProjectFolder) -> Result<()> {
        // One may be left of a trial that was interrupted.
        for left in self.projects().await? {
            if left["name"] == TRIAL_PROJECT {
                self.end_trial(&member_text(&left, "id")).await?;
            }
        }
        let asked = self.api.call(&endpoints::CREATE_PROJECT, &[]);
        let made = asked.body(json!({ "name": TRIAL_PROJECT })).send().await?;
        let id = member_text(&made, "id");
        let tried = ApplyPlan::try_database(&self.api, folder, &id).await;
        let ended = self.end_trial(&id).await;
        tried.and(ended)
    }

    async fn end_trial(&self, id: &str) -> Result<()> {
        let ended = self.api.call(&endpoints::DELETE_PROJECT, &[id]).send();
        ended.await.map(drop)
    }

    /// Lists the projects of the server.
    pub(super) async fn projects(&self) -> Result<Vec<Value>> {
        let mut listed = self.api.call(&endpoints::PROJECTS, &[]).send().await?;
        match listed["projects"].take() {
            Value::Array(projects) => Ok(projects),
            _ => Ok(Vec::new()),
        }
    }
}

/// Describes the rows of a backend's tables, but for those that have none.
fn kept_rows(detail: &Value) -> Vec<String> {
    let tables = detail["inventory"]["tables"].as_array();
    let kept = tables.into_iter().flatten().filter_map(|table| {
        let rows = table["rows"].as_u64().filter(|rows| *rows > 0)?;
        let noun = if rows == 1 { "row" } else { "rows" };
        let name = escape_line(&member_text(table, "name"));
        Some(format!("{rows} {noun} of `{name}`"))
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_that_are_there_are_lost() {
        let detail = json!({ "inventory": { "tables": [
            { "name": "entries", "rows": 12 }, { "name": "votes", "rows": 1 }, { "name": "svc_payments", "rows": 0 },
        ] } });
        assert_eq!(
            kept_rows(&detail),
            ["12 rows of `entries`", "1 row of `votes`"]
        );
        assert!(kept_rows(&json!({})).is_empty());
    }
}
