//! `svc healthcheck`: for containers and whoever else asks by a command whether the server of this machine serves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::OperatorArgs;
use crate::overview::running;

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most that is read of an answer.
const ANSWER_BYTES: u64 = 64 << 10;

#[derive(Debug, clap::Args)]
pub(super) struct Healthcheck {
    #[command(flatten)]
    args: OperatorArgs,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Health {
    ready: bool,
    /// Where the server was asked.
    address: SocketAddr,
    /// Text that the server answered.
    said: String,
}

impl Healthcheck {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let data = self.args.installation()?;
        let Some(said) = running::read(&data)? else {
            bail!("no server has run on {}: start one", data.display());
        };
        let address = reachable(said.address);
        let asking = tokio::time::timeout(PATIENCE, ask(address));
        let (status, text) = asking
            .await
            .unwrap_or_else(|_| bail!("it does not answer within 5 seconds"))
            .with_context(|| format!("asking the server at {address}"))?;
        let health = Health {
            ready: status == 200,
            address,
            said: text,
        };
        self.args.answer(&health, &health.said)?;
        Ok(match health.ready {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }
}

/// An address of this machine at which a server that listens there is reached.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Asks whether everything is served; answers the status and the text.
async fn ask(address: SocketAddr) -> anyhow::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES).read_to_end(&mut answer).await?;
    read(&answer).context("it answers something else than HTTP")
}

/// The status and the text of an answer.
fn read(answer: &[u8]) -> Option<(u16, String)> {
    let answer = std::str::from_utf8(answer).ok()?;
    let (head, text) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((status, text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let ready = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nready\n";
        assert_eq!(read(ready), Some((200, "ready".to_owned())));
        for other in [
            &b""[..],
            b"HTTP/1.1 200 OK\r\n",
            b"SSH-2.0-x\r\n\r\n",
            b"\xff\r\n\r\n",
        ] {
            assert_eq!(read(other), None);
        }
    }

    #[test]
    fn a_server_on_every_interface_is_asked_on_loopback() {
        for (listens, asked) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
        ] {
            assert_eq!(reachable(listens.parse().unwrap()), asked.parse().unwrap());
        }
    }
}
