//! Operators' work on content: blocks it everywhere, allows it again, and lists what a project has.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Context as _;
use serde::Serialize;

use super::store::{self, LiveContent};
use crate::config::Config;
use crate::content::{ContentStore, Digest};
use crate::control::audit::AuditAction;
use crate::control::events::{self, StartupEvent};
use crate::control::{ControlDatabase, Error, Tx};
use crate::deployments::blocked;
use crate::deployments::sites::SiteManifest;
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::ProjectId;

/// Owner of the content that is listed.
#[derive(Clone, Debug)]
pub enum ContentScope {
    /// A project.
    Project(ProjectId),
    /// The quick share at a slug.
    Share(String),
}

/// Content of a project or a share, as operators list it.
#[derive(Clone, Debug, Serialize)]
pub struct ContentEntry {
    /// Slug of the page or the site; none for a file that a visitor has brought, that only drafts or earlier revisions name, or that waits
    /// for a publication.
    pub slug: Option<String>,
    /// Path of a site's file; a page has none.
    pub path: Option<String>,
    /// Id of a file that a visitor has brought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Digest of the source or of the file.
    pub sha256: String,
    /// Length of a file.
    pub bytes: Option<u64>,
    /// Whether it is blocked.
    pub blocked: bool,
}

/// Blocks content in all projects, or notes another reason for what is blocked. The server in this process, whose settings are
/// `served`, follows at once; without one the next start tells the edge.
///
/// # Errors
/// The database's.
pub async fn block(
    control: &ControlDatabase,
    clock: &Clock,
    (digest, note): (Digest, Option<String>),
    served: Option<Arc<Config>>,
) -> Result<(), Error> {
    let now = clock.now();
    let blocking = control.write(move |tx| {
        blocked::block(tx, &digest, note.as_deref(), now)?;
        announce(tx, &digest, served.as_deref(), now)?;
        tx.record_audit(AuditAction::ContentBlock, None, &digest, now)
    });
    blocking.await
}

/// Allows blocked content again; returns whether it was blocked. The server follows as with [`block`].
///
/// # Errors
/// The database's.
pub async fn unblock(
    control: &ControlDatabase,
    clock: &Clock,
    digest: Digest,
    served: Option<Arc<Config>>,
) -> Result<bool, Error> {
    let now = clock.now();
    let allowing = control.write(move |tx| {
        if !blocked::unblock(tx, &digest)? {
            return Ok(false);
        }
        announce(tx, &digest, served.as_deref(), now)?;
        tx.record_audit(AuditAction::ContentUnblock, None, &digest, now)?;
        Ok(true)
    });
    allowing.await
}

/// Has memory and the edge forget the pages and sites of projects that name some content.
fn announce(
    tx: &Tx<'_>,
    digest: &Digest,
    served: Option<&Config>,
    now: Timestamp,
) -> Result<(), Error> {
    for slug in store::slugs_naming(tx, digest)? {
        match served {
            Some(config) => super::announce_slug(tx, config, &slug, now)?,
            None => events::record(tx, &StartupEvent::SlugChanged(slug), now)?,
        }
    }
    Ok(())
}

/// Lists the content of a project or a share: what is live, with its paths, the files of visitors, and those that nothing of it names.
/// None if there is no such share.
///
/// # Errors
/// The database's, or the store's.
pub async fn list(
    control: &ControlDatabase,
    content: &ContentStore,
    scope: ContentScope,
) -> anyhow::Result<Option<Vec<ContentEntry>>> {
    let found = control.read(move |c| {
        let Some(owner) = store::content_owner(c, &scope)? else {
            return Ok(None);
        };
        Ok(Some((
            store::live_content(c, &scope)?,
            store::visitor_files_of(c, &owner)?,
            store::files_of(c, &owner)?,
        )))
    });
    let Some((live, brought, files)) = found.await? else {
        return Ok(None);
    };
    let blocked = blocked::list(control).await?;
    let blocked: HashSet<String> = blocked.into_iter().map(|entry| entry.sha256).collect();
    let mut entries = Vec::new();
    for deployment in live {
        entries.extend(entries_of(content, deployment).await?);
    }
    entries.extend(
        brought
            .into_iter()
            .map(|(file, sent, digest, bytes)| ContentEntry {
                slug: None,
                path: None,
                file: Some(file),
                sha256: digest.to_string(),
                bytes: Some(bytes),
                blocked: blocked.contains(&sent.to_string()),
            }),
    );
    let shown: HashSet<String> = entries.iter().map(|entry| entry.sha256.clone()).collect();
    let others = files.into_iter().map(|(digest, bytes)| ContentEntry {
        slug: None,
        path: None,
        file: None,
        sha256: digest.to_string(),
        bytes: Some(bytes),
        blocked: false,
    });
    entries.extend(others.filter(|entry| !shown.contains(&entry.sha256)));
    for entry in &mut entries {
        entry.blocked |= blocked.contains(&entry.sha256);
    }
    Ok(Some(entries))
}

/// Lists the content of what is live at a slug.
async fn entries_of(
    content: &ContentStore,
    deployment: LiveContent,
) -> anyhow::Result<Vec<ContentEntry>> {
    let LiveContent {
        slug,
        source,
        manifest,
    } = deployment;
    let Some(manifest) = manifest else {
        return Ok(vec![ContentEntry {
            slug: Some(slug),
            path: None,
            file: None,
            sha256: source.to_string(),
            bytes: None,
            blocked: false,
        }]);
    };
    let object = content.get(&manifest).await?;
    let site = object.and_then(|object| SiteManifest::from_object(&object));
    let site = site.with_context(|| format!("the manifest of `{slug}` is missing: `svc check`"))?;
    let files = site.files.into_iter().map(|(path, file)| ContentEntry {
        slug: Some(slug.clone()),
        path: Some(path),
        file: None,
        sha256: file.digest.to_string(),
        bytes: Some(file.bytes),
        blocked: false,
    });
    Ok(files.collect())
}
