//! The host names of HTTPS: which names of handshakes are ours, and where plain HTTP is redirected.

use url::Url;

use crate::config::Config;

/// Most characters of a label (RFC 1035, section 2.3.4).
const MAX_LABEL_CHARS: usize = 63;

/// The names of an installation.
#[derive(Clone, Debug)]
pub struct Names {
    /// The installation's own hosts, the API's first: each with its authority.
    fixed: Vec<(String, String)>,
    /// The domain of projects' origins with a dot before it, and the port suffix of authorities there, if any.
    sites: Option<(String, String)>,
}

/// Kind of a name that is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind<'a> {
    /// One of the installation's own hosts.
    Fixed,
    /// A host that would be a project's origin, by its label.
    Label(&'a str),
}

impl Names {
    /// Reads the names of a configuration.
    pub fn new(config: &Config) -> Self {
        let urls = [config.base_url.as_str(), config.sites_url.as_str()];
        // At home it may be plain HTTP, beside an API that is reached over TLS.
        let console = config.console_url.as_deref();
        let console = console.filter(|url| url.starts_with("https://"));
        let landing = config.landing_host.as_ref();
        let landing = landing.map(|host| format!("https://{host}"));
        let mut fixed: Vec<(String, String)> = Vec::new();
        for url in urls.into_iter().chain(landing.as_deref()).chain(console) {
            let Some((host, port)) = host_and_port(url) else {
                continue;
            };
            if fixed.iter().all(|(known, _)| *known != host) {
                fixed.push((host.clone(), format!("{host}{port}")));
            }
        }
        let sites = config.sites_domain.as_ref();
        let sites = sites.and_then(|domain| host_and_port(&format!("https://{domain}")));
        Self {
            fixed,
            sites: sites.map(|(domain, port)| (format!(".{domain}"), port)),
        }
    }

    /// Classifies a name, which is in lower case and without a port; `None` if it is not ours.
    pub fn classify<'a>(&self, name: &'a str) -> Option<NameKind<'a>> {
        if self.fixed.iter().any(|(known, _)| known == name) {
            return Some(NameKind::Fixed);
        }
        let (suffix, _) = self.sites.as_ref()?;
        let label = name.strip_suffix(suffix.as_str())?;
        is_label(label).then_some(NameKind::Label(label))
    }

    /// The names of the installation's own hosts, the API's first.
    pub fn fixed(&self) -> impl Iterator<Item = &str> {
        self.fixed.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the port of projects' origins with a colon before it, unless that is the scheme's default.
    pub fn sites_port(&self) -> &str {
        self.sites.as_ref().map_or("", |(_, port)| port)
    }

    /// Returns the HTTPS authority for the host of a plain HTTP request; `None` if the host is not ours.
    pub fn authority(&self, host: &str) -> Option<String> {
        let host = host.to_ascii_lowercase();
        let bare = match host.rsplit_once(':') {
            // The last colon of an IPv6 address does not begin a port.
            Some((bare, port)) if !port.ends_with(']') => bare,
            _ => &host,
        };
        match self.classify(bare)? {
            NameKind::Fixed => {
                let mut fixed = self.fixed.iter();
                let known = fixed.find(|(known, _)| known == bare);
                known.map(|(_, authority)| authority.clone())
            }
            NameKind::Label(_) => Some(format!("{bare}{}", self.sites_port())),
        }
    }
}

/// Returns the host of an HTTPS URL, and its port as a suffix.
fn host_and_port(url: &str) -> Option<(String, String)> {
    let url = Url::parse(url).ok()?;
    let port = url
        .port()
        .map_or_else(String::new, |port| format!(":{port}"));
    Some((url.host_str()?.to_owned(), port))
}

/// Whether a text can be the label of a project: only then is a query worth its cost.
fn is_label(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=MAX_LABEL_CHARS).contains(&text.len()) && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn names(toml: &str) -> Names {
        let toml = format!(
            "cache = '/c'\nhttps = true\ntls_cert = '/a'\ntls_key = '/b'\nbase_url = 'https://api.example.com'\n{toml}"
        );
        let settings: Settings = toml::from_str(&toml).unwrap();
        Names::new(&settings.resolve("0.0.0.0:443".parse().unwrap()).unwrap())
    }

    #[test]
    fn names_are_of_hosts_and_of_what_may_be_a_project() {
        let names = names(
            "sites_url = 'https://sites.example.com'\nsites_domain = 'pages.example.com'\nlanding_host = 'example.com'\nconsole_url = 'https://console.example.com'",
        );
        let long = format!("{}.pages.example.com", "x".repeat(64));
        for (name, expected) in [
            ("api.example.com", Some(NameKind::Fixed)),
            ("sites.example.com", Some(NameKind::Fixed)),
            ("example.com", Some(NameKind::Fixed)),
            ("console.example.com", Some(NameKind::Fixed)),
            (
                "shop-acme.pages.example.com",
                Some(NameKind::Label("shop-acme")),
            ),
            ("a.b.pages.example.com", None),
            (".pages.example.com", None),
            ("pages.example.com", None),
            ("*.pages.example.com", None),
            ("shop_acme.pages.example.com", None),
            ("shop.pages.example.com.", None),
            ("shop.evil.example", None),
            ("evilpages.example.com", None),
            ("", None),
            (long.as_str(), None),
        ] {
            assert_eq!(names.classify(name), expected, "{name}");
        }
        let fixed: Vec<&str> = names.fixed().collect();
        assert_eq!(
            fixed,
            [
                "api.example.com",
                "sites.example.com",
                "example.com",
                "console.example.com"
            ]
        );
    }

    #[test]
    fn plain_http_is_sent_to_the_same_host_and_never_elsewhere() {
        let names = names(
            "sites_url = 'https://sites.example.com:8443'\nsites_domain = 'pages.example.com:8443'",
        );
        for (host, expected) in [
            ("api.example.com", Some("api.example.com")),
            ("API.example.com:80", Some("api.example.com")),
            ("sites.example.com", Some("sites.example.com:8443")),
            (
                "shop.pages.example.com:8080",
                Some("shop.pages.example.com:8443"),
            ),
            ("evil.example", None),
            ("api.example.com.evil.example", None),
            ("api.example.com@evil.example", None),
            ("evil.example/api.example.com", None),
            ("[::1]:80", None),
            ("", None),
        ] {
            assert_eq!(names.authority(host).as_deref(), expected, "{host}");
        }
    }
}
