//! `svc dev`: serves the folder from a server of its own, and applies it after each change.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::apply::page_urls;
use super::plan::ApplyPlan;
use super::remote_state::RemoteProjectState;
use super::runner::PlanRunner;
use super::scaffold::write_first_manifest;
use super::{AcceptedOwners, MANIFEST_FILE, ProjectFolder};
use crate::api::ApiClient;
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::file_watcher::{FileWatcher, MAX_WATCHED};
use crate::files::DirectoryHandle;
use crate::output::print_error;
use crate::profile::{ServerWithCredential, parse_server_url};
use crate::progress::TerminalProgressBar;
use crate::question::ask_yes_no;
use crate::{OutputFormat, endpoints, report_failure};

/// Settings for the server of a folder. It has stand-ins for sign-in and payments, and one workspace.
#[derive(Clone, Debug)]
pub struct DevServerSettings {
    /// Data directory, which is removed at the end.
    pub data: PathBuf,
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Cache of compiled guests; `None` for the user's cache directory.
    pub cache: Option<PathBuf>,
}

/// A server that was started for a folder.
#[derive(Debug)]
pub struct StartedDevServer<S> {
    /// The address of its API.
    pub url: String,
    /// Credential of the workspace for the folder's project.
    pub credential: String,
    /// Handle to stop the server with.
    pub server: S,
}

/// Serves the folder from a server of its own while you work on it.
#[derive(Debug, clap::Args)]
pub struct FolderDevCommand {
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

impl FolderDevCommand {
    pub(crate) async fn run<S>(
        self,
        start: impl AsyncFnOnce(DevServerSettings) -> anyhow::Result<StartedDevServer<S>>,
        stop: impl AsyncFnOnce(S) -> anyhow::Result<()>,
    ) -> Result<()> {
        let out = OutputFormat { json: self.json };
        // Errors of the folder are reported before the server starts.
        self.offer_first_manifest(out)?;
        self.read_folder()?;
        let failed = |error: &dyn std::fmt::Display| {
            CliFailure::local(format!(
                "The server for the folder does not start: {error}."
            ))
        };
        let stopped = async {
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
        // A temporary directory is removed at the end, and only the user may read it.
        let data = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .map_err(|error| failed(&error))?;
        let settings = DevServerSettings {
            data: data.path().to_owned(),
            listen: self.listen,
            cache: self.cache.clone(),
        };
        let started = start(settings).await;
        let StartedDevServer {
            url,
            credential,
            server,
        } = started.map_err(|error| failed(&format!("{error:#}")))?;
        let done = tokio::select! {
            done = self.serve(&url, credential, out) => done,
            stopped = stopped => stopped.map_err(|error| failed(&error)),
        };
        if let Err(error) = stop(server).await {
            print_error(&format!("the server did not stop in good order: {error:#}"));
        }
        done
    }

    /// Reads the folder; its manifest may be of any user, because the server is on this machine and ends with the command.
    fn read_folder(&self) -> Result<ProjectFolder> {
        let mut folder =
            ProjectFolder::read(&DirectoryHandle::open(&self.folder)?, AcceptedOwners::ALL)?;
        // The server for the folder has one workspace, and not that of the manifest.
        folder.manifest.workspace = None;
        Ok(folder)
    }

    /// Writes a manifest if there is none, after `--begin` or a confirmation.
    fn offer_first_manifest(&self, out: OutputFormat) -> Result<()> {
        if self.begin {
            DirectoryHandle::create(&self.folder)?;
        }
        let folder = DirectoryHandle::open(&self.folder)?;
        if folder.exists(Path::new(MANIFEST_FILE))? {
            return Ok(());
        }
        let path = folder.display_path(Path::new(MANIFEST_FILE));
        let question = format!(
            "{} is not there. Write one for the pages of the folder?",
            path.display()
        );
        if self.begin || (out.is_interactive() && ask_yes_no(&question)) {
            for name in write_first_manifest(&folder, &self.folder)? {
                out.print_note(&format!("wrote {}", folder.display_path(&name).display()));
            }
        }
        Ok(())
    }

    async fn serve(&self, url: &str, credential: String, out: OutputFormat) -> Result<()> {
        let api = ApiClient::for_server(ServerWithCredential {
            server: parse_server_url(url.trim_end_matches('/'))?,
            credential: Some(credential),
            // The server is on this machine, on the address that the user has chosen.
            insecure: true,
            environment: None,
        })?;
        let api = api.with_retries();
        let mut watching = FileWatcher::new(vec![self.folder.clone()]);
        if !watching.is_whole() {
            out.print_note(&format!(
                "warning: the folder has more than {MAX_WATCHED} files and folders: not every save is noticed"
            ));
        }
        let mut told = Vec::new();
        loop {
            match self.apply(&api, out).await {
                Ok(pages) => {
                    if told != pages {
                        let document = json!({ "server": url, "pages": pages.iter().map(|(slug, url)| json!({ "slug": slug, "url": url })).collect::<Vec<_>>() });
                        let lines = pages.iter().map(|(slug, url)| format!("{slug:15} {url}"));
                        out.print_answer(&document, &lines.collect::<Vec<_>>().join("\n"))?;
                    }
                    told = pages;
                }
                // The user can mend the folder and save again.
                Err(failure) => report_failure(self.json, &failure),
            }
            watching.wait_for_change().await;
        }
    }

    /// Applies the folder to the server; returns the URLs of its pages.
    async fn apply(&self, api: &ApiClient, out: OutputFormat) -> Result<Vec<(String, String)>> {
        let folder = self.read_folder()?;
        let mut state = RemoteProjectState::find(api, &folder.manifest).await?;
        let planned = match ApplyPlan::make_for_own_server(api, &folder, state.as_ref()).await {
            // An applied migration has changed. On this server no rows need to be kept, so the database starts anew.
            Err(failure) if failure.exit == FailureExitCode::Conflict && state.is_some() => {
                out.print_note("A migration has changed: the database begins anew.");
                if let Some(old) = state.take() {
                    api.call(&endpoints::DELETE_PROJECT, &[&old.project.id])
                        .send()
                        .await?;
                }
                ApplyPlan::make_for_own_server(api, &folder, None).await
            }
            planned => planned,
        };
        let plan = planned?;
        if plan.steps.is_empty() {
            return page_urls(api, &folder).await;
        }
        let applying = PlanRunner {
            api,
            folder: &folder,
            // The plan and the URLs are printed below.
            out: OutputFormat { json: true },
            message: None,
            progress: TerminalProgressBar::steps("apply", plan.steps.len()),
            failure_hint: "The next save goes on.",
        };
        applying.run(state.as_ref(), &plan).await?;
        drop(applying);
        out.print_note(&plan.to_text());
        out.print_note(&format!(
            "applied {}",
            self.folder.join(MANIFEST_FILE).display()
        ));
        page_urls(api, &folder).await
    }
}
