//! `svc dev`, which is the client's, and `svc dev payment refund|dispute|renew|cancel`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::sync::watch;

use super::OperatorArgs;
use super::console_link::print_console_link;
use crate::client::{self, DevServerSettings, StartedDevServer};
use crate::config::{PageVersions, Settings};
use crate::data_lock::DataLock;
use crate::outbound::OutboundClient;
use crate::overview::status_file;
use crate::server::Server;
use crate::stripe::dev::{SimulatedPaymentEvent, routes};
use crate::workspaces::credential::parse_key_id;
use crate::workspaces::{NewKeyOptions, Plan, Role, WorkspaceError, Workspaces};
use svc_base::clock::Clock;
use svc_base::random::Random;

/// Name of the workspace that owns the folder's project.
const NAMESPACE: &str = "dev";
/// Time limit for the server's response.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
// clap has a group of this name already: the flattened arguments.
#[group(skip)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct DevCommand {
    #[command(flatten)]
    folder: client::FolderDevCommand,
    #[command(subcommand)]
    simulation: Option<SimulationCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum SimulationCommand {
    /// Do something to a payment that was made at the provider `dev`
    #[command(subcommand)]
    Payment(PaymentSimulation),
}

#[derive(Debug, clap::Subcommand)]
enum PaymentSimulation {
    /// Give all the money back: of a subscription, that of its latest month
    Refund(PaymentSimulationArgs),
    /// Have the payer dispute it
    Dispute(PaymentSimulationArgs),
    /// Have another month of a subscription paid
    Renew(PaymentSimulationArgs),
    /// End a subscription
    Cancel(PaymentSimulationArgs),
}

#[derive(Debug, clap::Args)]
struct PaymentSimulationArgs {
    /// The session's id
    session: String,
    #[command(flatten)]
    args: OperatorArgs,
}

impl DevCommand {
    /// Whether the command works on the user's own files alone.
    pub(super) fn is_client_command(&self) -> bool {
        self.simulation.is_none()
    }

    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let Some(SimulationCommand::Payment(payment)) = self.simulation else {
            return Ok(
                client::ClientCommand::dev(self.folder, start_dev_server, Server::stop).await,
            );
        };
        let (action, of) = match payment {
            PaymentSimulation::Refund(of) => (SimulatedPaymentEvent::Refund, of),
            PaymentSimulation::Dispute(of) => (SimulatedPaymentEvent::Dispute, of),
            PaymentSimulation::Renew(of) => (SimulatedPaymentEvent::Renew, of),
            PaymentSimulation::Cancel(of) => (SimulatedPaymentEvent::Cancel, of),
        };
        let document = request_payment_action(&of, action).await?;
        let events = document["events"].as_array().into_iter().flatten();
        let events: Vec<&str> = events.filter_map(Value::as_str).collect();
        of.args.print_answer(&document, &events.join("\n"))
    }
}

/// Starts a server for a folder, with development providers for sign-in and payments, and one workspace.
async fn start_dev_server(
    settings: DevServerSettings,
) -> anyhow::Result<StartedDevServer<Server, impl Fn(BTreeMap<String, String>)>> {
    if settings.fresh {
        remove_data(&settings.data)?;
    }
    let clock = Clock::system();
    let (versions, follow) = watch::channel(PageVersions {
        told_at: clock.now(),
        by_slug: BTreeMap::new(),
    });
    let server_settings = Settings {
        data: Some(settings.data),
        listen: Some(settings.listen),
        cache: settings.cache,
        dev: true,
        reload: Some(follow),
        compiler: super::compile::own_program(),
        ..Settings::default()
    };
    let server = Server::start(server_settings, clock.clone(), Random::system()).await?;
    let credential = dev_credential(&server.app().workspaces, settings.credential).await?;
    print_console_link(&server, NAMESPACE).await?;
    Ok(StartedDevServer {
        url: server.app().config.base_url.clone(),
        credential,
        reload: move |by_slug| {
            versions.send_if_modified(|told| {
                let is_other = told.by_slug != by_slug;
                if is_other {
                    let told_at = clock.now();
                    *told = PageVersions { told_at, by_slug };
                }
                is_other
            });
        },
        server,
    })
}

/// Deletes the data of earlier starts.
///
/// # Errors
/// When a server has it, or the disk's.
fn remove_data(data: &Path) -> anyhow::Result<()> {
    if !data.exists() {
        return Ok(());
    }
    let lock = DataLock::take(data)?;
    fs::remove_dir_all(data).with_context(|| format!("deleting {}", data.display()))?;
    drop(lock);
    Ok(())
}

/// Returns a credential of the workspace: the one of an earlier start if its key still counts, else a new one.
async fn dev_credential(workspaces: &Workspaces, kept: Option<String>) -> anyhow::Result<String> {
    match workspaces.create(NAMESPACE, Plan::Pro).await {
        Ok(made) => return Ok(made.credential),
        Err(WorkspaceError::SlugTaken(_)) => {}
        Err(error) => return Err(error).context("making the workspace `dev`"),
    }
    let keys = workspaces.keys(NAMESPACE).await?;
    let counts = |credential: &String| {
        let id = parse_key_id(credential);
        keys.iter()
            .any(|key| Some(key.key_id.as_str()) == id && key.revoked_at.is_none())
    };
    match kept.filter(counts) {
        Some(kept) => Ok(kept),
        None => {
            let options = NewKeyOptions {
                role: Role::Editor,
                note: None,
                expires_in: None,
            };
            Ok(workspaces.create_key(NAMESPACE, options).await?.credential)
        }
    }
}

/// Sends the action to the running server, which is the payment provider.
async fn request_payment_action(
    of: &PaymentSimulationArgs,
    action: SimulatedPaymentEvent,
) -> anyhow::Result<Value> {
    let data = of.args.installation()?;
    let said = status_file::read(&data)?;
    let said = said.context("no server runs on this data directory: start `svc serve --dev`")?;
    let action = SimulatedPaymentEvent::ALL
        .iter()
        .find(|(_, one)| *one == action);
    let action = action.map_or("", |(name, _)| name);
    let is_id = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if of.session.is_empty() || !of.session.chars().all(is_id) {
        bail!("`{}` is no id of a session", of.session.escape_debug());
    }
    let (address, session) = (said.address, &of.session);
    let url = format!("http://{address}/_svc/dev/payments/{session}/{action}");
    let call = |client: &reqwest::Client| client.post(url).header(routes::DEV_HEADER, "1");
    let answer = OutboundClient::new()?.call(TIMEOUT, call).await;
    let answer = answer.context("asking the server")?;
    let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if !answer.status.is_success() {
        let why = document["detail"].as_str().unwrap_or("it was refused");
        bail!(
            "{why} Is the server one under `serve --dev`, without a payment provider of its own?"
        );
    }
    Ok(document)
}
