//! Mails to a mail server: each over a connection of its own, bounded in time.

use std::fmt;
use std::time::{Duration, SystemTime};

use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message, MultiPart};
use lettre::transport::smtp;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use tokio::sync::OnceCell;
use url::Host;

/// Maximum length of an address, in bytes (RFC 5321).
const MAX_ADDRESS_BYTES: usize = 254;
/// Maximum length of the part before the `@`, in bytes (RFC 5321).
const MAX_LOCAL_BYTES: usize = 64;

/// E-mail address in the form in which addresses are compared: in lower case, its domain in ASCII.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MailAddress(Address);

impl MailAddress {
    /// Parses an address; `None` if no mail is sent to such an address.
    pub fn parse(text: &str) -> Option<Self> {
        let (local, domain) = text.trim().rsplit_once('@')?;
        let local = local.to_ascii_lowercase();
        if local.len() > MAX_LOCAL_BYTES || !is_dot_atom(&local) || domain.contains('%') {
            return None;
        }
        // IDNA; an address of a machine is no domain.
        let Ok(Host::Domain(domain)) = Host::parse(domain) else {
            return None;
        };
        let labels = || domain.split('.');
        let is_label = |label: &str| !label.is_empty() && label.len() <= 63;
        if labels().count() < 2 || !labels().all(is_label) {
            return None;
        }
        if local.len() + 1 + domain.len() > MAX_ADDRESS_BYTES {
            return None;
        }
        Address::new(local, domain).ok().map(Self)
    }

    /// Returns the domain, in ASCII.
    pub fn domain(&self) -> &str {
        self.0.domain()
    }
}

impl fmt::Display for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Whether a text is words with single dots between them (RFC 5322, section 3.2.3), in ASCII.
fn is_dot_atom(text: &str) -> bool {
    let is_atom = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
    text.split('.')
        .all(|word| !word.is_empty() && word.bytes().all(is_atom))
}

/// Protection of a connection to a mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailSecurity {
    /// TLS from the first byte.
    Tls,
    /// TLS before anything is said (STARTTLS), or no mail.
    StartTls,
    /// STARTTLS where the server offers it, with any certificate: it is on this machine.
    Local,
}

/// Mail server, and the sender of all mails to it.
#[derive(Clone)]
pub struct MailServer {
    /// Name or address of the server.
    pub host: String,
    /// Port of the server.
    pub port: u16,
    /// Protection of the connection.
    pub security: MailSecurity,
    /// User and password.
    pub credentials: Option<(String, String)>,
    /// Address that mails are from.
    pub from: MailAddress,
    /// Name that mails are from.
    pub name: Option<String>,
}

impl fmt::Debug for MailServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the credentials.
        f.debug_struct("MailServer")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("security", &self.security)
            .finish_non_exhaustive()
    }
}

/// Mail to one person, in two forms.
#[derive(Clone, Debug)]
pub struct OutgoingMail {
    /// Address of the person.
    pub to: MailAddress,
    /// Subject, which is never a text of the person who asked for the mail.
    pub subject: String,
    /// Content as plain text.
    pub text: String,
    /// Content as HTML.
    pub html: String,
    /// Random part of the `Message-ID`.
    pub id: String,
    /// Time of the mail.
    pub at: SystemTime,
}

/// Failure of a mail. Its text contains nothing of the mail, nor its address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// The mail server did not answer in time.
    #[error("the mail server did not answer in time")]
    Timeout,
    /// The mail server refused; contains its reply code.
    #[error("the mail server answered {0}")]
    Refused(String),
    /// No connection, or one that was lost.
    #[error("no connection to the mail server: {0}")]
    Connection(String),
    /// The mail cannot be written.
    #[error("the mail cannot be written: {0}")]
    Message(String),
}

impl From<smtp::Error> for MailError {
    fn from(error: smtp::Error) -> Self {
        match error.status() {
            Some(code) => Self::Refused(code.to_string()),
            None if error.is_timeout() => Self::Timeout,
            None => Self::Connection(error.to_string()),
        }
    }
}

impl From<lettre::error::Error> for MailError {
    fn from(error: lettre::error::Error) -> Self {
        Self::Message(error.to_string())
    }
}

/// Sender of mails over a mail server.
#[derive(Debug)]
pub struct Mailer {
    server: MailServer,
    /// Built at first use, so that a machine without certificates of authorities starts.
    transport: OnceCell<AsyncSmtpTransport<Tokio1Executor>>,
}

impl Mailer {
    /// Creates a sender; nothing is connected yet.
    pub fn new(server: MailServer) -> Self {
        Self {
            server,
            transport: OnceCell::new(),
        }
    }

    /// Hands a mail to the server.
    ///
    /// # Errors
    /// [`MailError`]; after `Timeout` the mail may have been sent.
    pub async fn send(&self, mail: &OutgoingMail, within: Duration) -> Result<(), MailError> {
        let message = self.message(mail)?;
        let sending = async {
            self.transport().await?.send(message).await?;
            Ok(())
        };
        bounded(within, sending).await
    }

    /// Connects to the server and signs in there.
    ///
    /// # Errors
    /// [`MailError`].
    pub async fn check(&self, within: Duration) -> Result<(), MailError> {
        let checking = async {
            match self.transport().await?.test_connection().await? {
                true => Ok(()),
                false => Err(MailError::Connection("it ended at once".to_owned())),
            }
        };
        bounded(within, checking).await
    }

    async fn transport(&self) -> Result<&AsyncSmtpTransport<Tokio1Executor>, MailError> {
        let build = || std::future::ready(self.server.transport().map_err(MailError::from));
        self.transport.get_or_try_init(build).await
    }

    fn message(&self, mail: &OutgoingMail) -> Result<Message, MailError> {
        let from = &self.server.from;
        let auto_submitted = HeaderValue::new(
            HeaderName::new_from_ascii_str("Auto-Submitted"),
            "auto-generated".to_owned(),
        );
        let message = Message::builder()
            .from(Mailbox::new(self.server.name.clone(), from.0.clone()))
            .to(Mailbox::new(None, mail.to.0.clone()))
            .subject(mail.subject.clone())
            .date(mail.at)
            .message_id(Some(format!("<{}@{}>", mail.id, from.domain())))
            .raw_header(auto_submitted);
        let content = MultiPart::alternative_plain_html(mail.text.clone(), mail.html.clone());
        Ok(message.multipart(content)?)
    }
}

impl MailServer {
    fn transport(&self) -> Result<AsyncSmtpTransport<Tokio1Executor>, smtp::Error> {
        let parameters = || TlsParameters::new(self.host.clone());
        let tls = match self.security {
            MailSecurity::Tls => Tls::Wrapper(parameters()?),
            MailSecurity::StartTls => Tls::Required(parameters()?),
            MailSecurity::Local => Tls::Opportunistic(
                TlsParameters::builder(self.host.clone())
                    .dangerous_accept_invalid_certs(true)
                    .build()?,
            ),
        };
        // Name by which this machine greets the server: that of the address that mails are from.
        let hello = ClientId::Domain(self.from.domain().to_owned());
        let builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(self.host.clone())
            .port(self.port)
            .tls(tls)
            .hello_name(hello);
        let builder = match &self.credentials {
            Some((user, password)) => {
                builder.credentials(Credentials::new(user.clone(), password.clone()))
            }
            None => builder,
        };
        Ok(builder.build())
    }
}

async fn bounded(
    within: Duration,
    work: impl Future<Output = Result<(), MailError>>,
) -> Result<(), MailError> {
    tokio::time::timeout(within, work)
        .await
        .unwrap_or(Err(MailError::Timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_in_one_form() {
        for (text, form) in [
            ("Ada@Example.COM", Some("ada@example.com")),
            ("  ada.l+x@example.com ", Some("ada.l+x@example.com")),
            ("ada@BÜCHER.example", Some("ada@xn--bcher-kva.example")),
            (
                "ada@xn--bcher-kva.example",
                Some("ada@xn--bcher-kva.example"),
            ),
            ("ada", None),
            ("@example.com", None),
            ("ada@", None),
            ("ada@localhost", None),
            ("ada@127.0.0.1", None),
            ("ada@[127.0.0.1]", None),
            ("ada@example.com.", None),
            ("ada@a%2eexample.com", None),
            ("ada@a..example", None),
            ("a b@example.com", None),
            ("ädä@example.com", None),
            (".ada@example.com", None),
            ("ada..l@example.com", None),
            ("\"ada\"@example.com", None),
            ("ada@example.com\r\nBcc: eve@example.com", None),
            ("ada\r\n@example.com", None),
            ("ada@example.com,eve@example.com", None),
            ("<ada@example.com>", None),
            ("Ada <ada@example.com>", None),
            ("ada@eve@example.com", None),
        ] {
            let found = MailAddress::parse(text).map(|address| address.to_string());
            assert_eq!(found.as_deref(), form, "{text:?}");
        }
        let long = "a".repeat(65);
        assert_eq!(MailAddress::parse(&format!("{long}@example.com")), None);
        let domain = [&"b".repeat(63), "c", "example"].join(".").repeat(4);
        assert_eq!(MailAddress::parse(&format!("ada@{domain}")), None);
    }

    #[test]
    fn a_mail_has_two_forms_and_headers_that_nobody_types() {
        let from = MailAddress::parse("svc@sender.example").unwrap();
        let mailer = Mailer::new(MailServer {
            host: "localhost".to_owned(),
            port: 25,
            security: MailSecurity::Local,
            credentials: None,
            from,
            name: Some("Pages".to_owned()),
        });
        let mail = OutgoingMail {
            to: MailAddress::parse("ada@example.com").unwrap(),
            subject: "Code\r\nBcc: eve@example.com".to_owned(),
            text: "plain".to_owned(),
            html: "<p>rich</p>".to_owned(),
            id: "x1".to_owned(),
            at: SystemTime::UNIX_EPOCH,
        };
        let message = mailer.message(&mail).unwrap().formatted();
        let message = String::from_utf8(message).unwrap();
        let (head, body) = message.split_once("\r\n\r\n").unwrap();
        for line in [
            "Auto-Submitted: auto-generated",
            "To: ada@example.com",
            "From: Pages <svc@sender.example>",
            "Message-ID: <x1@sender.example>",
        ] {
            assert!(head.lines().any(|found| found == line), "{line}: {head}");
        }
        assert!(!head.lines().any(|line| line.starts_with("Bcc")), "{head}");
        assert!(head.contains("multipart/alternative"), "{head}");
        for part in ["text/plain", "text/html", "plain", "rich"] {
            assert!(body.contains(part), "{part}: {body}");
        }
    }

    /// Answers as a mail server without STARTTLS; returns the address, and what it was told.
    async fn start_plain_server() -> (std::net::SocketAddr, tokio::task::JoinHandle<String>) {
        use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let speaking = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (reader, mut writer) = stream.into_split();
            let mut lines = BufReader::new(reader).lines();
            let mut told = String::new();
            writer.write_all(b"220 plain\r\n").await.unwrap();
            while let Ok(Some(line)) = lines.next_line().await {
                let answer: &[u8] = match line.starts_with("EHLO") {
                    true => b"250-plain\r\n250 AUTH PLAIN LOGIN\r\n",
                    false => b"250 ok\r\n",
                };
                told.push_str(&line);
                told.push('\n');
                if writer.write_all(answer).await.is_err() {
                    break;
                }
            }
            told
        });
        (address, speaking)
    }

    #[tokio::test]
    async fn without_starttls_nothing_is_said_that_is_nobodys_business() {
        let (address, speaking) = start_plain_server().await;
        let mailer = Mailer::new(MailServer {
            host: address.ip().to_string(),
            port: address.port(),
            security: MailSecurity::StartTls,
            credentials: Some(("user".to_owned(), "sesame".to_owned())),
            from: MailAddress::parse("svc@sender.example").unwrap(),
            name: None,
        });
        let mail = OutgoingMail {
            to: MailAddress::parse("ada@example.com").unwrap(),
            subject: "Code".to_owned(),
            text: "123456".to_owned(),
            html: "<p>123456</p>".to_owned(),
            id: "x1".to_owned(),
            at: SystemTime::UNIX_EPOCH,
        };
        let sent = mailer.send(&mail, Duration::from_secs(4)).await;
        assert!(sent.is_err(), "{sent:?}");
        drop(mailer);
        // A machine without certificates of authorities does not even connect.
        if let Ok(told) = tokio::time::timeout(Duration::from_secs(5), speaking).await {
            let told = told.unwrap();
            assert!(!told.contains("AUTH") && !told.contains("MAIL"), "{told}");
        }
    }
}
