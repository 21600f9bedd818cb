//! `svc serve`.

use std::path::PathBuf;
use std::process::{self, ExitCode};

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::compile;
use super::console_link::print_console_link;
use crate::config::{LogFormat, Settings};
use crate::log;
use crate::server::{PreparedServer, Server};
use crate::workspaces::{Plan, WorkspaceError};
use svc_base::clock::Clock;
use svc_base::random::Random;

/// Namespace that `--dev` creates.
const DEV_NAMESPACE: &str = "dev";

#[derive(Debug, clap::Args)]
pub(super) struct ServeCommand {
    #[command(flatten)]
    settings: Settings,
    /// A TOML file of settings
    #[arg(long, env = "SVC_CONFIG")]
    config: Option<PathBuf>,
    /// For trying it out: also make a namespace `dev` and print its credential
    #[arg(long)]
    dev: bool,
    /// Take nothing while another node of the cluster lives
    #[arg(long)]
    standby: bool,
}

impl ServeCommand {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let mut settings = merge_settings_file(self.settings, self.config)?;
        settings.dev = self.dev;
        settings.standby = self.standby;
        settings.compiler = compile::own_program();
        log::init(settings.log_format.unwrap_or(LogFormat::Text));
        let mut stop = follow_signals()?;
        super::raise_file_limit();
        let preparing = PreparedServer::prepare(settings, Clock::system(), Random::system());
        let prepared = tokio::select! {
            prepared = Box::pin(preparing) => prepared?,
            // A node may wait for its ledger, or until an earlier run of its name is dead.
            () = wait_for_stop(&mut stop) => return Ok(ExitCode::SUCCESS),
        };
        let Some(server) = serve(prepared, wait_for_stop(&mut stop)).await? else {
            return Ok(ExitCode::SUCCESS);
        };
        if self.dev {
            print_dev_credential(&server).await?;
        }
        let (scheme, address) = (server.scheme(), server.address());
        super::print(&format!("ready {scheme}://{address}"))?;
        wait_for_stop(&mut stop).await;
        tracing::info!("stopping");
        server.stop().await?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Follows the signals that have the process stop. The value becomes true with the first; the second ends the process at once, whatever
/// it waits for.
fn follow_signals() -> anyhow::Result<watch::Receiver<bool>> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        for is_first in [true, false] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if !is_first {
                tracing::error!("told to stop twice: this process ends at once");
                process::exit(1);
            }
            stop.send_replace(true);
        }
    });
    Ok(stopped)
}

async fn wait_for_stop(stop: &mut watch::Receiver<bool>) {
    // The sender lives as long as the process.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Serves; `None` if a node that stands by is stopped before it has control.
async fn serve(
    prepared: PreparedServer,
    stopped: impl Future<Output = ()>,
) -> anyhow::Result<Option<Server>> {
    let Some(node) = prepared.node() else {
        return Box::pin(prepared.serve()).await.map(Some);
    };
    let is_standby = prepared.is_standby();
    if is_standby {
        let (scheme, address) = (prepared.scheme(), prepared.address());
        super::print(&format!("standby {scheme}://{address}"))?;
    }
    let served = tokio::select! {
        served = Box::pin(prepared.serve()) => served.map(Some),
        () = stopped, if is_standby => Ok(None),
    };
    // Standbys take over at once then, and not when this node is taken for dead.
    match &served {
        Ok(Some(_)) => {}
        Ok(None) => node.leave().await,
        Err(error) => node.leave_failed(error).await,
    }
    served
}

/// Merges the settings of flags and environment with those of the file, which come second.
pub(super) fn merge_settings_file(
    settings: Settings,
    file: Option<PathBuf>,
) -> anyhow::Result<Settings> {
    match file {
        Some(path) => Ok(settings.fill_from(Settings::from_file(&path)?)),
        None => Ok(settings),
    }
}

async fn print_dev_credential(server: &Server) -> anyhow::Result<()> {
    let workspaces = &server.app().workspaces;
    let base_url = &server.app().config.base_url;
    super::print_note(&format!("\n  Open {base_url} in a browser."));
    match workspaces.create(DEV_NAMESPACE, Plan::Pro).await {
        Ok(made) => super::print_note(&format!(
            "  The credential of the namespace `{DEV_NAMESPACE}`, shown this once:\n\n    {}\n",
            made.credential
        )),
        Err(WorkspaceError::SlugTaken(_)) => super::print_note(&format!(
            "  The namespace `{DEV_NAMESPACE}` is there already; `svc key create {DEV_NAMESPACE}` makes another credential for it.\n"
        )),
        Err(error) => return Err(error).context("making the namespace `dev`"),
    }
    print_console_link(server, DEV_NAMESPACE).await
}
