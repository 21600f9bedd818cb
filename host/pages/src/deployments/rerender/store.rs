//! Rerenders in the control database.

use rusqlite::{Connection, OptionalExtension, params};

use super::RerenderProgress;
use crate::content::Digest;
use crate::control::{Error, Tx};
use crate::deployments::address::PageAddress;
use crate::deployments::publication::{PublishedDigests, RendererAndRuntime};
use crate::deployments::store::{mark_garbage, parse_content_type};
use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;
use svc_sandbox::ContentType;

/// A page that another guest has made.
#[derive(Clone, Debug)]
pub(super) struct RerenderCandidate {
    pub(super) id: DeploymentId,
    pub(super) slug: String,
    pub(super) content_type: ContentType,
    pub(super) title: String,
    pub(super) source: Digest,
    pub(super) artifact: Digest,
    /// Label of the project's origin; a quick share has none.
    pub(super) host_label: Option<String>,
    pub(super) expires_at: Option<Timestamp>,
    /// Whether readers need a password.
    pub(super) is_protected: bool,
}

impl RerenderCandidate {
    /// Returns the address of the page.
    pub(super) fn address(&self) -> PageAddress {
        PageAddress {
            slug: self.slug.clone(),
            host_label: self.host_label.clone(),
        }
    }
}

/// Pages with a source that answer and that another guest, or another runtime, has made.
const OUTDATED_PAGES: &str = "FROM deployments d JOIN projects p ON p.id = d.project_id
    WHERE d.state = 'active' AND p.state = 'active' AND d.one_time = 0 AND d.content_type <> 'site'
        AND d.source_digest IS NOT NULL AND d.artifact_digest IS NOT NULL
        AND (d.expires_at IS NULL OR d.expires_at > ?1)
        AND d.made_by IS NOT CASE WHEN p.host_label IS NULL THEN ?2 ELSE ?3 END";

/// Returns the next outdated page, in the order of ids.
pub(super) fn next_candidate(
    c: &Connection,
    now: Timestamp,
    last: Option<DeploymentId>,
    share: &RendererAndRuntime,
    live: &RendererAndRuntime,
) -> rusqlite::Result<Option<RerenderCandidate>> {
    let last = last.map_or_else(String::new, |id| id.to_string());
    c.prepare_cached(&format!(
        "SELECT d.id, d.slug, d.content_type, d.title, d.source_digest, d.artifact_digest,
            p.host_label, d.expires_at, d.password_hash IS NOT NULL AS is_protected {OUTDATED_PAGES} AND d.id > ?4 ORDER BY d.id LIMIT 1"
    ))?
    .query_row(params![now, share.as_str(), live.as_str(), last], |row| {
        Ok(RerenderCandidate {
            id: row.get("id")?,
            slug: row.get("slug")?,
            content_type: parse_content_type(&row.get::<_, String>("content_type")?)?,
            title: row.get("title")?,
            source: row.get("source_digest")?,
            artifact: row.get("artifact_digest")?,
            host_label: row.get("host_label")?,
            expires_at: row.get("expires_at")?,
            is_protected: row.get("is_protected")?,
        })
    })
    .optional()
}

/// Counts the outdated pages.
pub(super) fn count_candidates(
    c: &Connection,
    now: Timestamp,
    share: &RendererAndRuntime,
    live: &RendererAndRuntime,
) -> rusqlite::Result<u64> {
    c.query_row(
        &format!("SELECT count(*) {OUTDATED_PAGES}"),
        params![now, share.as_str(), live.as_str()],
        |row| row.get::<_, i64>(0).map(i64::unsigned_abs),
    )
}

/// Replaces a page by the one that was rendered again; returns whether it was still there.
pub(super) fn replace_page(
    tx: &Tx<'_>,
    page: &RerenderCandidate,
    published: &PublishedDigests,
    now: Timestamp,
) -> Result<bool, Error> {
    let switched = tx
        .prepare_cached(
            "UPDATE deployments SET artifact_digest = ?5, made_by = ?6, bytes = ?7
             WHERE id = ?1 AND state = 'active' AND source_digest = ?2 AND title = ?3
                AND artifact_digest = ?4",
        )?
        .execute(params![
            page.id,
            page.source,
            page.title,
            page.artifact,
            published.artifact,
            published.made_by(),
            published.bytes_stored(),
        ])?;
    if switched > 0 && page.artifact != published.artifact {
        mark_garbage(tx, &page.artifact, now)?;
    }
    Ok(switched > 0)
}

/// Returns the progress of the latest rerender.
pub(super) fn progress(c: &Connection) -> rusqlite::Result<Option<RerenderProgress>> {
    c.prepare_cached(
        "SELECT requested_at, total, changed, unchanged, failed, skipped, finished_at, made_by, last
         FROM rerender",
    )?
    .query_row([], |row| {
        let number = |column: &str| row.get::<_, i64>(column).map(i64::unsigned_abs);
        let last: String = row.get("last")?;
        Ok(RerenderProgress {
            requested_at: row.get("requested_at")?,
            total: number("total")?,
            changed: number("changed")?,
            unchanged: number("unchanged")?,
            failed: number("failed")?,
            skipped: number("skipped")?,
            finished_at: row.get("finished_at")?,
            made_by: row.get("made_by")?,
            last: last.parse().ok(),
        })
    })
    .optional()
}

/// Inserts a rerender, in the place of an earlier one.
pub(super) fn insert(tx: &Tx<'_>, new: &RerenderProgress) -> Result<(), Error> {
    tx.execute(
        "INSERT OR REPLACE INTO rerender (id, requested_at) VALUES (1, ?1)",
        [new.requested_at],
    )?;
    Ok(())
}

/// Stores the progress of a rerender, unless another was asked for meanwhile.
pub(super) fn save_progress(tx: &Tx<'_>, done: &RerenderProgress) -> Result<(), Error> {
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let last = done.last.map_or_else(String::new, |id| id.to_string());
    tx.prepare_cached(
        "UPDATE rerender SET total = ?2, changed = ?3, unchanged = ?4, failed = ?5, skipped = ?6,
            finished_at = ?7, made_by = ?8, last = ?9
         WHERE requested_at = ?1",
    )?
    .execute(params![
        done.requested_at,
        number(done.total),
        number(done.changed),
        number(done.unchanged),
        number(done.failed),
        number(done.skipped),
        done.finished_at,
        done.made_by,
        last
    ])?;
    Ok(())
}
