//! `svc guest status|check|install|rollback|rerender`.

mod check;
mod status;
mod switch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;

use super::actor::actor;
use super::progress::Progress;
use crate::config::{Config, Settings};
use crate::control::Control;
use crate::deployments::rerender::Progress as Remade;
use crate::guests::Folder;
use crate::guests::check::Bench;
use crate::guests::status::{is_served, read as read_said};
use crate::operators::{self, Answer, Operation, OperatorArgs, Rerender, check_guests_directory};
use svc_sandbox::{GuestDigest, World};

/// How often a command looks what the server does.
const LOOK: Duration = Duration::from_millis(50);
/// How often it looks for the first words of a server: one second.
const BEGINS: u32 = 20;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Guest {
    /// Say which guests serve, since when, and what they use
    Status {
        #[command(flatten)]
        place: Place,
    },
    /// Look at a component, and try it on everything that is stored
    Check(check::Check),
    /// Let a component serve, if it passes the check and fails on nothing stored that the one that serves handles
    Install(switch::Install),
    /// Let the guest that served before serve again
    Rollback {
        /// Which guest
        name: Name,
        /// Only if the guest of this digest serves: a script that runs twice rolls back once
        #[arg(long, value_parser = digest)]
        from: Option<GuestDigest>,
        #[command(flatten)]
        place: Place,
    },
    /// Render every page again that another guest has made
    Rerender {
        /// Wait until it is done, and show how far it is; fail if no server finishes it
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        place: Place,
    },
}

fn digest(text: &str) -> Result<GuestDigest, &'static str> {
    GuestDigest::from_hex(text).ok_or("a digest has 64 hexadecimal digits")
}

/// The two guests by their names.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Name {
    /// Renders pages
    Render,
    /// Judges SQL
    Gate,
}

impl From<Name> for World {
    fn from(name: Name) -> Self {
        match name {
            Name::Render => Self::Render,
            Name::Gate => Self::Gate,
        }
    }
}

/// Where guests are, for a command.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
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

impl Place {
    /// The installation that a command works on.
    fn site(&self) -> anyhow::Result<Site> {
        self.found(&self.settings()?)
    }

    /// Reads the server's settings too, for commands that compile and try guests.
    fn config(&self) -> anyhow::Result<(Config, Site)> {
        let settings = self.settings()?;
        let site = self.found(&settings)?;
        let listen = settings.listen();
        Ok((settings.resolve(listen)?, site))
    }

    fn found(&self, settings: &Settings) -> anyhow::Result<Site> {
        let (data, guests) = (settings.data(), settings.guests());
        let args = OperatorArgs {
            data: Some(data.clone()),
            json: self.args.json,
        };
        args.installation_to_be()?;
        Ok(Site { data, guests })
    }

    /// Reads the flags, the environment and the file.
    fn settings(&self) -> anyhow::Result<Settings> {
        let settings = Settings {
            data: self.args.data.clone(),
            guests: self.guests.clone(),
            cache: self.cache.clone(),
            ..Settings::default()
        };
        let mut settings = super::serve::with_file(settings, self.config.clone())?;
        // No command asks the edge for anything, so none needs its token.
        settings.edge = None;
        Ok(settings)
    }
}

/// The directories of an installation.
#[derive(Clone, Debug)]
struct Site {
    data: PathBuf,
    guests: PathBuf,
}

impl Site {
    /// The control database: to read from it alone where a server has it.
    fn control(&self) -> anyhow::Result<Control> {
        let data = &self.data;
        let opened = match is_served(data)? {
            true => Control::open_read_only(data),
            false => Control::open(data),
        };
        opened.with_context(|| format!("opening {}", data.display()))
    }

    /// Runs an operation on it: by the server, if one runs.
    async fn reach(&self, operation: Operation) -> anyhow::Result<Answer> {
        operators::run_command(&self.data, operation, actor()).await
    }

    fn folder(&self, world: World) -> Folder {
        Folder::new(&self.guests, world)
    }

    /// Refuses where the server that runs has its guests elsewhere: it would not follow what is changed here.
    async fn agree(&self) -> anyhow::Result<()> {
        for _ in 0..BEGINS {
            if !is_served(&self.data)? {
                break;
            }
            if let Some(said) = read_said(&self.data)? {
                return check_guests_directory(Path::new(&said.paths.guests), &self.guests);
            }
            // It has only just begun.
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }
}

/// Where a command tries guests: with the server's budgets.
fn bench(config: &Config) -> Bench {
    Bench {
        cache: config.cache.clone(),
        limits: config.limits.guest_limits(),
        page_bytes: usize::try_from(config.limits.page_bytes).unwrap_or(usize::MAX),
    }
}

impl Guest {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Status { place } => status::run(&place).await,
            Self::Check(check) => check.run().await,
            Self::Install(install) => install.run().await,
            Self::Rollback { name, from, place } => {
                switch::roll_back(name.into(), from, &place).await
            }
            Self::Rerender { wait, place } => rerender(wait, &place).await,
        }
    }
}

/// Asks for a rerender, which the server does behind its other work.
async fn rerender(wait: bool, place: &Place) -> anyhow::Result<ExitCode> {
    let site = place.site()?;
    let reach = async |wanted: Rerender| -> anyhow::Result<Option<Remade>> {
        let answer = site.reach(Operation::Rerender(wanted)).await?;
        Ok(serde_json::from_str(&answer.document)?)
    };
    let begun = reach(Rerender::Begin).await?;
    let mut done = begun.context("no rerender has begun")?;
    let mut served = is_served(&site.data)?;
    if wait {
        let bar = Progress::new();
        while served && !done.is_finished() {
            bar.count("rerender", done.pages_done(), done.total);
            tokio::time::sleep(LOOK).await;
            // In this order, so that what a server did before it ended is seen.
            served = is_served(&site.data)?;
            done = reach(Rerender::Look).await?.unwrap_or(done);
        }
    }
    let text = if served || done.is_finished() {
        told(&done)
    } else {
        "no server runs: pages are rendered again after its next start".to_owned()
    };
    let document = serde_json::json!({ "server_running": served, "rerender": done });
    place.args.answer(&document, &text)?;
    Ok(if wait && !done.is_finished() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// How far a rerender is.
fn told(done: &Remade) -> String {
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
