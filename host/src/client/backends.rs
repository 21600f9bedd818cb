//! `svc backend …`: the database of a project.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::api::Api;
use super::error::{Exit, Failure, Result};
use super::output::{listed, member, pairs, print, text_of};
use super::params::params;
use super::progress::Progress;
use super::projects::{self, OfProject, Project};
use super::source::STDIN;
use super::{Common, calls, confirm, results};

/// How many moments are listed unless the command says.
const LISTED: u32 = 20;

/// Makes, migrates, asks, copies and restores a project's database.
#[derive(Debug, clap::Subcommand)]
pub enum Backend {
    /// Show the schema, the migrations and how much is stored
    Show {
        #[command(flatten)]
        of: OfProject,
        #[command(flatten)]
        common: Common,
    },
    /// Make the database from a script of CREATE TABLE, CREATE INDEX, CREATE VIEW and INSERT
    Create {
        /// The script; `-` is standard input
        file: PathBuf,
        /// Open its rooms, too
        #[arg(long)]
        realtime: bool,
        #[command(flatten)]
        of: OfProject,
        #[command(flatten)]
        common: Common,
    },
    /// Apply one migration, which only adds; sent again it changes nothing
    Migrate {
        /// The script; `-` is standard input
        file: PathBuf,
        /// Only show what it would do
        #[arg(long)]
        dry_run: bool,
        /// What it is for
        #[arg(long)]
        note: Option<String>,
        #[command(flatten)]
        of: OfProject,
        #[command(flatten)]
        common: Common,
    },
    /// Run one SELECT, INSERT, UPDATE or DELETE, and show its rows as a table
    Query {
        /// The statement; `-` is standard input
        sql: String,
        /// Its binds: `name=text`, or `name:=JSON` for numbers and null
        params: Vec<String>,
        /// The page to ask through [default: any of the project]
        #[arg(long, value_name = "SLUG")]
        page: Option<String>,
        #[command(flatten)]
        of: OfProject,
        #[command(flatten)]
        common: Common,
    },
    /// Open or close the rooms
    Realtime {
        /// `on` or `off`
        #[arg(value_parser = ["on", "off"])]
        state: String,
        #[command(flatten)]
        of: OfProject,
        #[command(flatten)]
        common: Common,
    },
    /// List the moments that can be restored, newest first
    History {
        /// How many
        #[arg(long, default_value_t = LISTED)]
        limit: u32,
        /// Only those before this time
        #[arg(long, value_name = "TIME")]
        before: Option<String>,
        #[command(flatten)]
        of: OfProject,
        #[command(flatten)]
        common: Common,
    },
    /// Make the rows what they were at a time
    Restore {
        /// When, as `svc backend history` lists it
        at: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        of: OfProject,
        #[command(flatten)]
        common: Common,
    },
    /// Copy the database into one SQLite file
    Export {
        /// The file; `-` is standard output [default: the project's label with .db]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace a file that is there
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        of: OfProject,
        #[command(flatten)]
        common: Common,
    },
    /// Delete the database with its actions
    Delete {
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        of: OfProject,
        #[command(flatten)]
        common: Common,
    },
}

/// A server and one of the caller's projects on it.
#[derive(Debug)]
pub(super) struct At {
    pub(super) api: Api,
    pub(super) project: Project,
}

impl At {
    /// Finds the project.
    pub(super) async fn find(of: &OfProject, common: &Common) -> Result<Self> {
        let api = Api::new(&common.remote)?;
        let project = projects::find(&api, of.project.as_deref()).await?;
        Ok(Self { api, project })
    }

    /// Sends something to the backend.
    pub(super) async fn send(&self, call: &'static calls::Call, body: Value) -> Result<Value> {
        self.api
            .call(call, &[&self.project.id])
            .body(body)
            .answer()
            .await
    }

    /// The slug of a page to call the backend through: the one that is wanted, else the oldest that is live.
    pub(super) async fn page(&self, wanted: Option<String>) -> Result<String> {
        if let Some(wanted) = wanted {
            return Ok(wanted);
        }
        let found = self
            .api
            .call(&calls::FRONTENDS, &[&self.project.id])
            .answer()
            .await?;
        let mut pages = found["frontends"].as_array().into_iter().flatten();
        let live = pages.find(|page| page["state"] == "active");
        live.map(|page| member(page, "slug")).ok_or_else(|| {
            Failure::new(
                Exit::NotFound,
                "No page",
                format!("`{}` has no page to call its database through: publish one with `svc publish FILE --project {}`.", self.project.name, self.project.host_label),
            )
        })
    }
}

impl Backend {
    pub(super) async fn run(self) -> Result<()> {
        match self {
            Self::Show { of, common } => show(&of, &common).await,
            Self::Create {
                file,
                realtime,
                of,
                common,
            } => {
                let ddl = script(&file)?;
                let at = At::find(&of, &common).await?;
                let body = json!({ "ddl": ddl, "realtime": realtime.then_some(true) });
                let made = at.send(&calls::CREATE_BACKEND, body).await?;
                common.out().answer(&made, &about(&made))
            }
            Self::Migrate {
                file,
                dry_run,
                note,
                of,
                common,
            } => migrate(&file, dry_run, note, &of, &common).await,
            Self::Query {
                sql,
                params: given,
                page,
                of,
                common,
            } => {
                let sql = if sql == STDIN {
                    script(Path::new(STDIN))?
                } else {
                    sql
                };
                let body = json!({ "sql": sql, "params": params(&given)? });
                let at = At::find(&of, &common).await?;
                let page = at.page(page).await?;
                let result = at
                    .api
                    .call(&calls::QUERY, &[&page])
                    .body(body)
                    .answer()
                    .await?;
                results::show(common.out(), &result)
            }
            Self::Realtime { state, of, common } => {
                let at = At::find(&of, &common).await?;
                let changed = at
                    .send(&calls::UPDATE_BACKEND, json!({ "realtime": state == "on" }))
                    .await?;
                common.out().answer(&changed, &format!("rooms are {state}"))
            }
            Self::History {
                limit,
                before,
                of,
                common,
            } => {
                let at = At::find(&of, &common).await?;
                let asked = at.api.call(&calls::HISTORY, &[&at.project.id]);
                let history = asked
                    .query("limit", Some(limit))
                    .query("before", before)
                    .answer()
                    .await?;
                if let Some(next) = history["next_before"].as_str() {
                    common
                        .out()
                        .note(&format!("There are more: --before {next}"));
                }
                let moments = history["moments"].as_array().into_iter().flatten();
                let moments: Vec<_> = moments.map(|moment| member(moment, "at")).collect();
                common.out().answer(&history, &moments.join("\n"))
            }
            Self::Restore {
                at: moment,
                yes,
                of,
                common,
            } => {
                let at = At::find(&of, &common).await?;
                let asked = format!(
                    "Make every row of `{}` what it was at {moment}?",
                    at.project.name
                );
                confirm(common.out(), yes, &asked)?;
                let restored = at.send(&calls::RESTORE, json!({ "at": moment })).await?;
                let text = format!(
                    "restored to {}\nto undo this: svc backend restore {}",
                    member(&restored, "restored_to"),
                    member(&restored, "previous")
                );
                common.out().answer(&restored, &text)
            }
            Self::Export {
                output,
                force,
                of,
                common,
            } => export(output, force, &of, &common).await,
            Self::Delete { yes, of, common } => {
                let at = At::find(&of, &common).await?;
                confirm(
                    common.out(),
                    yes,
                    &format!("Delete the database of `{}`?", at.project.name),
                )?;
                at.api
                    .call(&calls::DELETE_BACKEND, &[&at.project.id])
                    .answer()
                    .await?;
                let document = json!({ "project": at.project.id, "deleted": true });
                common.out().answer(
                    &document,
                    &format!("deleted the database of {}", at.project.host_label),
                )
            }
        }
    }
}

async fn show(of: &OfProject, common: &Common) -> Result<()> {
    let at = At::find(of, common).await?;
    let detail = at
        .api
        .call(&calls::BACKEND, &[&at.project.id])
        .answer()
        .await?;
    common.out().answer(&detail, &about(&detail))
}

async fn migrate(
    file: &Path,
    dry_run: bool,
    note: Option<String>,
    of: &OfProject,
    common: &Common,
) -> Result<()> {
    let ddl = script(file)?;
    let at = At::find(of, common).await?;
    let note = note.filter(|_| !dry_run);
    let asked = at.api.call(&calls::UPDATE_BACKEND, &[&at.project.id]);
    let asked = asked.query("dry_run", dry_run.then_some(true));
    let done = asked
        .body(json!({ "ddl": ddl, "note": note }))
        .answer()
        .await;
    let done = done.map_err(|failure| failure.about(&file.display().to_string()))?;
    let text = match dry_run {
        true => tried(&done),
        false => format!(
            "{} as migration {}",
            member(&done, "status"),
            member(&done, "version")
        ),
    };
    common
        .out()
        .answer(&done, &[text, warnings(&done)].join("\n"))
}

/// What a dry run says, for people.
pub(super) fn tried(run: &Value) -> String {
    let changes = &run["changes"];
    let mut lines = vec![format!("would be {}", member(run, "status"))];
    for table in changes["tables"].as_array().into_iter().flatten() {
        let columns = table["columns"].as_array().into_iter().flatten();
        let columns: Vec<_> = columns.map(|column| member(column, "name")).collect();
        let kind = if table["new"] == true {
            "table"
        } else {
            "columns of"
        };
        lines.push(format!(
            "+ {kind} {} ({})",
            member(table, "name"),
            columns.join(", ")
        ));
    }
    for (name, kind) in [("indexes", "index"), ("views", "view")] {
        let new = changes[name].as_array().into_iter().flatten();
        lines.extend(new.map(|one| format!("+ {kind} {}", member(one, "name"))));
    }
    let broken = run["broken_actions"].as_array().into_iter().flatten();
    lines.extend(broken.map(|one| {
        format!(
            "! action {} would break: {}",
            member(one, "name"),
            member(one, "detail")
        )
    }));
    lines.join("\n")
}

fn warnings(document: &Value) -> String {
    let warnings = document["warnings"].as_array().into_iter().flatten();
    let lines = warnings.map(|warning| format!("warning: {}", member(warning, "detail")));
    lines.collect::<Vec<_>>().join("\n")
}

/// A backend for people.
fn about(detail: &Value) -> String {
    let database = &detail["database"];
    let head = pairs(&[
        (
            "database",
            format!(
                "{} of {} bytes",
                member(database, "bytes"),
                member(database, "max_bytes")
            ),
        ),
        (
            "rooms",
            if detail["realtime"]["enabled"] == true {
                "on"
            } else {
                "off"
            }
            .to_owned(),
        ),
        ("id", member(detail, "id")),
    ]);
    let rows = &detail["inventory"]["tables"];
    let tables = detail["schema"]["tables"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|table| {
            let mut counted = rows.as_array().into_iter().flatten();
            let count = counted.find(|one| one["name"] == table["name"]);
            let columns = table["columns"].as_array().into_iter().flatten();
            let columns: Vec<_> = columns.map(|column| member(column, "name")).collect();
            let count = count.map_or_else(|| "-".to_owned(), |one| member(one, "rows"));
            json!({ "table": table["name"], "rows": count, "columns": columns.join(", ") })
        });
    let parts = [
        head,
        listed(&tables.collect(), &["table", "rows", "columns"]),
        listed(&detail["migrations"], &["version", "applied_at", "note"]),
        listed(&detail["actions"], &["name", "version", "kind", "note"]),
        warnings(detail),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// Reads a script as it is: its bytes are what the ledger compares.
pub(super) fn script(file: &Path) -> Result<String> {
    let read = match file.as_os_str() == STDIN {
        true => std::io::read_to_string(std::io::stdin().lock()),
        false => std::fs::read_to_string(file),
    };
    read.map_err(|error| Failure::file("Reading", file, &error))
}

async fn export(
    output: Option<PathBuf>,
    force: bool,
    of: &OfProject,
    common: &Common,
) -> Result<()> {
    let at = At::find(of, common).await?;
    let path = output.unwrap_or_else(|| format!("{}.db", at.project.host_label).into());
    let to_stdout = path.as_os_str() == STDIN;
    if !to_stdout && !force && path.exists() {
        return Err(Failure::here(format!(
            "{} is there already: `--force` replaces it.",
            path.display()
        )));
    }
    let mut response = at
        .api
        .call(&calls::EXPORT, &[&at.project.id])
        .send()
        .await?;
    let bar = Progress::bytes("export", response.content_length());
    let failed = |error: std::io::Error| Failure::file("Writing", &path, &error);
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    // A copy that is cut short is never left under the name that was asked for.
    let mut file = match to_stdout {
        true => None,
        false => Some(
            tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?,
        ),
    };
    let mut bytes = 0;
    while let Some(part) = response.chunk().await.map_err(|error| {
        Failure::new(
            Exit::NoAnswer,
            "The copy is not whole",
            format!("The server ended before its end: {error}. Nothing is kept; try again."),
        )
    })? {
        bytes += part.len();
        bar.add(part.len());
        match &mut file {
            Some(file) => std::io::Write::write_all(file, &part).map_err(failed)?,
            None => print(&part, false)?,
        }
    }
    drop(bar);
    let Some(file) = file else {
        return Ok(());
    };
    file.as_file().sync_all().map_err(failed)?;
    match force {
        true => file.persist(&path),
        false => file.persist_noclobber(&path),
    }
    .map_err(|error| failed(error.error))?;
    let document = json!({ "file": path.display().to_string(), "bytes": bytes });
    common.out().answer(&document, &text_of(&document["file"]))
}
