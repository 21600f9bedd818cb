//! Addresses of deployments, and how memory and the edge follow a change of what one of them answers: the only place that has either forget a page.

use crate::config::Config;
use crate::control::{self, Change, Tx};
use crate::edge;
use svc_base::clock::Timestamp;

/// Address that a deployment answers at.
#[derive(Clone, Debug)]
pub(super) struct PageAddress {
    /// Slug of the page.
    pub(super) slug: String,
    /// Label of the project's origin; a quick share has none, and is never purged.
    pub(super) host_label: Option<String>,
}

/// Says in a transaction that an address answers something else from now on, or nothing: memory forgets what it holds once
/// that is durable, and what the edge holds is queued for purging.
pub(super) fn announce_change(
    tx: &Tx<'_>,
    config: &Config,
    address: &PageAddress,
    now: Timestamp,
) -> Result<(), control::Error> {
    tx.note(Change::Slug(address.slug.clone()));
    match &address.host_label {
        Some(host_label) if config.edge.is_some() => {
            edge_prefixes(config, host_label, &address.slug)
                .iter()
                .try_for_each(|prefix| edge::enqueue_purge(tx, prefix, now))
        }
        _ => Ok(()),
    }
}

/// Composes the URL prefixes of a frontend that the edge may hold.
fn edge_prefixes(config: &Config, host_label: &str, slug: &str) -> Vec<String> {
    let mut prefixes = vec![format!("{}/{slug}", edge::host_of(&config.sites_url))];
    if let Some(domain) = &config.sites_domain {
        prefixes.push(format!("{host_label}.{domain}/{slug}"));
    }
    prefixes
}
