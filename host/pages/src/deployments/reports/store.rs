//! Reports in the control database.

use rusqlite::{Connection, OptionalExtension, params};

use super::{AbuseReport, NewAbuseReport};
use crate::control::{Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::ReportId;

/// Adds a report.
pub(super) fn insert_report(
    tx: &Tx<'_>,
    id: &ReportId,
    report: &NewAbuseReport,
    now: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO reports (id, slug, path, reason, details, contact, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        id,
        report.slug,
        report.path,
        report.reason.as_str(),
        report.details,
        report.contact,
        now
    ])?;
    Ok(())
}

/// Reports, newest first: those that are open, or all.
pub(super) fn list_reports(c: &Connection, all: bool) -> rusqlite::Result<Vec<AbuseReport>> {
    c.prepare(
        "SELECT id, slug, path, reason, details, contact, created_at, closed_at FROM reports
         WHERE ?1 OR closed_at IS NULL ORDER BY created_at DESC, id DESC",
    )?
    .query_map([all], |row| {
        Ok(AbuseReport {
            id: row.get("id")?,
            slug: row.get("slug")?,
            path: row.get("path")?,
            reason: row.get("reason")?,
            details: row.get("details")?,
            contact: row.get("contact")?,
            created_at: row.get("created_at")?,
            closed_at: row.get("closed_at")?,
        })
    })?
    .collect()
}

/// Closes a report; returns since when it is closed, if there is one.
pub(super) fn close_report(
    tx: &Tx<'_>,
    id: &ReportId,
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    Ok(tx
        .prepare_cached(
            "UPDATE reports SET closed_at = coalesce(closed_at, ?2) WHERE id = ?1 RETURNING closed_at",
        )?
        .query_row(params![id, now], |row| row.get(0))
        .optional()?)
}
