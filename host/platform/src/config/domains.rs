//! Settings of projects' domains.

use std::net::{IpAddr, SocketAddr};

use anyhow::bail;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// Port of DNS.
const DNS_PORT: u16 = 53;

/// The `[domains]` table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainSettings {
    /// Resolver that proofs are looked up with, as `host[:port]`; the system's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolver: Option<String>,
}

impl DomainSettings {
    /// Checks the table.
    ///
    /// # Errors
    /// For a resolver that is no host with an optional port.
    pub(super) fn checked(self) -> anyhow::Result<Self> {
        if let Some(resolver) = &self.resolver
            && parse(resolver).is_none()
        {
            bail!(
                "domains.resolver must be a host with an optional port, such as 127.0.0.1:53: {resolver:?}"
            );
        }
        Ok(self)
    }

    /// Returns the resolver's host and port, if one is set.
    pub fn resolver(&self) -> Option<(String, u16)> {
        self.resolver.as_deref().and_then(parse)
    }
}

/// Parses `host[:port]`, where the host is an address or a name.
fn parse(text: &str) -> Option<(String, u16)> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some((address.ip().to_string(), address.port()));
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some((ip.to_string(), DNS_PORT));
    }
    let url = Url::parse(&format!("http://{text}")).ok()?;
    let host = url.host().filter(|_| {
        url.path() == "/"
            && url.username().is_empty()
            && url.query().is_none()
            && !text.contains(['/', '#'])
    })?;
    let host = match host {
        Host::Ipv6(ip) => ip.to_string(),
        Host::Ipv4(ip) => ip.to_string(),
        Host::Domain(name) => name.to_owned(),
    };
    // A port that is written and the scheme's default is lost in the URL.
    let port = match text.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => port.parse().ok()?,
        _ => DNS_PORT,
    };
    Some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolver_is_a_host_with_an_optional_port() {
        for (text, expected) in [
            ("127.0.0.1", Some(("127.0.0.1", 53))),
            ("127.0.0.1:5353", Some(("127.0.0.1", 5353))),
            ("::1", Some(("::1", 53))),
            ("[::1]:5353", Some(("::1", 5353))),
            ("[::1]", Some(("::1", 53))),
            ("dns.shop.com", Some(("dns.shop.com", 53))),
            ("dns.shop.com:80", Some(("dns.shop.com", 80))),
            ("", None),
            ("a b", None),
            ("127.0.0.1:x", None),
            ("127.0.0.1:99999", None),
            ("https://dns.shop.com", None),
            ("dns.shop.com/path", None),
        ] {
            let parsed = parse(text);
            let parsed = parsed.as_ref().map(|(host, port)| (host.as_str(), *port));
            assert_eq!(parsed, expected, "{text}");
        }
    }
}
