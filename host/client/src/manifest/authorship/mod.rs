//! History of a project's parts on the server: earlier texts of pages and actions, and who released what when.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::meetings::MetPart;
use super::parts::{ActionText, PageText, PriceTerms};
use super::remote_state::{RemoteFrontend, RemotePrice, RemoteProjectState};
use super::settings::{ROOMS, TOOLS};
use crate::api::ApiClient;
use crate::audit_log::{AuditEntry, read_audit};
use crate::endpoints::{self, Endpoint, MAX_PAGE_ENTRIES};
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::output::{escape_excerpt, server_note};
use svc_base::clock::Timestamp;

/// The most requests for a history.
const MAX_PAGES: usize = 50;
/// The most parts whose releases are looked up for a message.
const MAX_LOOKED_UP: usize = 20;
/// The most characters of a name in a line.
const MAX_NAME: usize = 100;

/// Reason why a part is not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConflictReason {
    /// The folder and the server have changed it.
    BothChanged,
    /// The folder has an earlier text of it.
    Stale,
}

/// A part that is not applied, with who released it and when.
#[derive(Clone, Debug)]
pub(super) struct PartConflict {
    kind: &'static str,
    name: String,
    reason: ConflictReason,
    release: ReleaseOfPart,
}

/// Release that a live part comes from, or the end of a part, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct ReleaseOfPart {
    at: Option<String>,
    by: Option<String>,
    message: Option<String>,
    /// Revision or version.
    version: Option<String>,
    /// Slug of a page.
    slug: Option<String>,
    /// Entries of the audit that may be about it.
    marks: Vec<AuditMark>,
    place: PartPlace,
}

/// Place of a part that is not applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PartPlace {
    /// The server has it.
    OnServer,
    /// The server has it no more.
    #[default]
    Ended,
    /// It is a setting of the project, which tells of no time.
    Setting,
}

/// Mark of the entries of the audit that are about a part.
#[derive(Clone, Debug)]
struct AuditMark {
    target: String,
    /// Actions that the entry may have; any that changes what is live where there are none.
    actions: &'static [&'static str],
    /// Moment of the entry, where others have the same target.
    at: Option<Timestamp>,
}

impl AuditMark {
    fn new(target: impl Into<String>, actions: &'static [&'static str]) -> Self {
        Self {
            target: target.into(),
            actions,
            at: None,
        }
    }

    fn fits(&self, entry: &AuditEntry) -> bool {
        let is_act = match self.actions {
            [] => entry.action != "revision.create",
            actions => actions.contains(&entry.action.as_str()),
        };
        is_act && self.target == entry.target && self.at.is_none_or(|at| at == entry.at)
    }
}

#[derive(Debug, Deserialize)]
struct RevisionEntry {
    content_sha256: String,
    title: String,
    promoted_at: Option<String>,
}

/// Some entries of a history, and where the next ones begin.
#[derive(Debug, Deserialize)]
struct HistoryPage<T> {
    #[serde(alias = "revisions", alias = "versions")]
    entries: Vec<T>,
    next_cursor: Option<String>,
}

/// Reads the history at an endpoint of a part of a project.
async fn read_history<T: DeserializeOwned>(
    api: &ApiClient,
    endpoint: &'static Endpoint,
    part: [&str; 2],
) -> Result<Vec<T>> {
    let (mut found, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let asked = api.call(endpoint, &part);
        let asked = asked
            .query("limit", Some(MAX_PAGE_ENTRIES))
            .query("cursor", cursor);
        let page: HistoryPage<T> = asked.send_and_parse().await?;
        found.extend(page.entries);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(found)
}

/// Lists the texts that a page has had, the live one included. A draft that was never live is none of them.
///
/// # Errors
/// Failures of the server.
pub(super) async fn page_history(
    api: &ApiClient,
    project: &str,
    slug: &str,
) -> Result<Vec<PageText>> {
    let mut revisions: Vec<RevisionEntry> =
        read_history(api, &endpoints::REVISIONS, [project, slug]).await?;
    revisions.retain(|revision| revision.promoted_at.is_some());
    let texts = revisions.into_iter().map(|revision| PageText {
        sha256: revision.content_sha256,
        title: Some(revision.title),
    });
    Ok(texts.collect())
}

/// Returns the live revision of a page whose history begins with this question; `None` if somebody has published another text since.
///
/// # Errors
/// Failures of the server.
pub(super) async fn first_revision(
    api: &ApiClient,
    project: &str,
    frontend: &RemoteFrontend,
) -> Result<Option<String>> {
    let asked = api.call(&endpoints::REVISIONS, &[project, &frontend.slug]);
    let found = asked.query("limit", Some(1)).send().await?;
    let digest = found["revisions"][0]["content_sha256"].as_str();
    let revision = found["active_revision_id"].as_str();
    let revision = revision.filter(|_| digest == frontend.content_sha256.as_deref());
    Ok(revision.map(str::to_owned))
}

/// Lists the texts that an action has had, the live one included.
///
/// # Errors
/// Failures of the server.
pub(super) async fn action_history(
    api: &ApiClient,
    project: &str,
    name: &str,
) -> Result<Vec<ActionText>> {
    read_history(api, &endpoints::ACTION_VERSIONS, [project, name]).await
}

impl ReleaseOfPart {
    /// Release of a page's live text, or the end of a page that is not there.
    pub(super) fn of_page(
        frontend: Option<&RemoteFrontend>,
        met: Option<&MetPart<PageText>>,
    ) -> Self {
        let Some(frontend) = frontend else {
            let id = met.and_then(|met| met.id.clone());
            return Self::ended(id.map(|id| AuditMark::new(id, &["frontend.delete"])));
        };
        let revision = frontend.active_revision_id.clone();
        let targets = [Some(frontend.id.clone()), revision.clone()];
        let marks = targets.into_iter().flatten();
        Self {
            at: frontend.updated_at.clone(),
            version: revision,
            slug: Some(frontend.slug.clone()),
            marks: marks.map(|target| AuditMark::new(target, &[])).collect(),
            place: PartPlace::OnServer,
            ..Self::default()
        }
    }

    /// Definition of an action's version, or the end of an action that is not there.
    pub(super) fn of_action(name: &str, state: &RemoteProjectState) -> Self {
        let backend = state.backend.as_ref().map(|backend| backend.id.as_str());
        let named = |actions| {
            let target = backend.map(|backend| format!("{backend}/{name}"));
            target.map(|target| AuditMark::new(target, actions))
        };
        let Some(action) = state.action(name) else {
            return Self::ended(named(&["action.delete"]));
        };
        let defined = backend.map(|backend| AuditMark::new(backend, &["backend.define"]));
        let mut marks: Vec<_> = defined
            .into_iter()
            .chain(named(&["action.rollback"]))
            .collect();
        let at = action.created_at.as_deref().and_then(Timestamp::parse);
        match at {
            // The backend's entries are about all of its actions.
            Some(_) => marks.iter_mut().for_each(|mark| mark.at = at),
            None => marks.clear(),
        }
        Self {
            at: action.created_at.clone(),
            version: Some(action.version.to_string()),
            marks,
            place: PartPlace::OnServer,
            ..Self::default()
        }
    }

    /// Making of a price, or the end of one that is not on sale.
    pub(super) fn of_price(price: Option<&RemotePrice>, met: Option<&MetPart<PriceTerms>>) -> Self {
        let Some(price) = price else {
            let id = met.and_then(|met| met.version.clone());
            return Self::ended(id.map(|id| AuditMark::new(id, &["price.deactivate"])));
        };
        Self {
            at: price.created_at.clone(),
            version: Some(price.id.clone()),
            marks: vec![AuditMark::new(price.id.clone(), &[])],
            place: PartPlace::OnServer,
            ..Self::default()
        }
    }

    /// Latest change of the project itself, which a setting is of.
    pub(super) fn of_setting(name: &str, state: Option<&RemoteProjectState>) -> Self {
        let backend = state.and_then(|state| state.backend.as_ref());
        let mark = match name {
            ROOMS | TOOLS => {
                backend.map(|backend| AuditMark::new(backend.id.clone(), &["backend.update"]))
            }
            _ => state.map(|state| AuditMark::new(state.project.id.clone(), &["project.update"])),
        };
        Self {
            marks: mark.into_iter().collect(),
            place: PartPlace::Setting,
            ..Self::default()
        }
    }

    fn ended(mark: Option<AuditMark>) -> Self {
        Self {
            marks: mark.into_iter().collect(),
            place: PartPlace::Ended,
            ..Self::default()
        }
    }

    /// When it was, for a line of a plan.
    pub(super) fn moment(&self) -> String {
        match (&self.at, self.place) {
            (_, PartPlace::Ended) => ": it is not there any more".to_owned(),
            (Some(at), _) => format!(" since {at}"),
            (None, _) => String::new(),
        }
    }

    /// Finds the newest entry of the audit that is about it.
    fn find_entry<'e>(&self, entries: &'e [AuditEntry]) -> Option<&'e AuditEntry> {
        let mut entries = entries.iter();
        entries.find(|entry| self.marks.iter().any(|mark| mark.fits(entry)))
    }

    /// Adds who it was by; and when, where only the audit tells it.
    fn take_entry(&mut self, entry: &AuditEntry) {
        self.by = Some(entry.principal.clone());
        self.at = self.at.take().or_else(|| Some(entry.at.to_string()));
    }

    /// When it was and who it was by, as far as that is known.
    fn circumstances(&self) -> String {
        let at = self.at.iter().map(|at| format!(" {at}"));
        at.chain(self.by.iter().map(|by| format!(" by {by}")))
            .collect()
    }
}

impl PartConflict {
    pub(super) fn new(
        kind: &'static str,
        name: &str,
        reason: ConflictReason,
        release: ReleaseOfPart,
    ) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            reason,
            release,
        }
    }

    fn to_text(&self) -> String {
        let release = &self.release;
        let when = release.circumstances();
        let what = match (self.reason, release.place) {
            (ConflictReason::Stale, _) => {
                format!("the folder has an earlier text; the server's was released{when}")
            }
            (_, PartPlace::OnServer) => {
                format!("both have changed it; the server's was released{when}")
            }
            (_, PartPlace::Ended) if when.is_empty() => {
                "the folder has changed it, and it is not on the server any more".to_owned()
            }
            (_, PartPlace::Ended) => {
                format!("the folder has changed it, and the server's was ended{when}")
            }
            (_, PartPlace::Setting) if when.is_empty() => {
                "both have changed it since they last met".to_owned()
            }
            (_, PartPlace::Setting) => {
                format!("both have changed it; the server's settings were last changed{when}")
            }
        };
        let message = release.message.iter();
        let message: String = message
            .map(|text| format!(": {}", server_note(text)))
            .collect();
        let name = escape_excerpt(&self.name, MAX_NAME);
        format!("{} {name}: {what}{message}{}", self.kind, self.advice())
    }

    /// Advice where `svc pull` changes nothing, because svc.toml is its author's.
    fn advice(&self) -> &'static str {
        match (self.release.place, self.kind) {
            (PartPlace::OnServer, "price") | (PartPlace::Setting, _) => ". Change it in svc.toml.",
            (PartPlace::OnServer, _) => "",
            (PartPlace::Ended, "action") => ". Remove its file.",
            (PartPlace::Ended, _) => ". Remove it from svc.toml.",
        }
    }

    fn to_json(&self) -> Value {
        let reason = match self.reason {
            ConflictReason::BothChanged => "both_changed",
            ConflictReason::Stale => "stale",
        };
        json!({
            "kind": self.kind, "name": self.name, "reason": reason, "version": self.release.version,
            "released_at": self.release.at, "released_by": self.release.by, "message": self.release.message,
        })
    }
}

/// Failure of parts that are not applied. It asks the server who released them, as far as the caller may know that.
pub(super) async fn conflict_failure(
    api: &ApiClient,
    state: &RemoteProjectState,
    mut conflicts: Vec<PartConflict>,
) -> CliFailure {
    look_up_messages(api, state, &mut conflicts).await;
    look_up_authors(api, state, &mut conflicts).await;
    let are_stale = conflicts
        .iter()
        .all(|one| one.reason == ConflictReason::Stale);
    let (title, what) = match are_stale {
        true => (
            "The folder is older",
            "The server had earlier what the folder has",
        ),
        false => ("Both have changed", "The server has been changed, too"),
    };
    let detail = format!(
        "{what}, and nothing was applied. `svc pull` brings what the server has, `svc apply --force` applies what the folder has."
    );
    let list = conflicts.iter().map(PartConflict::to_json).collect();
    let lines = conflicts.iter().map(PartConflict::to_text).collect();
    CliFailure::new(FailureExitCode::Conflict, title, detail).with_list("conflicts", list, lines)
}

/// Adds why pages were released. Where it is not known, it is left out.
async fn look_up_messages(
    api: &ApiClient,
    state: &RemoteProjectState,
    conflicts: &mut [PartConflict],
) {
    let pages = conflicts
        .iter_mut()
        .filter_map(|one| Some((one.release.slug.clone()?, &mut one.release)));
    for (slug, release) in pages.take(MAX_LOOKED_UP) {
        let asked = api.call(&endpoints::RELEASES, &[&state.project.id, &slug]);
        let Ok(found) = asked.send().await else {
            continue;
        };
        let newest = &found["releases"][0];
        if newest["revision_id"].as_str() == release.version.as_deref() {
            release.at = newest["at"]
                .as_str()
                .map(str::to_owned)
                .or(release.at.take());
            release.message = newest["message"].as_str().map(str::to_owned);
        }
    }
}

/// Adds who released parts, which only administrators of the workspace may know.
async fn look_up_authors(
    api: &ApiClient,
    state: &RemoteProjectState,
    conflicts: &mut [PartConflict],
) {
    let Some(workspace) = &state.project.workspace else {
        return;
    };
    let is_found = |entries: &[AuditEntry]| {
        let mut parts = conflicts.iter();
        parts.all(|one| one.release.find_entry(entries).is_some())
    };
    let Ok(log) = read_audit(api, &workspace.slug, is_found).await else {
        return;
    };
    for conflict in conflicts {
        if let Some(entry) = conflict.release.find_entry(&log.entries) {
            conflict.release.take_entry(entry);
        }
    }
}

#[cfg(test)]
mod tests;
