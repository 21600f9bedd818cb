//! The first answers to idempotency keys, kept in the transaction of their effect.

use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

use super::{Error, Tx};
use crate::clock::Timestamp;

/// What names an answer: who asked, where, with which key, and for what.
#[derive(Clone, Debug)]
pub struct AnswerKey {
    /// A principal, or an anonymous client's address.
    pub principal: String,
    /// The route.
    pub route: String,
    /// The client's key.
    pub key: String,
    /// A keyed hash of the request's body.
    pub body_mac: Vec<u8>,
}

/// A kept answer.
#[derive(Clone, Debug)]
pub struct KeptAnswer {
    /// Of the body that it answered.
    pub body_mac: Vec<u8>,
    /// The HTTP status.
    pub status: u16,
    /// The JSON body.
    pub body: String,
}

/// Keeps what an operation answers, in the transaction of its effect; or nothing, where nobody can ask for it again.
pub struct Keep<T>(Option<Keeper<T>>);

type Keeper<T> = Box<dyn FnOnce(&Tx<'_>, &T) -> Result<(), Error> + Send>;

impl<T> Keep<T> {
    /// Keeps nothing.
    pub fn nothing() -> Self {
        Self(None)
    }

    /// Keeps an answer.
    ///
    /// # Errors
    /// The database's.
    pub fn keep(self, tx: &Tx<'_>, answer: &T) -> Result<(), Error> {
        self.0.map_or(Ok(()), |keeper| keeper(tx, answer))
    }
}

impl<T: Serialize + 'static> Keep<T> {
    /// Keeps an answer as JSON, with its HTTP status, under a key.
    pub fn under(key: AnswerKey, status: u16, now: Timestamp) -> Self {
        Self(Some(Box::new(move |tx, answer| {
            let body = serde_json::to_string(answer)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            keep(tx, &key, status, &body, now)
        })))
    }

    /// Keeps, of what the operation made, the view that is answered.
    pub fn of<U>(self, view: impl FnOnce(&U) -> T + Send + 'static) -> Keep<U> {
        Keep(
            self.0
                .map(|keeper| -> Keeper<U> { Box::new(move |tx, made| keeper(tx, &view(made))) }),
        )
    }
}

impl<T> std::fmt::Debug for Keep<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keep").finish_non_exhaustive()
    }
}

/// The answer kept for a key since `after`.
pub fn kept(
    c: &Connection,
    key: &AnswerKey,
    after: Timestamp,
) -> rusqlite::Result<Option<KeptAnswer>> {
    c.prepare_cached(
        "SELECT body_mac, status, body FROM idempotency
         WHERE principal = ?1 AND route = ?2 AND key = ?3 AND created_at > ?4",
    )?
    .query_row(params![key.principal, key.route, key.key, after], |row| {
        Ok(KeptAnswer {
            body_mac: row.get(0)?,
            status: row.get(1)?,
            body: row.get(2)?,
        })
    })
    .optional()
}

fn keep(
    tx: &Tx<'_>,
    key: &AnswerKey,
    status: u16,
    body: &str,
    now: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT OR REPLACE INTO idempotency
            (principal, route, key, body_mac, status, body, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        key.principal,
        key.route,
        key.key,
        key.body_mac,
        status,
        body,
        now
    ])?;
    Ok(())
}

/// Forgets answers from before `before`.
///
/// # Errors
/// The database's.
pub fn forget(tx: &Tx<'_>, before: Timestamp) -> Result<(), Error> {
    tx.execute("DELETE FROM idempotency WHERE created_at <= ?1", [before])?;
    Ok(())
}

/// Forgets what a route answered about deployments that are not there, in a copy that has not got the shares that are read once: an answer
/// names what it published.
///
/// # Errors
/// The database's.
pub fn forget_absent(tx: &Tx<'_>, route: &str) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM idempotency WHERE route = ?1
            AND json_extract(body, '$.id') NOT IN (SELECT id FROM deployments)",
        [route],
    )?;
    Ok(())
}
