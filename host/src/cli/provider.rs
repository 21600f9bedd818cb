//! `svc provider check`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;

use crate::config::{ProviderKind, Settings};
use crate::issuers::IssuerError;
use crate::outbound::Outbound;
use crate::visitors::providers::{Provider, Providers};
use svc_base::clock::Clock;

#[derive(Debug, clap::Subcommand)]
pub(super) enum ProviderCommand {
    /// Ask a sign-in provider for what it says of itself, and say what is wrong
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
        let settings = super::serve::with_file(*settings, config)?;
        let listen: SocketAddr = settings.listen();
        let config = settings.resolve(listen)?;
        let providers = Providers::new(&config.providers, &Outbound::new()?, &Clock::system())?;
        let provider = providers.named(&name).with_context(|| {
            let names: Vec<_> = config.providers.iter().map(|one| one.name.as_str()).collect();
            match names.is_empty() {
                true => format!("there is no provider `{name}`: the settings have none; name their file with --config"),
                false => format!("there is no provider `{name}`: the settings have {}", names.join(", ")),
            }
        })?;
        let redirect_uri = format!("{}/_svc/auth/callback/{name}", config.sites_url);
        let wrong = faults(provider).await;
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

/// Asks a provider, and lists its faults.
async fn faults(provider: &Provider) -> Vec<String> {
    if provider.settings.kind == ProviderKind::Github {
        // It describes itself nowhere, and tells of a wrong id or secret only at a sign-in.
        return Vec::new();
    }
    let metadata = match provider.issuer.metadata().await {
        Ok(metadata) => metadata,
        Err(error) => return vec![said(&error, "`issuer`")],
    };
    let mut wrong = Vec::new();
    for (name, endpoint) in [
        ("authorization_endpoint", &metadata.authorization_endpoint),
        ("token_endpoint", &metadata.token_endpoint),
    ] {
        if endpoint.is_none() {
            wrong.push(format!(
                "the issuer names no `{name}`: nobody can sign in with it"
            ));
        }
    }
    match provider.issuer.keys().await {
        Err(error) => wrong.push(said(&error, "`jwks_uri` of its discovery document")),
        Ok(keys) if keys.count() == 0 => {
            wrong.push("the issuer has no key that can verify an ID token".to_owned());
        }
        Ok(_) => {}
    }
    wrong
}

fn said(error: &IssuerError, asked: &str) -> String {
    match error {
        IssuerError::Unreachable(_) => {
            format!("{error}: check {asked}, and that this machine reaches it")
        }
        IssuerError::Unusable(_) | IssuerError::Token(_) => format!("{error}: check {asked}"),
    }
}
