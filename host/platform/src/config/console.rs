//! Settings of the owner's console: its origin, and the client by which people sign in at the issuer of `[oauth]`.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use url::Url;

use super::address::is_loopback;
use super::oauth::{OauthSettings, check_scopes};
use super::origins::{check_origin, host_and_port};

/// Label of the console's default host. No project has it: those have a hyphen, or 63 characters.
const DEFAULT_LABEL: &str = "console";
/// Scope that has an issuer say who has signed in (OpenID Connect Core, section 3.1.2.1).
const OPENID_SCOPE: &str = "openid";

/// The `[console]` table: the console as a public client of the issuer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleSettings {
    /// Id of the client at the issuer.
    pub client_id: String,
    /// Scopes that are asked for; `openid` and those of `[oauth]`, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
}

impl ConsoleSettings {
    /// Checks the table, and fills in the scopes.
    ///
    /// # Errors
    /// When the client has no id, when a scope is malformed, or without an issuer or a console.
    pub(super) fn checked(
        self,
        oauth: Option<&OauthSettings>,
        console_url: Option<&str>,
    ) -> anyhow::Result<Self> {
        if console_url.is_none() {
            bail!("[console] needs `console_url`: set it to the console's origin");
        }
        let Some(oauth) = oauth else {
            bail!("[console] needs `[oauth]`: its client is one of that issuer");
        };
        if self.client_id.is_empty() {
            bail!(
                "console.client_id is empty: set it to the id that the issuer gave to the console"
            );
        }
        let scopes = self.scopes.unwrap_or_else(|| {
            let own = oauth.scopes.iter().filter(|scope| *scope != OPENID_SCOPE);
            let openid = std::iter::once(OPENID_SCOPE.to_owned());
            openid.chain(own.cloned()).collect()
        });
        check_scopes("console.scopes", &scopes)?;
        Ok(Self {
            client_id: self.client_id,
            scopes: Some(scopes),
        })
    }

    /// Returns the scopes that are asked for.
    pub fn scopes(&self) -> &[String] {
        self.scopes.as_deref().unwrap_or_default()
    }
}

/// Hosts of the installation beside the console's.
#[derive(Debug)]
pub(super) struct OtherHosts<'a> {
    pub(super) base: &'a Url,
    pub(super) sites: &'a Url,
    pub(super) sites_domain: Option<&'a str>,
    pub(super) landing_host: Option<&'a str>,
    /// Address of the listener, which is a host of the API.
    pub(super) listen: SocketAddr,
}

impl OtherHosts<'_> {
    /// Returns the origin of the console; `None` where there is none.
    ///
    /// # Errors
    /// When the setting is no origin, or is a host that serves something else, naming both settings.
    pub(super) fn console_origin(&self, setting: Option<&str>) -> anyhow::Result<Option<String>> {
        let text = match setting {
            None => return Ok(self.default_origin()),
            Some("") => return Ok(None),
            Some(text) => text,
        };
        let url = Url::parse(text).ok().with_context(|| {
            format!("console_url must be an origin such as https://console.example.com, or empty for no console: {text:?}")
        })?;
        let origin = check_origin("console_url", &url)?;
        if url.host_str().is_some_and(|host| host.ends_with('.')) {
            bail!("console_url must name its host without a dot at the end: {url}");
        }
        if url.scheme() != "https" && !is_loopback(&url) {
            bail!(
                "console_url must be an https URL; http is for this machine (localhost, 127.0.0.1) alone: {url}"
            );
        }
        if let Some(other) = self.owner_of(&url) {
            bail!(
                "console_url is {origin}, which `{other}` has: the console needs a host of its own, which serves nothing else"
            );
        }
        if self
            .default_origin()
            .is_none_or(|default| default != origin)
            && let Some(domain) = self.sites_domain.filter(|domain| is_below(&url, domain))
        {
            bail!(
                "console_url is {origin}, which lies below `sites_domain`, {domain}: pages of projects are there, so the console needs a host elsewhere"
            );
        }
        Ok(Some(origin))
    }

    /// Returns the origin of the console at home, where nothing has to be set.
    fn default_origin(&self) -> Option<String> {
        if self.base.scheme() != "http" || self.base.host_str() != Some("localhost") {
            return None;
        }
        let origin = format!("http://{DEFAULT_LABEL}.{}", host_and_port(self.base));
        let url = Url::parse(&origin).ok()?;
        self.owner_of(&url).is_none().then_some(origin)
    }

    /// Returns the setting that has a host already, whatever the port: browsers show people the name.
    fn owner_of(&self, url: &Url) -> Option<&'static str> {
        let host = url.host_str();
        let is_address = host
            .map(|host| host.trim_start_matches('[').trim_end_matches(']'))
            .is_some_and(|host| host.parse::<IpAddr>().is_ok());
        let has_name =
            |other: Option<&str>| other.is_some_and(|other| Some(name_of(other)) == host);
        // A listener of this machine alone answers by this name, too.
        let is_local = host == Some("localhost") && self.listen.ip().is_loopback();
        let is_listener =
            (is_address || is_local) && url.port_or_known_default() == Some(self.listen.port());
        let owners = [
            ("base_url", self.base.host_str() == host),
            ("sites_url", self.sites.host_str() == host),
            ("sites_domain", has_name(self.sites_domain)),
            ("landing_host", has_name(self.landing_host)),
            ("listen", is_listener),
        ];
        let mut owners = owners.into_iter();
        owners.find_map(|(setting, has_host)| has_host.then_some(setting))
    }
}

/// Whether a URL's host lies below a domain, which may have a port.
fn is_below(url: &Url, domain: &str) -> bool {
    let host = url.host_str().unwrap_or_default();
    let label = host.strip_suffix(name_of(domain));
    label.is_some_and(|label| label.ends_with('.'))
}

/// Returns a host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The last colon of an IPv6 address does not begin a port.
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Settings};

    fn resolve(toml: &str) -> anyhow::Result<Config> {
        let settings: Settings = toml::from_str(&format!("cache = '/c'\n{toml}"))?;
        settings.resolve("127.0.0.1:4321".parse()?)
    }

    const PUBLIC: &str = "base_url = 'https://api.example.com'\nsites_url = 'https://sites.example.com'\nsites_domain = 'pages.example.com'\nlanding_host = 'www.example.com'\n";

    #[test]
    fn a_console_is_there_at_home_and_else_where_it_is_set() {
        for (toml, is_public, expected) in [
            ("", false, Some("http://console.localhost:4321")),
            (
                "base_url = 'http://localhost'",
                false,
                Some("http://console.localhost"),
            ),
            ("console_url = ''", false, None),
            (
                "console_url = 'http://console.localhost:4321'",
                false,
                Some("http://console.localhost:4321"),
            ),
            ("landing_host = 'console.localhost'", false, None),
            ("base_url = 'http://127.0.0.1:4321'", false, None),
            ("base_url = 'https://localhost:4321'", false, None),
            ("", true, None),
            (
                "console_url = 'https://Console.example.com/'",
                true,
                Some("https://console.example.com"),
            ),
            (
                "console_url = 'https://console.example.com:8443'",
                true,
                Some("https://console.example.com:8443"),
            ),
            (
                "console_url = 'http://localhost:9000'",
                true,
                Some("http://localhost:9000"),
            ),
        ] {
            let others = if is_public { PUBLIC } else { "" };
            let config = resolve(&format!("{toml}\n{others}")).unwrap();
            assert_eq!(config.console_url.as_deref(), expected, "{toml}");
        }
    }

    #[test]
    fn a_console_shares_no_host() {
        for (url, says) in [
            ("https://api.example.com", "base_url"),
            ("https://api.example.com:8443", "base_url"),
            ("https://sites.example.com", "sites_url"),
            ("https://www.example.com", "landing_host"),
            ("https://pages.example.com", "sites_domain"),
            ("https://console.pages.example.com", "sites_domain"),
            ("https://a.b.pages.example.com", "sites_domain"),
            ("http://127.0.0.1:4321", "listen"),
            ("http://localhost:4321", "listen"),
            ("https://api.example.com.", "dot"),
            ("https://console.pages.example.com.", "dot"),
            ("https://:secret@console.example.com", "without a path"),
            ("http://console.example.com", "https"),
            ("https://console.example.com/path", "without a path"),
            ("console.example.com", "origin"),
            ("ftp://console.example.com", "origin"),
        ] {
            let error = resolve(&format!("console_url = '{url}'\n{PUBLIC}")).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(says), "{url}: {error}");
            assert!(error.contains("console_url"), "{url}: {error}");
        }
        let error = resolve("console_url = 'http://other.localhost:4321'").unwrap_err();
        assert!(format!("{error:#}").contains("sites_domain"));
    }

    #[test]
    fn the_client_asks_for_what_tokens_must_have() {
        let oauth =
            "[oauth]\nissuer = 'https://id.example.com'\naudience = 'svc'\nscopes = ['svc']\n";
        for (table, scopes) in [
            ("", vec!["openid", "svc"]),
            ("scopes = []", vec![]),
            ("scopes = ['a', 'b']", vec!["a", "b"]),
        ] {
            let toml = format!("{oauth}[console]\nclient_id = 'console'\n{table}");
            let console = resolve(&toml).unwrap().console.unwrap();
            assert_eq!(console.scopes(), scopes, "{table}");
        }
        for (toml, says) in [
            ("[console]\nclient_id = 'a'".to_owned(), "[oauth]"),
            (
                format!("{oauth}[console]\nclient_id = ''"),
                "console.client_id",
            ),
            (format!("{oauth}[console]\nscopes = []"), "client_id"),
            (
                format!("{oauth}[console]\nclient_id = 'a'\nscopes = ['a b']"),
                "console.scopes",
            ),
            (
                format!("console_url = ''\n{oauth}[console]\nclient_id = 'a'"),
                "console_url",
            ),
        ] {
            let error = format!("{:#}", resolve(&toml).unwrap_err());
            assert!(error.contains(says), "{toml}: {error}");
        }
    }
}
