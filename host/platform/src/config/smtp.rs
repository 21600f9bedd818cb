//! The `[smtp]` table: the mail server that codes of visitors' sign-in are sent with.

use anyhow::{Context as _, bail};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize, Serializer};
use svc_outbound::mail::{MailAddress, MailSecurity, MailServer};
use url::{Host, Url};

/// Maximum length of the sender's name, in characters.
const MAX_NAME_CHARS: usize = 100;
/// Default ports: with TLS from the first byte, with STARTTLS, and of a server on this machine.
const PORTS: (u16, u16, u16) = (465, 587, 25);
/// Environment variable that beats `smtp.url`, which may have a password.
const URL_VARIABLE: &str = "SVC_SMTP_URL";

/// The mail server, and the sender of its mails.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmtpSettings {
    /// smtps://user:password@host:465, or smtp://host:587 with STARTTLS; `SVC_SMTP_URL` beats it.
    #[serde(default, serialize_with = "without_password")]
    pub url: String,
    /// The address that mails are from.
    pub from: String,
    /// The name that mails are from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl std::fmt::Debug for SmtpSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the URL, which may have a password.
        f.debug_struct("SmtpSettings")
            .field("from", &self.from)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl SmtpSettings {
    /// Reads the URL from the environment, which beats the file, and checks the table.
    ///
    /// # Errors
    /// An error that names the key.
    pub(super) fn checked(mut self) -> anyhow::Result<Self> {
        if let Some(url) = super::providers::read_environment_variable(URL_VARIABLE) {
            self.url = url;
        }
        self.server()?;
        Ok(self)
    }

    /// Returns the mail server.
    ///
    /// # Errors
    /// An error that names the key; checked settings have none.
    pub fn server(&self) -> anyhow::Result<MailServer> {
        if self.url.is_empty() {
            bail!("smtp.url is missing: set it in the file, or {URL_VARIABLE}");
        }
        // The URL is not repeated, because it may have a password.
        let shape = "smtp.url must be smtps://user:password@host:465, or smtp:// for a server with STARTTLS, with nothing after the port";
        let url = Url::parse(&self.url).ok().context(shape)?;
        let is_bare =
            ["", "/"].contains(&url.path()) && url.query().is_none() && url.fragment().is_none();
        let host = url.host_str().filter(|_| is_bare).context(shape)?;
        let host = Host::parse(host).ok().context(shape)?;
        let is_here = match &host {
            Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        let (security, port) = match url.scheme() {
            "smtps" => (MailSecurity::Tls, PORTS.0),
            "smtp" if is_here => (MailSecurity::Local, PORTS.2),
            "smtp" => (MailSecurity::StartTls, PORTS.1),
            _ => bail!(shape),
        };
        let decoded = |text: &str| {
            percent_decode_str(text)
                .decode_utf8()
                .map(String::from)
                .ok()
        };
        let credentials = match (url.username(), url.password()) {
            ("", None) => None,
            (user, Some(password)) if !user.is_empty() => {
                let both = decoded(user).zip(decoded(password));
                Some(both.context("smtp.url has a user or a password that is no UTF-8 text")?)
            }
            _ => bail!("smtp.url has a user without a password, or a password without a user"),
        };
        let from = self.sender()?;
        Ok(MailServer {
            host: match host {
                Host::Domain(name) => name,
                Host::Ipv4(address) => address.to_string(),
                Host::Ipv6(address) => address.to_string(),
            },
            port: url.port().unwrap_or(port),
            security,
            credentials,
            from,
            name: self.name.clone(),
        })
    }

    /// Returns the address that mails are from, and checks their name.
    fn sender(&self) -> anyhow::Result<MailAddress> {
        let Some(from) = MailAddress::parse(&self.from) else {
            bail!(
                "smtp.from must be an address such as svc@example.com; its name goes into smtp.name: {:?}",
                self.from
            );
        };
        let is_name = |name: &String| {
            !name.trim().is_empty()
                && name.chars().count() <= MAX_NAME_CHARS
                && !name.contains(char::is_control)
        };
        if self.name.as_ref().is_some_and(|name| !is_name(name)) {
            bail!("smtp.name must have 1 to {MAX_NAME_CHARS} characters, without line breaks");
        }
        Ok(from)
    }

    /// Returns notes on why a spam filter may refuse the mails, as far as the settings tell.
    pub fn deliverability_notes(&self) -> Vec<String> {
        let Some(from) = MailAddress::parse(&self.from) else {
            return Vec::new();
        };
        let domain = from.domain();
        let mut notes = vec![format!(
            "spam filters ask the DNS of {domain} for SPF (is the mail server listed?), DKIM (does it sign for {domain}?) and DMARC: send a mail to an account of yours, and read Authentication-Results in it"
        )];
        let host = Url::parse(&self.url).ok();
        let host = host.as_ref().and_then(Url::host_str).unwrap_or_default();
        let is_near = host == domain
            || host.ends_with(&format!(".{domain}"))
            || domain.ends_with(&format!(".{host}"));
        if !is_near {
            notes.push(format!(
                "the mail server {host} has another domain than smtp.from ({domain}): it must be allowed to send for it"
            ));
        }
        if self.name.is_none() {
            notes.push(
                "smtp.name is not set: mails from a bare address look less familiar".to_owned(),
            );
        }
        notes
    }
}

/// Serializes a URL with its password as asterisks.
fn without_password<S: Serializer>(url: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let parsed = Url::parse(url).ok().filter(Url::has_host);
    let masked = parsed.and_then(|mut url| {
        if url.password().is_some() {
            url.set_password(Some("********")).ok()?;
        }
        Some(url)
    });
    match masked {
        Some(url) => serializer.serialize_str(url.as_str()),
        None => super::masked(url, serializer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str, from: &str, name: Option<&str>) -> SmtpSettings {
        SmtpSettings {
            url: url.to_owned(),
            from: from.to_owned(),
            name: name.map(str::to_owned),
        }
    }

    #[test]
    fn the_scheme_says_how_a_connection_is_protected() {
        use MailSecurity::{Local, StartTls, Tls};
        for (url, host, port, security) in [
            ("smtps://mail.example", "mail.example", 465, Tls),
            ("smtps://u:p@mail.example:4650/", "mail.example", 4650, Tls),
            ("smtps://localhost", "localhost", 465, Tls),
            ("smtp://mail.example", "mail.example", 587, StartTls),
            ("smtp://mail.example:25", "mail.example", 25, StartTls),
            ("smtp://192.0.2.1", "192.0.2.1", 587, StartTls),
            ("smtp://localhost", "localhost", 25, Local),
            ("smtp://127.0.0.1:2525", "127.0.0.1", 2525, Local),
            ("smtp://[::1]:2525", "::1", 2525, Local),
            (
                "smtp://localhost.example",
                "localhost.example",
                587,
                StartTls,
            ),
        ] {
            let found = settings(url, "svc@example.com", None).server().unwrap();
            let found = (found.host.as_str(), found.port, found.security);
            assert_eq!(found, (host, port, security), "{url}");
        }
        let with = settings("smtps://a%40b:p%2Fw@mail.example", "svc@example.com", None);
        let credentials = with.server().unwrap().credentials;
        assert_eq!(credentials, Some(("a@b".to_owned(), "p/w".to_owned())));
    }

    #[test]
    fn mistakes_are_named_without_the_password() {
        let good = "smtps://u:sesame@mail.example";
        for (url, from, name, named) in [
            ("", "svc@example.com", None, "smtp.url"),
            ("mail.example", "svc@example.com", None, "smtp.url"),
            (
                "https://u:sesame@mail.example",
                "svc@example.com",
                None,
                "smtp.url",
            ),
            (
                "smtps://u:sesame@mail.example/x",
                "svc@example.com",
                None,
                "smtp.url",
            ),
            (
                "smtps://u:sesame@mail.example?tls=no",
                "svc@example.com",
                None,
                "smtp.url",
            ),
            ("smtps://", "svc@example.com", None, "smtp.url"),
            (
                "smtps://u@mail.example",
                "svc@example.com",
                None,
                "smtp.url",
            ),
            (
                "smtps://:sesame@mail.example",
                "svc@example.com",
                None,
                "smtp.url",
            ),
            (good, "svc", None, "smtp.from"),
            (good, "Svc <svc@example.com>", None, "smtp.from"),
            (good, "svc@example.com", Some(""), "smtp.name"),
            (good, "svc@example.com", Some("a\nBcc: b"), "smtp.name"),
        ] {
            let error = settings(url, from, name).server().unwrap_err().to_string();
            assert!(error.contains(named), "{url} {from}: {error}");
            assert!(!error.contains("sesame"), "{error}");
        }
    }

    #[test]
    fn notes_tell_what_a_spam_filter_asks() {
        for (url, notes) in [
            ("smtps://u:sesame@mail.example.com", 1),
            ("smtps://u:sesame@example.com", 1),
            ("smtps://u:sesame@relay.example.net", 2),
        ] {
            let named = settings(url, "svc@example.com", Some("Pages"));
            let found = named.deliverability_notes();
            assert_eq!(found.len(), notes, "{found:?}");
            let said = found.join("\n");
            assert!(
                said.contains("example.com") && !said.contains("sesame"),
                "{said}"
            );
        }
        let bare = settings("smtps://mail.example.com", "svc@example.com", None);
        assert_eq!(bare.deliverability_notes().len(), 2);
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in ["smtps://u:sesame@mail.example", "smtps:/u:sesame@mail"] {
            let settings = settings(url, "svc@example.com", None);
            let shown = toml::to_string(&settings).unwrap();
            assert!(!shown.contains("sesame"), "{shown}");
            assert!(!format!("{settings:?}").contains("sesame"));
        }
        let shown = toml::to_string(&settings(
            "smtps://u:sesame@mail.example",
            "a@b.example",
            None,
        ));
        assert!(shown.unwrap().contains("smtps://u:********@mail.example"));
    }
}
