//! Links of checkout cookies, in the control database.

use rusqlite::{Connection, OptionalExtension, params};

use crate::control::{Error, Tx};
use crate::payments::model::{COOKIE_SECONDS, CheckoutSession};
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId, SessionId};

/// Number of fresh cookies that may replace the same cookie, for the same visitor, or get the same session. The browser keeps one of the last.
const MAX_REPLACEMENTS: u32 = 16;

/// Purchases that a fresh cookie gets when a browser first sends it.
#[derive(Debug)]
struct Link {
    /// Visitor to whom it was given.
    user_id: String,
    /// Cookie whose purchases move.
    former: Option<[u8; 32]>,
    /// Session of an earlier click that moves.
    session: Option<SessionId>,
}

/// Links the cookie of `given`, which goes to a visitor with a sign-in, to the cookie `former` and to the session `repeated` of an earlier
/// click.
pub(in crate::payments) fn insert(
    tx: &Tx<'_>,
    given: &CheckoutSession,
    former: Option<[u8; 32]>,
    repeated: Option<SessionId>,
) -> Result<(), Error> {
    if given.user_id.is_none() || (former.is_none() && repeated.is_none()) {
        return Ok(());
    }
    tx.prepare_cached(
        "INSERT INTO payment_cookie_links
            (fresh_sha256, project_id, deployment_id, user_id, former_sha256, session_id, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        given.cookie,
        given.project,
        given.deployment,
        given.user_id,
        former,
        repeated,
        given.created_at,
    ])?;
    tx.prepare_cached(
        "DELETE FROM payment_cookie_links WHERE deployment_id = ?1 AND former_sha256 = ?2 AND user_id = ?3
            AND number <= (SELECT number FROM payment_cookie_links
                WHERE deployment_id = ?1 AND former_sha256 = ?2 AND user_id = ?3 ORDER BY number DESC LIMIT 1 OFFSET ?4)",
    )?
    .execute(params![given.deployment, former, given.user_id, MAX_REPLACEMENTS])?;
    tx.prepare_cached(
        "DELETE FROM payment_cookie_links WHERE session_id = ?1
            AND number <= (SELECT number FROM payment_cookie_links WHERE session_id = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
    )?
    .execute(params![repeated, MAX_REPLACEMENTS])?;
    Ok(())
}

/// Whether a cookie was given and is sent for the first time.
pub(in crate::payments) fn is_pending(
    c: &Connection,
    deployment: &DeploymentId,
    cookie: &[u8; 32],
) -> rusqlite::Result<bool> {
    c.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM payment_cookie_links WHERE deployment_id = ?1 AND fresh_sha256 = ?2)",
    )?
    .query_row(params![deployment, cookie], |row| row.get(0))
}

/// Moves the purchases of the cookie that `fresh` replaces, when a browser first sends `fresh`. Another visitor's purchases stay.
///
/// Sessions that nobody will pay any more stay, too, so that a visitor cannot collect any number of them that each click moves. A delayed
/// payment, such as a bank transfer, may come weeks after its checkout; a month that was paid once, even if it went back, may be paid again.
///
/// Other cookies that were given for the same one replace `fresh` from now on: the browser may still receive one, and drop this.
pub(in crate::payments) fn follow(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    (fresh, host_cookie): (&[u8; 32], bool),
    now: Timestamp,
) -> Result<(), Error> {
    let Some(link) = take(tx, deployment, fresh)? else {
        return Ok(());
    };
    if let Some(former) = &link.former {
        tx.prepare_cached(
            "UPDATE payment_sessions SET cookie_sha256 = ?2
             WHERE deployment_id = ?1 AND host_cookie = ?3 AND (user_id IS NULL OR user_id = ?4)
                AND (status IN ('paid', 'refunded') OR email IS NOT NULL OR status <> 'canceled' AND created_at > ?6)
                AND cookie_sha256 IN (SELECT ?5 UNION ALL SELECT fresh_sha256 FROM payment_cookie_links
                    WHERE deployment_id = ?1 AND former_sha256 = ?5 AND user_id = ?4)",
        )?
        .execute(params![
            deployment,
            fresh,
            host_cookie,
            link.user_id,
            former,
            now.plus_seconds(-COOKIE_SECONDS),
        ])?;
        tx.prepare_cached(
            "UPDATE payment_cookie_links SET former_sha256 = ?2
             WHERE deployment_id = ?1 AND former_sha256 = ?4 AND user_id = ?3",
        )?
        .execute(params![deployment, fresh, link.user_id, former])?;
    }
    if let Some(session) = &link.session {
        tx.prepare_cached(
            "UPDATE payment_sessions SET cookie_sha256 = ?2, host_cookie = ?3 WHERE id = ?1 AND user_id = ?4",
        )?
        .execute(params![session, fresh, host_cookie, link.user_id])?;
    }
    Ok(())
}

/// Removes the link of a fresh cookie, and returns it.
fn take(tx: &Tx<'_>, deployment: &DeploymentId, fresh: &[u8; 32]) -> Result<Option<Link>, Error> {
    let link = tx
        .prepare_cached(
            "DELETE FROM payment_cookie_links WHERE deployment_id = ?1 AND fresh_sha256 = ?2
             RETURNING user_id, former_sha256, session_id",
        )?
        .query_row(params![deployment, fresh], |row| {
            Ok(Link {
                user_id: row.get("user_id")?,
                former: row.get("former_sha256")?,
                session: row.get("session_id")?,
            })
        })
        .optional()?;
    Ok(link)
}

/// Removes a batch of a deleted project's links; returns whether there were any.
pub(in crate::payments) fn remove_batch(
    tx: &Tx<'_>,
    project: &ProjectId,
    most: u32,
) -> Result<bool, Error> {
    let removed = tx
        .prepare_cached(
            "DELETE FROM payment_cookie_links
             WHERE number IN (SELECT number FROM payment_cookie_links WHERE project_id = ?1 LIMIT ?2)",
        )?
        .execute(params![project, most])?;
    Ok(removed > 0)
}

/// Deletes a batch of links of cookies that were given before `before`, which browsers have forgotten; returns whether there were any.
pub(in crate::payments) fn delete_old_batch(
    tx: &Tx<'_>,
    before: Timestamp,
    most: u32,
) -> Result<bool, Error> {
    let removed = tx
        .prepare_cached(
            "DELETE FROM payment_cookie_links
             WHERE number IN (SELECT number FROM payment_cookie_links WHERE created_at < ?1 LIMIT ?2)",
        )?
        .execute(params![before, most])?;
    Ok(removed > 0)
}
