//! `svc guest status|check|install|rollback|rerender`.

mod check;
mod status;
mod switch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;

use super::Operate;
use super::progress::Progress;
use crate::clock::Clock;
use crate::config::{Config, Settings};
use crate::control::Control;
use crate::deployments::rerender::{self, Progress as Rerender};
use crate::guests::check::Bench;
use crate::guests::status::is_served;
use crate::sandbox::{Limits, World};

/// How often a command looks what the server does.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug, clap::Subcommand)]
pub(super) enum Guest {
    /// Say which guests serve, since when, and what they use
    Status {
        #[command(flatten)]
        place: Place,
    },
    /// Look at a component, and try it on everything that is stored
    Check(check::Check),
    /// Let a component serve, if it passes the check
    Install(switch::Install),
    /// Let the guest that served before serve again
    Rollback {
        /// Which guest
        name: Name,
        #[command(flatten)]
        place: Place,
    },
    /// Render every page again that another guest has made
    Rerender {
        /// Wait until it is done, and show how far it is
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        place: Place,
    },
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
    operate: Operate,
    /// Directory of installed guest components [default: <data>/guests]
    #[arg(long, env = "SVC_GUESTS")]
    guests: Option<PathBuf>,
    /// Directory of compiled guests; the server's, so that it finds them there [default: svc/ in your cache directory]
    #[arg(long, env = "SVC_CACHE")]
    cache: Option<PathBuf>,
    /// The server's file of settings: directories and budgets
    #[arg(long, env = "SVC_CONFIG")]
    config: Option<PathBuf>,
}

impl Place {
    /// The settings of the server, as far as they say something of guests.
    fn settings(&self) -> anyhow::Result<Config> {
        let settings = Settings {
            data: self.operate.data.clone(),
            guests: self.guests.clone(),
            cache: self.cache.clone(),
            ..Settings::default()
        };
        let mut settings = super::serve::with_file(settings, self.config.clone())?;
        // No command asks the edge for anything, so none needs its token.
        settings.edge = None;
        let listen = settings.listen();
        let config = settings.resolve(listen)?;
        let operate = Operate {
            data: Some(config.data.clone()),
            json: self.operate.json,
        };
        operate.installation()?;
        Ok(config)
    }
}

fn control(config: &Config) -> anyhow::Result<Control> {
    let data = &config.data;
    Control::open(data).with_context(|| format!("opening {}", data.display()))
}

/// Where a command tries guests: with the server's budgets.
fn bench(config: &Config) -> Bench {
    let limits = &config.limits;
    let budget = |fuel, bytes, millis| Limits {
        fuel,
        memory_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        wall: Duration::from_millis(millis),
    };
    Bench {
        cache: config.cache.clone(),
        render: budget(
            limits.render_fuel,
            limits.render_memory_bytes,
            limits.render_ms,
        ),
        gate: budget(limits.gate_fuel, limits.gate_memory_bytes, limits.gate_ms),
        page_bytes: usize::try_from(limits.page_bytes).unwrap_or(usize::MAX),
    }
}

impl Guest {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Status { place } => status::run(&place).await,
            Self::Check(check) => check.run().await,
            Self::Install(install) => install.run().await,
            Self::Rollback { name, place } => switch::roll_back(name.into(), &place).await,
            Self::Rerender { wait, place } => rerender(wait, &place).await,
        }
    }
}

/// Asks for a rerender, which the server does behind its other work.
async fn rerender(wait: bool, place: &Place) -> anyhow::Result<ExitCode> {
    let config = place.settings()?;
    let control = control(&config)?;
    let mut done = rerender::request(&control, &Clock::system()).await?;
    let served = is_served(&config.data)?;
    if wait && served {
        let bar = Progress::new();
        while !done.is_finished() && is_served(&config.data)? {
            bar.count("rerender", done.done(), done.total);
            tokio::time::sleep(LOOK).await;
            done = rerender::progress(&control).await?.unwrap_or(done);
        }
    }
    let text = if served {
        told(&done)
    } else {
        "no server runs: pages are rendered again after its next start".to_owned()
    };
    let document = serde_json::json!({ "server_running": served, "rerender": done });
    place.operate.answer(&document, &text)
}

/// How far a rerender is.
fn told(done: &Rerender) -> String {
    let counts = format!(
        "{} changed, {} unchanged, {} failed and stay as they are, {} changed by somebody else",
        done.changed, done.unchanged, done.failed, done.skipped
    );
    match done.finished_at {
        Some(at) => format!("rendered again by {at}: {counts}"),
        None => format!(
            "pages are being rendered again: {} of {} ({counts})",
            done.done(),
            done.total
        ),
    }
}
