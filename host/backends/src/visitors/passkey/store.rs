//! Queries of passkeys and their accounts in the control database.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::model::{
    ListedPasskey, MAX_PASSKEYS, NewPasskey, Passkey, PasskeyAccount, PasskeyOfSignIn,
    PasskeyRemoval,
};
use crate::control::{Error, NamedColumnReader, Tx};
use crate::visitors::model::VerifiedVisitor;
use svc_base::clock::Timestamp;

fn passkey_from_row(row: &NamedColumnReader<'_, '_>) -> rusqlite::Result<Passkey> {
    Ok(Passkey {
        credential_id: row.get("credential_id")?,
        public_key: row.get("public_key")?,
        algorithm: row.get("algorithm")?,
        counter: row.get("counter")?,
    })
}

fn account_from_row(row: &NamedColumnReader<'_, '_>) -> rusqlite::Result<PasskeyAccount> {
    Ok(PasskeyAccount {
        handle: row.get("handle")?,
        name: row.get("name")?,
    })
}

fn listed_from_row(row: &Row<'_>) -> rusqlite::Result<ListedPasskey> {
    let row = NamedColumnReader::new(row);
    Ok(ListedPasskey {
        passkey: passkey_from_row(&row)?,
        created_at: row.get("created_at")?,
    })
}

/// Finds a passkey, with its account.
pub(in crate::visitors) fn find(
    c: &Connection,
    credential_id: &[u8],
) -> rusqlite::Result<Option<(PasskeyAccount, Passkey)>> {
    c.prepare_cached(
        "SELECT a.handle, a.name, p.credential_id, p.public_key, p.algorithm, p.counter
         FROM passkeys p JOIN passkey_accounts a ON a.handle = p.account WHERE p.credential_id = ?1",
    )?
    .query_row([credential_id], |row| {
        let row = NamedColumnReader::new(row);
        Ok((account_from_row(&row)?, passkey_from_row(&row)?))
    })
    .optional()
}

/// Finds the account that a visitor is linked to.
pub(in crate::visitors) fn account_of_visitor(
    c: &Connection,
    visitor: &str,
) -> rusqlite::Result<Option<PasskeyAccount>> {
    c.prepare_cached(
        "SELECT a.handle, a.name FROM visitors v JOIN passkey_accounts a ON a.handle = v.subject WHERE v.id = ?1",
    )?
    .query_row([visitor], |row| account_from_row(&NamedColumnReader::new(row)))
    .optional()
}

/// Lists the passkeys of an account, oldest first; `None` if there is no such account.
pub(in crate::visitors) fn passkeys_of(
    c: &Connection,
    handle: &str,
) -> rusqlite::Result<Option<(PasskeyAccount, Vec<ListedPasskey>)>> {
    let account = c
        .prepare_cached("SELECT handle, name FROM passkey_accounts WHERE handle = ?1")?
        .query_row([handle], |row| {
            account_from_row(&NamedColumnReader::new(row))
        })
        .optional()?;
    let Some(account) = account else {
        return Ok(None);
    };
    let passkeys = c
        .prepare_cached(
            "SELECT credential_id, public_key, algorithm, counter, created_at
             FROM passkeys WHERE account = ?1 ORDER BY created_at, credential_id",
        )?
        .query_map([handle], listed_from_row)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Some((account, passkeys)))
}

/// Whether the passkey of a visitor is there when a session begins; a new one is made, with its account. A visitor of another provider
/// has none.
pub(in crate::visitors) fn admit(
    tx: &Tx<'_>,
    who: &VerifiedVisitor,
    now: Timestamp,
) -> Result<bool, Error> {
    match &who.passkey {
        None => Ok(true),
        Some(PasskeyOfSignIn::Known(credential_id)) => Ok(tx
            .prepare_cached("SELECT 1 FROM passkeys WHERE credential_id = ?1 AND account = ?2")?
            .exists(params![credential_id, who.subject])?),
        Some(PasskeyOfSignIn::New(NewPasskey(passkey))) => {
            if find(tx, &passkey.credential_id)?.is_some() {
                return Ok(false);
            }
            tx.prepare_cached(
                "INSERT INTO passkey_accounts (handle, name, created_at) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![who.subject, who.profile.name, now])?;
            insert(tx, &who.subject, passkey, now)?;
            Ok(true)
        }
    }
}

fn insert(tx: &Tx<'_>, handle: &str, passkey: &Passkey, now: Timestamp) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO passkeys (credential_id, account, public_key, algorithm, counter, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        passkey.credential_id,
        handle,
        passkey.public_key,
        passkey.algorithm,
        passkey.counter,
        now,
    ])?;
    Ok(())
}

/// Adds a passkey to an account; returns whether there was room, and the passkey was unknown.
pub(in crate::visitors) fn add(
    tx: &Tx<'_>,
    handle: &str,
    passkey: &Passkey,
    now: Timestamp,
) -> Result<bool, Error> {
    let known = passkeys_of(tx, handle)?;
    let has_room = known.is_some_and(|(_, passkeys)| passkeys.len() < MAX_PASSKEYS);
    if !has_room || find(tx, &passkey.credential_id)?.is_some() {
        return Ok(false);
    }
    insert(tx, handle, passkey, now)?;
    Ok(true)
}

/// Removes a passkey of an account. An unknown one is gone.
pub(in crate::visitors) fn remove(
    tx: &Tx<'_>,
    handle: &str,
    credential_id: &[u8],
) -> Result<PasskeyRemoval, Error> {
    let others = tx
        .prepare_cached("SELECT 1 FROM passkeys WHERE account = ?1 AND credential_id <> ?2")?
        .exists(params![handle, credential_id])?;
    if !others {
        return Ok(PasskeyRemoval::Last);
    }
    tx.prepare_cached("DELETE FROM passkeys WHERE account = ?1 AND credential_id = ?2")?
        .execute(params![handle, credential_id])?;
    Ok(PasskeyRemoval::Gone)
}

/// Records the counter of a passkey; returns whether it is there, and has not counted as far meanwhile.
pub(in crate::visitors) fn record_counter(
    tx: &Tx<'_>,
    credential_id: &[u8],
    counter: u32,
) -> Result<bool, Error> {
    let changed = tx
        .prepare_cached(
            "UPDATE passkeys SET counter = ?2 WHERE credential_id = ?1 AND counter < ?2",
        )?
        .execute(params![credential_id, counter])?;
    Ok(changed > 0)
}

/// Removes the account of an erased visitor, with its passkeys, if no visitor of another project is linked to it.
pub(in crate::visitors) fn end_unlinked(tx: &Tx<'_>, subject: &str) -> Result<(), Error> {
    tx.prepare_cached(
        "DELETE FROM passkey_accounts WHERE handle = ?1
           AND NOT EXISTS (SELECT 1 FROM visitors WHERE provider = 'passkey' AND subject = ?1)",
    )?
    .execute([subject])?;
    Ok(())
}

/// Counts accounts that no visitor is linked to.
pub(in crate::visitors) fn count_unlinked(c: &Connection) -> rusqlite::Result<i64> {
    c.query_row(
        "SELECT count(*) FROM passkey_accounts a
         WHERE NOT EXISTS (SELECT 1 FROM visitors v WHERE v.provider = 'passkey' AND v.subject = a.handle)",
        [],
        |row| row.get(0),
    )
}
