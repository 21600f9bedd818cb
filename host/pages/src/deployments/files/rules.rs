//! Rules of a site that is about to be published: read from its files, and judged by a guest.

use std::collections::HashMap;

use bytes::Bytes;
use svc_sandbox::{MAX_RULE_FILE_BYTES, RuleFault, RuleFile, RuleFiles};

use super::model::{FileError, NewSite, NewSiteFile};
use super::service::ProjectFiles;
use crate::content::Digest;
use crate::deployments::publication::PublishError;
use crate::deployments::sites::{SiteFile, SiteRules};

/// Bounds of the rules of a site.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleBounds {
    /// Whether the site is a quick share: its redirects stay within it, and it sets no headers.
    pub(super) is_share: bool,
}

/// Makes a fault of a whole file of rules.
fn rule_fault(file: RuleFile, reason: String) -> FileError {
    let fault = RuleFault {
        file,
        line: 1,
        reason,
    };
    PublishError::Rules(fault).into()
}

impl ProjectFiles {
    /// Has a guest judge the rules of a site, if the site has any.
    ///
    /// # Errors
    /// `rules_refused`, or why no guest has judged them.
    pub(super) async fn judge_rules(
        &self,
        new: &NewSite,
        known: &HashMap<Digest, SiteFile>,
        bounds: RuleBounds,
    ) -> Result<SiteRules, FileError> {
        let find = |file: RuleFile| new.files.get(file.path());
        let headers = find(RuleFile::Headers);
        if headers.is_some() && bounds.is_share {
            let reason = "A quick share has no rules of headers: leave the file out.";
            return Err(rule_fault(RuleFile::Headers, reason.to_owned()));
        }
        let redirects = find(RuleFile::Redirects);
        if headers.is_none() && redirects.is_none() {
            return Ok(SiteRules::default());
        }
        let files = RuleFiles {
            redirects: self
                .rule_file(RuleFile::Redirects, redirects, known)
                .await?,
            headers: self.rule_file(RuleFile::Headers, headers, known).await?,
            within_site: bounds.is_share,
        };
        let judged = self.pipeline.judge_rules(files).await?;
        let malformed = || PublishError::Internal(anyhow::anyhow!("judged rules are no headers"));
        Ok(SiteRules::new(judged).ok_or_else(malformed)?)
    }

    /// Returns the bytes of a file of rules, unless it is longer than one may be.
    async fn rule_file(
        &self,
        name: RuleFile,
        file: Option<&NewSiteFile>,
        known: &HashMap<Digest, SiteFile>,
    ) -> Result<Option<Bytes>, FileError> {
        let (digest, length) = match file {
            None => return Ok(None),
            Some(NewSiteFile::Inline(bytes)) => return Ok(Some(bytes.clone())),
            Some(NewSiteFile::Kept(file)) => (file.digest, file.bytes),
            Some(NewSiteFile::Stored(stored)) => (stored.file.digest, stored.file.bytes),
            Some(NewSiteFile::Named(digest, _)) => {
                (*digest, known.get(digest).map_or(0, |file| file.bytes))
            }
        };
        if length > MAX_RULE_FILE_BYTES as u64 {
            let reason =
                format!("The file has more than {MAX_RULE_FILE_BYTES} bytes: leave rules out.");
            return Err(rule_fault(name, reason));
        }
        let bytes = self.content.get(&digest).await?;
        let missing = || PublishError::Internal(anyhow::anyhow!("file {digest} is missing"));
        Ok(Some(bytes.ok_or_else(missing)?))
    }
}
