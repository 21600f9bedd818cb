//! Consistency check of an installation: its rows, its content, its one-time shares and its databases.

use crate::backends;
use crate::content::{ContentStore, OneTimeFileDirectory};
use crate::control::ControlDatabase;
use crate::deployments::operators;
use crate::{projects, visitor_files, visitors};
use svc_database::DatabasesDirectory;

pub use operators::StoreCheckFindings;

/// Stores of an installation, or of a copy.
#[derive(Clone, Debug)]
pub struct InstallationStores {
    /// Control database.
    pub control: ControlDatabase,
    /// Content store.
    pub content: ContentStore,
    /// Private files of one-time shares, which copies do not have.
    pub once: Option<OneTimeFileDirectory>,
    /// Databases of tenants.
    pub files: DatabasesDirectory,
}

impl InstallationStores {
    /// Checks all stores, also beside a running server. `watch` is told how many databases of how many are looked at.
    ///
    /// # Errors
    /// When a store cannot be read at all.
    pub async fn check(&self, watch: impl Fn(u64, u64)) -> anyhow::Result<StoreCheckFindings> {
        watch(0, 1);
        let once = self.once.as_ref();
        let mut found = operators::check(&self.control, &self.content, once).await?;
        let backends = backends::check::check(&self.control, &self.files, watch).await?;
        found.errors.extend(backends.errors);
        found.leftovers.extend(backends.leftovers);
        found.notes.extend(backends.notes);
        let control = &self.control;
        found
            .notes
            .extend(visitor_files::check::check(control, &self.files).await?);
        let projects = projects::all_ids(control).await?;
        let deployments = operators::ids(control).await?;
        let visitors = visitors::check::check(control, &projects, &deployments).await?;
        found.errors.extend(visitors.errors);
        found.leftovers.extend(visitors.leftovers);
        Ok(found)
    }
}
