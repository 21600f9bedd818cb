//! `svc guest status|check|install|rollback|rerender`.

mod check;
mod status;
mod switch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::ValueEnum;

use super::actor::current_actor_name;
use super::progress::TerminalProgressBar;
use crate::cluster::found;
use crate::config::{Config, Settings};
use crate::control::ControlDatabase;
use crate::deployments::rerender::RerenderProgress;
use crate::guests::check::GuestTestSettings;
use crate::guests::status::{is_server_running, read_status_file};
use crate::guests::{WorldFolder, guest_limits};
use crate::operators::{
    self, Operation, OperationAnswer, OperatorArgs, RerenderOperation, check_guests_directory,
};
use svc_sandbox::{GuestDigest, World};

/// How often a command polls the server's state.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Number of polls that wait for the first status file of a server: one second.
const STARTUP_POLLS: u32 = 20;

#[derive(Debug, clap::Subcommand)]
pub(super) enum GuestCommand {
    /// Say which guests serve, since when, and what they use
    Status {
        #[command(flatten)]
        guest_args: GuestArgs,
    },
    /// Look at a component, and try it on everything that is stored
    Check(check::GuestCheckCommand),
    /// Let a component serve, if it passes the check and fails on nothing stored that the one that serves handles
    Install(switch::InstallGuestCommand),
    /// Let the guest that served before serve again
    Rollback {
        /// Which guest
        name: GuestName,
        /// Only if the guest of this digest serves: a script that runs twice rolls back once
        #[arg(long, value_parser = parse_digest)]
        from: Option<GuestDigest>,
        #[command(flatten)]
        guest_args: GuestArgs,
    },
    /// Render every page again that another guest has made
    Rerender {
        /// Wait until it is done, and show how far it is; fail if no server finishes it
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        guest_args: GuestArgs,
    },
}

fn parse_digest(text: &str) -> Result<GuestDigest, &'static str> {
    GuestDigest::from_hex(text).ok_or("a digest has 64 hexadecimal digits")
}

/// The two guests by their names.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum GuestName {
    /// Renders pages
    Render,
    /// Judges SQL
    Gate,
}

impl From<GuestName> for World {
    fn from(name: GuestName) -> Self {
        match name {
            GuestName::Render => Self::Render,
            GuestName::Gate => Self::Gate,
        }
    }
}

/// Arguments that every guest command has.
#[derive(Debug, clap::Args)]
pub(super) struct GuestArgs {
    #[command(flatten)]
    args: OperatorArgs,
    /// Directory of installed guest components [default: <data>/guests]
    #[arg(long, env = "SVC_GUESTS")]
    guests: Option<PathBuf>,
    /// Directory of compiled guests; the server's, so that it finds them there [default: as the server's]
    #[arg(long, env = "SVC_CACHE")]
    cache: Option<PathBuf>,
    /// The server's file of settings: directories and budgets
    #[arg(long, env = "SVC_CONFIG")]
    config: Option<PathBuf>,
}

impl GuestArgs {
    /// Finds the directories that a command works on.
    fn directories(&self) -> anyhow::Result<GuestDirectories> {
        self.check_directories(&self.settings()?)
    }

    /// Also reads the server's settings, for commands that compile and run guests.
    fn config_and_directories(&self) -> anyhow::Result<(Config, GuestDirectories)> {
        let settings = self.settings()?;
        let directories = self.check_directories(&settings)?;
        let listen = settings.listen();
        Ok((settings.resolve(listen)?, directories))
    }

    fn check_directories(&self, settings: &Settings) -> anyhow::Result<GuestDirectories> {
        let (data, guests) = (settings.data(), settings.guests());
        let args = OperatorArgs {
            data: Some(data.clone()),
            json: self.args.json,
        };
        args.installation_or_empty()?;
        Ok(GuestDirectories { data, guests })
    }

    /// Merges the flags, the environment and the settings file.
    fn settings(&self) -> anyhow::Result<Settings> {
        let settings = Settings {
            data: self.args.data.clone(),
            guests: self.guests.clone(),
            cache: self.cache.clone(),
            ..Settings::default()
        };
        let mut settings = super::serve::merge_settings_file(settings, self.config.clone())?;
        // No guest command calls the edge or the ledger, so none needs the secrets of either.
        settings.edge = None;
        settings.cluster = None;
        Ok(settings)
    }
}

/// Directories of the installation that a command works on.
#[derive(Clone, Debug)]
struct GuestDirectories {
    data: PathBuf,
    guests: PathBuf,
}

impl GuestDirectories {
    /// Opens the control database: read-only while a server runs.
    fn control(&self) -> anyhow::Result<ControlDatabase> {
        let data = &self.data;
        let opened = match is_server_running(data)? {
            true => ControlDatabase::open_read_only(data),
            false => {
                operators::check_not_of_node(data)?;
                ControlDatabase::open(data)
            }
        };
        opened.with_context(|| format!("opening {}", data.display()))
    }

    /// Refuses to try a component on what a node of several has stored: the pages are in the bucket, and nothing would be tried.
    fn require_stored_pages(&self) -> anyhow::Result<()> {
        if found::installation_id(&self.data)?.is_some() {
            bail!(
                "{} is the data directory of a node of several, whose pages are in the bucket: copy the cluster by `svc restore --from BUCKET --ledger URL --data DIR`, try the component there by `svc guest check FILE --data DIR`, and install it here by `svc guest install FILE --no-replay`",
                self.data.display()
            );
        }
        Ok(())
    }

    /// Runs an operation: in the server, if one runs.
    async fn run_operation(&self, operation: Operation) -> anyhow::Result<OperationAnswer> {
        operators::run_command(&self.data, operation, current_actor_name()).await
    }

    fn folder(&self, world: World) -> WorldFolder {
        WorldFolder::new(&self.guests, world)
    }

    /// Fails if the running server has another directory of guests: it would not follow a change made in this one.
    async fn require_same_guests(&self) -> anyhow::Result<()> {
        for _ in 0..STARTUP_POLLS {
            if !is_server_running(&self.data)? {
                break;
            }
            if let Some(said) = read_status_file(&self.data)? {
                return check_guests_directory(Path::new(&said.paths.guests), &self.guests);
            }
            // The server has only just started.
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// Returns a tester with the server's budgets.
fn guest_tester(config: &Config) -> GuestTestSettings {
    GuestTestSettings {
        cache: config.cache.clone(),
        limits: guest_limits(&config.limits),
        page_bytes: usize::try_from(config.limits.page_bytes).unwrap_or(usize::MAX),
    }
}

impl GuestCommand {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Status { guest_args } => status::run(&guest_args).await,
            Self::Check(check) => check.run().await,
            Self::Install(install) => Box::pin(install.run()).await,
            Self::Rollback {
                name,
                from,
                guest_args,
            } => switch::roll_back(name.into(), from, &guest_args).await,
            Self::Rerender { wait, guest_args } => rerender(wait, &guest_args).await,
        }
    }
}

/// Starts a rerender, which the server does in the background.
async fn rerender(wait: bool, guest_args: &GuestArgs) -> anyhow::Result<ExitCode> {
    let directories = guest_args.directories()?;
    let reach = async |wanted: RerenderOperation| -> anyhow::Result<Option<RerenderProgress>> {
        let answer = directories
            .run_operation(Operation::Rerender(wanted))
            .await?;
        Ok(serde_json::from_str(&answer.document)?)
    };
    let begun = reach(RerenderOperation::Begin).await?;
    let mut done = begun.context("no rerender has begun")?;
    let mut served = is_server_running(&directories.data)?;
    if wait {
        let bar = TerminalProgressBar::new();
        while served && !done.is_finished() {
            bar.show_count("rerender", done.pages_done(), done.total);
            tokio::time::sleep(POLL_INTERVAL).await;
            // The order matters: progress that the server made before it ended is read.
            served = is_server_running(&directories.data)?;
            done = reach(RerenderOperation::Look).await?.unwrap_or(done);
        }
    }
    let text = if served || done.is_finished() {
        describe_rerender(&done)
    } else {
        "no server runs: pages are rendered again after its next start".to_owned()
    };
    let document = serde_json::json!({ "server_running": served, "rerender": done });
    guest_args.args.print_answer(&document, &text)?;
    Ok(if wait && !done.is_finished() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Describes the progress of a rerender.
fn describe_rerender(done: &RerenderProgress) -> String {
    let counts = format!(
        "{} changed, {} unchanged, {} failed and stay as they are, {} changed by somebody else",
        done.changed, done.unchanged, done.failed, done.skipped
    );
    match done.finished_at {
        Some(at) => format!("rendered again by {at}: {counts}"),
        None => format!(
            "pages are being rendered again: {} of {} ({counts})",
            done.pages_done(),
            done.total
        ),
    }
}
