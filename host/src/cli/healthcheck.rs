//! `svc healthcheck`: tells containers and other programs whether the server of this machine serves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::redirect::Policy;
use serde::Serialize;
use url::Url;

use super::OperatorArgs;
use crate::outbound;
use crate::overview::status_file::{self, StatusFile};

/// Time limit for the server's response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Size limit of the response.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

#[derive(Debug, clap::Args)]
pub(super) struct HealthcheckCommand {
    #[command(flatten)]
    args: OperatorArgs,
}

/// Answer of the command.
#[derive(Debug, Serialize)]
struct HealthcheckAnswer {
    ready: bool,
    /// Address that was asked.
    address: SocketAddr,
    /// Response body.
    said: String,
}

impl HealthcheckCommand {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let data = self.args.installation()?;
        let Some(said) = status_file::read(&data)? else {
            bail!("no server has run on {}: start one", data.display());
        };
        let address = reachable_address(said.address);
        let asking = tokio::time::timeout(TIMEOUT, request_readiness(&said, address));
        let (status, text) = asking
            .await
            .unwrap_or_else(|_| bail!("it does not answer within 5 seconds"))
            .with_context(|| format!("asking the server at {address}"))?;
        let health = HealthcheckAnswer {
            ready: status == 200,
            address,
            said: text,
        };
        self.args.print_answer(&health, &health.said)?;
        Ok(match health.ready {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }
}

/// Returns the address on this machine that reaches a listener: loopback for an unspecified address.
fn reachable_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Requests `/readyz`; returns the status and the text.
async fn request_readiness(
    said: &StatusFile,
    address: SocketAddr,
) -> anyhow::Result<(u16, String)> {
    // Over TLS the server is called by its name, because its certificate has no other.
    let (scheme, host) = match said.tls {
        true => ("https", Url::parse(&said.base_url)?),
        false => ("http", Url::parse(&format!("http://{address}"))?),
    };
    let host = host.host_str().context("its address has no host")?;
    // The request holds no secret, so an untrusted certificate does no harm.
    let client = outbound::client_builder()
        .no_proxy()
        .redirect(Policy::none())
        .danger_accept_invalid_certs(true)
        .resolve(host, address)
        .build()?;
    let url = format!("{scheme}://{host}:{}/readyz", address.port());
    let mut answer = client.get(url).send().await?;
    let status = answer.status().as_u16();
    let mut text = Vec::new();
    while let Some(more) = answer.chunk().await? {
        text.extend_from_slice(&more);
        if text.len() > MAX_RESPONSE_BYTES {
            bail!("it answers far too much");
        }
    }
    Ok((status, String::from_utf8_lossy(&text).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_every_interface_is_asked_on_loopback() {
        for (listens, asked) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
        ] {
            assert_eq!(
                reachable_address(listens.parse().unwrap()),
                asked.parse().unwrap()
            );
        }
    }
}
