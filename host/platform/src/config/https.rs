//! Settings of HTTPS: the source of certificates, and the listener that redirects plain HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::contact::parse_contact;
use super::{Settings, check_host};

/// Default port of HTTPS.
pub(super) const HTTPS_PORT: u16 = 443;
/// Default port of plain HTTP.
const HTTP_PORT: u16 = 80;

/// An authority that issues certificates by ACME (RFC 8555).
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcmeSettings {
    /// URL of its ACME directory.
    #[serde(default = "lets_encrypt")]
    pub directory: Url,
    /// E-mail address of the operator for the authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// File of root certificates for the authority's own server, if the system's are not enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
    /// Key id of the operator's external account there (RFC 8555, section 7.3.4); `SVC_ACME_EAB_KID` beats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eab_kid: Option<String>,
    /// The key, in base64url; `SVC_ACME_EAB_HMAC_KEY` beats it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "masked"
    )]
    pub eab_hmac_key: Option<String>,
    /// Most certificates for projects that are ordered within a week, renewals aside.
    #[serde(default = "default_per_week")]
    pub projects_per_week: u32,
}

impl Default for AcmeSettings {
    fn default() -> Self {
        Self {
            directory: lets_encrypt(),
            contact: None,
            root: None,
            eab_kid: None,
            eab_hmac_key: None,
            projects_per_week: default_per_week(),
        }
    }
}

impl std::fmt::Debug for AcmeSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("AcmeSettings");
        shown.field("directory", &self.directory.as_str());
        shown.field("contact", &self.contact);
        shown.field("eab_kid", &self.eab_kid);
        shown.finish_non_exhaustive()
    }
}

fn masked<S: serde::Serializer>(key: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    super::masked(key.as_deref().unwrap_or_default(), serializer)
}

impl AcmeSettings {
    /// Overrides the settings of the file with those of the environment.
    #[allow(
        clippy::disallowed_methods,
        reason = "secrets of tables come from the environment"
    )]
    fn with_environment(mut self) -> Self {
        let of = |name: &str| std::env::var(name).ok();
        self.eab_kid = of("SVC_ACME_EAB_KID").or(self.eab_kid);
        self.eab_hmac_key = of("SVC_ACME_EAB_HMAC_KEY").or(self.eab_hmac_key);
        self
    }

    /// Returns the id and the bytes of the external account key, if there is one.
    ///
    /// # Errors
    /// When one of them is missing or cannot be used.
    pub fn external_account_binding(&self) -> anyhow::Result<Option<(&str, Vec<u8>)>> {
        let (kid, key) = match (self.eab_kid.as_deref(), self.eab_hmac_key.as_deref()) {
            (None, None) => return Ok(None),
            (Some(kid), Some(key)) => (kid, key),
            (Some(_), None) => {
                bail!("acme.eab_hmac_key is missing: set it in the file, or SVC_ACME_EAB_HMAC_KEY")
            }
            (None, Some(_)) => {
                bail!("acme.eab_kid is missing: set it in the file, or SVC_ACME_EAB_KID")
            }
        };
        if kid.is_empty() {
            bail!("acme.eab_kid is empty: copy it from your account at the authority");
        }
        let key = URL_SAFE_NO_PAD.decode(key.trim_end_matches('='));
        let key = key.ok().filter(|key| !key.is_empty());
        let key = key.context(
            "acme.eab_hmac_key is not base64url: copy it from your account at the authority",
        )?;
        Ok(Some((kid, key)))
    }
}

#[allow(clippy::expect_used, reason = "a constant")]
fn lets_encrypt() -> Url {
    Url::parse("https://acme-v02.api.letsencrypt.org/directory").expect("a URL")
}

/// Less than the 50 that Let's Encrypt issues for a domain in a week.
fn default_per_week() -> u32 {
    40
}

/// Source of certificates.
#[derive(Clone, Debug)]
pub enum CertificateSettings {
    /// From two files, which are read again when they change.
    Files {
        /// File of the certificate chain.
        cert: PathBuf,
        /// Private key of the certificate.
        key: PathBuf,
    },
    /// From an authority.
    Acme(AcmeSettings),
}

impl Settings {
    /// Whether the server speaks TLS itself.
    pub fn is_https(&self) -> bool {
        self.https.unwrap_or(false)
    }

    /// Returns the address of the listener that redirects plain HTTP, and whether it is set: beside port 443 it is tried by default.
    pub fn redirects(&self) -> Option<(SocketAddr, bool)> {
        let listen = self.listen();
        let beside = SocketAddr::new(listen.ip(), HTTP_PORT);
        match self.redirect_listen {
            Some(asked) => Some((asked, true)),
            None if self.is_https() && listen.port() == HTTPS_PORT => Some((beside, false)),
            None => None,
        }
    }

    /// Returns the source of certificates; `None` for plain HTTP.
    ///
    /// # Errors
    /// When settings contradict each other.
    pub(super) fn certificate_source(
        &self,
        base: &Url,
        sites: &Url,
    ) -> anyhow::Result<Option<CertificateSettings>> {
        if !self.is_https() {
            let inert = [
                ("tls_cert", self.tls_cert.is_some()),
                ("tls_key", self.tls_key.is_some()),
                ("redirect_listen", self.redirect_listen.is_some()),
            ];
            if let Some((name, _)) = inert.iter().find(|(_, is_set)| *is_set) {
                bail!("{name} needs `https`: add `https = true` or `--https`, or leave it out");
            }
            return Ok(None);
        }
        if self.dev {
            bail!("https and `--dev` do not go together: `--dev` is plain HTTP on this machine");
        }
        for (name, url) in [("base_url", base), ("sites_url", sites)] {
            if url.scheme() != "https" {
                bail!("{name} must begin with https:// when `https` is set: {url}");
            }
        }
        match (&self.tls_cert, &self.tls_key) {
            (Some(_), Some(_)) if self.acme.is_some() => {
                bail!("tls_cert and [acme] are two ways to certificates: leave one of them out")
            }
            (Some(cert), Some(key)) => Ok(Some(CertificateSettings::Files {
                cert: cert.clone(),
                key: key.clone(),
            })),
            (Some(_), None) => bail!("tls_key is missing: name the file of the certificate's key"),
            (None, Some(_)) => bail!("tls_cert is missing: name the file of the key's certificate"),
            (None, None) => self.acme_certificates(base, sites).map(Some),
        }
    }

    fn acme_certificates(&self, base: &Url, sites: &Url) -> anyhow::Result<CertificateSettings> {
        for (name, url) in [("base_url", base), ("sites_url", sites)] {
            check_name(name, url)?;
        }
        // One that is no URL is refused where the console's origin is read; over plain HTTP no certificate is for it.
        let console = self.console_url.as_deref().map(Url::parse);
        if let Some(Ok(console)) = console
            && console.scheme() == "https"
        {
            check_name("console_url", &console)?;
        }
        let named = [
            ("sites_domain", &self.sites_domain),
            ("landing_host", &self.landing_host),
        ];
        for (name, text) in named {
            if let Some(text) = text {
                check_name(
                    name,
                    &Url::parse(&format!("https://{}", check_host(name, text)?))?,
                )?;
            }
        }
        let mut acme = self.acme.clone().unwrap_or_default().with_environment();
        if acme.directory.scheme() != "https" || acme.directory.host().is_none() {
            bail!("acme.directory must be an https URL: {}", acme.directory);
        }
        if acme.projects_per_week == 0 {
            bail!("acme.projects_per_week must be 1 or more");
        }
        acme.external_account_binding()?;
        let own = acme.contact.take();
        let own = own.map(|text| match parse_contact(&text) {
            Ok(uri) if uri.starts_with("mailto:") => Ok(uri),
            _ => Err(anyhow::anyhow!(
                "acme.contact must be an e-mail address such as tls@example.com: {text:?}"
            )),
        });
        let operator = self
            .contact
            .as_deref()
            .and_then(|text| parse_contact(text).ok());
        let operator = operator.filter(|uri| uri.starts_with("mailto:"));
        acme.contact = own.transpose()?.or(operator);
        Ok(CertificateSettings::Acme(acme))
    }
}

/// Refuses names for which no authority issues certificates.
fn check_name(name: &str, url: &Url) -> anyhow::Result<()> {
    let public = match url.host() {
        Some(Host::Domain(domain)) => {
            domain.contains('.') && domain != "localhost" && !domain.ends_with(".localhost")
        }
        _ => false,
    };
    if !public {
        bail!(
            "{name} must be a name that everybody can look up, such as share.example.com, for certificates to be issued: it is {}; set it, or name files by `tls_cert` and `tls_key`",
            url.host_str().unwrap_or_default()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(toml: &str) -> anyhow::Result<super::super::Config> {
        let settings: Settings = toml::from_str(&format!("cache = '/c'\n{toml}"))?;
        settings.resolve(SocketAddr::from(([127, 0, 0, 1], 4321)))
    }

    #[test]
    fn certificates_come_by_files_or_from_an_authority() {
        let plain = resolve("base_url = 'https://share.example.com'").unwrap();
        assert!(plain.certificates.is_none(), "a proxy speaks TLS");
        let files = resolve("https = true\ntls_cert = '/a'\ntls_key = '/b'").unwrap();
        assert_eq!(files.base_url, "https://localhost:4321");
        assert!(matches!(
            files.certificates,
            Some(CertificateSettings::Files { .. })
        ));
        let acme = "https = true\nbase_url = 'https://share.example.com'";
        for (toml, contact) in [
            ("", None),
            ("contact = 'a@example.com'", Some("mailto:a@example.com")),
            ("contact = 'https://example.com/'", None),
            (
                "contact = 'a@example.com'\n[acme]\ncontact = 'b@example.com'",
                Some("mailto:b@example.com"),
            ),
        ] {
            let config = resolve(&format!("{acme}\n{toml}")).unwrap();
            let Some(CertificateSettings::Acme(found)) = config.certificates else {
                panic!("{toml}");
            };
            assert_eq!(found.contact.as_deref(), contact, "{toml}");
            assert_eq!(
                found.directory.as_str(),
                "https://acme-v02.api.letsencrypt.org/directory"
            );
        }
    }

    #[test]
    fn what_cannot_work_is_named() {
        let share = "https = true\nbase_url = 'https://share.example.com'\n";
        for (toml, name) in [
            ("tls_cert = '/a'\ntls_key = '/b'".to_owned(), "tls_cert"),
            ("redirect_listen = ':80'".to_owned(), "redirect_listen"),
            ("https = true".to_owned(), "base_url"),
            (
                "https = true\nbase_url = 'http://share.example.com'".to_owned(),
                "base_url",
            ),
            (
                "https = true\nbase_url = 'https://192.0.2.1'".to_owned(),
                "base_url",
            ),
            (
                format!("{share}sites_url = 'http://example.com'"),
                "sites_url",
            ),
            (format!("{share}sites_domain = 'localhost'"), "sites_domain"),
            (format!("{share}tls_cert = '/a'"), "tls_key"),
            (format!("{share}tls_key = '/a'"), "tls_cert"),
            (
                format!("{share}tls_cert = '/a'\ntls_key = '/b'\n[acme]"),
                "[acme]",
            ),
            (
                format!("{share}[acme]\ndirectory = 'http://example.com'"),
                "acme.directory",
            ),
            (
                format!("{share}[acme]\ncontact = 'https://example.com'"),
                "acme.contact",
            ),
            (
                format!("{share}[acme]\nprojects_per_week = 0"),
                "acme.projects_per_week",
            ),
            (format!("{share}[acme]\nterms = true"), "terms"),
            (
                format!("{share}[acme]\neab_kid = 'me'"),
                "acme.eab_hmac_key is missing",
            ),
            (
                format!("{share}[acme]\neab_hmac_key = 'c2VjcmV0'"),
                "acme.eab_kid is missing",
            ),
            (
                format!("{share}[acme]\neab_kid = ''\neab_hmac_key = 'c2VjcmV0'"),
                "acme.eab_kid is empty",
            ),
            (
                format!("{share}[acme]\neab_kid = 'me'\neab_hmac_key = 'a+b/'"),
                "acme.eab_hmac_key is not base64url",
            ),
        ] {
            let error = format!("{:#}", resolve(&toml).unwrap_err());
            assert!(error.contains(name), "{toml}: {error}");
        }
    }

    #[test]
    fn the_key_of_an_account_is_decoded_and_never_shown() {
        for key in ["c2VjcmV0-_8", "c2VjcmV0-_8="] {
            let toml = format!("eab_kid = 'me'\neab_hmac_key = '{key}'");
            let acme: AcmeSettings = toml::from_str(&toml).unwrap();
            let binding = acme.external_account_binding().unwrap().unwrap();
            assert_eq!(binding, ("me", b"secret\xfb\xff".to_vec()));
            let shown = format!("{acme:?}{}", toml::to_string(&acme).unwrap());
            assert!(shown.contains("****"), "{shown}");
            assert!(!shown.contains("c2Vj"), "{shown}");
        }
    }

    #[test]
    fn plain_http_is_redirected_beside_port_443_or_where_it_is_asked_for() {
        for (toml, expected) in [
            ("", None),
            ("https = true", Some(("[::]:80", false))),
            ("https = true\nlisten = ':8443'", None),
            (
                "https = true\nlisten = '192.0.2.1:443'",
                Some(("192.0.2.1:80", false)),
            ),
            (
                "https = true\nlisten = ':8443'\nredirect_listen = '127.0.0.1:8080'",
                Some(("127.0.0.1:8080", true)),
            ),
        ] {
            let settings: Settings = toml::from_str(toml).unwrap();
            let expected = expected.map(|(at, asked)| (at.parse().unwrap(), asked));
            assert_eq!(settings.redirects(), expected, "{toml}");
        }
    }
}
