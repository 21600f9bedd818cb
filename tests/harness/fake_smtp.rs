//! A mail server that keeps what it is sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Mail that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMail {
    /// Sender of the envelope.
    pub from: String,
    /// Receiver of the envelope.
    pub to: String,
    /// Head and body, with line breaks of one character.
    pub content: String,
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
}

/// The mail server, without TLS, on this machine.
#[derive(Clone, Debug)]
pub struct FakeSmtp {
    address: SocketAddr,
    state: Arc<Mutex<SmtpState>>,
}

impl FakeSmtp {
    /// Starts the server.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::default(),
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

    fn lock(&self) -> std::sync::MutexGuard<'_, SmtpState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn speak(&self, stream: TcpStream) -> std::io::Result<()> {
        let behaviour = self.lock().behaviour;
        let (reader, mut writer) = stream.into_split();
        let mut lines = BufReader::new(reader).lines();
        if behaviour == SmtpBehaviour::Silent {
            // Until the client hangs up.
            while lines.next_line().await?.is_some() {}
            return Ok(());
        }
        writer.write_all(b"220 fake\r\n").await?;
        let (mut from, mut to) = (String::new(), String::new());
        while let Some(line) = lines.next_line().await? {
            let address = |line: &str| {
                let address = line
                    .split_once('<')
                    .and_then(|(_, rest)| rest.split_once('>'));
                address.map_or_else(String::new, |(address, _)| address.to_owned())
            };
            let verb = line.get(..4).unwrap_or_default().to_ascii_uppercase();
            let answer: &[u8] = match verb.as_str() {
                "EHLO" => b"250-fake\r\n250 8BITMIME\r\n",
                "MAIL" => {
                    from = address(&line);
                    b"250 ok\r\n"
                }
                "RCPT" if behaviour == SmtpBehaviour::Refuse => {
                    b"550 <ada@example.com> unknown\r\n"
                }
                "RCPT" => {
                    to = address(&line);
                    b"250 ok\r\n"
                }
                "DATA" => {
                    writer.write_all(b"354 go on\r\n").await?;
                    let mut content = String::new();
                    while let Some(line) = lines.next_line().await?.filter(|line| line != ".") {
                        content.push_str(&line);
                        content.push('\n');
                    }
                    let mail = ReceivedMail {
                        from: from.clone(),
                        to: to.clone(),
                        content,
                    };
                    self.lock().mails.push(mail);
                    b"250 taken\r\n"
                }
                "QUIT" => {
                    writer.write_all(b"221 bye\r\n").await?;
                    return Ok(());
                }
                _ => b"250 ok\r\n",
            };
            if behaviour == SmtpBehaviour::Slow {
                tokio::time::sleep(Duration::from_millis(1_600)).await;
            }
            writer.write_all(answer).await?;
        }
        Ok(())
    }
}
