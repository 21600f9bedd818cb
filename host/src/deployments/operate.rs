//! What operators do to deployments: take one down, put it back, and check what is stored.

use std::collections::HashSet;

use serde::Serialize;

use super::store;
use crate::clock::Clock;
use crate::content::{Artifact, Content, Digest, OnceFiles};
use crate::control::{Control, Error, events};

/// Disables or enables a deployment and tells the server; answers whether there is such a slug.
///
/// # Errors
/// The database's.
pub async fn set_disabled(
    control: &Control,
    clock: &Clock,
    slug: &str,
    disabled: bool,
) -> Result<bool, Error> {
    let (slug, now) = (slug.to_owned(), clock.now());
    control
        .write(move |tx| {
            let changed = store::set_disabled(tx, &slug, disabled.then_some(now))?;
            if changed {
                events::tell(tx, events::SLUG_CHANGED, &slug, now)?;
            }
            Ok(changed)
        })
        .await
}

/// What a check of the store found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// Deployments looked at.
    pub deployments: usize,
    /// Objects in the content store.
    pub objects: usize,
    /// Bytes in the content store.
    pub bytes: u64,
    /// What is wrong: a loss, or damage. Empty when all is well.
    pub errors: Vec<String>,
    /// What the next collection removes: not wrong, only not needed.
    pub leftovers: Vec<String>,
}

/// Verifies that the database is sound and that every deployment's content is there, whole, and what it says it is.
///
/// # Errors
/// When the store cannot be read at all.
pub async fn check(
    control: &Control,
    content: &Content,
    once: &OnceFiles,
) -> anyhow::Result<Findings> {
    let mut found = Findings::default();
    let (sound, broken_keys, rows, one_time) = control
        .read(|c| {
            let sound: String = c.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
            let broken: i64 =
                c.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |r| {
                    r.get(0)
                })?;
            Ok((sound, broken, store::contents(c)?, store::one_time_ids(c)?))
        })
        .await?;
    if sound != "ok" {
        found.errors.push(format!("control database: {sound}"));
    }
    if broken_keys > 0 {
        found
            .errors
            .push(format!("control database: {broken_keys} broken references"));
    }
    found.deployments = rows.len();
    let (objects, strangers) = content.list().await?;
    found.objects = objects.len();
    found.leftovers.extend(
        strangers
            .into_iter()
            .map(|path| format!("unknown file content/{path}")),
    );
    let mut missing: HashSet<Digest> = HashSet::new();
    let mut pages: HashSet<Digest> = HashSet::new();
    let mut referenced: HashSet<Digest> = HashSet::new();
    for (_, [source, artifact]) in &rows {
        referenced.extend(source.iter().chain(artifact));
        pages.extend(artifact);
    }
    for digest in &referenced {
        match content.get(digest).await? {
            None => {
                missing.insert(*digest);
            }
            Some(bytes) => {
                found.bytes += bytes.len() as u64;
                let page = pages.contains(digest);
                if Digest::of(&bytes) != *digest || page && Artifact::from_object(&bytes).is_none()
                {
                    found.errors.push(format!("object {digest} is damaged"));
                }
            }
        }
    }
    for (slug, digests) in &rows {
        for digest in digests
            .iter()
            .flatten()
            .filter(|digest| missing.contains(digest))
        {
            found
                .errors
                .push(format!("{slug}: object {digest} is missing"));
        }
    }
    let unused = objects.iter().filter(|digest| !referenced.contains(digest));
    found
        .leftovers
        .extend(unused.map(|digest| format!("unreferenced object {digest}")));
    let files: HashSet<_> = once.list()?.into_iter().collect();
    let wanted: HashSet<_> = one_time.into_iter().collect();
    for id in wanted.difference(&files) {
        found
            .errors
            .push(format!("one-time share {id} has no file"));
    }
    found.leftovers.extend(
        files
            .difference(&wanted)
            .map(|id| format!("burnt one-time file {id}")),
    );
    Ok(found)
}
