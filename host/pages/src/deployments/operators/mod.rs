//! Operators' work on deployments: disables and enables them, and checks the store.

mod sites;
mod store;
pub mod takedown;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::ContentReference;

use crate::config::Config;
use crate::content::{
    self, ContentLocation, ContentStore, Digest, EncodedPage, OneTimeFileDirectory,
};
use crate::control::audit::AuditAction;
use crate::control::events::{self, StartupEvent};
use crate::control::{ControlDatabase, Error, Tx, kept_answers};
use crate::deployments;
use crate::deployments::address::{PageAddress, announce_change};
use crate::infra::Infra;
use crate::projects;
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::DeploymentId;
use svc_sandbox::ContentType;

/// Route of publishing, as kept answers name it.
const DEPLOY_ROUTE: &str = "deploy/";

/// Disables or enables a deployment; returns whether there is such a slug. The server in this process, whose settings are
/// `served`, follows at once; without one the next start tells the edge.
pub async fn set_disabled(
    control: &ControlDatabase,
    clock: &Clock,
    slug: &str,
    disabled: bool,
    served: Option<Arc<Config>>,
) -> Result<bool, Error> {
    let (slug, now) = (slug.to_owned(), clock.now());
    control
        .write(move |tx| {
            let changed = store::set_disabled(tx, &slug, disabled.then_some(now))?;
            let Some((id, project)) = changed else {
                return Ok(false);
            };
            match served {
                Some(config) => announce_slug(tx, &config, &slug, now)?,
                None => events::record(tx, &StartupEvent::SlugChanged(slug), now)?,
            }
            let act = match disabled {
                true => AuditAction::DeploymentDisable,
                false => AuditAction::DeploymentEnable,
            };
            match project {
                Some(project) => projects::record_audit(tx, &project, act, &id, now)?,
                None => tx.record_audit(act, None, &id, now)?,
            }
            Ok(true)
        })
        .await
}

/// Follows what operators did while no server ran: each event once.
///
/// # Errors
/// The database's; the events that it did not follow are there still, then.
pub async fn handle_startup_events(infra: &Infra) -> Result<(), Error> {
    for (id, event) in infra.control.read(events::list_unhandled).await? {
        if let Some(StartupEvent::CommandRun(deed)) = &event {
            events::log_command(deed);
        }
        let (config, now) = (Arc::clone(&infra.config), infra.clock.now());
        let followed: Result<(), Error> = infra
            .control
            .write(move |tx| {
                match event {
                    Some(StartupEvent::SlugChanged(slug)) => {
                        announce_slug(tx, &config, &slug, now)?;
                    }
                    Some(StartupEvent::DomainEnded(name)) => {
                        projects::domains::announce_end(tx, &config, &name, now)?;
                    }
                    Some(StartupEvent::CommandRun(_)) | None => {}
                }
                events::delete(tx, id)
            })
            .await;
        followed?;
    }
    Ok(())
}

/// Has memory and the edge forget a slug, whatever answers there.
fn announce_slug(tx: &Tx<'_>, config: &Config, slug: &str, now: Timestamp) -> Result<(), Error> {
    let deployment = deployments::store::find_by_slug(tx, slug)?;
    let address = PageAddress {
        slug: slug.to_owned(),
        host_label: deployment.and_then(|deployment| deployment.host_label),
    };
    announce_change(tx, config, &address, now)
}

/// Page that answers, with its source.
#[derive(Clone, Debug)]
pub struct ReplayedPage {
    /// Identifier of the page.
    pub id: DeploymentId,
    /// Where it answers.
    pub slug: String,
    /// Type of the source.
    pub content_type: ContentType,
    /// Title of the page.
    pub title: String,
    /// Digest of the source; a one-time share has none in the content store.
    pub source: Option<Digest>,
    /// Whether the page is an owner's, and has a runtime.
    pub is_frontend: bool,
    /// Whether the page has a password.
    pub is_protected: bool,
}

impl ReplayedPage {
    /// Whether the page is private: protected, or to be read once.
    pub fn is_private(&self) -> bool {
        self.is_protected || self.source.is_none()
    }
}

/// Lists pages that answer at `now`, in the order of their ids, after one of them.
pub async fn stored_pages(
    control: &ControlDatabase,
    now: Timestamp,
    after: Option<DeploymentId>,
    most: u32,
) -> Result<Vec<ReplayedPage>, Error> {
    control
        .read(move |c| store::pages(c, now, after, most))
        .await
}

/// Counts the pages that answer at `now`.
pub async fn count_pages(control: &ControlDatabase, now: Timestamp) -> Result<u64, Error> {
    control.read(move |c| store::count_pages(c, now)).await
}

/// Returns every object that a row refers to.
pub async fn referenced_content(control: &ControlDatabase) -> Result<BTreeSet<Digest>, Error> {
    let references = control.read(store::references).await?;
    Ok(references.iter().map(|r| r.digest).collect())
}

/// Settles where content is. If that is elsewhere than before, or does not last, all content that rows need must
/// be there; then the place is noted.
///
/// # Errors
/// Content that is missing, as a text for the operator.
pub async fn settle_content_location(
    control: &ControlDatabase,
    content: &ContentStore,
    place: &ContentLocation,
    before: &ContentLocation,
) -> anyhow::Result<()> {
    if place == before && place.is_durable() {
        return Ok(());
    }
    let mut missing = referenced_content(control).await?;
    let all = missing.len();
    for there in content.list().await?.0 {
        missing.remove(&there);
    }
    if !missing.is_empty() && !before.is_durable() {
        anyhow::bail!(
            "content_url: content was in memory, and what pages need ended with that process: begin with another data directory"
        );
    }
    if !missing.is_empty() {
        anyhow::bail!(
            "content_url: {} of the {all} objects that pages need are not {place}; content was {before}: copy all of it, or take the setting back",
            missing.len()
        );
    }
    Ok(place.record()?)
}

/// Returns the ids of all deployments, whatever their state.
pub async fn ids(control: &ControlDatabase) -> Result<HashSet<DeploymentId>, Error> {
    control.read(deployments::store::ids).await
}

/// Removes every one-time share, in a copy that has not got their pages; returns how many.
pub async fn remove_one_time_shares(
    control: &ControlDatabase,
    now: Timestamp,
) -> Result<usize, Error> {
    control
        .write(move |tx| {
            let ids = deployments::store::one_time_ids(tx)?;
            for id in &ids {
                deployments::store::remove(tx, id, now)?;
            }
            kept_answers::delete_absent(tx, DEPLOY_ROUTE, &deployments::store::ids(tx)?)?;
            events::delete_all(tx)?;
            Ok(ids.len())
        })
        .await
}

/// Findings of a check of the store.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StoreCheckFindings {
    /// Deployments looked at.
    pub deployments: u64,
    /// Objects in the content store.
    pub objects: usize,
    /// Bytes in the content store.
    pub bytes: u64,
    /// Losses and damage. Empty when all is well.
    pub errors: Vec<String>,
    /// Leftovers that the next collection removes: not wrong, only not needed.
    pub leftovers: Vec<String>,
    /// Parts that could not be looked at: not wrong.
    pub notes: Vec<String>,
}

/// Verifies that the database is sound and that every deployment's content is there, whole, and what it says it is.
/// A server may be at work meanwhile: rows are read before files, and what does not fit is looked at once more. A copy has no
/// `once`, because it has no one-time shares.
///
/// # Errors
/// When the store cannot be read at all.
pub async fn check(
    control: &ControlDatabase,
    content: &ContentStore,
    once: Option<&OneTimeFileDirectory>,
) -> anyhow::Result<StoreCheckFindings> {
    let mut found = StoreCheckFindings::default();
    let references = check_rows(control, &mut found).await?;
    check_content(control, content, &references, &mut found).await?;
    sites::check(control, content, &mut found).await?;
    check_unused(control, content, &references, &mut found).await?;
    if let Some(once) = once {
        check_once(control, once, &mut found).await?;
    }
    Ok(found)
}

/// Checks the database by itself; returns its references to content.
async fn check_rows(
    control: &ControlDatabase,
    found: &mut StoreCheckFindings,
) -> anyhow::Result<Vec<ContentReference>> {
    let (sound, broken_keys, contradictions, references, deployments) = control
        .read(|c| {
            // One snapshot for all queries: a half-finished change would contradict itself.
            let tx = c.unchecked_transaction()?;
            let sound: String = tx.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
            let broken: i64 =
                tx.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |r| {
                    r.get(0)
                })?;
            Ok((
                sound,
                broken,
                store::find_contradictions(&tx)?,
                store::references(&tx)?,
                store::count_deployments(&tx)?,
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
    let counters = control.counters();
    let damage = tokio::task::spawn_blocking(move || counters.integrity_error()).await??;
    found
        .errors
        .extend(damage.map(|line| format!("counters: {line}")));
    found.deployments = deployments;
    Ok(references)
}

/// Checks the objects that rows refer to.
async fn check_content(
    control: &ControlDatabase,
    content: &ContentStore,
    references: &[ContentReference],
    found: &mut StoreCheckFindings,
) -> anyhow::Result<()> {
    let mut looked_at: HashSet<Digest> = HashSet::new();
    for reference in references {
        let digest = reference.digest;
        if !looked_at.insert(digest) {
            continue;
        }
        let wrong = match content.get(&digest).await {
            Err(content::Error::Damaged(_)) => "damaged",
            Err(error) => return Err(error.into()),
            Ok(None) => "missing",
            Ok(Some(bytes)) => {
                found.bytes += bytes.len() as u64;
                let broken = reference.is_page && EncodedPage::from_object(&bytes).is_none();
                if !broken && Digest::of(&bytes) == digest {
                    continue;
                }
                "damaged"
            }
        };
        if is_referenced(control, digest).await? {
            found
                .errors
                .push(format!("{}: object {digest} is {wrong}", reference.by));
        }
    }
    Ok(())
}

/// Lists the objects that no row refers to.
async fn check_unused(
    control: &ControlDatabase,
    content: &ContentStore,
    references: &[ContentReference],
    found: &mut StoreCheckFindings,
) -> anyhow::Result<()> {
    let (objects, strangers) = content.list().await?;
    found.objects = objects.len();
    let strangers = strangers.into_iter();
    found
        .leftovers
        .extend(strangers.map(|path| format!("unknown file content/{path}")));
    let referenced: HashSet<Digest> = references.iter().map(|r| r.digest).collect();
    for digest in objects.into_iter().filter(|d| !referenced.contains(d)) {
        if !is_referenced(control, digest).await? {
            found
                .leftovers
                .push(format!("unreferenced object {digest}"));
        }
    }
    Ok(())
}

/// The files of one-time shares. A file is there before its row and after it, so rows are read first, and again
/// where a file is missing: a share that was read meanwhile has neither.
async fn check_once(
    control: &ControlDatabase,
    once: &OneTimeFileDirectory,
    found: &mut StoreCheckFindings,
) -> anyhow::Result<()> {
    let rows = async || control.read(deployments::store::one_time_ids).await;
    let before: HashSet<_> = rows().await?.into_iter().collect();
    let files: HashSet<_> = once.list()?.into_iter().collect();
    let after: HashSet<_> = rows().await?.into_iter().collect();
    let lost = before
        .difference(&files)
        .filter(|id| after.contains(id))
        .map(|id| format!("one-time share {id} has no file"));
    found.errors.extend(lost);
    let burnt = files
        .difference(&before)
        .filter(|id| !after.contains(id))
        .map(|id| format!("burnt one-time file {id}"));
    found.leftovers.extend(burnt);
    Ok(())
}

/// Whether a row refers to an object now.
async fn is_referenced(control: &ControlDatabase, digest: Digest) -> Result<bool, Error> {
    control
        .read(move |c| deployments::store::is_referenced(c, &digest))
        .await
}
