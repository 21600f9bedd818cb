//! Addresses to listen on, as people write them.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use serde::{Deserialize, Deserializer};

/// Parses an address: `127.0.0.1:8080`, `localhost:8080`, or `:8080` for every interface.
///
/// # Errors
/// A text that says what is missing, and how to write it.
pub(super) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Ok(port) = text.parse::<u16>() {
        return Err(format!(
            "this is a port alone: write `:{port}` for every interface, or `127.0.0.1:{port}` for this machine alone"
        ));
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        let example = SocketAddr::new(ip, 8080);
        return Err(format!("the port is missing: write `{example}`"));
    }
    let forms =
        "write an address and a port, such as `127.0.0.1:8080`, `localhost:8080` or `:8080`";
    let (host, port) = text.rsplit_once(':').ok_or(forms)?;
    let port: u16 = port
        .parse()
        .map_err(|_| format!("{port:?} is not a port: {forms}"))?;
    if host.is_empty() {
        // An IPv6 listener on all interfaces accepts IPv4 connections, too.
        return Ok(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    }
    let found = (host, port)
        .to_socket_addrs()
        .map_err(|error| format!("the name {host:?} has no address ({error}): {forms}"))?;
    let found: Vec<_> = found.collect();
    let best = found.iter().find(|address| address.is_ipv4());
    best.or(found.first())
        .copied()
        .ok_or_else(|| format!("the name {host:?} has no address: {forms}"))
}

/// Reads an address from the file.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_address(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_people_write_them() {
        for (text, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::1]:80", "[::1]:80"),
            (":8080", "[::]:8080"),
            (":0", "[::]:0"),
            ("localhost:8080", "127.0.0.1:8080"),
        ] {
            let found = parse_address(text).map(|address| address.to_string());
            assert_eq!(found.as_deref(), Ok(expected), "{text}");
        }
        for (text, says) in [
            ("8080", "`:8080`"),
            ("127.0.0.1", "`127.0.0.1:8080`"),
            ("::1", "`[::1]:8080`"),
            ("localhost", "`localhost:8080`"),
            ("localhost:http", "\"http\""),
            (":99999", "\"99999\""),
            ("", "`:8080`"),
            ("no-such-name.invalid:80", "no-such-name.invalid"),
        ] {
            let refused = parse_address(text).unwrap_err();
            assert!(refused.contains(says), "{text}: {refused}");
        }
    }
}
