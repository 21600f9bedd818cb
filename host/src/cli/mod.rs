//! The command line: `serve`, what operators do to a data directory while the server runs, and the client's commands.

mod actor;
mod audit;
mod backup;
mod check;
mod config;
mod deployment;
mod dev;
mod guest;
mod key;
mod manual;
mod namespace;
mod payments;
mod progress;
mod project;
mod provider;
mod report;
mod restore;
mod serve;
mod status;
mod table;
mod visitors;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{CommandFactory as _, Parser, Subcommand};
use serde::Serialize;

use crate::backup as restores;
use crate::client;
use crate::clock::Clock;
use crate::config::Settings;
use crate::control::audit::{Act, Doer, done_by};
use crate::control::{Control, events};
use crate::data_dir;
use crate::data_lock::{DataLock, make_private, refuse_restore};
use crate::http::request_ids::RequestIds;
use crate::private;
use crate::random::Random;
use crate::workspaces::Workspaces;

/// Hosting with a backend, for people and their agents.
#[derive(Debug, Parser)]
#[command(name = "svc", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve pages, projects and tools until told to stop
    Serve(serve::Serve),
    /// Print the effective settings
    Config(config::ShowConfig),
    /// Say how the server does, what it holds, and how much of what it may
    Status(status::Status),
    /// Make, list, change and delete namespaces, which own projects
    #[command(subcommand)]
    Namespace(namespace::Namespace),
    /// Make, list and revoke the keys of a namespace
    #[command(subcommand)]
    Key(key::Key),
    /// Look at deployments, take them down, or put them back
    #[command(subcommand)]
    Deployment(deployment::Deployment),
    /// Look at projects, make, change and delete them
    #[command(subcommand)]
    Project(project::Project),
    /// Look at what the payment provider has said, and derive from it anew
    #[command(subcommand)]
    Payments(payments::Payments),
    /// Serve the folder from a server of its own while you work on it; or do to a server under `serve --dev` what the world does
    Dev(dev::Dev),
    /// List a project's visitors, and erase one
    #[command(subcommand)]
    Visitors(visitors::Visitors),
    /// Look at sign-in providers
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    /// Look at guests, install them, and put the ones before back
    #[command(subcommand)]
    Guest(guest::Guest),
    /// Read what people report, and close what is done
    #[command(subcommand)]
    Report(report::Report),
    /// Read who changed what
    Audit(audit::Audit),
    /// Verify everything that is stored
    Check(check::Check),
    /// Copy everything that is stored, while the server runs
    Backup(backup::Backup),
    /// Put a backup back, while no server runs
    Restore(restore::Restore),
    #[command(flatten)]
    Client(client::Command),
    /// Print what a shell completes commands with
    Completions(manual::Completions),
    /// Write the manual's pages
    Man(manual::Man),
}

impl Command {
    /// Whether it works on the user's own files alone, which get the modes that the user wants.
    fn is_clients(&self) -> bool {
        match self {
            Self::Client(_) | Self::Completions(_) | Self::Man(_) => true,
            Self::Dev(dev) => dev.is_clients(),
            _ => false,
        }
    }
}

/// The whole command line, for the documents that list it.
pub fn commands() -> clap::Command {
    Arguments::command()
}

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if !arguments.command.is_clients() {
        private::begin();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let done = runtime.context("starting the runtime").and_then(|runtime| {
        runtime.block_on(async {
            match arguments.command {
                // What a server does by itself is nobody's deed.
                Command::Serve(serve) => serve.run().await,
                command if command.is_clients() => command.run().await,
                command => done_by(operator()?, command.run()).await,
            }
        })
    });
    match done {
        Ok(code) => code,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

impl Command {
    async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Serve(serve) => serve.run().await,
            Self::Config(config) => config.run(),
            Self::Status(status) => status.run().await,
            Self::Namespace(namespace) => namespace.run().await,
            Self::Key(key) => key.run().await,
            Self::Deployment(deployment) => deployment.run().await,
            Self::Project(project) => project.run().await,
            Self::Payments(payments) => payments.run().await,
            Self::Visitors(visitors) => visitors.run().await,
            Self::Provider(provider) => provider.run().await,
            Self::Dev(dev) => dev.run().await,
            Self::Guest(guest) => guest.run().await,
            Self::Report(report) => report.run().await,
            Self::Audit(audit) => audit.run().await,
            Self::Check(check) => check.run().await,
            Self::Backup(backup) => backup.run().await,
            Self::Restore(restore) => restore.run().await,
            Self::Client(command) => Ok(command.run().await),
            Self::Completions(completions) => completions.run(),
            Self::Man(man) => man.run(),
        }
    }
}

/// Who gives this command, with an id as that of a request.
fn operator() -> anyhow::Result<Doer> {
    let prefix = u32::from_le_bytes(Random::system().bytes()?);
    Ok(Doer::operator(&RequestIds::new(prefix).next()))
}

/// What operator commands have in common.
#[derive(Debug, clap::Args)]
struct Operate {
    /// The data directory [default: ./data]
    #[arg(long, env = "SVC_DATA")]
    data: Option<PathBuf>,
    /// Answer with one JSON document
    #[arg(long)]
    json: bool,
}

impl Operate {
    fn data(&self) -> PathBuf {
        Settings {
            data: self.data.clone(),
            ..Settings::default()
        }
        .data()
    }

    /// The data directory of an installation that is there, after whatever a restore left undone. Nothing is made where there is none.
    fn installation(&self) -> anyhow::Result<PathBuf> {
        self.found(data_dir::is_installation)
    }

    /// The same for guests, which may be installed before the first start, too.
    fn installation_to_be(&self) -> anyhow::Result<PathBuf> {
        self.found(|_| true)
    }

    fn found(&self, is_one: impl FnOnce(&Path) -> bool) -> anyhow::Result<PathBuf> {
        let data = self.data();
        let shown = data.display();
        if !data.is_dir() {
            bail!("there is no data directory {shown}: name it with --data");
        }
        if !is_one(&data) {
            bail!(
                "{shown} is no data directory, for it has no control.db: name another with --data"
            );
        }
        self.close(&data)?;
        settle(&data)?;
        Ok(data)
    }

    /// The same for the first namespace, which may be made before the first start: a directory that was named is made, and that is said.
    fn founded(&self) -> anyhow::Result<PathBuf> {
        let data = self.data();
        let shown = data.display();
        if !data.exists() {
            if self.data.is_none() {
                bail!(
                    "there is no data directory {shown}: name the one to use or to make with --data"
                );
            }
            make_private(&data).with_context(|| format!("making {shown}"))?;
            say(&format!("made the data directory {shown}"));
        }
        self.close(&data)?;
        settle(&data)?;
        Ok(data)
    }

    fn close(&self, data: &Path) -> anyhow::Result<()> {
        if let Some(was_open) = data_dir::close(data)? {
            say(&format!("warning: {was_open}"));
        }
        Ok(())
    }

    /// Opens the control database.
    fn control(&self) -> anyhow::Result<Control> {
        let data = self.installation()?;
        Control::open(&data).with_context(|| format!("opening {}", data.display()))
    }

    /// The same of an installation that is begun with it if need be.
    fn first_control(&self) -> anyhow::Result<Control> {
        Ok(Control::open(&self.founded()?)?)
    }

    fn workspaces(&self, control: &Control) -> Workspaces {
        Workspaces::new(control.clone(), Clock::system(), Random::system())
    }

    /// Tells the server's log what was done.
    async fn note(&self, control: &Control, command: String) {
        self.note_of(control, command, None).await;
    }

    /// Tells the server's log what was done, and the audit what was done to what.
    async fn note_of(&self, control: &Control, command: String, act: Option<(Act, String)>) {
        let deed = actor::deed(command);
        if let Err(error) = events::note(control, deed, act, Clock::system().now()).await {
            say(&format!("the server's log does not know of this: {error}"));
        }
    }

    /// Prints an answer: the document with `--json`, else the text.
    fn answer(&self, document: &impl Serialize, text: &str) -> anyhow::Result<ExitCode> {
        let out = if self.json {
            serde_json::to_string(document)?
        } else {
            text.trim_end().to_owned()
        };
        // An empty list is nothing, and not an empty line.
        if !out.is_empty() {
            print(&out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Finishes a restore that was interrupted: between its two states there is nothing to work on. Refuses while one runs.
fn settle(data: &Path) -> anyhow::Result<()> {
    refuse_restore(data)?;
    if data_dir::is_unfinished(data) {
        let _lock = DataLock::take(data)?;
        restores::settle(data)?;
    }
    Ok(())
}

/// Prints a line of the answer on standard output.
fn print(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .context("writing to standard output")
}

/// Tells the person at the terminal something beside the answer.
fn say(line: &str) {
    // There is nobody left to tell that standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Sockets and tenants' databases are files, of which many systems allow a process few until it asks for more.
fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
}
