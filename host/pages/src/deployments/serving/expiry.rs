//! End of quick shares whose time is over.

use std::sync::Arc;

use crate::content::OneTimePages;
use crate::control;
use crate::deployments::address::announce_change;
use crate::deployments::{once_files, store};
use crate::infra::Infra;

/// Shares that one transaction removes at most, so that none holds the writer for long.
const SHARES_PER_STEP: u32 = 500;

/// Removes quick shares whose time is over. Clones share their state.
#[derive(Clone, Debug)]
pub struct ExpiredShareRemover {
    infra: Infra,
    once: OneTimePages,
}

impl ExpiredShareRemover {
    /// Makes the sweep of a server.
    pub fn new(infra: Infra, once: OneTimePages) -> Self {
        Self { infra, once }
    }

    /// Removes shares whose time is over; returns their number.
    ///
    /// # Errors
    /// Errors of the database or of the disk; the next sweep continues.
    pub async fn sweep(&self) -> anyhow::Result<usize> {
        let Infra { control, clock, .. } = &self.infra;
        let now = clock.now();
        let mut swept = 0;
        loop {
            let expired = control
                .read(move |c| store::list_expired(c, now, SHARES_PER_STEP))
                .await?;
            let step = expired.len();
            let config = Arc::clone(&self.infra.config);
            let ends = expired.iter().map(|d| (d.id, d.address()));
            let ends: Vec<_> = ends.collect();
            if step > 0 {
                control
                    .write(move |tx| {
                        for (id, address) in &ends {
                            // An owner may have claimed it between the two looks.
                            if store::has_expired(tx, id, now)? {
                                store::remove(tx, id, now)?;
                                announce_change(tx, &config, address, now)?;
                            }
                        }
                        Ok::<_, control::Error>(())
                    })
                    .await?;
            }
            // The rows are deleted, so these files are not checked again before the next start: a file that cannot be
            // removed must not hinder the others.
            let mut first_error = None;
            for deployment in expired {
                if deployment.one_time
                    && let Err(error) = once_files::burn(&self.once, deployment.id).await
                {
                    first_error = first_error.or(Some(error));
                }
            }
            if let Some(error) = first_error {
                return Err(error.into());
            }
            swept += step;
            if step < SHARES_PER_STEP as usize {
                return Ok(swept);
            }
        }
    }
}
