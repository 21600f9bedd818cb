//! `svc dev`: the folder on a server of its own, applied again whenever something is saved.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::apply::{Applying, addresses};
use super::begin::begin;
use super::plan::Plan;
use super::state::State;
use super::{FILE, Folder};
use crate::client::api::Api;
use crate::client::error::{Exit, Failure, Result};
use crate::client::files::Directory;
use crate::client::output::say;
use crate::client::profile::{Target, address};
use crate::client::progress::Progress;
use crate::client::watching::Watching;
use crate::client::{Out, asked, calls, tell};
use crate::config::Settings;
use crate::server::Server;
use crate::workspaces::Plan as WorkspacePlan;
use svc_base::clock::Clock;
use svc_base::random::Random;

/// The namespace of the folder's project.
const NAMESPACE: &str = "dev";

/// Serves the folder from a server of its own while you work on it.
#[derive(Debug, clap::Args)]
pub struct Dev {
    /// The folder with svc.toml
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Write svc.toml where there is none, for the pages of the folder or with a first one
    #[arg(long)]
    begin: bool,
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where compiled guests are kept [default: the user's cache directory]
    #[arg(long, env = "SVC_CACHE", value_name = "DIR", hide_env = true)]
    cache: Option<PathBuf>,
    /// Answer with one JSON document a line
    #[arg(long)]
    json: bool,
}

impl Dev {
    pub(in crate::client) async fn run(self) -> Result<()> {
        let out = Out { json: self.json };
        // What cannot be read is said before anything is started.
        self.begin_if_wanted(out)?;
        Folder::read(&Directory::open(&self.folder)?)?;
        let failed = |error: &dyn std::fmt::Display| {
            Failure::here(format!(
                "The server for the folder does not start: {error}."
            ))
        };
        let stop = async {
            let (mut interrupt, mut terminate) = (
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
            );
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            std::io::Result::Ok(())
        };
        // It goes with the command, and nobody else reads it.
        let data = tempfile::tempdir().map_err(|error| failed(&error))?;
        let settings = Settings {
            data: Some(data.path().to_owned()),
            listen: Some(self.listen),
            cache: self.cache.clone(),
            // With stand-ins for sign-in and payments.
            dev: true,
            ..Settings::default()
        };
        let server = Server::start(settings, Clock::system(), Random::system()).await;
        let server = server.map_err(|error| failed(&format!("{error:#}")))?;
        let work = self.serve(&server, out);
        let done = tokio::select! {
            done = work => done,
            stopped = stop => stopped.map_err(|error| failed(&error)),
        };
        if let Err(error) = server.stop().await {
            say(&format!("the server did not stop in good order: {error:#}"));
        }
        done
    }

    /// Writes a manifest where there is none, if that is said or answered.
    fn begin_if_wanted(&self, out: Out) -> Result<()> {
        if self.begin {
            Directory::make(&self.folder)?;
        }
        let folder = Directory::open(&self.folder)?;
        if folder.has(Path::new(FILE))? {
            return Ok(());
        }
        let path = folder.shown(Path::new(FILE));
        let question = format!(
            "{} is not there. Write one for the pages of the folder?",
            path.display()
        );
        if self.begin || (out.can_ask() && asked(&question)) {
            for name in begin(&folder, &self.folder)? {
                out.note(&format!("wrote {}", folder.shown(&name).display()));
            }
        }
        Ok(())
    }

    async fn serve(&self, server: &Server, out: Out) -> Result<()> {
        let workspaces = &server.app().workspaces;
        let made = workspaces.create(NAMESPACE, WorkspacePlan::Pro).await;
        let made = made.map_err(|error| Failure::here(error.to_string()))?;
        let base = server.app().config.base_url.to_string();
        let api = Api::of(Target {
            server: address(base.trim_end_matches('/'))?,
            credential: Some(made.credential),
        })?;
        let api = api.patient();
        let mut watching = Watching::files(vec![self.folder.clone()]);
        let mut told = Vec::new();
        loop {
            match self.apply(&api, out).await {
                Ok(pages) => {
                    if told != pages {
                        let document = json!({ "server": base, "pages": pages.iter().map(|(slug, url)| json!({ "slug": slug, "url": url })).collect::<Vec<_>>() });
                        let lines = pages.iter().map(|(slug, url)| format!("{slug:15} {url}"));
                        out.answer(&document, &lines.collect::<Vec<_>>().join("\n"))?;
                    }
                    told = pages;
                }
                // What is wrong in the folder is mended with the next save.
                Err(failure) => tell(self.json, &failure),
            }
            watching.changed().await;
        }
    }

    /// Makes the server like the folder; returns where its pages are.
    async fn apply(&self, api: &Api, out: Out) -> Result<Vec<(String, String)>> {
        let folder = Folder::read(&Directory::open(&self.folder)?)?;
        let name = &folder.manifest.project;
        let mut state = State::of(api, name).await?;
        let planned = match Plan::make(api, &folder, state.as_ref()).await {
            // A migration is still being written, and its rows are nobody's: it begins anew.
            Err(failure) if failure.exit == Exit::Conflict && state.is_some() => {
                out.note("A migration has changed: the database begins anew.");
                if let Some(old) = state.take() {
                    api.call(&calls::DELETE_PROJECT, &[&old.project.id])
                        .answer()
                        .await?;
                }
                Plan::make(api, &folder, None).await
            }
            planned => planned,
        };
        let plan = planned?;
        if plan.steps.is_empty() {
            return addresses(api, &folder).await;
        }
        let applying = Applying {
            api,
            folder: &folder,
            // The plan is told below, and where the pages are once.
            out: Out { json: true },
            message: None,
            bar: Progress::steps("apply", plan.steps.len()),
            then: "The next save goes on.",
        };
        applying.run(state, &plan).await?;
        drop(applying);
        out.note(&plan.text());
        out.note(&format!("applied {}", self.folder.join(FILE).display()));
        addresses(api, &folder).await
    }
}
