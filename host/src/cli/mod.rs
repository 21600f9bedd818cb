//! The command line: `serve`, the operators' commands, and the client's commands.

mod actor;
mod backup;
mod check;
mod cluster;
mod compile;
mod config;
mod console_link;
mod dev;
mod domain;
mod guest;
mod healthcheck;
mod manual;
mod node;
mod progress;
mod project;
mod provider;
mod restore;
mod serve;
mod status;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{CommandFactory as _, Parser, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};
use svc_sandbox::COMPILE_COMMAND;

use crate::backup as restores;
use crate::client;
use crate::cluster::found;
use crate::config::Settings;
use crate::control::ControlDatabase;
use crate::data_dir;
use crate::data_lock::{DataLock, check_not_restoring, create_private_dir};
use crate::operators::{self, Operation, OperationAnswer, OperatorArgs};
use crate::permissions;
use crate::terminal;

/// Longest time that a process which ends waits for its threads.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Hosting with a backend, for people and their agents.
#[derive(Debug, Parser)]
#[command(name = "svc", version, propagate_version = true)]
struct CommandLineArgs {
    #[command(subcommand)]
    command: TerminalCommand,
}

#[derive(Debug, Subcommand)]
enum TerminalCommand {
    /// Serve pages, projects and tools until told to stop
    Serve(serve::ServeCommand),
    /// Print the effective settings
    Config(config::ShowConfigCommand),
    /// Say how the server does, what it holds, and how much of what it may
    Status(status::StatusCommand),
    /// Ask the running server whether it serves everything; 0 says yes
    Healthcheck(healthcheck::HealthcheckCommand),
    #[command(flatten)]
    Operation(operators::OperatorCommand),
    /// Look at projects, make, change and delete them
    #[command(subcommand)]
    Project(project::ProjectCommand),
    /// Bring domains for a project; list all of a data directory, and take one down
    #[command(subcommand)]
    Domain(domain::DomainCommand),
    /// Serve the folder from a server of its own while you work on it; or do to a server under `serve --dev` what the world does
    Dev(dev::DevCommand),
    /// Look at sign-in providers
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    /// Look at guests, install them, and put the ones before back
    #[command(subcommand)]
    Guest(guest::GuestCommand),
    /// Verify everything that is stored
    Check(check::CheckCommand),
    /// Copy everything that is stored, while the server runs
    Backup(backup::BackupCommand),
    /// Put a backup back, or bring a cluster's installation onto one machine, while no server runs
    Restore(restore::RestoreCommand),
    /// Begin a cluster of several nodes
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    /// Look at the nodes of a cluster, and remove dead ones
    #[command(subcommand)]
    Node(node::NodeCommand),
    /// Have this node of a cluster take over now, and answer when it serves
    Promote(node::PromoteCommand),
    #[command(flatten)]
    Client(client::ClientCommand),
    /// Print what a shell completes commands with
    Completions(manual::CompletionsCommand),
    /// Write the manual's pages
    Man(manual::ManCommand),
    /// Compile the guest on standard input, as the server has it done
    #[command(name = COMPILE_COMMAND, hide = true)]
    CompileGuest(compile::CompileGuestCommand),
}

impl TerminalCommand {
    /// Whether the command works on the user's own files alone: then the user's umask applies.
    fn is_client_command(&self) -> bool {
        match self {
            Self::Client(_) | Self::Completions(_) | Self::Man(_) => true,
            Self::Dev(dev) => dev.is_client_command(),
            _ => false,
        }
    }
}

/// Returns the whole command line, for the documents that list it.
pub fn commands() -> clap::Command {
    CommandLineArgs::command()
}

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let arguments = CommandLineArgs::parse();
    if !arguments.command.is_client_command() {
        permissions::set_umask();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let done = runtime.context("starting the runtime").and_then(|runtime| {
        let done = runtime.block_on(async {
            match arguments.command {
                TerminalCommand::Serve(serve) => Box::pin(serve.run()).await,
                TerminalCommand::Config(config) => config.run(),
                TerminalCommand::Status(status) => status.run().await,
                TerminalCommand::Healthcheck(healthcheck) => healthcheck.run().await,
                TerminalCommand::Operation(command) => {
                    let (args, operation) = command.split();
                    let answer = args.run_operation(operation).await?;
                    args.print_document_or_text(&answer.document, &answer.text)
                }
                TerminalCommand::Dev(dev) => dev.run().await,
                TerminalCommand::Provider(provider) => provider.run().await,
                TerminalCommand::Project(project) => project.run().await,
                TerminalCommand::Domain(domain) => domain.run().await,
                TerminalCommand::Guest(guest) => guest.run().await,
                TerminalCommand::Check(check) => check.run().await,
                TerminalCommand::Backup(backup) => backup.run().await,
                TerminalCommand::Restore(restore) => restore.run().await,
                TerminalCommand::Cluster(cluster) => cluster.run().await,
                TerminalCommand::Node(node) => node.run().await,
                TerminalCommand::Promote(promote) => promote.run().await,
                TerminalCommand::Client(command) => Ok(command.run().await),
                TerminalCommand::Completions(completions) => completions.run(),
                TerminalCommand::Man(man) => man.run(),
                TerminalCommand::CompileGuest(compile) => compile.run(),
            }
        });
        // A thread that waits for a mount that hangs may never come back.
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        done
    });
    match done {
        Ok(code) => code,
        Err(error) => {
            let detail = format!("{error:#}");
            if client::json_requested() {
                // If standard output is closed, standard error still has the reason.
                let _ = print(&terminal::escape_json(&failure_json(&detail).to_string()));
            }
            print_note(&format!("error: {detail}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a failure as JSON, in the form that the client's commands use.
fn failure_json(detail: &str) -> Value {
    json!({ "error": { "title": "Not done", "detail": detail, "exit": 1 } })
}

impl OperatorArgs {
    fn data(&self) -> PathBuf {
        Settings {
            data: self.data.clone(),
            ..Settings::default()
        }
        .data()
    }

    /// Returns the data directory of an existing installation, after finishing an interrupted restore. Creates nothing. That of a
    /// node of several may have no control database.
    fn installation(&self) -> anyhow::Result<PathBuf> {
        self.find_installation(|data| {
            data_dir::is_installation(data) || matches!(found::installation_id(data), Ok(Some(_)))
        })
    }

    /// Returns the data directory, which may be empty: guests may be installed before the first start.
    fn installation_or_empty(&self) -> anyhow::Result<PathBuf> {
        self.find_installation(|_| true)
    }

    fn find_installation(&self, is_one: impl FnOnce(&Path) -> bool) -> anyhow::Result<PathBuf> {
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
        self.restrict_permissions(&data)?;
        finish_restore(&data)?;
        Ok(data)
    }

    /// Returns the data directory, and creates it for the first namespace if `--data` names it.
    fn installation_or_new(&self) -> anyhow::Result<PathBuf> {
        let data = self.data();
        let shown = data.display();
        if !data.exists() {
            if self.data.is_none() {
                bail!(
                    "there is no data directory {shown}: name the one to use or to make with --data"
                );
            }
            create_private_dir(&data).with_context(|| format!("making {shown}"))?;
            print_note(&format!("made the data directory {shown}"));
        }
        self.restrict_permissions(&data)?;
        finish_restore(&data)?;
        Ok(data)
    }

    fn restrict_permissions(&self, data: &Path) -> anyhow::Result<()> {
        if let Some(was_open) = data_dir::restrict(data)? {
            print_note(&format!("warning: {was_open}"));
        }
        Ok(())
    }

    /// Opens the control database to read from it; a server may have it open.
    fn control(&self) -> anyhow::Result<ControlDatabase> {
        let data = self.installation()?;
        operators::check_not_of_node(&data)?;
        ControlDatabase::open(&data).with_context(|| format!("opening {}", data.display()))
    }

    /// Runs an operation: in the server, if one runs.
    async fn run_operation(&self, operation: Operation) -> anyhow::Result<OperationAnswer> {
        let data = match operation.creates_installation()? {
            true => self.installation_or_new()?,
            false => self.installation()?,
        };
        operators::run_command(&data, operation, actor::current_actor_name()).await
    }

    /// Prints an answer: the document with `--json`, else the text.
    fn print_answer(&self, document: &impl Serialize, text: &str) -> anyhow::Result<ExitCode> {
        self.print_document_or_text(&serde_json::to_string(document)?, text.trim_end())
    }

    fn print_document_or_text(&self, document: &str, text: &str) -> anyhow::Result<ExitCode> {
        let out = match self.json {
            true => terminal::escape_json(document).into_owned(),
            false => terminal::escape_text(text),
        };
        // An empty list prints nothing, not an empty line.
        if !out.is_empty() {
            print(&out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Finishes an interrupted restore. Fails while a restore runs.
fn finish_restore(data: &Path) -> anyhow::Result<()> {
    check_not_restoring(data)?;
    if data_dir::is_unfinished(data) {
        let _lock = DataLock::take(data)?;
        restores::finish_interrupted(data)?;
    }
    Ok(())
}

/// Prints the answer on standard output.
fn print(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .context("writing to standard output")
}

/// Prints a note on standard error, beside the answer.
fn print_note(line: &str) {
    // If standard error is closed, the note is lost.
    let _ = writeln!(std::io::stderr().lock(), "{}", terminal::escape_text(line));
}

/// Raises the limit of open files to its maximum: sockets and tenants' databases need many.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
}
