//! The first answers to idempotency keys, stored in the transaction of their effect, and encrypted: an answer may hold a secret
//! that is shown once. The encryption key is derived from the request, so only a client that repeats it can read the answer.

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

/// Key of a stored answer: caller, route, idempotency key and request body.
#[derive(Clone)]
pub struct StoredAnswerKey {
    /// Caller: a principal, or the address of an anonymous client.
    pub principal: String,
    pub route: String,
    /// Value of `Idempotency-Key`.
    pub key: String,
    /// A keyed hash of the request's body.
    pub body_mac: Vec<u8>,
    /// Encryption key of the answer: derived from the request's body, and stored nowhere.
    seal: [u8; 32],
}

impl std::fmt::Debug for StoredAnswerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredAnswerKey")
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

impl StoredAnswerKey {
    /// Derives the key of the answer to a request with this body.
    pub fn new(
        secret: &hmac::Key,
        principal: String,
        route: String,
        key: String,
        body: &[u8],
    ) -> Self {
        let mut seal = hmac::Context::with_key(secret);
        // The prefix separates this MAC from the one of a body: no accepted body begins with a zero byte.
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

    /// Encrypts an answer. A key has one answer at a time, so the time can be the nonce.
    fn encrypt_answer(&self, body: &str, now: Timestamp) -> Result<String, Error> {
        let mut sealed = body.as_bytes().to_vec();
        let key = self.cipher().ok_or(Error::SealingFailed)?;
        key.seal_in_place_append_tag(nonce_of_time(now), Aad::empty(), &mut sealed)
            .map_err(|_| Error::SealingFailed)?;
        Ok(STANDARD.encode(sealed))
    }

    /// Decrypts an answer, if it was encrypted for this request.
    fn decrypt_answer(&self, text: &str, at: Timestamp) -> Option<String> {
        // Stored by a version that did not encrypt answers.
        if text.starts_with('{') {
            return Some(text.to_owned());
        }
        let mut sealed = STANDARD.decode(text).ok()?;
        let opened = self
            .cipher()?
            .open_in_place(nonce_of_time(at), Aad::empty(), &mut sealed);
        String::from_utf8(opened.ok()?.to_vec()).ok()
    }

    fn cipher(&self) -> Option<LessSafeKey> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &self.seal).ok()?;
        Some(LessSafeKey::new(key))
    }
}

fn nonce_of_time(at: Timestamp) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[..8].copy_from_slice(&at.0.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// Part of an answer that is stored readable: the id of the created resource.
#[derive(Deserialize)]
struct CreatedResource {
    id: Option<String>,
}

/// A stored answer.
#[derive(Clone, Debug)]
pub struct StoredAnswer {
    /// Keyed hash of the request body that it answered.
    pub body_mac: Vec<u8>,
    pub status: u16,
    /// The JSON body; `None` if it answered another request.
    pub body: Option<String>,
}

/// Stores the answer of an operation in the transaction of its effect; or nothing, for a request without an idempotency key.
pub struct AnswerRecorder<T>(Option<AnswerRecorderFn<T>>);

type AnswerRecorderFn<T> = Box<dyn FnOnce(&Tx<'_>, &T) -> Result<(), Error> + Send>;

impl<T> AnswerRecorder<T> {
    /// Makes a keeper that stores nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// Stores an answer.
    pub fn store(self, tx: &Tx<'_>, answer: &T) -> Result<(), Error> {
        self.0.map_or(Ok(()), |keeper| keeper(tx, answer))
    }
}

impl<T: Serialize + 'static> AnswerRecorder<T> {
    /// Makes a keeper that stores an answer as JSON, with its HTTP status, under a key.
    pub fn for_key(key: StoredAnswerKey, status: u16, now: Timestamp) -> Self {
        Self(Some(Box::new(move |tx, answer| {
            let body = serde_json::to_string(answer)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            insert_answer(tx, &key, status, &body, now)
        })))
    }

    /// Converts the operation's result to the view that is stored and answered.
    pub fn map_view<U>(self, view: impl FnOnce(&U) -> T + Send + 'static) -> AnswerRecorder<U> {
        AnswerRecorder(self.0.map(|keeper| -> AnswerRecorderFn<U> {
            Box::new(move |tx, made| keeper(tx, &view(made)))
        }))
    }
}

impl<T> std::fmt::Debug for AnswerRecorder<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerRecorder").finish_non_exhaustive()
    }
}

/// Finds the answer stored for a key after a time.
pub fn find_answer(
    c: &Connection,
    key: &StoredAnswerKey,
    after: Timestamp,
) -> rusqlite::Result<Option<StoredAnswer>> {
    c.prepare_cached(
        "SELECT body_mac, status, body, created_at FROM idempotency
         WHERE principal = ?1 AND route = ?2 AND key = ?3 AND created_at > ?4",
    )?
    .query_row(params![key.principal, key.route, key.key, after], |row| {
        Ok(StoredAnswer {
            body_mac: row.get(0)?,
            status: row.get(1)?,
            body: key.decrypt_answer(&row.get::<_, String>(2)?, row.get(3)?),
        })
    })
    .optional()
}

fn insert_answer(
    tx: &Tx<'_>,
    key: &StoredAnswerKey,
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

/// Deletes answers stored before a time.
pub fn delete_before(tx: &Tx<'_>, before: Timestamp) -> Result<(), Error> {
    tx.execute("DELETE FROM idempotency WHERE created_at <= ?1", [before])?;
    Ok(())
}

/// Deletes a route's answers about deployments that are not in `there`: a backup leaves out one-time shares, and so the answers
/// that name them.
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

    fn key(principal: &str, body: &[u8]) -> StoredAnswerKey {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        StoredAnswerKey::new(
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
        // Stored by a version that did not encrypt answers.
        assert_eq!(
            first.decrypt_answer("{\"id\":1}", at).as_deref(),
            Some("{\"id\":1}")
        );
    }
}
