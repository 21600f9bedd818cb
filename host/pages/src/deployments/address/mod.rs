//! Addresses of deployments, and what is at the roots of projects' origins. Only this module makes memory and the edge forget a page.

mod store;

use crate::config::Config;
use crate::control::{self, ControlChange, Tx};
use crate::edge;
use crate::projects;
use svc_base::clock::Timestamp;
use svc_base::ids::ProjectId;

pub(super) use store::{OriginRows, active_slugs, find_origin, is_root, slugs_before_files};

/// Address that a deployment answers at.
#[derive(Clone, Debug)]
pub(super) struct PageAddress {
    /// Slug of the page.
    pub(super) slug: String,
    /// Label of the project's origin; a quick share has none, and is never purged.
    pub(super) host_label: Option<String>,
}

/// Notes in a transaction that the answer of an address changes or ends: the page cache forgets the page once the transaction is
/// durable, as its project's origin forgets where it leads to, and a purge of the edge is queued.
pub(super) fn announce_change(
    tx: &Tx<'_>,
    config: &Config,
    address: &PageAddress,
    now: Timestamp,
) -> Result<(), control::Error> {
    tx.note(ControlChange::Slug(address.slug.clone()));
    let Some(host_label) = &address.host_label else {
        return Ok(());
    };
    tx.note(ControlChange::Origin(host_label.clone()));
    if config.edge.is_none() {
        return Ok(());
    }
    purge_page(tx, config, (host_label, &address.slug), now)?;
    purge_root(tx, config, host_label, Some(&address.slug), now)
}

/// Notes in a transaction that the home of a project is another one, as [`announce_change`] does for its frontends.
///
/// # Errors
/// The database's.
pub fn announce_home(
    tx: &Tx<'_>,
    config: &Config,
    host_label: &str,
    now: Timestamp,
) -> Result<(), control::Error> {
    tx.note(ControlChange::Origin(host_label.to_owned()));
    match config.edge {
        Some(_) => purge_root(tx, config, host_label, None, now),
        None => Ok(()),
    }
}

/// Notes in a transaction that a project's origin ends; its label is another's from then on, or nobody's.
pub(super) fn announce_origin_end(
    tx: &Tx<'_>,
    config: &Config,
    (project, host_label): (&ProjectId, &str),
    now: Timestamp,
) -> Result<(), control::Error> {
    tx.note(ControlChange::Origin(host_label.to_owned()));
    if config.edge.is_some() && projects::edge_root(tx, project)?.is_some() {
        enqueue_root(tx, config, host_label, now)?;
    }
    Ok(())
}

/// Queues a purge of a page.
fn purge_page(
    tx: &Tx<'_>,
    config: &Config,
    (host_label, slug): (&str, &str),
    now: Timestamp,
) -> Result<(), control::Error> {
    let domains = projects::domains::served_names(tx, host_label)?;
    edge_prefixes(config, (host_label, &domains), slug)
        .iter()
        .try_for_each(|prefix| edge::enqueue_purge(tx, prefix, now))
}

/// Queues a purge of the root of a project's origin, if a site answers there that has `changed`, or another one than the edge was last
/// told of. The copies of both below their slugs are purged, too: they name the root.
fn purge_root(
    tx: &Tx<'_>,
    config: &Config,
    host_label: &str,
    changed: Option<&str>,
    now: Timestamp,
) -> Result<(), control::Error> {
    let Some(OriginRows { project, root, .. }) = find_origin(tx, host_label)? else {
        return Ok(());
    };
    let site = root.filter(|root| root.is_site).map(|root| root.slug);
    let known = projects::edge_root(tx, &project)?;
    if site != known {
        projects::set_edge_root(tx, &project, site.as_deref())?;
        for slug in [&known, &site].into_iter().flatten() {
            purge_page(tx, config, (host_label, slug), now)?;
        }
    } else if site.is_none() || site.as_deref() != changed {
        return Ok(());
    }
    enqueue_root(tx, config, host_label, now)
}

/// Queues a purge of everything on a project's origin, and on its domains.
fn enqueue_root(
    tx: &Tx<'_>,
    config: &Config,
    host_label: &str,
    now: Timestamp,
) -> Result<(), control::Error> {
    let own = config.sites_domain.as_ref();
    let own = own.map(|domain| format!("{host_label}.{domain}"));
    let domains = projects::domains::served_names(tx, host_label)?;
    own.into_iter()
        .chain(domains)
        .try_for_each(|host| edge::enqueue_purge(tx, &format!("{host}/"), now))
}

/// Composes the URL prefixes of a frontend that the edge may hold.
fn edge_prefixes(
    config: &Config,
    (host_label, domains): (&str, &[String]),
    slug: &str,
) -> Vec<String> {
    let mut prefixes = vec![format!("{}/{slug}", edge::host_of(&config.sites_url))];
    if let Some(domain) = &config.sites_domain {
        prefixes.push(format!("{host_label}.{domain}/{slug}"));
    }
    prefixes.extend(domains.iter().map(|name| format!("{name}/{slug}")));
    prefixes
}
