//! The `[sign_in]` table: visitors' sign-in that needs nobody else.

use anyhow::bail;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// Sign-in of visitors by the server itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignInSettings {
    /// Whether visitors sign in with passkeys.
    #[serde(default)]
    pub passkeys: bool,
}

impl SignInSettings {
    /// Refuses passkeys where no browser has them.
    ///
    /// # Errors
    /// The sites host is not https, and not on this machine, or has no name.
    pub(super) fn checked(self, sites: &Url) -> anyhow::Result<Self> {
        if self.passkeys && relying_party_id(sites).is_none() {
            bail!(
                "sign_in.passkeys needs a sites host that has a name, and is https or localhost: {sites} is not. Set base_url (or sites_url) to an https address, or sign_in.passkeys to false"
            );
        }
        Ok(self)
    }
}

/// Returns the name that passkeys of a sites host belong to; `None` if browsers have none for such a host.
pub fn relying_party_id(sites: &Url) -> Option<&str> {
    let Some(Host::Domain(name)) = sites.host() else {
        return None;
    };
    let is_here = name == "localhost" || name.ends_with(".localhost");
    (sites.scheme() == "https" || is_here).then_some(name)
}

/// Whether a page on a host, given with its port if it has one, could ask for the passkeys of a sites host: browsers let hosts below it.
pub(super) fn is_within(sites: &Url, host: &str) -> bool {
    let bare = host.split(':').next().unwrap_or_default();
    relying_party_id(sites).is_some_and(|id| {
        let above = bare.strip_suffix(id);
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passkeys_belong_to_a_name_that_browsers_trust() {
        for (sites, expected) in [
            ("https://share.example.com", Some("share.example.com")),
            ("https://share.example.com:8443", Some("share.example.com")),
            ("http://localhost:8080", Some("localhost")),
            ("http://sites.localhost:8080", Some("sites.localhost")),
            ("http://share.example.com", None),
            ("http://127.0.0.1:8080", None),
            ("https://192.0.2.1", None),
            ("https://[2001:db8::1]", None),
        ] {
            let sites = Url::parse(sites).unwrap();
            assert_eq!(relying_party_id(&sites), expected, "{sites}");
            let on = SignInSettings { passkeys: true };
            assert_eq!(on.checked(&sites).is_ok(), expected.is_some(), "{sites}");
            assert!(SignInSettings::default().checked(&sites).is_ok());
        }
    }

    #[test]
    fn hosts_below_the_sites_host_could_ask_for_its_passkeys() {
        let sites = Url::parse("https://share.example.com").unwrap();
        for (host, within) in [
            ("share.example.com", true),
            ("share.example.com:8443", true),
            ("pages.share.example.com", true),
            ("example.com", false),
            ("notshare.example.com", false),
            ("pages.example", false),
        ] {
            assert_eq!(is_within(&sites, host), within, "{host}");
        }
    }
}
