//! `domains` of a manifest: host names at which a project answers.

use std::collections::BTreeSet;

use serde_json::Value;
use url::Url;

use super::faults::ManifestFault;
use crate::api::ApiClient;
use crate::endpoints;
use crate::error::Result;

/// Characters that no host name has, and that would begin another part of an address.
const NO_HOST: [char; 8] = ['/', '\\', ':', '@', '?', '#', '%', '*'];

/// Finds the fault of a list of domains: a name that is no host name, or that is there twice.
pub(super) fn fault_of_domains(domains: &[String]) -> Option<ManifestFault> {
    let mut known = BTreeSet::new();
    domains.iter().find_map(|name| {
        let Some(normal) = normal_name(name) else {
            let detail = format!(
                "The domain `{name}` is no host name: write one such as `www.example.com`, without a scheme, a port or a path."
            );
            return Some(ManifestFault::new(name, detail));
        };
        let is_second = !known.insert(normal);
        is_second.then(|| ManifestFault::new(name, format!("The domain `{name}` is named twice.")))
    })
}

/// Returns a name as servers list it: in lower case, in ASCII, and without a dot at its end.
fn normal_name(name: &str) -> Option<String> {
    if name.contains(NO_HOST) || name.contains(char::is_whitespace) {
        return None;
    }
    let url = Url::parse(&format!("http://{name}/")).ok()?;
    // An address is no domain.
    let host = url.domain()?;
    let host = host.strip_suffix('.').unwrap_or(host);
    host.contains('.').then(|| host.to_owned())
}

/// Lists the domains of a project.
///
/// # Errors
/// Failures of the server.
pub(super) async fn fetch_domains(api: &ApiClient, project: &str) -> Result<Vec<Value>> {
    let listed = api.call(&endpoints::DOMAINS, &[project]).send().await?;
    Ok(listed["domains"].as_array().cloned().unwrap_or_default())
}

/// Finds the domain of the server that a name of a manifest means.
pub(super) fn find_domain<'a>(domains: &'a [Value], name: &str) -> Option<&'a Value> {
    let normal = normal_name(name)?;
    domains.iter().find(|domain| domain["name"] == normal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_domain_is_known_by_every_form_of_its_name() {
        let listed = [
            json!({ "name": "www.shop.com" }),
            json!({ "name": "xn--bcher-kva.de" }),
        ];
        for (name, found) in [
            ("www.shop.com", true),
            ("WWW.Shop.com.", true),
            ("bücher.de", true),
            ("shop.com", false),
            ("", false),
        ] {
            assert_eq!(find_domain(&listed, name).is_some(), found, "{name}");
        }
    }

    #[test]
    fn names_that_are_no_domains_are_found() {
        for (names, faulty) in [
            (&["www.shop.com", "shop.com"][..], false),
            (&["www.shop.com", "WWW.shop.com"], true),
            (&["https://shop.com"], true),
            (&["shop.com/a"], true),
            (&["shop.com:80"], true),
            (&["*.shop.com"], true),
            (&["127.0.0.1"], true),
            (&["shop"], true),
            (&[""], true),
        ] {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(fault_of_domains(&names).is_some(), faulty, "{names:?}");
        }
    }
}
