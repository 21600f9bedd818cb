//! Settings: flag beats environment beats file beats default.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use svc_base::ids::RevisionId;
use url::Url;

use address::is_loopback;
pub use address::{IssuerAddress, IssuerAddressError};
pub use caps::{CapHolderKind, CapReached, CapUsage, DividedCap, DividedCapPart};
pub use cluster::{ClusterSettings, ClusterTable, LedgerUrl};
pub use console::ConsoleSettings;
use console::OtherHosts;
pub use content::resolve_bucket;
pub use display::LogFormat;
use display::masked;
pub use domains::DomainSettings;
pub use edge::EdgeCacheSettings;
pub use https::{AcmeSettings, CertificateSettings};
pub use limits::{Limits, MIN_GATE_MEMORY, MIN_RENDER_MEMORY};
pub use oauth::OauthSettings;
pub use open_files::OpenFileShares;
pub use origins::host_and_port;
use origins::{check_host, check_origin, check_schemes};
pub use placeholders::{format_duration, format_limit};
pub use providers::{ProviderKind, ProviderSettings};
pub use reload::{PageVersions, PageVersionsReceiver};
pub use s3::S3Settings;
pub use sign_in::{SignInSettings, relying_party_id};
pub use smtp::SmtpSettings;
pub use stripe::{StripeSettings, WebhookSecrets};

mod address;
mod cache;
mod caps;
mod cluster;
mod console;
mod contact;
mod content;
mod display;
mod domains;
mod edge;
mod https;
mod limits;
mod listen;
mod oauth;
mod open_files;
mod origins;
mod placeholders;
mod providers;
mod reload;
mod s3;
mod sign_in;
mod smtp;
mod stripe;

/// Settings of one source: flags and environment, or the file. `None` means that the source does not have the setting.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Address to serve on, such as localhost:8080, or :8080 for every interface; port 0 takes a free one [default: 127.0.0.1:8080, with HTTPS :443]
    #[arg(long, env = "SVC_LISTEN", value_parser = listen::parse_address)]
    #[serde(
        default,
        deserialize_with = "listen::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub listen: Option<SocketAddr>,
    /// Directory that everything durable lives below [default: ./data]
    #[arg(long, env = "SVC_DATA")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// Store of content as a URL: file:///srv/content, s3://bucket/prefix, or memory:/// to try things out [default: <data>/content]
    #[arg(long, env = "SVC_CONTENT_URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_url: Option<Url>,
    /// URL of the API host [default: http://localhost:<port>, with HTTPS https://localhost]
    #[arg(long, env = "SVC_BASE_URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<Url>,
    /// URL of the sites host, which serves the same API [default: the base URL]
    #[arg(long, env = "SVC_SITES_URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sites_url: Option<Url>,
    /// Domain below which every project has an origin of its own [default: localhost:<port>, or none]
    #[arg(long, env = "SVC_SITES_DOMAIN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sites_domain: Option<String>,
    /// Origin of the owner's console, a host of its own; empty for none [default: http://console.localhost:<port> for a localhost base URL, else none]
    #[arg(long, env = "SVC_CONSOLE_URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console_url: Option<String>,
    /// Host name that serves the landing page [default: none]
    #[arg(long, env = "SVC_LANDING_HOST")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landing_host: Option<String>,
    /// Where people reach you: an e-mail address or a URL, shown on the landing page and in security.txt [default: none]
    #[arg(long, env = "SVC_CONTACT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// Directory of installed guest components [default: <data>/guests]
    #[arg(long, env = "SVC_GUESTS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guests: Option<PathBuf>,
    /// Directory of compiled guests; your own and 0700 [default: svc/ in $CACHE_DIRECTORY or your cache directory, else <data>/cache]
    #[arg(long, env = "SVC_CACHE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
    /// Networks whose X-Forwarded-For is believed, separated by commas [default: none]
    #[arg(long, env = "SVC_TRUSTED_PROXIES", value_delimiter = ',')]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_proxies: Vec<IpNet>,
    /// Address of the operators' listener with /metrics [default: none]
    #[arg(long, env = "SVC_OPS_LISTEN", value_parser = listen::parse_address)]
    #[serde(
        default,
        deserialize_with = "listen::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub ops_listen: Option<SocketAddr>,
    /// Speak HTTPS, with certificates from Let's Encrypt unless files or `[acme]` say otherwise [default: false]
    #[arg(long, env = "SVC_HTTPS", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https: Option<bool>,
    /// File of the certificate and of those that it is believed by, in PEM; read again when it changes [default: none]
    #[arg(long, env = "SVC_TLS_CERT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,
    /// File of the certificate's private key, in PEM [default: none]
    #[arg(long, env = "SVC_TLS_KEY")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// Address that sends visitors of plain HTTP to HTTPS [default: port 80 if HTTPS is on 443, else none]
    #[arg(long, env = "SVC_REDIRECT_LISTEN", value_parser = listen::parse_address)]
    #[serde(
        default,
        deserialize_with = "listen::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub redirect_listen: Option<SocketAddr>,
    /// Form of the log on standard error [default: text]
    #[arg(long, env = "SVC_LOG_FORMAT", value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_format: Option<LogFormat>,
    /// Log each request that is answered, beside everything else that is logged [default: false]
    #[arg(long, env = "SVC_ACCESS_LOG", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_log: Option<bool>,
    /// The numbers of the service; the file only.
    #[arg(skip)]
    #[serde(default)]
    pub limits: Limits,
    /// Issuer of certificates; the file only.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acme: Option<AcmeSettings>,
    /// Domains of projects; the file only.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<DomainSettings>,
    /// A cache in front; the file only, but for its token.
    #[arg(skip)]
    pub edge: Option<EdgeCacheSettings>,
    /// Issuer whose access tokens identify users; the file only.
    #[arg(skip)]
    pub oauth: Option<OauthSettings>,
    /// The console as a client of that issuer; the file only.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<ConsoleSettings>,
    /// Access to a bucket of content; the file, and the variables of the environment that tools for S3 know.
    #[arg(skip)]
    pub s3: Option<S3Settings>,
    /// Sign-in providers; the file only, but for their secrets.
    #[arg(skip)]
    #[serde(default)]
    pub providers: Vec<ProviderSettings>,
    /// Sign-in that needs no provider; the file only.
    #[arg(skip)]
    #[serde(default)]
    pub sign_in: SignInSettings,
    /// A mail server; the file only, but for its URL.
    #[arg(skip)]
    pub smtp: Option<SmtpSettings>,
    /// A payment provider; the file only, but for its secrets.
    #[arg(skip)]
    pub stripe: Option<StripeSettings>,
    /// The cluster that this server is a node of; the file only, but for the ledger's URL.
    #[arg(skip)]
    pub cluster: Option<ClusterTable>,
    /// Whether the node claims nothing while another one lives: `serve --standby` says so, and no file can.
    #[arg(skip)]
    #[serde(skip)]
    pub standby: bool,
    /// Whether this is for trying things out: `serve --dev` says so, and no file can.
    #[arg(skip)]
    #[serde(skip)]
    pub dev: bool,
    /// Versions of a folder's pages, of which open pages hear: `svc dev` gives them, and no file can.
    #[arg(skip)]
    #[serde(skip)]
    pub reload: Option<PageVersionsReceiver>,
    /// Program that compiles guests in a process of its own: `serve` names its own, and no file can.
    #[arg(skip)]
    #[serde(skip)]
    pub compiler: Option<PathBuf>,
    /// Address that clients have for the listener where something passes connections on to it: the server's own address then, to be named
    /// by. Tests have one, and no file can.
    #[arg(skip)]
    #[serde(skip)]
    pub reached_at: Option<SocketAddr>,
}

impl Settings {
    /// Reads a TOML file. An unknown key is an error that names it.
    ///
    /// # Errors
    /// When the file cannot be read or holds something else than settings.
    pub fn from_file(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("reading the configuration file {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("in {}", path.display()))
    }

    /// Merges the settings: those of `file` where these have none.
    #[must_use]
    pub fn fill_from(self, file: Self) -> Self {
        Self {
            listen: self.listen.or(file.listen),
            data: self.data.or(file.data),
            content_url: self.content_url.or(file.content_url),
            base_url: self.base_url.or(file.base_url),
            sites_url: self.sites_url.or(file.sites_url),
            sites_domain: self.sites_domain.or(file.sites_domain),
            console_url: self.console_url.or(file.console_url),
            landing_host: self.landing_host.or(file.landing_host),
            contact: self.contact.or(file.contact),
            guests: self.guests.or(file.guests),
            cache: self.cache.or(file.cache),
            trusted_proxies: if self.trusted_proxies.is_empty() {
                file.trusted_proxies
            } else {
                self.trusted_proxies
            },
            ops_listen: self.ops_listen.or(file.ops_listen),
            https: self.https.or(file.https),
            tls_cert: self.tls_cert.or(file.tls_cert),
            tls_key: self.tls_key.or(file.tls_key),
            redirect_listen: self.redirect_listen.or(file.redirect_listen),
            log_format: self.log_format.or(file.log_format),
            access_log: self.access_log.or(file.access_log),
            // Limits can be set in the file alone.
            limits: file.limits,
            acme: file.acme,
            domains: file.domains,
            edge: file.edge,
            oauth: file.oauth,
            console: file.console,
            s3: file.s3,
            sign_in: file.sign_in,
            smtp: file.smtp,
            stripe: file.stripe,
            providers: file.providers,
            cluster: file.cluster,
            standby: self.standby,
            dev: self.dev,
            reload: self.reload,
            compiler: self.compiler,
            reached_at: self.reached_at,
        }
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| PathBuf::from("data"))
    }

    /// Directory of the installed guests.
    pub fn guests(&self) -> PathBuf {
        let guests = self.guests.clone();
        guests.unwrap_or_else(|| self.data().join("guests"))
    }

    /// Returns the address to listen on.
    pub fn listen(&self) -> SocketAddr {
        // By default, HTTPS is served on all interfaces, and plain HTTP on this machine alone.
        self.listen.unwrap_or(match self.is_https() {
            true => SocketAddr::from((Ipv6Addr::UNSPECIFIED, https::HTTPS_PORT)),
            false => SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
        })
    }

    /// Returns the origin of the API, on a server that listens on a port.
    fn base(&self, port: u16) -> anyhow::Result<String> {
        match &self.base_url {
            Some(url) => check_origin("base_url", url),
            None if self.is_https() => {
                let url = Url::parse(&format!("https://localhost:{port}"))?;
                check_origin("base_url", &url)
            }
            None => Ok(format!("http://localhost:{port}")),
        }
    }

    /// Resolves the settings of a server that listens on `address`.
    ///
    /// # Errors
    /// When settings contradict each other or a limit is out of range.
    pub fn resolve(self, address: SocketAddr) -> anyhow::Result<Config> {
        let address = self.reached_at.unwrap_or(address);
        self.limits.check()?;
        if self.dev && !address.ip().to_canonical().is_loopback() {
            bail!(
                "--dev is for this machine alone, and `listen` is {address}, which others reach: leave --dev out, or listen on {}",
                SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()))
            );
        }
        let (data, guests) = (self.data(), self.guests());
        let base_url = self.base(address.port())?;
        let sites_url = match &self.sites_url {
            Some(url) => check_origin("sites_url", url)?,
            None => base_url.clone(),
        };
        let (base, sites) = (Url::parse(&base_url)?, Url::parse(&sites_url)?);
        let certificates = self.certificate_source(&base, &sites)?;
        check_schemes(&base, &sites)?;
        let cluster = self.node(certificates.as_ref())?;
        // Stand-ins sign anybody in: they are for those on this machine.
        let has_stand_ins = self.dev && is_loopback(&base) && is_loopback(&sites);
        let sites_domain = match self.sites_domain {
            Some(domain) => Some(check_host("sites_domain", &domain)?),
            None if base.host_str() == Some("localhost") => Some(host_and_port(&base)),
            None => None,
        };
        let landing_host = self
            .landing_host
            .map(|name| check_host("landing_host", &name))
            .transpose()?;
        let others = OtherHosts {
            base: &base,
            sites: &sites,
            sites_domain: sites_domain.as_deref(),
            landing_host: landing_host.as_deref(),
            listen: address,
        };
        let console_url = others.console_origin(self.console_url.as_deref())?;
        let oauth = self.oauth.map(OauthSettings::checked).transpose()?;
        let console = self
            .console
            .map(|console| console.checked(oauth.as_ref(), console_url.as_deref()))
            .transpose()?;
        let content_url = self
            .content_url
            .map(content::check_content_url)
            .transpose()?;
        let bucket = cluster.as_ref().map(|node| &node.bucket);
        let s3 = S3Settings::from_settings(content_url.as_ref().or(bucket), self.s3)?;
        let cache = self.cache.unwrap_or_else(|| cache::default_cache(&data));
        let sign_in = self.sign_in.checked(&sites)?;
        let pages_reach_passkeys = sign_in.passkeys
            && sites_domain
                .as_ref()
                .is_none_or(|domain| sign_in::is_within(&sites, domain));
        let smtp = self.smtp.map(SmtpSettings::checked).transpose()?;
        let mut providers = providers::check_providers(self.providers)?;
        if has_stand_ins && providers.is_empty() && smtp.is_none() && !sign_in.passkeys {
            providers.push(ProviderSettings::dev(format!(
                "{}/_svc/dev",
                loopback_url(address)
            )));
        }
        providers::add_passkeys(&mut providers, &base_url, sign_in)?;
        providers::add_email(&mut providers, &base_url, smtp.is_some(), has_stand_ins)?;
        Ok(Config {
            listen: address,
            scheme: base.scheme().to_owned(),
            secure: base.scheme() == "https",
            content_url,
            base_url,
            sites_url,
            sites_domain,
            console_url,
            landing_host,
            contact: self
                .contact
                .as_deref()
                .map(contact::parse_contact)
                .transpose()?,
            guests,
            cache,
            compiler: self.compiler,
            trusted_proxies: self.trusted_proxies,
            ops_listen: self.ops_listen,
            https: certificates.is_some(),
            tls_cert: self.tls_cert,
            tls_key: self.tls_key,
            redirect_listen: self.redirect_listen,
            log_format: self.log_format.unwrap_or(LogFormat::Text),
            access_log: self.access_log.unwrap_or(false),
            limits: self.limits.for_listener(address.ip(), has_stand_ins),
            acme: match &certificates {
                Some(CertificateSettings::Acme(acme)) => Some(acme.clone()),
                _ => None,
            },
            certificates,
            domains: self.domains.map(DomainSettings::checked).transpose()?,
            edge: self.edge.map(edge::with_token).transpose()?,
            oauth,
            console,
            s3,
            sign_in,
            pages_reach_passkeys,
            smtp,
            stripe: self
                .stripe
                .map(StripeSettings::with_environment)
                .transpose()?,
            cluster,
            dev: has_stand_ins,
            reload: self.reload.filter(|_| has_stand_ins),
            providers,
            data,
        })
    }
}

/// The effective settings of a running server.
#[derive(Clone, Debug, Serialize)]
pub struct Config {
    /// The address of the listener, with its actual port.
    pub listen: SocketAddr,
    /// The data directory.
    pub data: PathBuf,
    /// URL of the content store, if it is not in the data directory.
    pub content_url: Option<Url>,
    /// Origin of the API host, without a trailing slash.
    pub base_url: String,
    /// Origin of the sites host, without a trailing slash.
    pub sites_url: String,
    /// Domain of projects' origins, with its port unless that is the scheme's default.
    pub sites_domain: Option<String>,
    /// Origin of the owner's console, without a trailing slash; `None` if there is none.
    pub console_url: Option<String>,
    /// The host name of the landing page.
    pub landing_host: Option<String>,
    /// Contact of the operator, as a URI.
    pub contact: Option<String>,
    /// Directory of the installed guests.
    pub guests: PathBuf,
    /// Directory of compiled guests.
    pub cache: PathBuf,
    /// Program that compiles guests in a process of its own.
    #[serde(skip)]
    pub compiler: Option<PathBuf>,
    /// Networks whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Address of the operators' listener.
    pub ops_listen: Option<SocketAddr>,
    /// Whether the server speaks TLS itself.
    pub https: bool,
    /// The file of the certificate.
    pub tls_cert: Option<PathBuf>,
    /// The file of its key.
    pub tls_key: Option<PathBuf>,
    /// Address of the listener that redirects plain HTTP, if it is set.
    pub redirect_listen: Option<SocketAddr>,
    /// Format of log lines.
    pub log_format: LogFormat,
    /// Whether each request that is answered is logged.
    pub access_log: bool,
    /// The numbers of the service.
    pub limits: Limits,
    /// Issuer of certificates.
    pub acme: Option<AcmeSettings>,
    /// Source of certificates; `None` for plain HTTP.
    #[serde(skip)]
    pub certificates: Option<CertificateSettings>,
    /// Domains of projects.
    pub domains: Option<DomainSettings>,
    /// The cache in front.
    pub edge: Option<EdgeCacheSettings>,
    /// Issuer whose access tokens identify users.
    pub oauth: Option<OauthSettings>,
    /// The console as a client of that issuer.
    pub console: Option<ConsoleSettings>,
    /// Access to the bucket of the content or of the cluster, if there is one.
    pub s3: Option<S3Settings>,
    /// Sign-in that needs no provider.
    pub sign_in: SignInSettings,
    /// Whether browsers would let pages of projects ask for the passkeys of the sites host.
    #[serde(skip)]
    pub pages_reach_passkeys: bool,
    /// The mail server.
    pub smtp: Option<SmtpSettings>,
    /// The payment provider.
    pub stripe: Option<StripeSettings>,
    /// The cluster that this server is a node of.
    pub cluster: Option<ClusterSettings>,
    /// Whether the server runs for development, with stand-ins for providers that are not configured.
    #[serde(skip)]
    pub dev: bool,
    /// Versions of a folder's pages, of which open pages hear; only on the server of `svc dev`.
    #[serde(skip)]
    pub reload: Option<PageVersionsReceiver>,
    /// Sign-in providers, with the server's own.
    #[serde(serialize_with = "providers::serialize_configured")]
    pub providers: Vec<ProviderSettings>,
    /// `http` or `https`, from the base URL.
    #[serde(skip)]
    pub scheme: String,
    /// Whether the base URL is https, so that cookies are `Secure`.
    #[serde(skip)]
    pub secure: bool,
}

/// Beginning of the labels of previews' origins.
pub const PREVIEW_LABEL_PREFIX: &str = "r-";

impl Config {
    /// Returns the origin of a project, or that of the sites host if projects have none of their own.
    pub fn project_origin(&self, host_label: &str) -> String {
        match &self.sites_domain {
            Some(domain) => format!("{}://{host_label}.{domain}", self.scheme),
            None => self.sites_url.clone(),
        }
    }

    /// Returns the origin of its own at which a site's revision is previewed; `None` where certificates are ordered host by host, or
    /// projects have no origins either.
    pub fn preview_origin(&self, revision: RevisionId) -> Option<String> {
        let domain = self
            .sites_domain
            .as_ref()
            .filter(|_| self.covers_all_labels())?;
        let label = revision.to_host_characters();
        Some(format!(
            "{}://{PREVIEW_LABEL_PREFIX}{label}.{domain}",
            self.scheme
        ))
    }

    /// Whether the console is there, by https.
    pub fn has_secure_console(&self) -> bool {
        let console = self.console_url.as_deref();
        console.is_some_and(|origin| origin.starts_with("https://"))
    }

    /// Whether every host below the sites domain is answered with the certificate that is there, or without one.
    pub fn covers_all_labels(&self) -> bool {
        !matches!(self.certificates, Some(CertificateSettings::Acme(_)))
    }
}

/// Returns the URL under which the server reaches itself, independent of DNS.
fn loopback_url(address: SocketAddr) -> String {
    let loopback = match address {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::LOCALHOST),
        SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::LOCALHOST),
    };
    let ip = if address.ip().is_unspecified() {
        loopback
    } else {
        address.ip()
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

#[cfg(test)]
mod tests;
