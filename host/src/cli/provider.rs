//! `svc provider check`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;

use crate::config::Settings;
use crate::outbound::OutboundClient;
use crate::visitors::providers::SignInProviders;
use svc_base::clock::Clock;

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
            json,
        } = self;
        let settings = super::serve::merge_settings_file(*settings, config)?;
        let listen: SocketAddr = settings.listen();
        let config = settings.resolve(listen)?;
        let outbound = OutboundClient::new()?;
        let providers = SignInProviders::new(&config.providers, &outbound, &Clock::system())?;
        let provider = providers.find_by_name(&name).with_context(|| {
            let names: Vec<_> = config.providers.iter().map(|one| one.name.as_str()).collect();
            match names.is_empty() {
                true => format!("there is no provider `{name}`: the settings have none; name their file with --config"),
                false => format!("there is no provider `{name}`: the settings have {}", names.join(", ")),
            }
        })?;
        let redirect_uri = format!("{}/_svc/auth/callback/{name}", config.sites_url);
        let wrong = provider.find_faults(&redirect_uri).await;
        let text = if json {
            let document = json!({
                "name": name,
                "issuer": provider.settings.issuer,
                "redirect_uri": redirect_uri,
                "errors": wrong,
            });
            document.to_string()
        } else {
            let mut lines = vec![
                format!("issuer        {}", provider.settings.issuer),
                format!("redirect URI  {redirect_uri}"),
            ];
            lines.extend(wrong.iter().map(|wrong| format!("error: {wrong}")));
            let verdict = if wrong.is_empty() {
                "ok: register the redirect URI with the provider exactly as it stands here"
            } else {
                "not ok"
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
