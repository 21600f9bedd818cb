//! Commands of the client: everything that people and their scripts do on a server, by REST alone.
//!
//! The operators' commands (`cli`) are separate: they work on a data directory. A command finds its server by `--server`, by
//! a profile of `svc login`, or by the environment.

#![forbid(unsafe_code)]

mod actions;
mod activity;
mod api;
mod audit_log;
mod backends;
mod desktop;
mod difference;
mod domains;
pub mod endpoints;
mod error;
mod file_rules;
mod file_watcher;
mod files;
mod frontends;
mod login;
mod manifest;
mod output;
mod params;
mod prices;
mod profile;
mod progress;
mod projects;
mod publish;
mod push;
mod question;
mod responses;
mod result_table;
mod revisions;
mod saved_body;
mod secret;
mod sites;
mod source;
mod types;
mod visitor_files;

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use self::error::{CliFailure, FailureExitCode, Result};
use self::files::DirectoryHandle;
use self::output::{OutputFormat, print_error};
use svc_base::terminal;
use svc_sources::ContentType;

pub use domains::DomainChangeCommand;
pub use manifest::{DevServerSettings, FolderDevCommand, StartedDevServer};
pub use profile::ServerSelectionArgs;
pub use projects::{EnvironmentArgs, ProjectChangeCommand, ProjectSelectionArgs};

/// A running command. It is boxed, so that its code is made in this package and not where it is awaited.
pub type RunningCommand<'a> = Pin<Box<dyn Future<Output = ExitCode> + 'a>>;

/// Commands of people and their scripts on a server.
#[derive(Debug, clap::Subcommand)]
pub enum ClientCommand {
    /// Keep a credential for a server, from a prompt or from standard input
    Login(login::LoginCommand),
    /// Forget a credential
    Logout(login::LogoutCommand),
    /// List the profiles of `svc login`, and choose one
    #[command(subcommand)]
    Profile(login::ProfileCommand),
    /// Publish files, and print their links; no login is needed
    Publish(publish::PublishCommand),
    /// Delete a quick share
    Unpublish(publish::UnpublishCommand),
    /// Update a page of a project from a file, by a draft that is made live
    Push(push::PushCommand),
    /// Publish a file as a page of a project whenever it is saved
    Watch(push::WatchCommand),
    /// Make a folder that `svc dev` serves as it is: pages, a database, actions
    Init(manifest::InitCommand),
    /// Make the server like the folder that svc.toml describes
    Apply(manifest::ApplyCommand),
    /// Make the folder like the server
    Pull(manifest::PullCommand),
    /// List, show, compare and delete the pages of a project
    #[command(subcommand)]
    Frontend(frontends::FrontendCommand),
    /// List, compare, promote, roll back and delete revisions of a page
    #[command(subcommand)]
    Revision(revisions::RevisionCommand),
    /// Make, migrate, ask, copy and restore a project's database
    #[command(subcommand)]
    Backend(backends::BackendCommand),
    /// List, define and call actions
    #[command(subcommand)]
    Action(actions::ActionCommand),
    /// Write TypeScript declarations of a project's actions
    Types(types::TypesCommand),
    /// List, add and withdraw what a project sells
    #[command(subcommand)]
    Price(prices::PriceCommand),
    /// Follow the requests of a project's pages as they come
    Tail(activity::TailCommand),
    /// Count what a project's pages did, by the hour or the day
    Stats(activity::StatsCommand),
    /// List, read and delete what visitors have uploaded
    #[command(subcommand)]
    File(visitor_files::VisitorFileCommand),
}

/// Arguments that commands of the client have in common.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct CommonArgs {
    #[command(flatten)]
    remote: ServerSelectionArgs,
    /// Answer with one JSON document
    #[arg(long)]
    json: bool,
}

impl CommonArgs {
    fn output(&self) -> OutputFormat {
        OutputFormat { json: self.json }
    }
}

impl ClientCommand {
    /// Runs the command; returns its exit code.
    pub fn run(self) -> RunningCommand<'static> {
        // A failure is also reported as JSON, and only the commands themselves know their arguments.
        let json = json_requested();
        Box::pin(async move { exit_code(json, self.execute().await) })
    }

    /// Runs `svc dev`. The program starts and stops the folder's server, which the client knows only by its URL.
    pub async fn dev<S, R: Fn(BTreeMap<String, String>)>(
        dev: FolderDevCommand,
        start: impl AsyncFnOnce(DevServerSettings) -> anyhow::Result<StartedDevServer<S, R>>,
        stop: impl AsyncFnOnce(S) -> anyhow::Result<()>,
    ) -> ExitCode {
        let json = json_requested();
        exit_code(json, Box::pin(dev.run(start, stop)).await)
    }

    async fn execute(self) -> Result<()> {
        match self {
            Self::Login(login) => login.run().await,
            Self::Logout(logout) => logout.run(),
            Self::Profile(profile) => profile.run(),
            Self::Publish(publish) => publish.run().await,
            Self::Unpublish(unpublish) => unpublish.run().await,
            Self::Push(push) => push.run().await,
            Self::Watch(watch) => watch.run().await,
            Self::Init(init) => init.run(),
            Self::Apply(apply) => apply.run().await,
            Self::Pull(pull) => pull.run().await,
            Self::Frontend(frontend) => frontend.run().await,
            Self::Revision(revision) => revision.run().await,
            Self::Backend(backend) => backend.run().await,
            Self::Action(action) => action.run().await,
            Self::Types(types) => types.run().await,
            Self::Price(price) => price.run().await,
            Self::Tail(tail) => tail.run().await,
            Self::Stats(stats) => stats.run().await,
            Self::File(file) => file.run().await,
        }
    }
}

/// Lists the caller's projects.
pub fn list_projects(remote: &ServerSelectionArgs, json: bool) -> RunningCommand<'_> {
    Box::pin(async move { exit_code(json, projects::list(remote, json).await) })
}

/// Shows one of the caller's projects; without a name that of the working directory.
pub fn show_project<'a>(
    remote: &'a ServerSelectionArgs,
    json: bool,
    wanted: (Option<&'a str>, &'a EnvironmentArgs),
) -> RunningCommand<'a> {
    Box::pin(async move { exit_code(json, projects::show(remote, json, wanted).await) })
}

/// Creates, changes or deletes a project.
pub fn change_project(change: ProjectChangeCommand) -> RunningCommand<'static> {
    Box::pin(async move { exit_code(json_requested(), change.run().await) })
}

/// Lists the domains of one of the caller's projects.
pub fn list_domains<'a>(
    remote: &'a ServerSelectionArgs,
    json: bool,
    project: &'a ProjectSelectionArgs,
) -> RunningCommand<'a> {
    Box::pin(async move { exit_code(json, domains::list(remote, json, project).await) })
}

/// Adds, verifies or removes a domain.
pub fn change_domain(change: DomainChangeCommand) -> RunningCommand<'static> {
    Box::pin(async move { exit_code(json_requested(), change.run().await) })
}

/// Writes files by their names into a folder, which is made if need be. Regular files of these names are replaced; with anything
/// else in the place of one, such as a link, nothing is written.
pub fn write_files(folder: &Path, files: &[(String, Vec<u8>)]) -> ExitCode {
    let write = || -> Result<()> {
        let folder = DirectoryHandle::create(folder)?;
        for (name, _) in files {
            folder.exists(Path::new(name))?;
        }
        files
            .iter()
            .try_for_each(|(name, bytes)| folder.write(Path::new(name), bytes, true))
    };
    exit_code(false, write())
}

/// Whether the command line asks for one JSON document.
pub fn json_requested() -> bool {
    std::env::args_os().any(|argument| argument == "--json")
}

fn exit_code(json: bool, done: Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report_failure(json, &failure);
            ExitCode::from(failure.exit as u8)
        }
    }
}

/// Reports a failure to a person, or to a program as JSON.
fn report_failure(json: bool, failure: &CliFailure) {
    match json {
        true => print_error(&terminal::escape_json(&failure.to_json().to_string())),
        false => print_error(&failure.to_text()),
    }
}

/// Runs work that must clean up when Ctrl-C ends it.
async fn run_until_interrupt<T>(work: impl Future<Output = Result<T>>, then: &str) -> Result<T> {
    tokio::select! {
        done = work => done,
        _ = tokio::signal::ctrl_c() => Err(CliFailure::new(FailureExitCode::Interrupted, "Interrupted", then)),
    }
}

/// Parses the name of a content type.
fn content_type_parser() -> impl TypedValueParser<Value = ContentType> {
    PossibleValuesParser::new(ContentType::NAMES).try_map(|name| {
        let mut all = ContentType::ALL.into_iter();
        all.find(|one| one.as_str() == name).ok_or("no such type")
    })
}

/// Parses a duration such as `90`, `30m`, `12h` or `7d`.
fn parse_seconds(text: &str) -> std::result::Result<u64, String> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) => (number, &text[number.len()..]),
        None => (text, "s"),
    };
    let unit = match unit {
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => 1,
    };
    let number: Option<u64> = number.parse().ok();
    let seconds = number.and_then(|number| number.checked_mul(unit));
    seconds.ok_or_else(|| "write a number with s, m, h or d, such as 12h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        for (text, expected) in [
            ("90", Some(90)),
            ("90s", Some(90)),
            ("30m", Some(1800)),
            ("12h", Some(43_200)),
            ("7d", Some(604_800)),
            ("", None),
            ("h", None),
            ("1.5h", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(parse_seconds(text).ok(), expected, "{text}");
        }
    }
}
