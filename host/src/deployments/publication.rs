//! Publication: from a source to what a slug answers. The only place that has memory and the edge forget a page.
//!
//! ```text
//! source ─► render ─► compress, store ─► one transaction ─────────► memory forgets ─► answered ─► the edge forgets
//!                      durable, pinned    rows, purge, change         before the answer              from its queue
//!                    │ a crash here leaves content without a row,   │ a crash here loses nothing: memory is gone,
//!                    │ which the collector removes                  │ and the purge is in its queue
//! ```

use std::sync::Arc;

use bytes::Bytes;

use super::frontends;
use super::page_source::{PageSource, Placement};
use super::publish::{PublishError, RenderedBy, RenderedPage, StoredPage};
use super::timings::Stage;
use super::{Deployments, store};
use crate::config::Config;
use crate::content::Digest;
use crate::control::{self, Change, Tx};
use crate::edge;
use svc_base::clock::Timestamp;
use svc_base::ids::ProjectId;

/// Where a deployment answers.
#[derive(Clone, Debug)]
pub(in crate::deployments) struct Address {
    /// Slug of the page.
    pub(in crate::deployments) slug: String,
    /// The project's origin; a quick share has none, and is never purged.
    pub(in crate::deployments) host_label: Option<String>,
}

/// A source and its page, stored, which nothing answers yet. While this lives the collector keeps them.
#[derive(Debug)]
pub(in crate::deployments) struct Stored {
    page: StoredPage,
    by: RenderedBy,
}

/// Digests that the rows of a publication name.
#[derive(Clone, Debug)]
pub(in crate::deployments) struct Published {
    /// The source.
    pub(in crate::deployments) source: Digest,
    /// The page.
    pub(in crate::deployments) artifact: Digest,
    /// The guest and the runtime that made the page.
    pub(in crate::deployments) by: RenderedBy,
    /// Bytes of the source and of the page in all encodings.
    pub(in crate::deployments) bytes: u64,
}

impl Published {
    /// Returns the bytes as a row has them.
    pub(in crate::deployments) fn bytes_stored(&self) -> i64 {
        i64::try_from(self.bytes).unwrap_or(i64::MAX)
    }
}

impl Stored {
    /// Returns the digests that rows may name for as long as this lives.
    pub(in crate::deployments) fn published(&self) -> Published {
        Published {
            source: self.page.source.digest(),
            artifact: self.page.page.digest(),
            by: self.by.clone(),
            bytes: self.page.bytes,
        }
    }
}

impl Deployments {
    /// Renders the live page of a frontend, which everybody may read, and stores it with its source.
    ///
    /// # Errors
    /// [`PublishError`]; nothing refers to what was stored by then, and the collector removes it.
    pub(in crate::deployments) async fn make_live(
        &self,
        source: PageSource<'_>,
        slug: &str,
        expires_at: Option<Timestamp>,
    ) -> Result<(Stored, RenderedPage), PublishError> {
        let placement = Placement::open(slug, expires_at);
        let made = self.render_live(source, placement).await?;
        let stored = self.store_made(source.text.to_owned(), &made).await?;
        Ok((stored, made))
    }

    /// Stores a source with the page that was made of it.
    ///
    /// # Errors
    /// [`PublishError`]; nothing refers to what was stored by then, and the collector removes it.
    pub(in crate::deployments) async fn store_made(
        &self,
        source: String,
        made: &RenderedPage,
    ) -> Result<Stored, PublishError> {
        let page = self
            .store_page(Bytes::from(source), made.html.clone())
            .await?;
        Ok(Stored {
            page,
            by: made.by.clone(),
        })
    }

    /// Makes a stored page what an address answers: the caller's rows and the purge in one transaction, then memory.
    ///
    /// # Errors
    /// The change's; nothing is changed then.
    pub(in crate::deployments) async fn publish<T, E>(
        &self,
        stored: Stored,
        address: Address,
        now: Timestamp,
        change: impl FnOnce(&Tx<'_>, &Published) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<control::Error> + Send + 'static,
    {
        let (config, published) = (Arc::clone(&self.config), stored.published());
        let committing = self.control.write(move |tx| {
            let changed = change(tx, &published)?;
            announce(tx, &config, &address, now)?;
            Ok(changed)
        });
        let committed = self.timings.time(Stage::Commit, committing).await;
        // The rows hold the content from here on.
        drop(stored);
        committed
    }
}

/// Says in a transaction that an address answers something else from now on, or nothing: memory forgets what it holds once
/// that is durable, and what the edge holds is queued for purging.
pub(in crate::deployments) fn announce(
    tx: &Tx<'_>,
    config: &Config,
    address: &Address,
    now: Timestamp,
) -> Result<(), control::Error> {
    tx.note(Change::Slug(address.slug.clone()));
    match &address.host_label {
        Some(host_label) if config.edge.is_some() => prefixes(config, host_label, &address.slug)
            .iter()
            .try_for_each(|prefix| edge::enqueue_purge(tx, prefix, now)),
        _ => Ok(()),
    }
}

/// Says in a transaction that the frontends of a project call another backend from now on, or none: their bytes stay.
pub fn backend_changed(tx: &Tx<'_>, project: &ProjectId) -> Result<(), control::Error> {
    for slug in frontends::slugs(tx, project)? {
        tx.note(Change::Slug(slug));
    }
    Ok(())
}

/// Has memory and the edge forget what they hold of a slug, whoever has it.
pub(in crate::deployments) fn announce_slug(
    tx: &Tx<'_>,
    config: &Config,
    slug: &str,
    now: Timestamp,
) -> Result<(), control::Error> {
    let found = store::by_slug(tx, slug)?;
    let address = Address {
        slug: slug.to_owned(),
        host_label: found.and_then(|deployment| deployment.host_label),
    };
    announce(tx, config, &address, now)
}

/// The URL prefixes of a frontend that the edge may hold.
fn prefixes(config: &Config, host_label: &str, slug: &str) -> Vec<String> {
    let mut prefixes = vec![format!("{}/{slug}", edge::host_of(&config.sites_url))];
    if let Some(domain) = &config.sites_domain {
        prefixes.push(format!("{host_label}.{domain}/{slug}"));
    }
    prefixes
}
