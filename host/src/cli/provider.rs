//! `svc provider check`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::json;

use crate::config::{ProviderKind, ProviderSettings, Settings, SmtpSettings};
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
        let redirect_uri = format!("{}/_svc/auth/callback/{name}", config.sites_url);
        let has_sent = mail_to.is_some();
        let wrong = match mail_to {
            None => provider.find_faults(&redirect_uri).await,
            Some(address) => match provider.send_test_mail(address).await {
                Some(faults) => faults,
                None => bail!("--mail-to is for the provider `email`: `{name}` sends no mails"),
            },
        };
        let is_own = provider.settings.kind.has_own_pages();
        let smtp = config.smtp.as_ref();
        let smtp = smtp.filter(|_| provider.settings.kind == ProviderKind::Email);
        let report = ProviderReport {
            settings: &provider.settings,
            redirect_uri: (!is_own).then_some(redirect_uri),
            notes: smtp.map(SmtpSettings::deliverability_notes),
            has_sent,
            wrong: &wrong,
        };
        let text = match json {
            true => report.document().to_string(),
            false => report.lines().join("\n"),
        };
        super::print(&text)?;
        Ok(match wrong.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }
}

/// Findings about a provider.
#[derive(Debug)]
struct ProviderReport<'a> {
    settings: &'a ProviderSettings,
    /// Redirect URI, which providers of the server's own do not have.
    redirect_uri: Option<String>,
    /// Notes on mails, if it sends any to a mail server.
    notes: Option<Vec<String>>,
    /// Whether a mail was tried.
    has_sent: bool,
    wrong: &'a [String],
}

impl ProviderReport<'_> {
    fn document(&self) -> serde_json::Value {
        json!({
            "name": self.settings.name,
            "issuer": self.settings.issuer,
            "redirect_uri": self.redirect_uri,
            "notes": self.notes.as_deref().unwrap_or_default(),
            "errors": self.wrong,
        })
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("issuer        {}", self.settings.issuer)];
        let uri = self.redirect_uri.iter();
        lines.extend(uri.map(|uri| format!("redirect URI  {uri}")));
        let notes = self.notes.iter().flatten();
        lines.extend(notes.map(|note| format!("note: {note}")));
        lines.extend(self.wrong.iter().map(|wrong| format!("error: {wrong}")));
        lines.push(self.verdict().to_owned());
        lines
    }

    fn verdict(&self) -> &'static str {
        match (&self.redirect_uri, &self.notes, self.has_sent) {
            _ if !self.wrong.is_empty() => "not ok",
            (Some(_), ..) => {
                "ok: register the redirect URI with the provider exactly as it stands here"
            }
            (None, Some(_), true) => "ok: the mail server has taken a mail",
            (None, Some(_), false) => "ok: the mail server answers; --mail-to ADDRESS sends a mail",
            (None, None, _) => "ok: it needs no other server",
        }
    }
}
