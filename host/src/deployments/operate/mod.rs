//! What operators do to deployments: take one down, put it back, and check what is stored.

mod store;

use std::collections::HashSet;

use serde::Serialize;

use crate::clock::Clock;
use crate::content::{Artifact, Content, Digest, OnceFiles};
use crate::control::{Control, Error, events};
use crate::deployments;

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
            let changed = deployments::store::set_disabled(tx, &slug, disabled.then_some(now))?;
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
    pub deployments: u64,
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
    let (sound, broken_keys, contradictions, references, one_time, deployments) = control
        .read(|c| {
            let sound: String = c.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
            let broken: i64 =
                c.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |r| {
                    r.get(0)
                })?;
            let contradictions = store::contradictions(c)?;
            let references = store::references(c)?;
            Ok((
                sound,
                broken,
                contradictions,
                references,
                deployments::store::one_time_ids(c)?,
                store::count(c)?,
            ))
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
    found.errors.extend(contradictions);
    found.deployments = deployments;
    let (objects, strangers) = content.list().await?;
    found.objects = objects.len();
    found.leftovers.extend(
        strangers
            .into_iter()
            .map(|path| format!("unknown file content/{path}")),
    );
    let referenced: HashSet<Digest> = references.iter().map(|r| r.digest).collect();
    let mut looked_at: HashSet<Digest> = HashSet::new();
    for reference in &references {
        let digest = reference.digest;
        if !looked_at.insert(digest) {
            continue;
        }
        match content.get(&digest).await? {
            None => found
                .errors
                .push(format!("{}: object {digest} is missing", reference.by)),
            Some(bytes) => {
                found.bytes += bytes.len() as u64;
                let broken = reference.is_page && Artifact::from_object(&bytes).is_none();
                if broken || Digest::of(&bytes) != digest {
                    found
                        .errors
                        .push(format!("{}: object {digest} is damaged", reference.by));
                }
            }
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
