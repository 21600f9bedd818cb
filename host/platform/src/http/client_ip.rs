//! Address of the client, behind trusted proxies, and the networks that limits count by.

use std::net::{IpAddr, Ipv6Addr};

use http::HeaderMap;
use ipnet::IpNet;

use super::forwarded::RequestSource;

/// The client's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientIp(pub IpAddr);

impl ClientIp {
    /// Returns the client of a request: the one that another node names, else as [`ClientIp::resolve`] does.
    pub fn of(source: &RequestSource, headers: &HeaderMap, trusted: &[IpNet]) -> Self {
        match source {
            RequestSource::Client(peer) => Self::resolve(*peer, headers, trusted),
            RequestSource::Node(forwarded) => forwarded.client,
        }
    }

    /// Returns the right-most address of `X-Forwarded-For` that is not a trusted proxy, if the peer is one; else the peer.
    pub fn resolve(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Self {
        let mut client = peer.to_canonical();
        let is_trusted = |address: &IpAddr| trusted.iter().any(|net| net.contains(address));
        if trusted.is_empty() || !is_trusted(&client) {
            return Self(client);
        }
        let lines: Vec<&str> = headers
            .get_all("x-forwarded-for")
            .iter()
            .filter_map(|v| v.to_str().ok())
            .collect();
        for hop in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
            // Entries before an unreadable one are not trustworthy: the last readable hop is the client.
            let Ok(address) = hop.trim().parse::<IpAddr>() else {
                break;
            };
            client = address.to_canonical();
            if !is_trusted(&client) {
                break;
            }
        }
        Self(client)
    }

    /// Returns the network that caps count by: an IPv4 address, or the /48 of an IPv6 one, which is what one site is given.
    pub fn network(self) -> IpAddr {
        match self.0 {
            IpAddr::V6(address) => {
                let [a, b, c, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
            }
            v4 => v4,
        }
    }

    /// Returns the address that limits count by: an IPv4 address, or the /64 of an IPv6 one, which is what a single
    /// client is given.
    pub fn bucket(self) -> IpAddr {
        match self.0 {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            v4 => v4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::forwarded::ForwardedRequest;
    use super::*;

    fn client(peer: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
        ClientIp::resolve(peer.parse().unwrap(), &headers, &trusted)
            .0
            .to_string()
    }

    #[test]
    fn the_rightmost_untrusted_hop_is_the_client() {
        for (peer, forwarded, expected) in [
            ("203.0.113.9", &["1.1.1.1"][..], "203.0.113.9"),
            ("10.0.0.1", &["1.1.1.1"], "1.1.1.1"),
            ("10.0.0.1", &["1.1.1.1, 2.2.2.2"], "2.2.2.2"),
            ("10.0.0.1", &["1.1.1.1, 2.2.2.2, 10.9.9.9"], "2.2.2.2"),
            ("10.0.0.1", &["1.1.1.1", "2.2.2.2"], "2.2.2.2"),
            ("10.0.0.1", &["6.6.6.6, junk"], "10.0.0.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("::1", &["2001:db8::5"], "2001:db8::5"),
            ("::ffff:10.0.0.1", &["::ffff:1.1.1.1"], "1.1.1.1"),
        ] {
            assert_eq!(client(peer, forwarded), expected, "{peer} {forwarded:?}");
        }
    }

    #[test]
    fn only_another_node_names_the_client_itself() {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", "1.1.1.1".parse().unwrap());
        let forged = "1 control 6.6.6.6 id host";
        headers.insert("svc-forwarded", forged.parse().unwrap());
        let of = |source: &RequestSource| ClientIp::of(source, &headers, &trusted).0.to_string();
        for (peer, client) in [("203.0.113.9", "203.0.113.9"), ("10.0.0.1", "1.1.1.1")] {
            assert_eq!(of(&RequestSource::Client(peer.parse().unwrap())), client);
        }
        let node = ForwardedRequest {
            hops: 1,
            database: "control".to_owned(),
            client: ClientIp("192.0.2.7".parse().unwrap()),
            request_id: "id".into(),
            authority: "host".into(),
        };
        assert_eq!(of(&RequestSource::Node(node)), "192.0.2.7");
    }

    #[test]
    fn ipv6_clients_count_by_64_bits() {
        let bucket = |ip: &str| ClientIp(ip.parse().unwrap()).bucket();
        assert_eq!(bucket("2001:db8:1:2:3::4"), bucket("2001:db8:1:2:ffff::"));
        assert_ne!(bucket("2001:db8:1:2::"), bucket("2001:db8:1:3::"));
        assert_ne!(bucket("1.2.3.4"), bucket("1.2.3.5"));
    }

    #[test]
    fn caps_count_ipv6_clients_by_48_bits() {
        let network = |ip: &str| ClientIp(ip.parse().unwrap()).network();
        assert_eq!(network("2001:db8:1:2::4"), network("2001:db8:1:ffff::"));
        assert_ne!(network("2001:db8:1::"), network("2001:db8:2::"));
        assert_ne!(network("1.2.3.4"), network("1.2.3.5"));
    }
}
