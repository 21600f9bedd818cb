//! The first answers to idempotency keys, kept in the transaction of their effect, and sealed: an answer may hold a secret
//! that is shown once, and only who sends the same request again has the key to it.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::{Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;

/// Key of an answer: who asked, where, with which key, and for what.
#[derive(Clone)]
pub struct AnswerKey {
    /// A principal, or an anonymous client's address.
    pub principal: String,
    /// The route.
    pub route: String,
    /// The client's key.
    pub key: String,
    /// A keyed hash of the request's body.
    pub body_mac: Vec<u8>,
    /// Seal of the answer: made of the request's body, and stored nowhere.
    seal: [u8; 32],
}

impl std::fmt::Debug for AnswerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerKey")
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

impl AnswerKey {
    /// The name of the answer to a request with this body.
    pub fn new(
        secret: &hmac::Key,
        principal: String,
        route: String,
        key: String,
        body: &[u8],
    ) -> Self {
        let mut seal = hmac::Context::with_key(secret);
        // No body that is compared begins like this, because none that is read begins with a zero byte.
        for part in [
            &b"\0seal"[..],
            principal.as_bytes(),
            route.as_bytes(),
            key.as_bytes(),
        ] {
            seal.update(part);
            seal.update(b"\0");
        }
        seal.update(body);
        let mut key_of_seal = [0; 32];
        key_of_seal.copy_from_slice(seal.sign().as_ref());
        Self {
            body_mac: hmac::sign(secret, body).as_ref().to_vec(),
            seal: key_of_seal,
            principal,
            route,
            key,
        }
    }

    /// Seals an answer. One key has one answer at a time, so the time makes its nonce.
    fn encrypt_answer(&self, body: &str, now: Timestamp) -> Result<String, Error> {
        let mut sealed = body.as_bytes().to_vec();
        let key = self.cipher().ok_or(Error::SealingFailed)?;
        key.seal_in_place_append_tag(nonce(now), Aad::empty(), &mut sealed)
            .map_err(|_| Error::SealingFailed)?;
        Ok(STANDARD.encode(sealed))
    }

    /// Opens a sealed answer, if it was sealed for this request.
    fn decrypt_answer(&self, text: &str, at: Timestamp) -> Option<String> {
        // As it was kept before answers were sealed.
        if text.starts_with('{') {
            return Some(text.to_owned());
        }
        let mut sealed = STANDARD.decode(text).ok()?;
        let opened = self
            .cipher()?
            .open_in_place(nonce(at), Aad::empty(), &mut sealed);
        String::from_utf8(opened.ok()?.to_vec()).ok()
    }

    fn cipher(&self) -> Option<LessSafeKey> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &self.seal).ok()?;
        Some(LessSafeKey::new(key))
    }
}

fn nonce(at: Timestamp) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[..8].copy_from_slice(&at.0.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// Readable part of an answer: the id of what it is about.
#[derive(Deserialize)]
struct CreatedResource {
    id: Option<String>,
}

/// A kept answer.
#[derive(Clone, Debug)]
pub struct KeptAnswer {
    /// Of the body that it answered.
    pub body_mac: Vec<u8>,
    /// The HTTP status.
    pub status: u16,
    /// The JSON body; `None` if it answered another request.
    pub body: Option<String>,
}

/// Keeps what an operation answers, in the transaction of its effect; or nothing, where nobody can ask for it again.
pub struct AnswerKeeper<T>(Option<Keeper<T>>);

type Keeper<T> = Box<dyn FnOnce(&Tx<'_>, &T) -> Result<(), Error> + Send>;

impl<T> AnswerKeeper<T> {
    /// Keeps nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// Keeps an answer.
    pub fn store(self, tx: &Tx<'_>, answer: &T) -> Result<(), Error> {
        self.0.map_or(Ok(()), |keeper| keeper(tx, answer))
    }
}

impl<T: Serialize + 'static> AnswerKeeper<T> {
    /// Keeps an answer as JSON, with its HTTP status, under a key.
    pub fn for_key(key: AnswerKey, status: u16, now: Timestamp) -> Self {
        Self(Some(Box::new(move |tx, answer| {
            let body = serde_json::to_string(answer)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            keep(tx, &key, status, &body, now)
        })))
    }

    /// Keeps, of what the operation made, the view that is answered.
    pub fn map_view<U>(self, view: impl FnOnce(&U) -> T + Send + 'static) -> AnswerKeeper<U> {
        AnswerKeeper(
            self.0
                .map(|keeper| -> Keeper<U> { Box::new(move |tx, made| keeper(tx, &view(made))) }),
        )
    }
}

impl<T> std::fmt::Debug for AnswerKeeper<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerKeeper").finish_non_exhaustive()
    }
}

/// The answer kept for a key since `after`.
pub fn find(
    c: &Connection,
    key: &AnswerKey,
    after: Timestamp,
) -> rusqlite::Result<Option<KeptAnswer>> {
    c.prepare_cached(
        "SELECT body_mac, status, body, created_at FROM idempotency
         WHERE principal = ?1 AND route = ?2 AND key = ?3 AND created_at > ?4",
    )?
    .query_row(params![key.principal, key.route, key.key, after], |row| {
        Ok(KeptAnswer {
            body_mac: row.get(0)?,
            status: row.get(1)?,
            body: key.decrypt_answer(&row.get::<_, String>(2)?, row.get(3)?),
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
            (principal, route, key, body_mac, status, body, created_at, made)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        key.principal,
        key.route,
        key.key,
        key.body_mac,
        status,
        key.encrypt_answer(body, now)?,
        now,
        serde_json::from_str::<CreatedResource>(body)
            .ok()
            .and_then(|made| made.id),
    ])?;
    Ok(())
}

/// Forgets answers from before `before`.
pub fn delete_before(tx: &Tx<'_>, before: Timestamp) -> Result<(), Error> {
    tx.execute("DELETE FROM idempotency WHERE created_at <= ?1", [before])?;
    Ok(())
}

/// Forgets what a route answered about deployments that are not there, in a copy that has not got the shares that are read
/// once: `there` are those that are. An answer that is sealed says nothing to anybody but its own client, and stays.
pub fn delete_absent(tx: &Tx<'_>, route: &str, there: &HashSet<DeploymentId>) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM idempotency WHERE route = ?1 AND made IS NULL",
        [route],
    )?;
    let named: Vec<String> = tx
        .prepare("SELECT DISTINCT made FROM idempotency WHERE route = ?1")?
        .query_map([route], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let is_there = |id: &str| id.parse().is_ok_and(|id| there.contains(&id));
    for absent in named.iter().filter(|id| !is_there(id)) {
        tx.execute(
            "DELETE FROM idempotency WHERE route = ?1 AND made = ?2",
            [route, absent],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(principal: &str, body: &[u8]) -> AnswerKey {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        AnswerKey::new(
            &secret,
            principal.into(),
            "deploy/".into(),
            "k".into(),
            body,
        )
    }

    #[test]
    fn an_answer_opens_for_the_same_request_alone() {
        let (answer, at) = (
            "{\"delete_token\":\"svcd_x\"}",
            Timestamp(1_795_176_000_000),
        );
        let first = key("ip:1", b"{}");
        let sealed = first.encrypt_answer(answer, at).unwrap();
        assert!(!sealed.contains("svcd"), "{sealed}");
        assert_eq!(
            key("ip:1", b"{}").decrypt_answer(&sealed, at).as_deref(),
            Some(answer)
        );
        for (other, when) in [
            (key("ip:1", b"{} "), at),
            (key("ip:2", b"{}"), at),
            (key("ip:1", b"{}"), Timestamp(at.0 + 1)),
        ] {
            assert_eq!(other.decrypt_answer(&sealed, when), None);
        }
        assert_eq!(first.decrypt_answer("no base64", at), None);
        // As it was kept before answers were sealed.
        assert_eq!(
            first.decrypt_answer("{\"id\":1}", at).as_deref(),
            Some("{\"id\":1}")
        );
    }
}
