//! A mail server that keeps what it is sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::tls::CertificateFiles;

/// Mail that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMail {
    /// Sender of the envelope.
    pub from: String,
    /// Receiver of the envelope.
    pub to: String,
    /// Head and body, with line breaks of one character.
    pub content: String,
    /// Whether it came over TLS.
    pub is_encrypted: bool,
}

impl ReceivedMail {
    /// Returns the six digits of a code, which stand on a line of their own.
    ///
    /// # Panics
    /// When the mail has none.
    pub fn code(&self) -> String {
        let is_code = |line: &&str| line.len() == 6 && line.bytes().all(|b| b.is_ascii_digit());
        let code = self.content.lines().find(is_code);
        code.expect("a line with a code").to_owned()
    }
}

/// Behaviour of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmtpBehaviour {
    /// Takes all mails.
    #[default]
    Accept,
    /// Refuses every receiver.
    Refuse,
    /// Says nothing.
    Silent,
    /// Takes mails, each line of the conversation after a while.
    Slow,
}

#[derive(Debug, Default)]
struct SmtpState {
    behaviour: SmtpBehaviour,
    mails: Vec<ReceivedMail>,
    /// Commands that were sent without TLS.
    clear: Vec<String>,
}

/// The mail server on this machine.
#[derive(Clone)]
pub struct FakeSmtp {
    address: SocketAddr,
    state: Arc<Mutex<SmtpState>>,
    /// Configuration of TLS behind STARTTLS, if the server offers it.
    tls: Option<TlsAcceptor>,
}

impl FakeSmtp {
    /// Starts a server without TLS.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn start() -> Self {
        Self::start_with(None).await
    }

    /// Starts a server that offers STARTTLS, with a certificate.
    ///
    /// # Panics
    /// When no port is free, or the certificate is none.
    pub async fn start_with_tls(certificate: &CertificateFiles) -> Self {
        let chain = CertificateDer::from_pem_file(certificate.cert()).unwrap();
        let key = PrivateKeyDer::from_pem_file(certificate.key()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .unwrap();
        Self::start_with(Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::default(),
            tls,
        };
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = accepting.clone();
                tokio::spawn(async move {
                    // A client may hang up.
                    let _ = server.speak(stream).await;
                });
            }
        });
        server
    }

    /// Returns the URL for the settings.
    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Changes how mails are taken from now on.
    pub fn set_behaviour(&self, behaviour: SmtpBehaviour) {
        self.lock().behaviour = behaviour;
    }

    /// Lists the mails, oldest first.
    pub fn mails(&self) -> Vec<ReceivedMail> {
        self.lock().mails.clone()
    }

    /// Returns the newest mail.
    ///
    /// # Panics
    /// When there is none.
    pub fn newest(&self) -> ReceivedMail {
        self.mails().pop().expect("a mail")
    }

    /// Lists the commands that were sent without TLS.
    pub fn clear_commands(&self) -> Vec<String> {
        self.lock().clear.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SmtpState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn speak(&self, mut stream: TcpStream) -> std::io::Result<()> {
        if self.lock().behaviour != SmtpBehaviour::Silent {
            stream.write_all(b"220 fake\r\n").await?;
        }
        let Some(stream) = self.converse(stream, false).await? else {
            return Ok(());
        };
        if let Some(tls) = &self.tls {
            let stream = tls.accept(stream).await?;
            self.converse(stream, true).await?;
        }
        Ok(())
    }

    /// Answers commands; returns the stream when TLS is to begin on it.
    async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        is_encrypted: bool,
    ) -> std::io::Result<Option<S>> {
        let behaviour = self.lock().behaviour;
        let offers_tls = self.tls.is_some() && !is_encrypted;
        let mut stream = BufReader::new(stream);
        let (mut from, mut to) = (String::new(), String::new());
        while let Some(line) = read_line(&mut stream).await? {
            if behaviour == SmtpBehaviour::Silent {
                continue;
            }
            if !is_encrypted {
                self.lock().clear.push(line.clone());
            }
            let verb = line.get(..4).unwrap_or_default().to_ascii_uppercase();
            let answer: &[u8] = match verb.as_str() {
                "EHLO" if offers_tls => b"250-fake\r\n250 STARTTLS\r\n",
                "EHLO" => b"250-fake\r\n250-AUTH PLAIN\r\n250 8BITMIME\r\n",
                "STAR" if offers_tls => {
                    stream.write_all(b"220 go on\r\n").await?;
                    return Ok(Some(stream.into_inner()));
                }
                "AUTH" => b"235 known\r\n",
                "MAIL" => {
                    from = address_of(&line);
                    b"250 ok\r\n"
                }
                "RCPT" if behaviour == SmtpBehaviour::Refuse => {
                    b"550 <ada@example.com> unknown\r\n"
                }
                "RCPT" => {
                    to = address_of(&line);
                    b"250 ok\r\n"
                }
                "DATA" => {
                    stream.write_all(b"354 go on\r\n").await?;
                    let mut content = String::new();
                    while let Some(line) = read_line(&mut stream).await?.filter(|line| line != ".")
                    {
                        content.push_str(&line);
                        content.push('\n');
                    }
                    self.lock().mails.push(ReceivedMail {
                        from: from.clone(),
                        to: to.clone(),
                        content,
                        is_encrypted,
                    });
                    b"250 taken\r\n"
                }
                "QUIT" => {
                    stream.write_all(b"221 bye\r\n").await?;
                    return Ok(None);
                }
                _ => b"250 ok\r\n",
            };
            if behaviour == SmtpBehaviour::Slow {
                tokio::time::sleep(Duration::from_millis(1_600)).await;
            }
            stream.write_all(answer).await?;
            stream.flush().await?;
        }
        Ok(None)
    }
}

/// Reads a line without its end; `None` at the end of the stream.
async fn read_line<S: AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
) -> std::io::Result<Option<String>> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await?;
    let text = line.trim_end_matches(['\r', '\n']);
    Ok((read > 0).then(|| text.to_owned()))
}

/// Returns the address in a command of the envelope.
fn address_of(line: &str) -> String {
    let rest = line.split_once('<').map_or("", |(_, rest)| rest);
    rest.split('>').next().unwrap_or_default().to_owned()
}
