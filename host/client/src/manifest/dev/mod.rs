//! `svc dev`: serves the folder from a server of its own, and applies it after each change.

mod anew;
mod home;
mod reload;
mod told;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use self::anew::{KeptDatabase, TRIAL_PROJECT};
use self::home::{DevHome, DevState};
use self::reload::page_versions;
use self::told::ToldErrors;
use super::apply::{PageAddress, page_addresses};
use super::plan::{ApplyPlan, MIGRATIONS_DIFFER};
use super::remote_state::RemoteProjectState;
use super::runner::PlanRunner;
use super::scaffold::write_first_manifest;
use super::{AcceptedOwners, MANIFEST_FILE, Manifest, ProjectFolder};
use crate::api::ApiClient;
use crate::error::{CliFailure, Result};
use crate::file_watcher::{FileWatcher, MAX_WATCHED};
use crate::files::DirectoryHandle;
use crate::output::{member_text, print_error, quote_shell_word};
use crate::profile::{ServerWithCredential, parse_server_url};
use crate::progress::TerminalProgressBar;
use crate::question::ask_yes_no;
use crate::types::{TypesFile, write_types};
use crate::{OutputFormat, endpoints, projects};

/// Settings of TypeScript, which a folder has whose scripts are checked.
const TYPESCRIPT_SETTINGS: &str = "tsconfig.json";
/// Declarations that are written for such a folder.
const TYPES_FILE: &str = "svc.d.ts";

/// Settings for the server of a folder. It has stand-ins for sign-in and payments, and one workspace.
#[derive(Clone, Debug)]
pub struct DevServerSettings {
    /// Data directory, in a folder of the user's that nobody else can open.
    pub data: PathBuf,
    /// Whether to delete the data directory before.
    pub fresh: bool,
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Cache of compiled guests; `None` for the user's cache directory.
    pub cache: Option<PathBuf>,
    /// Credential of an earlier start, to be used again if it is still one.
    pub credential: Option<String>,
}

/// A server that was started for a folder.
#[derive(Debug)]
pub struct StartedDevServer<S, R> {
    /// The address of its API.
    pub url: String,
    /// Credential of the workspace for the folder's project.
    pub credential: String,
    /// Tells open pages of their versions, by slugs; dropped before the server is stopped.
    pub reload: R,
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
    /// Delete the data of earlier starts, which is in .svc/dev, and begin anew
    #[arg(long)]
    fresh: bool,
    /// Where to listen; port 0 takes a free one [default: the port of the last start, or a free one]
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// Where compiled guests are kept [default: the user's cache directory]
    #[arg(long, env = "SVC_CACHE", value_name = "DIR", hide_env = true)]
    cache: Option<PathBuf>,
    /// Answer with one JSON document a line
    #[arg(long)]
    json: bool,
}

/// A folder that was applied.
#[derive(Debug)]
struct AppliedFolder {
    pages: Vec<PageAddress>,
    /// Versions of the pages by the slugs that they have on the server.
    versions: BTreeMap<String, String>,
}

/// Server of a folder, as its commands see it.
#[derive(Debug)]
struct FolderServer {
    api: ApiClient,
    url: String,
    credential: String,
}

impl FolderDevCommand {
    pub(crate) async fn run<S, R: Fn(BTreeMap<String, String>)>(
        self,
        start: impl AsyncFnOnce(DevServerSettings) -> anyhow::Result<StartedDevServer<S, R>>,
        stop: impl AsyncFnOnce(S) -> anyhow::Result<()>,
    ) -> Result<()> {
        // What is wrong from the beginning is reported before the server starts; later it can be mended while it runs.
        self.offer_first_manifest()?;
        self.read_folder()?;
        let home = DevHome::open(&self.folder)?;
        let kept = home.state();
        let settings = DevServerSettings {
            data: home.data(self.fresh)?,
            fresh: self.fresh,
            listen: self.listen.unwrap_or_else(|| kept.address()),
            cache: self.cache.clone(),
            credential: kept.credential.clone().filter(|_| !self.fresh),
        };
        let failed = |error: &dyn std::fmt::Display| {
            CliFailure::local(format!(
                "The server for the folder does not start: {error}."
            ))
        };
        // Followed before the server starts: a signal meanwhile ends it in good order, too.
        let stopped = follow_signals().map_err(|error| failed(&error))?;
        let started = start(settings).await;
        let StartedDevServer {
            url,
            credential,
            reload,
            server,
        } = started.map_err(|error| failed(&format!("{error:#}")))?;
        let serving = async {
            let server = FolderServer::new(&url, credential)?;
            let state = server.state()?;
            if state != kept {
                home.keep(&state)?;
            }
            self.serve(&server, &reload).await
        };
        let done = tokio::select! {
            done = serving => done,
            () = stopped => Ok(()),
        };
        drop(reload);
        if let Err(error) = stop(server).await {
            print_error(&format!("the server did not stop in good order: {error:#}"));
        }
        done
    }

    fn output(&self) -> OutputFormat {
        OutputFormat { json: self.json }
    }

    /// Reads the folder; its manifest may be of any user, because the server is on this machine and has no credential of the user.
    fn read_folder(&self) -> Result<ProjectFolder> {
        let mut folder =
            ProjectFolder::read(&DirectoryHandle::open(&self.folder)?, AcceptedOwners::ALL)?;
        // The server for the folder has one workspace, and not that of the manifest.
        folder.manifest.workspace = None;
        Ok(folder)
    }

    /// Writes a manifest if there is none, after `--begin` or a confirmation.
    ///
    /// # Errors
    /// When there is none still.
    fn offer_first_manifest(&self) -> Result<()> {
        let out = self.output();
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
            return Ok(());
        }
        Manifest::read(&folder, AcceptedOwners::ALL).map(drop)
    }

    /// Applies the folder now and after each save, and tells open pages and the user.
    async fn serve(
        &self,
        server: &FolderServer,
        reload: &impl Fn(BTreeMap<String, String>),
    ) -> Result<()> {
        let out = self.output();
        let mut watching = FileWatcher::new(vec![self.folder.clone()]);
        if !watching.is_whole() {
            out.print_note(&format!(
                "warning: the folder has more than {MAX_WATCHED} files and folders: not every save is noticed"
            ));
        }
        let (mut errors, mut shown, mut kept) =
            (ToldErrors::default(), None, KeptDatabase::default());
        loop {
            match self.apply(server, &mut kept).await {
                Ok(applied) => {
                    reload(applied.versions);
                    errors.tell_mended(out);
                    if shown.as_ref() != Some(&applied.pages) {
                        server.print_pages(&applied.pages, shown.is_none(), out)?;
                    }
                    shown = Some(applied.pages);
                }
                // The user can mend the folder and save again.
                Err(failure) => errors.tell(&failure, out),
            }
            watching.wait_for_change().await;
        }
    }

    /// Applies the folder to the server. `kept` has the migrations with which the database did not begin anew.
    async fn apply(&self, server: &FolderServer, kept: &mut KeptDatabase) -> Result<AppliedFolder> {
        let (api, out) = (&server.api, self.output());
        let folder = self.read_folder()?;
        let mut state = server.find_project(&folder.manifest).await?;
        let planned = ApplyPlan::make_for_own_server(api, &folder, state.as_ref()).await;
        let planned = match (planned, &state) {
            (Err(failure), Some(old)) if failure.is_titled(MIGRATIONS_DIFFER) => {
                self.begin_anew(server, &folder, old, failure, kept).await?;
                state = None;
                ApplyPlan::make_for_own_server(api, &folder, None).await
            }
            (planned, _) => planned,
        };
        let plan = planned?;
        if !plan.steps.is_empty() {
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
        }
        self.write_types(api, &folder).await?;
        let pages = page_addresses(api, &folder).await?;
        Ok(AppliedFolder {
            versions: page_versions(&folder, &pages),
            pages,
        })
    }

    /// Writes declarations of the actions for a folder whose scripts are checked by TypeScript.
    async fn write_types(&self, api: &ApiClient, folder: &ProjectFolder) -> Result<()> {
        let handle = DirectoryHandle::open(&self.folder)?;
        if !handle.exists(Path::new(TYPESCRIPT_SETTINGS))? {
            return Ok(());
        }
        let project = projects::find_of_manifest(api, &folder.manifest).await?;
        let Some(project) = project.filter(|project| project.backend.is_some()) else {
            return Ok(());
        };
        let file = TypesFile {
            folder: &handle,
            name: Path::new(TYPES_FILE),
            has_runtime: true,
            replaces_others: false,
        };
        write_types(api, &project, file).await.map(drop)
    }
}

impl FolderServer {
    fn new(url: &str, credential: String) -> Result<Self> {
        let url = url.trim_end_matches('/').to_owned();
        let api = ApiClient::for_server(ServerWithCredential {
            server: parse_server_url(&url)?,
            credential: Some(credential.clone()),
            // The server is on this machine, on the address that the user has chosen.
            insecure: true,
            environment: None,
        })?;
        Ok(Self {
            api: api.with_retries(),
            url,
            credential,
        })
    }

    /// Finds the project of the folder. The server has no other, so one of another name is this one from before it was renamed in
    /// svc.toml: it keeps its data and its slugs.
    async fn find_project(&self, manifest: &Manifest) -> Result<Option<RemoteProjectState>> {
        let api = &self.api;
        if let Some(found) = RemoteProjectState::find(api, manifest).await? {
            return Ok(Some(found));
        }
        let mut projects = self.projects().await?;
        projects.retain(|project| project["name"] != TRIAL_PROJECT);
        let [only] = &projects[..] else {
            return Ok(None);
        };
        let id = member_text(only, "id");
        let renamed = json!({ "name": manifest.project });
        api.call(&endpoints::UPDATE_PROJECT, &[&id])
            .body(renamed)
            .send()
            .await?;
        RemoteProjectState::find(api, manifest).await
    }

    /// State to begin with the next time.
    fn state(&self) -> Result<DevState> {
        let port = parse_server_url(&self.url)?.port();
        Ok(DevState::new(port, self.credential.clone()))
    }

    /// Prints the addresses of the pages, and for the first time how another shell finds the server.
    fn print_pages(&self, pages: &[PageAddress], is_first: bool, out: OutputFormat) -> Result<()> {
        let listed = pages
            .iter()
            .map(|page| json!({ "slug": page.slug, "url": page.url }));
        let document = json!({
            "server": self.url,
            "credential": self.credential,
            "pages": listed.collect::<Vec<_>>(),
        });
        let lines = pages
            .iter()
            .map(|page| format!("{:15} {}", page.slug, page.url));
        let mut lines: Vec<_> = lines.collect();
        if is_first {
            lines.push(format!(
                "export SVC_SERVER={} SVC_CREDENTIAL={}",
                quote_shell_word(&self.url),
                quote_shell_word(&self.credential)
            ));
        }
        out.print_answer(&document, &lines.join("\n"))?;
        if is_first {
            out.print_note("The line above is for another shell: `svc backend query` and the others ask this server then. Each save is applied, and open pages show it. Ctrl-C stops; the data stays in .svc/dev.");
        }
        Ok(())
    }
}

/// Follows the signals that stop the command. The future ends with the first.
fn follow_signals() -> std::io::Result<impl Future<Output = ()>> {
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
