//! Names of domains: their one form, and which names no project may have.

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use crate::config::Config;

/// Most bytes of a name: the name of its TXT record has five more, and 253 at most (RFC 1035, section 2.3.4).
const MAX_NAME_BYTES: usize = 248;
/// Names that have a meaning of their own, with all below them (RFC 6761 and what was registered after it). Those for documents
/// (`example.com`, `example.net`, `example.org`) are left out: nobody can prove them, and guides need names that are taken.
const SPECIAL_USE: [&str; 9] = [
    "alt",
    "arpa",
    "example",
    "internal",
    "invalid",
    "local",
    "localhost",
    "onion",
    "test",
];

/// Why a name cannot be a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// It is not a host name at all.
    #[error("is no host name: send one such as `www.shop.com`, without a scheme, a port or a path")]
    NotAHost,
    /// It has a `*`.
    #[error("has a `*`: add each host by its own name")]
    Wildcard,
    /// It is an IP address.
    #[error("is an address: send a host name such as `www.shop.com`")]
    Address,
    /// It has one label.
    #[error("has one label: send a whole host name such as `www.shop.com`")]
    OneLabel,
    /// Whoever registers names below it.
    #[error("is a public suffix, below which others register names: send the name that is yours")]
    PublicSuffix,
    /// A special-use name.
    #[error(
        "is a special-use name, which public DNS does not have: send a name that is registered"
    )]
    SpecialUse,
    /// Equal to, below or above a host of the installation.
    #[error("is a host of this server, or lies below or above one: send a name of your own")]
    Ours,
}

/// Returns the one form of a name: lower case, ASCII, no dot at its end.
///
/// # Errors
/// [`NameFault`].
pub(super) fn normalize(text: &str) -> Result<String, NameFault> {
    if text.contains('*') {
        return Err(NameFault::Wildcard);
    }
    if is_address(text) {
        return Err(NameFault::Address);
    }
    let text = text.strip_suffix('.').unwrap_or(text);
    let name = Uts46::new().to_ascii(
        text.as_bytes(),
        AsciiDenyList::STD3,
        Hyphens::CheckFirstLast,
        DnsLength::Verify,
    );
    let name = name.map_err(|_| NameFault::NotAHost)?.into_owned();
    if name.len() > MAX_NAME_BYTES {
        return Err(NameFault::NotAHost);
    }
    if is_address(&name) {
        return Err(NameFault::Address);
    }
    // Last labels of digits are addresses to a browser, in some form.
    let (_, last) = name.rsplit_once('.').ok_or(NameFault::OneLabel)?;
    if last.bytes().all(|c| c.is_ascii_digit()) || last.starts_with("0x") {
        return Err(NameFault::Address);
    }
    if SPECIAL_USE
        .iter()
        .any(|special| is_at_or_below(&name, special))
    {
        return Err(NameFault::SpecialUse);
    }
    if psl::suffix_str(&name) == Some(name.as_str()) {
        return Err(NameFault::PublicSuffix);
    }
    Ok(name)
}

/// Whether a name is that of a registered domain itself, where DNS allows no CNAME.
pub(super) fn is_apex(name: &str) -> bool {
    psl::domain_str(name) == Some(name)
}

/// The hosts of an installation, without ports.
#[derive(Clone, Debug)]
pub(super) struct OwnHosts(Vec<String>);

impl OwnHosts {
    /// Reads the hosts of a configuration.
    pub(super) fn new(config: &Config) -> Self {
        let of_url = |url: &str| crate::edge::host_of(url).to_owned();
        let urls = [&config.base_url, &config.sites_url];
        let urls = urls.into_iter().chain(&config.console_url);
        let hosts = urls.map(|url| of_url(url));
        let others = [&config.sites_domain, &config.landing_host];
        let hosts = hosts.chain(others.into_iter().flatten().cloned());
        Self(
            hosts
                .map(|host| without_port(&host).to_ascii_lowercase())
                .collect(),
        )
    }

    /// Checks that a name is none of these hosts, nor below or above one.
    ///
    /// # Errors
    /// [`NameFault::Ours`].
    pub(super) fn check(&self, name: &str) -> Result<(), NameFault> {
        let is_near = |host: &String| is_at_or_below(name, host) || is_at_or_below(host, name);
        match self.0.iter().any(is_near) {
            true => Err(NameFault::Ours),
            false => Ok(()),
        }
    }
}

/// Returns a host without its port.
pub(super) fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The last colon of an IPv6 address does not begin a port.
        Some((bare, port)) if !port.ends_with(']') => bare,
        _ => host,
    }
}

fn is_at_or_below(name: &str, above: &str) -> bool {
    let begins = name.strip_suffix(above);
    begins.is_some_and(|begins| begins.is_empty() || begins.ends_with('.'))
}

fn is_address(text: &str) -> bool {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_form_or_are_refused() {
        let long = format!("{}.com", ["a".repeat(60).as_str(); 5].join("."));
        let label = format!("{}.com", "a".repeat(64));
        for (text, expected) in [
            ("www.shop.com", Ok("www.shop.com")),
            ("WWW.Shop.COM", Ok("www.shop.com")),
            ("www.shop.com.", Ok("www.shop.com")),
            ("shop.com", Ok("shop.com")),
            ("shop.co.uk", Ok("shop.co.uk")),
            ("me.github.io", Ok("me.github.io")),
            ("bücher.de", Ok("xn--bcher-kva.de")),
            ("BÜCHER.de", Ok("xn--bcher-kva.de")),
            ("xn--bcher-kva.de", Ok("xn--bcher-kva.de")),
            ("www。shop。com", Ok("www.shop.com")),
            ("a-b.shop.com", Ok("a-b.shop.com")),
            ("1.shop.com", Ok("1.shop.com")),
            ("www.example.com", Ok("www.example.com")),
            ("", Err(NameFault::NotAHost)),
            (".", Err(NameFault::NotAHost)),
            ("www..shop.com", Err(NameFault::NotAHost)),
            (".shop.com", Err(NameFault::NotAHost)),
            ("www.shop.com..", Err(NameFault::NotAHost)),
            ("-a.shop.com", Err(NameFault::NotAHost)),
            ("a-.shop.com", Err(NameFault::NotAHost)),
            ("_svc.shop.com", Err(NameFault::NotAHost)),
            ("a b.shop.com", Err(NameFault::NotAHost)),
            ("shop.com:8080", Err(NameFault::NotAHost)),
            ("https://shop.com", Err(NameFault::NotAHost)),
            ("shop.com/path", Err(NameFault::NotAHost)),
            ("me@shop.com", Err(NameFault::NotAHost)),
            ("shop%2ecom.com", Err(NameFault::NotAHost)),
            ("xn--a.com", Err(NameFault::NotAHost)),
            ("shop\0.com", Err(NameFault::NotAHost)),
            (&long, Err(NameFault::NotAHost)),
            (&label, Err(NameFault::NotAHost)),
            ("*.shop.com", Err(NameFault::Wildcard)),
            ("*", Err(NameFault::Wildcard)),
            ("127.0.0.1", Err(NameFault::Address)),
            ("::1", Err(NameFault::Address)),
            ("[::1]", Err(NameFault::Address)),
            ("127.1", Err(NameFault::Address)),
            ("1.0x7f", Err(NameFault::Address)),
            ("１２７.０.０.１", Err(NameFault::Address)),
            ("com", Err(NameFault::OneLabel)),
            ("shop", Err(NameFault::OneLabel)),
            ("co.uk", Err(NameFault::PublicSuffix)),
            ("github.io", Err(NameFault::PublicSuffix)),
            ("shop.localhost", Err(NameFault::SpecialUse)),
            ("shop.test", Err(NameFault::SpecialUse)),
            ("shop.example", Err(NameFault::SpecialUse)),
            ("shop.invalid", Err(NameFault::SpecialUse)),
            ("shop.local", Err(NameFault::SpecialUse)),
            ("shop.onion", Err(NameFault::SpecialUse)),
            ("1.168.192.in-addr.arpa", Err(NameFault::SpecialUse)),
        ] {
            let normal = normalize(text);
            assert_eq!(
                normal.as_deref().map_err(|fault| *fault),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn an_apex_is_the_registered_name_itself() {
        for (name, expected) in [
            ("shop.com", true),
            ("shop.co.uk", true),
            ("me.github.io", true),
            ("www.shop.com", false),
            ("a.b.shop.co.uk", false),
        ] {
            assert_eq!(is_apex(name), expected, "{name}");
        }
    }

    #[test]
    fn hosts_of_the_installation_are_kept() {
        let hosts = ["api.svc.com", "svc.com", "pages.svc.net", "192.0.2.7"];
        let hosts = OwnHosts(hosts.map(str::to_owned).to_vec());
        for (name, is_free) in [
            ("www.shop.com", true),
            ("notsvc.com", true),
            ("svc.com", false),
            ("api.svc.com", false),
            ("www.svc.com", false),
            ("a.api.svc.com", false),
            ("svc.net", false),
            ("pages.svc.net", false),
            ("a.b.pages.svc.net", false),
            ("other.svc.net", true),
        ] {
            assert_eq!(hosts.check(name).is_ok(), is_free, "{name}");
        }
    }
}
