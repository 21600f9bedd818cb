//! `svc dev`, which is the client's, and `svc dev payment refund|dispute|renew|cancel`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::OperatorArgs;
use crate::client;
use crate::outbound::Outbound;
use crate::overview::running;
use crate::stripe::dev::{PaymentAction, routes};

const TIME: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
// Its parts are of a group of the same name.
#[group(skip)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Developing {
    #[command(flatten)]
    folder: client::Dev,
    #[command(subcommand)]
    world: Option<World>,
}

#[derive(Debug, clap::Subcommand)]
enum World {
    /// Do something to a payment that was made at the provider `dev`
    #[command(subcommand)]
    Payment(Payment),
}

#[derive(Debug, clap::Subcommand)]
enum Payment {
    /// Give all the money back: of a subscription, that of its latest month
    Refund(Of),
    /// Have the payer dispute it
    Dispute(Of),
    /// Have another month of a subscription paid
    Renew(Of),
    /// End a subscription
    Cancel(Of),
}

#[derive(Debug, clap::Args)]
struct Of {
    /// The session's id
    session: String,
    #[command(flatten)]
    args: OperatorArgs,
}

impl Developing {
    /// Whether it works on the user's own files alone.
    pub(super) fn is_clients(&self) -> bool {
        self.world.is_none()
    }

    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let Some(World::Payment(payment)) = self.world else {
            return Ok(client::Command::dev(self.folder).await);
        };
        let (action, of) = match payment {
            Payment::Refund(of) => (PaymentAction::Refund, of),
            Payment::Dispute(of) => (PaymentAction::Dispute, of),
            Payment::Renew(of) => (PaymentAction::Renew, of),
            Payment::Cancel(of) => (PaymentAction::Cancel, of),
        };
        let document = ask(&of, action).await?;
        let events = document["events"].as_array().into_iter().flatten();
        let events: Vec<&str> = events.filter_map(Value::as_str).collect();
        of.args.answer(&document, &events.join("\n"))
    }
}

/// Asks the running server, which is the provider.
async fn ask(of: &Of, action: PaymentAction) -> anyhow::Result<Value> {
    let data = of.args.installation()?;
    let said = running::read(&data)?;
    let said = said.context("no server runs on this data directory: start `svc serve --dev`")?;
    let action = PaymentAction::ALL.iter().find(|(_, one)| *one == action);
    let action = action.map_or("", |(name, _)| name);
    let is_id = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if of.session.is_empty() || !of.session.chars().all(is_id) {
        bail!("`{}` is no id of a session", of.session.escape_debug());
    }
    let (address, session) = (said.address, &of.session);
    let url = format!("http://{address}/_svc/dev/payments/{session}/{action}");
    let call = |client: &reqwest::Client| client.post(url).header(routes::HEADER, "1");
    let answer = Outbound::new()?.call(TIME, call).await;
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
