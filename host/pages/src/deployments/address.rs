//! Addresses of deployments. Only this module makes the page cache and the edge forget a page.

use crate::config::Config;
use crate::control::{self, ControlChange, Tx};
use crate::edge;
use crate::projects;
use svc_base::clock::Timestamp;

/// Address that a deployment answers at.
#[derive(Clone, Debug)]
pub(super) struct PageAddress {
    /// Slug of the page.
    pub(super) slug: String,
    /// Label of the project's origin; a quick share has none, and is never purged.
    pub(super) host_label: Option<String>,
}

/// Notes in a transaction that the answer of an address changes or ends: the page cache forgets the page once the transaction is
/// durable, and a purge of the edge is queued.
pub(super) fn announce_change(
    tx: &Tx<'_>,
    config: &Config,
    address: &PageAddress,
    now: Timestamp,
) -> Result<(), control::Error> {
    tx.note(ControlChange::Slug(address.slug.clone()));
    match &address.host_label {
        Some(host_label) if config.edge.is_some() => {
            let domains = projects::domains::served_names(tx, host_label)?;
            edge_prefixes(config, host_label, &domains, &address.slug)
                .iter()
                .try_for_each(|prefix| edge::enqueue_purge(tx, prefix, now))
        }
        _ => Ok(()),
    }
}

/// Composes the URL prefixes of a frontend that the edge may hold.
fn edge_prefixes(config: &Config, host_label: &str, domains: &[String], slug: &str) -> Vec<String> {
    let mut prefixes = vec![format!("{}/{slug}", edge::host_of(&config.sites_url))];
    if let Some(domain) = &config.sites_domain {
        prefixes.push(format!("{host_label}.{domain}/{slug}"));
    }
    prefixes.extend(domains.iter().map(|name| format!("{name}/{slug}")));
    prefixes
}
