//! The kinds of hosts, and the classification of a request's host.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::uri::Authority;
use url::Url;

use crate::config::{Config, PREVIEW_LABEL_PREFIX, host_and_port};
use crate::tls::{ServedDomain, ServedDomains};
use svc_base::ids::RevisionId;

/// Kind of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// The API host, or the listener's address: it serves everything.
    Api,
    /// The sites host: it serves everything, and the edge caches its frontends.
    Sites,
    /// A project's origin, by its label.
    Project(String),
    /// The origin of one revision of a site, which is there to be looked at.
    Preview(RevisionId),
    /// A domain of a project, which is the project's origin, too.
    Domain(DomainHost),
    /// The landing page's host.
    Landing,
    /// The host of the owner's console: its screens, and the operations of owners.
    Console,
}

/// Host that is a domain of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainHost {
    /// The domain as it is served.
    pub domain: Arc<ServedDomain>,
    /// Port of the request's host with a colon before it, unless that is the scheme's default.
    port: Arc<str>,
}

impl HostKind {
    /// Returns the label of the project whose origin the host is.
    pub fn project_label(&self) -> Option<&str> {
        match self {
            Self::Project(label) => Some(label),
            Self::Domain(host) => Some(&host.domain.host_label),
            Self::Api | Self::Sites | Self::Preview(_) | Self::Landing | Self::Console => None,
        }
    }

    /// Returns the domain of a project that the host is.
    pub fn domain(&self) -> Option<&DomainHost> {
        match self {
            Self::Domain(host) => Some(host),
            Self::Api
            | Self::Sites
            | Self::Project(_)
            | Self::Preview(_)
            | Self::Landing
            | Self::Console => None,
        }
    }

    /// Whether pages answer at their slugs on the host.
    pub fn has_pages(&self) -> bool {
        match self {
            Self::Api | Self::Sites | Self::Project(_) | Self::Domain(_) => true,
            Self::Preview(_) | Self::Landing | Self::Console => false,
        }
    }

    /// Returns the origin of the project with a label, as a visitor of this host has it: the domain that they are on, else the
    /// project's own.
    pub fn project_origin(&self, config: &Config, host_label: &str) -> String {
        match self {
            Self::Domain(host) if host.domain.host_label == host_label => host.origin(config),
            _ => config.project_origin(host_label),
        }
    }
}

impl DomainHost {
    /// Returns the host as requests name it.
    pub fn authority(&self) -> String {
        format!("{}{}", self.domain.name, self.port)
    }

    /// Returns the origin of the domain.
    pub fn origin(&self, config: &Config) -> String {
        format!("{}://{}", config.scheme, self.authority())
    }

    /// Returns the origin that the domain's requests are sent to; `None` if it answers itself, also where the other host is not served.
    pub fn redirect_origin(&self, config: &Config, served: &ServedDomains) -> Option<String> {
        let target = self.domain.redirect_to.as_deref()?;
        let own = config.project_origin(&self.domain.host_label);
        if Url::parse(&own).is_ok_and(|own| own.host_str() == Some(target)) {
            return Some(own);
        }
        let target = served.find(target)?;
        (target.host_label == self.domain.host_label)
            .then(|| format!("{}://{}{}", config.scheme, target.name, self.port))
    }

    /// Whether the domain still answers itself, as the origin of the same project.
    pub fn is_current(&self, config: &Config, served: &ServedDomains) -> bool {
        let now = served.find(&self.domain.name);
        let ours = now.filter(|now| now.host_label == self.domain.host_label);
        ours.is_some_and(|domain| {
            let port = Arc::clone(&self.port);
            Self { domain, port }
                .redirect_origin(config, served)
                .is_none()
        })
    }
}

/// Returns the port of projects' origins with a colon before it, unless that is the scheme's default.
fn sites_port(config: &Config) -> &str {
    let domain = config.sites_domain.as_deref().unwrap_or_default();
    domain.find(':').map_or("", |at| &domain[at..])
}

/// The host names of this server.
#[derive(Debug)]
pub struct ServerHostNames {
    /// The sites host, which may be equal to the API host.
    sites: String,
    /// The API host, and the listener's address.
    api: Vec<String>,
    /// `.` and the domain of the project origins.
    sites_suffix: Option<String>,
    /// Whether revisions of sites have origins of their own.
    has_previews: bool,
    landing: Option<String>,
    console: Option<String>,
    /// Port of the console's scheme, with its colon.
    console_port: &'static str,
    /// Port of a listener on all interfaces: every IP address with this port is ours.
    any_ip: Option<u16>,
    scheme_port: u16,
    /// The domains of projects, and the port that they have beside the scheme's.
    domains: Arc<ServedDomains>,
    domain_port: Arc<str>,
    no_port: Arc<str>,
}

impl ServerHostNames {
    /// Reads the hosts of a configuration.
    pub fn new(config: &Config, domains: Arc<ServedDomains>) -> Self {
        let host =
            |url: &str| Url::parse(url).map_or_else(|_| String::new(), |url| host_and_port(&url));
        let scheme_port = if config.secure { 443 } else { 80 };
        let mut api = vec![host(&config.base_url)];
        api.push(config.listen.to_string());
        if config.listen.ip().is_loopback() {
            api.push(format!("localhost:{}", config.listen.port()));
        }
        // Hosts are compared without the port that goes without saying.
        let usual = format!(":{scheme_port}");
        for host in &mut api {
            host.truncate(host.strip_suffix(&*usual).unwrap_or(host).len());
        }
        Self {
            sites: host(&config.sites_url),
            api,
            sites_suffix: config
                .sites_domain
                .as_ref()
                .map(|domain| format!(".{domain}")),
            has_previews: config.covers_all_labels(),
            landing: config.landing_host.clone(),
            console: config.console_url.as_deref().map(host),
            console_port: match config.has_secure_console() {
                true => ":443",
                false => ":80",
            },
            any_ip: config
                .listen
                .ip()
                .is_unspecified()
                .then_some(config.listen.port()),
            scheme_port,
            domains,
            domain_port: sites_port(config).into(),
            no_port: "".into(),
        }
    }

    /// Returns the domains of projects that are served.
    pub fn domains(&self) -> &Arc<ServedDomains> {
        &self.domains
    }

    /// Classifies a host; `None` if it is not ours.
    pub fn classify(&self, host: &str) -> Option<HostKind> {
        // The usual case, without an allocation.
        if self.sites == host {
            return Some(HostKind::Sites);
        }
        if self.api.iter().any(|ours| ours == host) {
            return Some(HostKind::Api);
        }
        let full = host.to_ascii_lowercase();
        let host = full
            .strip_suffix(&format!(":{}", self.scheme_port))
            .unwrap_or(&full);
        if self.sites == host {
            return Some(HostKind::Sites);
        }
        if self.api.iter().any(|ours| ours == host) || self.is_literal(host) {
            return Some(HostKind::Api);
        }
        // The landing host is configured without a port, so any port matches.
        if self.landing.as_deref().is_some_and(|landing| {
            host.strip_prefix(landing)
                .is_some_and(|rest| rest.is_empty() || is_port(rest))
        }) {
            return Some(HostKind::Landing);
        }
        // It is looked at before the sites domain, below which it is at home.
        if self.is_console(host, &full) {
            return Some(HostKind::Console);
        }
        let Some(label) = host.strip_suffix(self.sites_suffix.as_deref()?) else {
            // Hosts of others are looked at last: requests to our own do no work for them.
            return self.find_domain(host);
        };
        if label.is_empty() || label.contains('.') {
            return None;
        }
        let revision = self
            .has_previews
            .then(|| previewed_revision(label))
            .flatten();
        Some(revision.map_or_else(|| HostKind::Project(label.to_owned()), HostKind::Preview))
    }

    /// Whether a host is the console's, without the port of the API's scheme or whole: the console may have another scheme.
    fn is_console(&self, host: &str, full: &str) -> bool {
        let Some(console) = self.console.as_deref() else {
            return false;
        };
        console == host || full.strip_suffix(self.console_port) == Some(console)
    }

    /// Finds a domain of a project by a host in lower case, with the port of projects' origins or none.
    fn find_domain(&self, host: &str) -> Option<HostKind> {
        let with_port = host.strip_suffix(&*self.domain_port);
        let (name, port) = match with_port.filter(|_| !self.domain_port.is_empty()) {
            Some(name) => (name, &self.domain_port),
            None => (host, &self.no_port),
        };
        let domain = self.domains.find(name)?;
        let port = Arc::clone(port);
        Some(HostKind::Domain(DomainHost { domain, port }))
    }

    fn is_literal(&self, host: &str) -> bool {
        let Some(port) = self.any_ip else {
            return false;
        };
        let bare = host.strip_suffix(&format!(":{port}"));
        let bare = bare.or_else(|| (port == self.scheme_port).then_some(host));
        bare.is_some_and(|ip| {
            ip.trim_start_matches('[')
                .trim_end_matches(']')
                .parse::<IpAddr>()
                .is_ok()
        })
    }
}

/// Returns the revision whose preview has an origin of this label, where previews have origins.
pub fn previewed_revision(label: &str) -> Option<RevisionId> {
    RevisionId::from_host_characters(label.strip_prefix(PREVIEW_LABEL_PREFIX)?)
}

/// Whether a request to a listener names its address or `localhost`. Other names are refused against DNS rebinding: a foreign page
/// could read the answer. The port may be that of a tunnel.
pub fn names_listener(host: &str, listen: SocketAddr) -> bool {
    let ours = listen.ip().to_canonical();
    named_address(host).is_some_and(|ip| match ip {
        Some(ip) => ours.is_unspecified() || ip.to_canonical() == ours,
        None => true,
    })
}

/// Whether a host is an address of a machine, or `localhost`.
pub fn names_address(host: &str) -> bool {
    named_address(host).is_some()
}

/// Returns the address of a host, which `localhost` leaves open; `None` for any other name.
fn named_address(host: &str) -> Option<Option<IpAddr>> {
    let authority = host.parse::<Authority>().ok()?;
    let host = authority.host();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse() {
        Ok(ip) => Some(Some(ip)),
        Err(_) => host.eq_ignore_ascii_case("localhost").then_some(None),
    }
}

/// Whether a text is a colon and a port.
fn is_port(text: &str) -> bool {
    text.strip_prefix(':')
        .is_some_and(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn hosts(listen: &str, toml: &str) -> ServerHostNames {
        let settings: Settings = toml::from_str(&format!("cache = '/c'\n{toml}")).unwrap();
        let domains = Arc::new(ServedDomains::default());
        domains.serve(ServedDomain {
            name: "www.shop.com".to_owned(),
            host_label: "shop-dev".to_owned(),
            redirect_to: None,
        });
        ServerHostNames::new(&settings.resolve(listen.parse().unwrap()).unwrap(), domains)
    }

    fn domain_port(hosts: &ServerHostNames, host: &str) -> Option<String> {
        match hosts.classify(host)? {
            HostKind::Domain(host) => Some(host.port.to_string()),
            _ => None,
        }
    }

    #[test]
    fn domains_are_hosts_of_their_projects() {
        let local = hosts("127.0.0.1:8080", "");
        let public = hosts(
            "0.0.0.0:8080",
            "base_url = 'https://api.example.com'\nsites_domain = 'sites.example.com'",
        );
        let none = hosts("0.0.0.0:8080", "base_url = 'https://api.example.com'");
        for (hosts, host, port) in [
            (&local, "www.shop.com", Some("")),
            (&local, "WWW.SHOP.COM:8080", Some(":8080")),
            (&local, "www.shop.com:80", Some("")),
            (&local, "www.shop.com:81", None),
            (&local, "shop.com", None),
            (&local, "a.www.shop.com", None),
            (&local, "www.shop.com.", None),
            (&public, "www.shop.com", Some("")),
            (&public, "www.shop.com:443", Some("")),
            (&public, "www.shop.com:8080", None),
            (&none, "www.shop.com", None),
        ] {
            assert_eq!(domain_port(hosts, host).as_deref(), port, "{host}");
        }
    }

    #[test]
    fn a_listener_is_named_by_its_address() {
        for (listen, host, named) in [
            ("127.0.0.1:9090", "127.0.0.1:9090", true),
            ("127.0.0.1:9090", "127.0.0.1", true),
            ("127.0.0.1:9090", "localhost:9999", true),
            ("127.0.0.1:9090", "LocalHost", true),
            ("127.0.0.1:9090", "127.0.0.2:9090", false),
            ("127.0.0.1:9090", "[::1]:9090", false),
            ("127.0.0.1:9090", "evil.example:9090", false),
            ("127.0.0.1:9090", "localhost.evil.example", false),
            ("127.0.0.1:9090", "x.localhost:9090", false),
            ("127.0.0.1:9090", "", false),
            ("127.0.0.1:9090", "a b", false),
            ("[::1]:9090", "[::1]:9090", true),
            ("0.0.0.0:9090", "192.0.2.7:9090", true),
            ("[::]:9090", "[2001:db8::1]:9090", true),
            ("[::]:9090", "192.0.2.7", true),
            ("0.0.0.0:9090", "metrics.example:9090", false),
        ] {
            let listen = listen.parse().unwrap();
            assert_eq!(names_listener(host, listen), named, "{listen} {host}");
        }
    }

    #[test]
    fn local_hosts() {
        let hosts = hosts("127.0.0.1:8080", "");
        for (host, expected) in [
            ("localhost:8080", Some(HostKind::Sites)),
            ("LOCALHOST:8080", Some(HostKind::Sites)),
            ("127.0.0.1:8080", Some(HostKind::Api)),
            (
                "shop-dev.localhost:8080",
                Some(HostKind::Project("shop-dev".into())),
            ),
            ("a.b.localhost:8080", None),
            (".localhost:8080", None),
            ("console.localhost:8080", Some(HostKind::Console)),
            ("Console.LOCALHOST:8080", Some(HostKind::Console)),
            ("a.console.localhost:8080", None),
            ("console.localhost", None),
            ("console.localhost:8081", None),
            ("localhost", None),
            ("127.0.0.2:8080", None),
            ("evil.example", None),
        ] {
            assert_eq!(hosts.classify(host), expected, "{host}");
        }
        let usual = super::tests::hosts("127.0.0.1:80", "");
        for host in ["127.0.0.1", "127.0.0.1:80"] {
            assert_eq!(usual.classify(host), Some(HostKind::Api), "{host}");
        }
    }

    #[test]
    fn a_revision_has_a_host_where_no_certificate_is_ordered_for_it() {
        let revision: RevisionId = "01a1fc20-6ee3-7da4-ae81-ade539ecfe63".parse().unwrap();
        let label = format!("r-{}", revision.to_host_characters());
        let plain = hosts("127.0.0.1:8080", "");
        let project = |label: &str| Some(HostKind::Project(label.to_owned()));
        let host = |label: &str| format!("{label}.localhost:8080");
        assert_eq!(
            plain.classify(&host(&label)),
            Some(HostKind::Preview(revision))
        );
        assert_eq!(
            plain.classify(&host(&label.to_uppercase())),
            Some(HostKind::Preview(revision))
        );
        for other in [&label[..27], "r-00000000000000000000000000", &label[2..]] {
            assert_eq!(plain.classify(&host(other)), project(other), "{other}");
        }
        let acme = hosts(
            "0.0.0.0:443",
            "https = true\nbase_url = 'https://api.example.com'\nsites_url = 'https://sites.example.com'\nsites_domain = 'sites.example.com'",
        );
        let found = acme.classify(&format!("{label}.sites.example.com"));
        assert_eq!(found, project(&label));
    }

    #[test]
    fn public_hosts() {
        let hosts = hosts(
            "0.0.0.0:8080",
            "base_url = 'https://api.example.com'\nsites_url = 'https://sites.example.com'\nsites_domain = 'sites.example.com'\nlanding_host = 'example.com'\nconsole_url = 'https://console.example.com'",
        );
        for (host, expected) in [
            ("api.example.com", Some(HostKind::Api)),
            ("api.example.com:443", Some(HostKind::Api)),
            ("sites.example.com", Some(HostKind::Sites)),
            ("Sites.example.com:443", Some(HostKind::Sites)),
            ("x.sites.example.com", Some(HostKind::Project("x".into()))),
            ("console.example.com", Some(HostKind::Console)),
            ("console.example.com:443", Some(HostKind::Console)),
            ("console.example.com:8080", None),
            (
                "console.sites.example.com",
                Some(HostKind::Project("console".into())),
            ),
            ("example.com", Some(HostKind::Landing)),
            ("example.com:8080", Some(HostKind::Landing)),
            ("example.com:x", None),
            ("192.0.2.7:8080", Some(HostKind::Api)),
            ("[2001:db8::1]:8080", Some(HostKind::Api)),
            ("192.0.2.7:9090", None),
            ("other.example.com", None),
        ] {
            assert_eq!(hosts.classify(host), expected, "{host}");
        }
    }
}
