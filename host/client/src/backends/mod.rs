//! `svc backend …`: the database of a project.

mod commands;
mod export;
mod history;
mod load;
mod past;
mod views;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::api::ApiClient;
use super::error::{CliFailure, FailureExitCode, Result};
use super::output::member_text;
use super::projects::{ProjectSelectionArgs, RemoteProject};
use super::question::ChangeQuestion;
use super::source;
use super::{CommonArgs, OutputFormat, endpoints};

pub(super) use views::dry_run_text;

/// Default number of listed moments.
const DEFAULT_LIMIT: u32 = 20;

/// Makes, migrates, asks, copies and restores a project's database.
#[derive(Debug, clap::Subcommand)]
pub enum BackendCommand {
    /// Show the schema, the migrations and how much is stored
    Show {
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Make the database from a script of CREATE TABLE, CREATE INDEX, CREATE VIEW and INSERT
    Create {
        /// The script; `-` is standard input
        file: PathBuf,
        /// Open its rooms, too
        #[arg(long)]
        realtime: bool,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Apply one migration, which only adds; sent again it changes nothing
    Migrate {
        /// The script; `-` is standard input
        file: PathBuf,
        /// Only show what it would do
        #[arg(long)]
        dry_run: bool,
        /// Purpose of the migration
        #[arg(long)]
        note: Option<String>,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Run one SELECT, INSERT, UPDATE or DELETE, and show its rows as a table
    Query {
        /// The statement; `-` is standard input
        sql: String,
        /// Binds of the statement: `name=text`, or `name:=JSON` for numbers and null
        params: Vec<String>,
        /// The page to ask through [default: none is needed]
        #[arg(long, value_name = "SLUG")]
        page: Option<String>,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Insert the rows of a file into a table, 500 in one transaction
    Load {
        /// Name of the table
        table: String,
        #[command(flatten)]
        file: load::RowFileArgs,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Open or close the rooms
    Realtime {
        /// `on` or `off`
        #[arg(value_parser = ["on", "off"])]
        state: String,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Offer the actions to agents as tools, or offer them no more
    Agents {
        /// `on` or `off`
        #[arg(value_parser = ["on", "off"])]
        state: String,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// List the moments that can be restored, newest first
    History {
        /// How many
        #[arg(long, default_value_t = DEFAULT_LIMIT)]
        limit: u32,
        /// Only those before this time
        #[arg(long, value_name = "TIME")]
        before: Option<String>,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Make the rows what they were at a time
    Restore {
        /// When, as `svc backend history` lists it, or in local time: "5 minutes ago", "yesterday 18:00", "2026-11-20 18:00"
        #[arg(value_name = "TIME")]
        at: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        args: BackendTargetArgs,
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
        args: BackendTargetArgs,
    },
    /// Delete the database with its actions
    Delete {
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
}

/// Which project's backend, and on which server.
#[derive(Clone, Debug, clap::Args)]
pub struct BackendTargetArgs {
    #[command(flatten)]
    project_option: ProjectSelectionArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// A project of the caller, with a client of its server.
#[derive(Debug)]
pub(super) struct ProjectHandle {
    pub(super) api: ApiClient,
    pub(super) project: RemoteProject,
}

impl ProjectHandle {
    /// Path parameter of the project.
    pub(super) fn path_parts(&self) -> [&str; 1] {
        [&self.project.id]
    }

    /// Question about a change of the project.
    pub(super) fn question<'a>(&'a self, change: &'a str) -> ChangeQuestion<'a> {
        ChangeQuestion::about(&self.api, &self.project, change)
    }

    /// Sends a request with a body to the backend.
    pub(super) async fn send(
        &self,
        call: &'static endpoints::Endpoint,
        body: Value,
    ) -> Result<Value> {
        self.api
            .call(call, &self.path_parts())
            .body(body)
            .send()
            .await
    }

    /// Slug of a page through which to call the backend: `wanted`, else the oldest live page.
    pub(super) async fn page(&self, wanted: Option<String>) -> Result<String> {
        if let Some(wanted) = wanted {
            return Ok(wanted);
        }
        let found = self
            .api
            .call(&endpoints::FRONTENDS, &self.path_parts())
            .send()
            .await?;
        let mut pages = found["frontends"].as_array().into_iter().flatten();
        let live = pages.find(|page| page["state"] == "active");
        live.map(|page| member_text(page, "slug")).ok_or_else(|| {
            CliFailure::new(
                FailureExitCode::NotFound,
                "No page",
                format!("`{}` has no page to call its database through: publish one with `svc publish FILE --project {}`.", self.project.name, self.project.host_label),
            )
        })
    }
}

impl BackendTargetArgs {
    /// Finds the project.
    pub(super) async fn find(&self) -> Result<ProjectHandle> {
        let (api, project) = self.project_option.open(&self.common.remote).await?;
        Ok(ProjectHandle { api, project })
    }

    /// Output format of the command.
    pub(super) fn output(&self) -> OutputFormat {
        self.common.output()
    }
}

impl BackendCommand {
    pub(super) async fn run(self) -> Result<()> {
        match self {
            Self::Show { args } => commands::show(&args).await,
            Self::Create {
                file,
                realtime,
                args,
            } => commands::create(&file, realtime, &args).await,
            Self::Migrate {
                file,
                dry_run,
                note,
                args,
            } => commands::migrate(&file, dry_run, note, &args).await,
            Self::Query {
                sql,
                params,
                page,
                args,
            } => commands::query(sql, &params, page, &args).await,
            Self::Load { table, file, args } => {
                let load = load::load(&table, &file.file, file.format, &args);
                super::run_until_interrupt(load, "Transactions that were done stay.").await
            }
            Self::Realtime { state, args } => {
                commands::set_switch("realtime", "rooms", &state, &args).await
            }
            Self::Agents { state, args } => {
                commands::set_switch("agents", "tools for agents", &state, &args).await
            }
            Self::History {
                limit,
                before,
                args,
            } => history::list(limit, before, &args).await,
            Self::Restore { at, yes, args } => past::restore(&at, yes, &args).await,
            Self::Export {
                output,
                force,
                args,
            } => {
                let copy = export::export(output, force, &args);
                super::run_until_interrupt(copy, "Nothing of the copy is kept.").await
            }
            Self::Delete { yes, args } => commands::delete(yes, &args).await,
        }
    }
}

/// Reads a script unchanged, since the ledger compares its bytes.
pub(super) fn read_script(file: &Path) -> Result<String> {
    source::read_text(file)
}
