//! Folders and files as quick shares, which need no login.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::folder::SiteFolder;
use super::publish::inline_entry;
use super::{SITE_TYPE, SiteOptions, size_text};
use crate::api::ApiClient;
use crate::endpoints;
use crate::error::{CliFailure, FailureExitCode, Result};

/// Most files of a quick share.
const MAX_FILES: usize = 100;
/// Most bytes that are read for a quick share: several times what a server takes.
const MAX_BYTES: u64 = 16 << 20;

/// Wishes for a quick share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShareWishes<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    /// Life in seconds.
    pub(crate) expires_in: Option<u64>,
}

/// Publishes a folder as a quick share; returns the server's answer.
///
/// # Errors
/// Failures of the server; for a folder that is too much for a share they say where it fits.
pub(crate) async fn share_folder(
    api: &ApiClient,
    site: &SiteFolder,
    options: Option<&SiteOptions>,
    wishes: ShareWishes<'_>,
) -> Result<Value> {
    if site.files.len() > MAX_FILES || site.bytes() > MAX_BYTES {
        let failure = CliFailure::new(
            FailureExitCode::Credential,
            "Too much for a quick share",
            format!(
                "{} has {}, and a share without a login has {MAX_FILES} files at most, and about {}.",
                site.path.display(),
                site.size(),
                size_text(1 << 20)
            ),
        );
        return Err(with_sign_in(failure, site));
    }
    let mut files = Map::new();
    for path in site.files.keys() {
        files.insert(path.clone(), inline_entry(site.read_file(path)?));
    }
    let body = json!({
        "type": SITE_TYPE, "files": files, "options": options,
        "name": wishes.name, "title": wishes.title, "expires_in": wishes.expires_in,
    });
    let sent = api.call(&endpoints::DEPLOY, &[]).body(body).send().await;
    sent.map_err(|failure| match failure.code() {
        "plan_limit" | "payload_too_large" => with_sign_in(failure, site),
        _ => failure,
    })
}

/// Publishes a picture, a sound, a film or a document as a quick share; returns the server's answer.
///
/// # Errors
/// Failures of the server.
pub(crate) async fn share_file(
    api: &ApiClient,
    (name, bytes): (&str, Vec<u8>),
    wishes: ShareWishes<'_>,
) -> Result<Value> {
    let asked = api.call(&endpoints::DEPLOY_FILE, &[name]);
    let asked = asked
        .query("name", wishes.name)
        .query("title", wishes.title)
        .query("expires_in", wishes.expires_in);
    asked.raw(Bytes::from(bytes)).send().await
}

/// Says where what is too much for a share fits.
fn with_sign_in(failure: CliFailure, site: &SiteFolder) -> CliFailure {
    failure.with_hint(&format!(
        "A project has more room: sign in with `svc login URL`, make one with `svc project create NAME`, and run `svc publish {} --project NAME`.",
        site.path.display()
    ))
}
