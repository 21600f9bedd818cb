//! Reservation of slugs, so that no two publications under way take one slug.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::PublishError;
use crate::deployments::model::is_reserved;
use crate::deployments::serving::ExpiredShareRemover;
use crate::deployments::store;
use crate::infra::Infra;
use svc_base::names::{RANDOM_SUFFIX_LENGTH, append_suffix_within_limit, numbered_slugs};

/// Length of a slug that the service chooses.
const RANDOM_SLUG_LENGTH: usize = 10;
/// Number of random names that are tried: only a fault could find them taken.
const RANDOM_ATTEMPTS: u32 = 4;

/// Slugs of publications under way, which no row holds yet. Clones share them.
#[derive(Clone, Debug)]
pub struct SlugReservations {
    infra: Infra,
    expiry: ExpiredShareRemover,
    reserved: Arc<Mutex<HashSet<String>>>,
}

/// Slug that no other publication can take while this lives.
#[derive(Debug)]
pub(in crate::deployments) struct ReservedSlug {
    slug: String,
    reserved: Arc<Mutex<HashSet<String>>>,
}

impl ReservedSlug {
    /// Returns the slug.
    pub(in crate::deployments) fn as_str(&self) -> &str {
        &self.slug
    }
}

impl Drop for ReservedSlug {
    fn drop(&mut self) {
        self.reserved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.slug);
    }
}

impl SlugReservations {
    /// Makes the reservations of a server; `expiry` frees slugs of shares whose time is over.
    pub fn new(infra: Infra, expiry: ExpiredShareRemover) -> Self {
        Self {
            infra,
            expiry,
            reserved: Arc::default(),
        }
    }

    /// Reserves the wanted slug or, where it is taken or ours, one with a suffix; or one of our choosing.
    pub(in crate::deployments) async fn reserve(
        &self,
        wanted: Option<&str>,
    ) -> Result<ReservedSlug, PublishError> {
        if let Some(wanted) = wanted {
            if !is_reserved(wanted)
                && let Some(reserved) = self.try_reserve(wanted.to_owned()).await?
            {
                return Ok(reserved);
            }
            for slug in numbered_slugs(wanted) {
                if let Some(reserved) = self.try_reserve(slug).await? {
                    return Ok(reserved);
                }
            }
        }
        let random = &self.infra.random;
        for _ in 0..RANDOM_ATTEMPTS {
            let slug = match wanted {
                Some(wanted) => {
                    append_suffix_within_limit(wanted, &random.slug(RANDOM_SUFFIX_LENGTH)?)
                }
                None => random.slug(RANDOM_SLUG_LENGTH)?,
            };
            if let Some(reserved) = self.try_reserve(slug).await? {
                return Ok(reserved);
            }
        }
        Err(PublishError::Internal(anyhow::anyhow!(
            "every random slug was taken"
        )))
    }

    /// Reserves exactly the wanted slug; `None` where it is taken or ours.
    pub(in crate::deployments) async fn reserve_exactly(
        &self,
        wanted: &str,
    ) -> Result<Option<ReservedSlug>, PublishError> {
        if is_reserved(wanted) {
            return Ok(None);
        }
        self.try_reserve(wanted.to_owned()).await
    }

    /// Whether a publication could have exactly this slug, but for those under way.
    pub(in crate::deployments) async fn is_free(&self, slug: &str) -> Result<bool, PublishError> {
        Ok(!is_reserved(slug) && !self.is_taken_after_sweep(slug).await?)
    }

    /// Reserves this slug if it is free.
    async fn try_reserve(&self, slug: String) -> Result<Option<ReservedSlug>, PublishError> {
        let reserved = Arc::clone(&self.reserved);
        let new = reserved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(slug.clone());
        if !new {
            return Ok(None);
        }
        // From here on no other publication can take it; a row may have it already.
        let reserved = ReservedSlug {
            slug: slug.clone(),
            reserved,
        };
        let taken = self.is_taken_after_sweep(&slug).await?;
        Ok((!taken).then_some(reserved))
    }

    /// Whether a row has a slug. A share may have expired and wait for the sweep: visitors already see its slug as free.
    async fn is_taken_after_sweep(&self, slug: &str) -> Result<bool, PublishError> {
        if !self.is_taken(slug).await? {
            return Ok(false);
        }
        self.expiry.sweep().await.map_err(PublishError::Internal)?;
        self.is_taken(slug).await
    }

    /// Whether a row has a slug.
    async fn is_taken(&self, slug: &str) -> Result<bool, PublishError> {
        let slug = slug.to_owned();
        let taken = self
            .infra
            .control
            .read(move |c| store::is_taken(c, &slug))
            .await?;
        Ok(taken)
    }
}
