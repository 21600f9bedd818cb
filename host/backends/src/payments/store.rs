//! Queries of sessions and of mirror positions in the control database.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::buyer::Buyer;
use super::mirror::MirrorPosition;
use super::model::{CheckoutSession, MAX_BUYER_SESSIONS, Status, normalized_email};
use super::verdict::SessionVerdict;
use super::views::MatchedBy;
use crate::control::{Error, NamedColumnReader, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, DeploymentId, ProjectId, SessionId};

const SELECT_SESSION: &str = "SELECT id, project_id, deployment_id, price_id, price_label, amount, currency, \
    recurring, return_to, user_id, cookie_sha256, provider_id, provider_url, attempt, status, email, \
    created_at, updated_at, change, host_cookie FROM payment_sessions";

/// Condition on an open session of the same purchase, from a second click on the same button.
const IS_REPEATED_PURCHASE: &str = "deployment_id = ?1 AND (user_id = ?5 OR ?5 IS NULL AND user_id IS NULL AND cookie_sha256 = ?2) \
    AND price_id = ?3 AND return_to = ?4 AND status = 'open' AND created_at > ?6";
/// Condition on a paid session of a cookie.
const IS_PAID_BY_COOKIE: &str =
    "deployment_id = ?1 AND cookie_sha256 = ?2 AND host_cookie = ?3 AND status = 'paid'";

fn session_from_row(row: &Row<'_>) -> rusqlite::Result<CheckoutSession> {
    let row = NamedColumnReader::new(row);
    Ok(CheckoutSession {
        id: row.get("id")?,
        project: row.get("project_id")?,
        deployment: row.get("deployment_id")?,
        price: row.get("price_id")?,
        price_label: row.get("price_label")?,
        amount: row.get("amount")?,
        currency: row.get("currency")?,
        recurring: row.get("recurring")?,
        return_to: row.get("return_to")?,
        user_id: row.get("user_id")?,
        cookie: row.get("cookie_sha256")?,
        provider_id: row.get("provider_id")?,
        provider_url: row.get("provider_url")?,
        attempt: row.get("attempt")?,
        status: row.get("status")?,
        email: row.get("email")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        host_cookie: row.get("host_cookie")?,
    })
}

impl FromSql for Status {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        let known = Self::ALL.into_iter().find(|one| one.as_str() == text);
        known.ok_or_else(|| FromSqlError::Other(format!("there is no status {text}").into()))
    }
}

pub(super) fn insert_session(tx: &Tx<'_>, new: &CheckoutSession) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO payment_sessions
            (id, project_id, deployment_id, price_id, price_label, amount, currency, recurring,
             return_to, user_id, cookie_sha256, status, created_at, updated_at, host_cookie, change)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 0)",
    )?
    .execute(params![
        new.id,
        new.project,
        new.deployment,
        new.price,
        new.price_label,
        new.amount,
        new.currency,
        new.recurring,
        new.return_to,
        new.user_id,
        new.cookie,
        new.status.as_str(),
        new.created_at,
        new.updated_at,
        new.host_cookie,
    ])?;
    Ok(())
}

/// Counts a change of a project's sessions; returns the number of the change.
fn next_change(tx: &Tx<'_>, project: &ProjectId) -> Result<i64, Error> {
    Ok(tx
        .prepare_cached(
            "INSERT INTO payment_mirrors (project_id, changes) VALUES (?1, 1)
             ON CONFLICT (project_id) DO UPDATE SET changes = changes + 1 RETURNING changes",
        )?
        .query_row([project], |row| row.get(0))?)
}

/// Finds an open session of the same purchase since `since`: from a second click on the same button, by the same signed-in visitor or in the
/// same browser.
pub(super) fn find_repeated_purchase(
    c: &Connection,
    wanted: &CheckoutSession,
    since: Timestamp,
) -> rusqlite::Result<Option<CheckoutSession>> {
    c.prepare_cached(&format!(
        "{SELECT_SESSION} WHERE {IS_REPEATED_PURCHASE} ORDER BY number DESC LIMIT 1"
    ))?
    .query_row(
        params![
            wanted.deployment,
            wanted.cookie,
            wanted.price,
            wanted.return_to,
            wanted.user_id,
            since
        ],
        session_from_row,
    )
    .optional()
}

/// Whether the visitor of `wanted`, or the cookie that the browser sent, has begun the maximum number of sessions since `since`. Reads one row each,
/// however many there are: numbers are ordered by time.
pub(super) fn has_max_sessions(
    c: &Connection,
    wanted: &CheckoutSession,
    cookie: Option<&[u8; 32]>,
    since: Timestamp,
) -> rusqlite::Result<bool> {
    let is_reached = |sql: &str, place: &dyn ToSql, buyer: &dyn ToSql| -> rusqlite::Result<bool> {
        let limiting = c
            .prepare_cached(sql)?
            .query_row(params![place, buyer, MAX_BUYER_SESSIONS - 1], |row| {
                row.get::<_, Timestamp>(0)
            })
            .optional()?;
        Ok(limiting.is_some_and(|at| at > since))
    };
    let by_user = match &wanted.user_id {
        Some(user) => is_reached(
            "SELECT created_at FROM payment_sessions WHERE project_id = ?1 AND user_id = ?2
             ORDER BY number DESC LIMIT 1 OFFSET ?3",
            &wanted.project,
            user,
        )?,
        None => false,
    };
    let by_cookie = match cookie {
        Some(cookie) => is_reached(
            "SELECT created_at FROM payment_sessions WHERE deployment_id = ?1 AND cookie_sha256 = ?2
             ORDER BY number DESC LIMIT 1 OFFSET ?3",
            &wanted.deployment,
            cookie,
        )?,
        None => false,
    };
    Ok(by_user || by_cookie)
}

/// Whether a frontend gave a visitor this checkout cookie since `since`, under its current name.
pub(super) fn is_known_cookie(
    c: &Connection,
    deployment: &DeploymentId,
    (cookie, host_cookie): (&[u8; 32], bool),
    since: Timestamp,
) -> rusqlite::Result<bool> {
    c.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM payment_sessions
            WHERE deployment_id = ?1 AND cookie_sha256 = ?2 AND host_cookie = ?3 AND created_at > ?4)",
    )?
    .query_row(params![deployment, cookie, host_cookie, since], |row| {
        row.get(0)
    })
}

pub(super) fn find_by_id(
    c: &Connection,
    id: &SessionId,
) -> rusqlite::Result<Option<CheckoutSession>> {
    c.prepare_cached(&format!("{SELECT_SESSION} WHERE id = ?1"))?
        .query_row([id], session_from_row)
        .optional()
}

/// Finds the session of a hosted checkout.
pub(super) fn find_by_provider_id(
    c: &Connection,
    id: &str,
) -> rusqlite::Result<Option<CheckoutSession>> {
    c.prepare_cached(&format!("{SELECT_SESSION} WHERE provider_id = ?1"))?
        .query_row([id], session_from_row)
        .optional()
}

/// Stores the hosted checkout of a session.
pub(super) fn set_hosted_checkout(
    tx: &Tx<'_>,
    session: &CheckoutSession,
    provider_id: &str,
    url: &str,
) -> Result<(), Error> {
    let change = next_change(tx, &session.project)?;
    tx.prepare_cached(
        // A provider's id that another session has is not stored again.
        "UPDATE payment_sessions SET provider_url = ?3, change = ?4,
            provider_id = iif(EXISTS (SELECT 1 FROM payment_sessions o WHERE o.provider_id = ?2 AND o.id <> ?1), NULL, ?2)
         WHERE id = ?1",
    )?
    .execute(params![session.id, provider_id, url, change])?;
    Ok(())
}

/// Marks that it is unknown whether a hosted checkout was created: from now on the mirror shows the session. `failed` means that the
/// provider answered with a failure, so that the next attempt needs another idempotency key.
pub(super) fn mark_outcome_unknown(
    tx: &Tx<'_>,
    session: &CheckoutSession,
    failed: bool,
) -> Result<(), Error> {
    let change = next_change(tx, &session.project)?;
    tx.prepare_cached(
        "UPDATE payment_sessions SET attempt = attempt + ?2, change = ?3 WHERE id = ?1",
    )?
    .execute(params![session.id, i64::from(failed), change])?;
    Ok(())
}

/// Lists the sessions that have begun and have no outcome yet. While no checkout is running, these were interrupted by a crash.
pub(super) fn interrupted_sessions(c: &Connection) -> rusqlite::Result<Vec<CheckoutSession>> {
    c.prepare_cached(&format!("{SELECT_SESSION} WHERE change = 0"))?
        .query_map([], session_from_row)?
        .collect()
}

/// Deletes a session that the provider refused to create a checkout for: it cannot be paid.
pub(super) fn delete_session(tx: &Tx<'_>, id: &SessionId) -> Result<(), Error> {
    tx.prepare_cached("DELETE FROM payment_sessions WHERE id = ?1 AND change = 0")?
        .execute([id])?;
    Ok(())
}

/// Requests a rebuild of a project's mirror.
pub(super) fn request_rebuild(tx: &Tx<'_>, project: &ProjectId) -> Result<(), Error> {
    tx.prepare_cached("UPDATE payment_mirrors SET asked = asked + 1 WHERE project_id = ?1")?
        .execute([project])?;
    Ok(())
}

/// Mirror that lacks changes.
#[derive(Clone, Debug)]
pub(super) struct LaggingPaymentMirror {
    pub(super) project: ProjectId,
    pub(super) backend: BackendId,
    /// Position that the mirror has reached; `None` if it must be rebuilt.
    pub(super) position: Option<i64>,
    pub(super) changes: i64,
    pub(super) asked: i64,
}

/// Lists the mirrors that lack changes, of projects that have a backend.
pub(super) fn lagging_mirrors(c: &Connection) -> rusqlite::Result<Vec<LaggingPaymentMirror>> {
    // Most projects sell nothing, and have no row.
    c.prepare_cached(
        "SELECT project_id, backends.id, position, changes, asked, made < asked OR backend_id IS NOT backends.id
         FROM payment_mirrors CROSS JOIN backends USING (project_id)
         WHERE position < changes OR made < asked OR backend_id IS NOT backends.id",
    )?
    .query_map([], |row| {
        let (position, is_new): (i64, bool) = (row.get(2)?, row.get(5)?);
        Ok(LaggingPaymentMirror {
            project: row.get(0)?,
            backend: row.get(1)?,
            position: (!is_new).then_some(position),
            changes: row.get(3)?,
            asked: row.get(4)?,
        })
    })?
    .collect()
}

/// Lists the sessions of a project that have changed since `position`, in the order of their changes, each with its number.
pub(super) fn sessions_changed_since(
    c: &Connection,
    project: &ProjectId,
    position: i64,
    most: Option<u32>,
) -> rusqlite::Result<Vec<(i64, CheckoutSession)>> {
    c.prepare_cached(&format!(
        "{SELECT_SESSION} WHERE project_id = ?1 AND change > ?2 ORDER BY change LIMIT ?3"
    ))?
    .query_map(
        params![project, position, most.map_or(-1, i64::from)],
        |row| Ok((row.get("change")?, session_from_row(row)?)),
    )?
    .collect()
}

/// Stores the position that a mirror has reached.
pub(super) fn set_position(tx: &Tx<'_>, followed: &MirrorPosition) -> Result<(), Error> {
    tx.prepare_cached(
        "UPDATE payment_mirrors SET backend_id = ?2, position = ?3, made = ?4 WHERE project_id = ?1",
    )?
    .execute(params![
        followed.project,
        followed.backend,
        followed.position,
        followed.asked
    ])?;
    Ok(())
}

/// Stores the verdict on a session if it differs; returns whether it does.
pub(super) fn set_verdict(
    tx: &Tx<'_>,
    session: &CheckoutSession,
    verdict: &SessionVerdict,
    now: Timestamp,
) -> Result<bool, Error> {
    if session.status == verdict.status && session.email == verdict.email {
        return Ok(false);
    }
    let change = next_change(tx, &session.project)?;
    tx.prepare_cached(
        "UPDATE payment_sessions
         SET status = ?2, email = ?3, email_key = ?4, updated_at = ?5, change = ?6 WHERE id = ?1",
    )?
    .execute(params![
        session.id,
        verdict.status.as_str(),
        verdict.email,
        verdict.email.as_deref().map(normalized_email),
        now,
        change,
    ])?;
    Ok(true)
}

/// Lists the latest sessions of a project, newest first.
pub(super) fn sessions(
    c: &Connection,
    project: &ProjectId,
    most: u64,
) -> rusqlite::Result<Vec<CheckoutSession>> {
    c.prepare_cached(&format!(
        "{SELECT_SESSION} WHERE project_id = ?1 ORDER BY number DESC LIMIT ?2"
    ))?
    .query_map(params![project, most.cast_signed()], session_from_row)?
    .collect()
}

/// Lists the ids of all sessions of a project, oldest first.
pub(super) fn session_ids(c: &Connection, project: &ProjectId) -> rusqlite::Result<Vec<SessionId>> {
    c.prepare_cached("SELECT id FROM payment_sessions WHERE project_id = ?1 ORDER BY number")?
        .query_map([project], |row| row.get(0))?
        .collect()
}

/// Lists the paid sessions of a visitor, newest first, each with the strongest match.
pub(super) fn find_paid_sessions(
    c: &Connection,
    project: &ProjectId,
    deployment: &DeploymentId,
    buyer: &Buyer,
    since: Timestamp,
) -> rusqlite::Result<Vec<(CheckoutSession, MatchedBy)>> {
    let mut found: Vec<(CheckoutSession, MatchedBy)> = Vec::new();
    let mut add = |sessions: Vec<CheckoutSession>, by| {
        for session in sessions {
            if !found.iter().any(|(known, _)| known.id == session.id) {
                found.push((session, by));
            }
        }
    };
    if let Some(user) = &buyer.user {
        add(paid_by_user(c, project, &user.user_id)?, MatchedBy::UserId);
        if let Some(email) = &user.email {
            add(paid_by_email(c, project, email)?, MatchedBy::Email);
        }
    }
    let own = buyer.token.iter().map(|token| (token, buyer.secure));
    let former = buyer.former_tokens.iter().map(|token| (token, false));
    for (token, host_cookie) in own.chain(former) {
        let cookie = buyer.host.hash_token(token);
        if is_known_cookie(c, deployment, (&cookie, host_cookie), since)? {
            let mut paid = paid_by_cookie(c, deployment, (&cookie, host_cookie))?;
            // Purchases by another signed-in visitor of the same browser stay that visitor's.
            paid.retain(|session| match (&buyer.user, &session.user_id) {
                (Some(user), Some(owner)) => user.user_id == *owner,
                _ => true,
            });
            add(paid, MatchedBy::Cookie);
        }
    }
    // Ids are ordered by time.
    found.sort_by_key(|(session, _)| std::cmp::Reverse(session.id));
    Ok(found)
}

/// Lists the paid sessions of a signed-in visitor, newest first.
fn paid_by_user(
    c: &Connection,
    project: &ProjectId,
    user: &str,
) -> rusqlite::Result<Vec<CheckoutSession>> {
    c.prepare_cached(&format!(
        "{SELECT_SESSION} WHERE project_id = ?1 AND user_id = ?2 AND status = ?3 ORDER BY number DESC"
    ))?
    .query_map(params![project, user, Status::Paid.as_str()], session_from_row)?
    .collect()
}

/// Lists the paid sessions with an e-mail address, newest first.
fn paid_by_email(
    c: &Connection,
    project: &ProjectId,
    email: &str,
) -> rusqlite::Result<Vec<CheckoutSession>> {
    c.prepare_cached(&format!(
        "{SELECT_SESSION} WHERE project_id = ?1 AND email_key = ?2 AND status = ?3 ORDER BY number DESC"
    ))?
    .query_map(
        params![project, normalized_email(email), Status::Paid.as_str()],
        session_from_row,
    )?
    .collect()
}

/// Lists the paid sessions that began on a frontend with a cookie, newest first.
fn paid_by_cookie(
    c: &Connection,
    deployment: &DeploymentId,
    (cookie, host_cookie): (&[u8; 32], bool),
) -> rusqlite::Result<Vec<CheckoutSession>> {
    c.prepare_cached(&format!(
        "{SELECT_SESSION} WHERE {IS_PAID_BY_COOKIE} ORDER BY number DESC"
    ))?
    .query_map(params![deployment, cookie, host_cookie], session_from_row)?
    .collect()
}

/// Removes a batch of a deleted project's sessions, and returns them; without sessions, removes its mirror and its catalog. Sessions come first, because their events go with them.
pub(super) fn remove_batch(
    tx: &Tx<'_>,
    project: &ProjectId,
    most: u32,
) -> Result<Vec<CheckoutSession>, Error> {
    let sessions: Vec<CheckoutSession> = tx
        .prepare_cached(&format!(
            "{SELECT_SESSION} WHERE project_id = ?1 ORDER BY number LIMIT ?2"
        ))?
        .query_map(params![project, most], session_from_row)?
        .collect::<rusqlite::Result<_>>()?;
    for session in &sessions {
        tx.prepare_cached("DELETE FROM payment_sessions WHERE id = ?1")?
            .execute([session.id])?;
    }
    if sessions.is_empty() {
        for table in ["payment_mirrors", "payment_prices", "payment_products"] {
            tx.execute(
                &format!("DELETE FROM {table} WHERE project_id = ?1"),
                [project],
            )?;
        }
    }
    Ok(sessions)
}

#[cfg(test)]
mod tests {
    use rusqlite::params_from_iter;
    use rusqlite::types::Null;

    use super::*;
    use crate::control::ControlDatabase;

    /// Returns how SQLite finds the sessions of a condition with so many parameters.
    fn search_plan(condition: &str, parameters: usize) -> String {
        let data = tempfile::TempDir::new().unwrap();
        let control = ControlDatabase::open(data.path()).unwrap();
        let sql =
            format!("EXPLAIN QUERY PLAN {SELECT_SESSION} WHERE {condition} ORDER BY number DESC");
        let plan = control.read_blocking(|c| {
            let parameters = params_from_iter(vec![Null; parameters]);
            c.query_row(&sql, parameters, |row| row.get::<_, String>("detail"))
        });
        plan.unwrap()
    }

    #[test]
    fn sessions_that_do_not_matter_are_not_read() {
        let recent = search_plan(IS_REPEATED_PURCHASE, 6);
        let expected = "payment_sessions_recent (deployment_id=? AND price_id=? AND created_at>?)";
        assert!(recent.contains(expected), "{recent}");
        let paid = search_plan(IS_PAID_BY_COOKIE, 3);
        assert!(paid.contains("payment_sessions_paid"), "{paid}");
    }
}
