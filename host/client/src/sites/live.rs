//! The live files of a site, beside those that this folder last saw there.

use serde_json::Value;

use super::SiteOptions;
use super::content::{RemoteFile, RemoteSite};
use super::folder::SiteFolder;
use super::seen::SeenSite;
use crate::api::ApiClient;
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::frontends::{FrontendContent, FrontendHandle};

/// Live files of a site.
#[derive(Debug)]
pub(crate) struct LiveSite {
    /// Id of the live revision.
    pub(crate) base: String,
    pub(crate) remote: RemoteSite,
    /// Digest of what was live when this folder last published or compared.
    last_seen: Option<String>,
    seen: SeenSite,
}

impl LiveSite {
    /// Reads the live files. A list that is known already is not sent again.
    ///
    /// # Errors
    /// Failures of the server, and when the frontend is a page.
    pub(crate) async fn read(found: &FrontendHandle) -> Result<Self> {
        let base = found.active_revision().await?;
        let seen = SeenSite::at(found.api.server_url(), &found.project.id, &found.slug);
        let last = seen.read();
        let last_seen = last.as_ref().map(|site| site.content_sha256.clone());
        let content = found.content(Some(&base), last_seen.as_deref()).await?;
        let remote = match (content, last) {
            (FrontendContent::Site(remote), _) | (FrontendContent::Known, Some(remote)) => remote,
            (FrontendContent::Page(_) | FrontendContent::Known, _) => {
                return Err(found.no_site_failure());
            }
        };
        Ok(Self {
            base,
            remote,
            last_seen,
            seen,
        })
    }

    /// Checks that nobody has published since this folder last saw the site.
    ///
    /// # Errors
    /// When somebody has.
    pub(crate) fn check_seen(&self, slug: &str) -> Result<()> {
        match &self.last_seen {
            Some(seen) if *seen != self.remote.content_sha256 => Err(CliFailure::new(
                FailureExitCode::Conflict,
                "Somebody else has published",
                format!(
                    "`{slug}` has other files than when you last published it from here, and nothing was changed. `svc frontend diff {slug} FOLDER` shows what would change, `svc push --force` has your folder win."
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Remembers that the live files are what was seen last.
    pub(crate) fn remember(&self) {
        if self.last_seen.as_ref() != Some(&self.remote.content_sha256) {
            self.seen.write(&self.remote);
        }
    }

    /// Remembers a folder that has become live, with its digest on the server.
    pub(crate) fn remember_folder(
        &self,
        site: &SiteFolder,
        options: Option<&SiteOptions>,
        content_sha256: &str,
    ) {
        let options = options.unwrap_or(&self.remote.options);
        self.seen.write(&remote_of(site, options, content_sha256));
    }
}

/// Remembers a folder that is a new site, by the answer of the server.
pub(crate) fn remember_published(
    api: &ApiClient,
    project: &str,
    (site, options): (&SiteFolder, Option<&SiteOptions>),
    published: &Value,
) {
    let text = |name: &str| published[name].as_str().unwrap_or_default();
    let seen = SeenSite::at(api.server_url(), project, text("slug"));
    let options = options.cloned().unwrap_or_default();
    seen.write(&remote_of(site, &options, text("content_sha256")));
}

/// Files of a folder, as the server has them once they are published.
fn remote_of(site: &SiteFolder, options: &SiteOptions, content_sha256: &str) -> RemoteSite {
    let files = site.files.iter().map(|(path, file)| {
        let (digest, bytes) = (file.digest, file.bytes);
        (path.clone(), RemoteFile { digest, bytes })
    });
    RemoteSite {
        content_sha256: content_sha256.to_owned(),
        files: files.collect(),
        options: options.clone(),
    }
}
