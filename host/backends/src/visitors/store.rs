//! Queries of visitors and sessions in the control database.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::model::{
    SessionTokenHash, VerifiedVisitor, Visitor, VisitorId, VisitorProfile, VisitorSession,
};
use super::passkey;
use crate::control::audit::AuditAction;
use crate::control::{ControlChange, Error, NamedColumnReader, Tx};
use crate::projects;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId};

fn profile_from_row(row: &NamedColumnReader<'_, '_>) -> rusqlite::Result<VisitorProfile> {
    Ok(VisitorProfile {
        email: row.get("email")?,
        name: row.get("name")?,
        picture: row.get("picture")?,
        locale: row.get("locale")?,
    })
}

fn visitor_from_row(row: &Row<'_>) -> rusqlite::Result<Visitor> {
    let row = NamedColumnReader::new(row);
    Ok(Visitor {
        number: row.get("number")?,
        id: VisitorId::from_stored(row.get("id")?),
        provider: row.get("provider")?,
        profile: profile_from_row(&row)?,
        created_at: row.get("created_at")?,
        last_seen_at: row.get("last_seen_at")?,
    })
}

/// Upserts a visitor by issuer and subject: a known one keeps its id, a new one gets `fresh`; the profile is overwritten.
pub(super) fn upsert_visitor(
    tx: &Tx<'_>,
    project: &ProjectId,
    provider: &str,
    who: &VerifiedVisitor,
    fresh: &VisitorId,
    now: Timestamp,
) -> Result<VisitorId, Error> {
    let before = tx
        .prepare_cached(
            "SELECT email, name, picture, locale FROM visitors
             WHERE project_id = ?1 AND issuer = ?2 AND subject = ?3",
        )?
        .query_row(params![project, who.issuer, who.subject], |row| {
            profile_from_row(&NamedColumnReader::new(row))
        })
        .optional()?;
    let id: String = tx
        .prepare_cached(
            "INSERT INTO visitors (id, project_id, issuer, subject, provider, email, name, picture, locale, created_at, last_seen_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)
             ON CONFLICT (project_id, issuer, subject) DO UPDATE SET
                provider = ?5, email = ?6, name = ?7, picture = ?8, locale = ?9, last_seen_at = ?10
             RETURNING id",
        )?
        .query_row(
            params![
                fresh.as_str(),
                project,
                who.issuer,
                who.subject,
                provider,
                who.profile.email,
                who.profile.name,
                who.profile.picture,
                who.profile.locale,
                now,
            ],
            |row| row.get(0),
        )?;
    // Other sessions of the visitor in the project must show a new profile.
    if before.is_some_and(|before| before != who.profile) {
        tx.note(ControlChange::SessionsEnded(*project));
    }
    Ok(VisitorId::from_stored(id))
}

pub(super) fn insert_session(
    tx: &Tx<'_>,
    new: &VisitorSession,
    now: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO visitor_sessions (token_sha256, visitor_id, deployment_id, host, provider, created_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        new.key,
        new.visitor.as_str(),
        new.deployment,
        new.host,
        new.provider,
        now,
        new.expires_at,
    ])?;
    Ok(())
}

/// Finds the session of a token, unless it has expired.
pub(super) fn find_session(
    c: &Connection,
    key: &SessionTokenHash,
    now: Timestamp,
) -> rusqlite::Result<Option<VisitorSession>> {
    c.prepare_cached(
        "SELECT v.id, s.deployment_id, s.host, v.project_id, v.email, v.name, v.picture, v.locale, s.provider, s.expires_at, v.last_seen_at
         FROM visitor_sessions s JOIN visitors v ON v.id = s.visitor_id
         WHERE s.token_sha256 = ?1 AND s.expires_at > ?2",
    )?
    .query_row(params![key, now], |row| {
        let row = NamedColumnReader::new(row);
        Ok(VisitorSession {
            key: *key,
            visitor: VisitorId::from_stored(row.get("id")?),
            deployment: row.get("deployment_id")?,
            host: row.get("host")?,
            project: row.get("project_id")?,
            profile: profile_from_row(&row)?,
            provider: row.get("provider")?,
            expires_at: row.get("expires_at")?,
            seen_at: row.get("last_seen_at")?,
        })
    })
    .optional()
}

/// Keeps the keys of sessions that exist, expired ones included.
pub(super) fn existing_sessions(
    c: &Connection,
    keys: Vec<SessionTokenHash>,
) -> rusqlite::Result<Vec<SessionTokenHash>> {
    let mut find = c.prepare_cached("SELECT 1 FROM visitor_sessions WHERE token_sha256 = ?1")?;
    let mut existing = Vec::new();
    for key in keys {
        if find.exists([&key])? {
            existing.push(key);
        }
    }
    Ok(existing)
}

pub(super) fn end_session(tx: &Tx<'_>, key: &SessionTokenHash) -> Result<(), Error> {
    tx.prepare_cached("DELETE FROM visitor_sessions WHERE token_sha256 = ?1")?
        .execute([key])?;
    tx.note(ControlChange::SessionEnded(*key));
    Ok(())
}

/// Ends the sessions of a project's visitors at other providers than `allowed`.
pub(super) fn end_other_providers(
    tx: &Tx<'_>,
    project: &ProjectId,
    allowed: &[String],
) -> Result<(), Error> {
    let allowed = serde_json::Value::from(allowed.to_vec()).to_string();
    tx.prepare_cached(
        "DELETE FROM visitor_sessions
         WHERE visitor_id IN (SELECT id FROM visitors WHERE project_id = ?1)
           AND provider NOT IN (SELECT value FROM json_each(?2))",
    )?
    .execute(params![project, allowed])?;
    tx.note(ControlChange::SessionsEnded(*project));
    Ok(())
}

/// Records when a visitor was seen.
pub(super) fn record_seen(tx: &Tx<'_>, id: &VisitorId, now: Timestamp) -> Result<(), Error> {
    tx.prepare_cached("UPDATE visitors SET last_seen_at = max(last_seen_at, ?2) WHERE id = ?1")?
        .execute(params![id.as_str(), now])?;
    Ok(())
}

/// Lists visitors of a project with numbers below `before`, newest first.
pub(super) fn list_of_project(
    c: &Connection,
    project: &ProjectId,
    before: Option<i64>,
    most: u32,
) -> rusqlite::Result<Vec<Visitor>> {
    c.prepare_cached(
        "SELECT number, id, provider, email, name, picture, locale, created_at, last_seen_at
         FROM visitors WHERE project_id = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3",
    )?
    .query_map(
        params![project, before.unwrap_or(i64::MAX), most],
        visitor_from_row,
    )?
    .collect()
}

/// Erases a visitor's profile and sessions, and the account of passkeys that no other visitor is linked to; returns whether there was
/// one.
pub(super) fn forget(
    tx: &Tx<'_>,
    project: &ProjectId,
    id: &str,
    now: Timestamp,
) -> Result<bool, Error> {
    let subject: Option<String> = tx
        .prepare_cached("DELETE FROM visitors WHERE project_id = ?1 AND id = ?2 RETURNING subject")?
        .query_row(params![project, id], |row| row.get(0))
        .optional()?;
    tx.note(ControlChange::SessionsEnded(*project));
    let Some(subject) = subject else {
        return Ok(false);
    };
    passkey::store::end_unlinked(tx, &subject)?;
    projects::record_audit(tx, project, AuditAction::VisitorForget, &id, now)?;
    Ok(true)
}

/// Erases visitors of a project, at most `most`, with their accounts of passkeys; returns how many.
pub(super) fn forget_batch(tx: &Tx<'_>, project: &ProjectId, most: u32) -> Result<usize, Error> {
    let gone: Vec<String> = tx
        .prepare_cached(
            "DELETE FROM visitors WHERE number IN
                (SELECT number FROM visitors WHERE project_id = ?1 LIMIT ?2) RETURNING subject",
        )?
        .query_map(params![project, most], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for subject in &gone {
        passkey::store::end_unlinked(tx, subject)?;
    }
    if !gone.is_empty() {
        tx.note(ControlChange::SessionsEnded(*project));
    }
    Ok(gone.len())
}

/// Removes expired sessions, at most `most`; returns how many.
pub(super) fn sweep(tx: &Tx<'_>, now: Timestamp, most: u32) -> Result<usize, Error> {
    Ok(tx
        .prepare_cached(
            "DELETE FROM visitor_sessions WHERE token_sha256 IN
                (SELECT token_sha256 FROM visitor_sessions WHERE expires_at <= ?1 LIMIT ?2)",
        )?
        .execute(params![now, most])?)
}

/// Lists frontends that have sessions.
pub(super) fn frontends_with_sessions(c: &Connection) -> rusqlite::Result<Vec<DeploymentId>> {
    c.prepare_cached("SELECT DISTINCT deployment_id FROM visitor_sessions")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Ends all sessions on a frontend.
pub(super) fn end_frontend_sessions(tx: &Tx<'_>, id: &DeploymentId) -> Result<(), Error> {
    tx.prepare_cached("DELETE FROM visitor_sessions WHERE deployment_id = ?1")?
        .execute([id])?;
    Ok(())
}

/// Lists projects that have visitors.
pub(super) fn projects_with_visitors(c: &Connection) -> rusqlite::Result<Vec<ProjectId>> {
    c.prepare_cached("SELECT DISTINCT project_id FROM visitors")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Counts rows whose id or digest has the wrong form.
pub(super) fn count_malformed_rows(c: &Connection) -> rusqlite::Result<i64> {
    c.query_row(
        "SELECT (SELECT count(*) FROM visitors WHERE id NOT GLOB 'usr_?*')
              + (SELECT count(*) FROM visitor_sessions WHERE length(token_sha256) <> 32)",
        [],
        |row| row.get(0),
    )
}
