//! `svc provider check`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::json;

use crate::config::{ProviderKind, Settings};
use crate::outbound::OutboundClient;
use crate::outbound::mail::MailAddress;
use crate::visitors::providers::SignInProviders;
use svc_base::clock::Clock;
use svc_base::random::Random;

#[derive(Debug, clap::Subcommand)]
pub(super) enum ProviderCommand {
    /// Ask a sign-in provider for what it says of itself and whether it knows the client, and say what is wrong
    Check {
        /// The provider's name
        name: String,
        #[command(flatten)]
        settings: Box<Settings>,
        /// The TOML file of settings that has the provider
        #[arg(long, env = "SVC_CONFIG")]
        config: Option<PathBuf>,
        /// Send a mail to this address, as the codes of the provider `email` are sent
        #[arg(long, value_name = "ADDRESS")]
        mail_to: Option<String>,
        /// Answer with one JSON document
        #[arg(long)]
        json: bool,
    },
}

impl ProviderCommand {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let Self::Check {
            name,
            settings,
            config,
            mail_to,
            json,
        } = self;
        let mail_to = mail_to.map(|text| {
            MailAddress::parse(&text).with_context(|| {
                format!("--mail-to must be an address such as ada@example.com: {text:?}")
            })
        });
        let mail_to = mail_to.transpose()?;
        let settings = super::serve::merge_settings_file(*settings, config)?;
        let listen: SocketAddr = settings.listen();
        let config = settings.resolve(listen)?;
        let outbound = OutboundClient::new()?;
        let providers =
            SignInProviders::new(&config, &outbound, &Clock::system(), &Random::system())?;
        let provider = providers.find_by_name(&name).with_context(|| {
            let names: Vec<_> = config.providers.iter().map(|one| one.name.as_str()).collect();
            match names.is_empty() {
                true => format!("there is no provider `{name}`: the settings have none; name their file with --config"),
                false => format!("there is no provider `{name}`: the settings have {}", names.join(", ")),
            }
        })?;
        // The provider that sends codes by e-mail leads to no other server.
        let is_email = provider.settings.kind == ProviderKind::Email;
        let redirect_uri = format!("{}/_svc/auth/callback/{name}", config.sites_url);
        let has_sent = mail_to.is_some();
        let wrong = match mail_to {
            None => provider.find_faults(&redirect_uri).await,
            Some(address) => match provider.send_test_mail(address).await {
                Some(faults) => faults,
                None => bail!("--mail-to is for the provider `email`: `{name}` sends no mails"),
            },
        };
        let text = if json {
            let document = json!({
                "name": name,
                "issuer": provider.settings.issuer,
                "redirect_uri": (!is_email).then_some(redirect_uri),
                "errors": wrong,
            });
            document.to_string()
        } else {
            let mut lines = vec![format!("issuer        {}", provider.settings.issuer)];
            if !is_email {
                lines.push(format!("redirect URI  {redirect_uri}"));
            }
            lines.extend(wrong.iter().map(|wrong| format!("error: {wrong}")));
            let verdict = match (wrong.is_empty(), is_email, has_sent) {
                (false, ..) => "not ok",
                (true, false, _) => {
                    "ok: register the redirect URI with the provider exactly as it stands here"
                }
                (true, true, false) => {
                    "ok: the mail server answers; --mail-to ADDRESS sends a mail"
                }
                (true, true, true) => "ok: the mail server has taken a mail",
            };
            lines.push(verdict.to_owned());
            lines.join("\n")
        };
        super::print(&text)?;
        Ok(match wrong.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }
}
