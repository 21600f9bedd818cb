//! Checks that what is stored may be shown: it has not ended, and the operator has not taken it down.

use super::pages::ServedPage;
use super::{PageLookupError, PageService};
use crate::content::Digest;
use crate::deployments::sites::SiteFile;

impl PageService {
    /// Checks that a page may still be shown.
    ///
    /// # Errors
    /// `NotFound` when its time is over, `Disabled` when the operator has taken it down or has blocked its content.
    pub fn check_available(&self, page: &ServedPage) -> Result<(), PageLookupError> {
        self.check_deployment_available(page.expires_at, page.disabled)?;
        self.check_allowed(page.source.iter().chain(&page.artifact))
    }

    /// Checks that content which is in memory, or named by what is, may be shown.
    pub(super) fn check_allowed<'d>(
        &self,
        digests: impl IntoIterator<Item = &'d Digest>,
    ) -> Result<(), PageLookupError> {
        match self.blocked.find(digests) {
            None => Ok(()),
            Some(_) => Err(PageLookupError::Disabled),
        }
    }

    /// Checks that stored content may be shown.
    ///
    /// # Errors
    /// `Disabled` when the operator has blocked it.
    pub(in crate::deployments) async fn check_content<'d>(
        &self,
        digests: impl IntoIterator<Item = &'d Digest>,
    ) -> Result<(), PageLookupError> {
        self.blocked.load().await.map_err(anyhow::Error::from)?;
        self.check_allowed(digests)
    }

    /// Checks that a file of a site may be shown.
    ///
    /// # Errors
    /// `Disabled` when the operator has blocked it.
    pub(super) fn check_file(&self, file: &SiteFile) -> Result<(), PageLookupError> {
        self.check_allowed([&file.digest].into_iter().chain(&file.list))
    }
}
