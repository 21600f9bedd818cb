//! `svc console`.

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use super::installation::{Installation, OperationAnswer};
use crate::config::Settings;
use crate::console::login_link;
use crate::overview::status_file;
use crate::workspaces::{CONSOLE_LINK_SECONDS, Role};

/// A link that signs whoever opens it in to the console, once and within 15 minutes.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct MakeConsoleLink {
    /// The namespace
    namespace: String,
    /// Role in the namespace of whoever opens the link
    #[arg(long, value_enum, default_value = "owner")]
    role: Role,
    /// Origin of the console, where no server runs [default: that of the last server, else that of a server without settings]
    #[arg(long, env = "SVC_CONSOLE_URL", hide_env_values = true)]
    console_url: Option<String>,
}

impl MakeConsoleLink {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        let console_url = self.find_console_url(at)?;
        let (name, role) = (&self.namespace, self.role);
        let workspaces = at.workspaces();
        let made = workspaces.create_console_code(name, role, Some(CONSOLE_LINK_SECONDS));
        let made = made.await?;
        let url = login_link(&console_url, &made.code);
        let document = json!({ "url": url, "expires_at": made.expires_at });
        let command = format!("console {name} --role {}", role.as_str());
        Ok(OperationAnswer::new(&document, &url)?.logged_as(command))
    }

    /// Returns the origin of the console: the running server's, else the one that is named, else that of the last server.
    fn find_console_url(&self, at: &Installation) -> anyhow::Result<String> {
        if let Some(server) = &at.server {
            let own = server.config.console_url.clone();
            return own.context("the server has no console: set `console_url`, and restart it");
        }
        let named = self.console_url.as_deref().filter(|url| !url.is_empty());
        let Some(named) = named else {
            return match status_file::read(&at.data)? {
                Some(last) => last.console_url.context(
                    "no server runs, and the last one here had no console: name its origin with --console-url",
                ),
                // None has run yet: one without settings has it there.
                None => {
                    let port = Settings::default().listen().port();
                    Ok(format!("http://console.localhost:{port}"))
                }
            };
        };
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        if !Url::parse(named).is_ok_and(|url| is_web(&url) && url.path() == "/") {
            bail!("--console-url must be an origin such as https://console.example.com: {named:?}");
        }
        Ok(named.trim_end_matches('/').to_owned())
    }
}
