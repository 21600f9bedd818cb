//! History of a project's parts on the server: earlier texts of pages and actions, and who released what when.

use serde::Deserialize;
use serde_json::{Value, json};

use super::parts::{ActionText, PageText};
use super::remote_state::{RemoteAction, RemoteFrontend, RemotePrice, RemoteProjectState};
use crate::api::ApiClient;
use crate::endpoints;
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::output::{escape_excerpt, server_note};

/// Entries of a history that are asked for at once: as many as the server gives.
const PAGE_LENGTH: u32 = 200;
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

/// Release that a live part comes from, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct ReleaseOfPart {
    at: Option<String>,
    by: Option<String>,
    message: Option<String>,
    /// Revision or version.
    version: Option<String>,
    /// Slug of a page.
    slug: Option<String>,
    /// Ids by which the audit log knows the release.
    targets: Vec<String>,
    /// Whether the audit log knows it by its moment as well: its target is shared with others.
    by_moment: bool,
    /// Whether the part is on the server.
    is_there: bool,
}

#[derive(Debug, Deserialize)]
struct RevisionEntry {
    content_sha256: String,
    title: String,
    promoted_at: Option<String>,
}

#[derive(Debug, Deserialize)]
struct RevisionEntries {
    revisions: Vec<RevisionEntry>,
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct VersionEntries {
    versions: Vec<ActionText>,
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct AuditEntry {
    at: String,
    principal: String,
    action: String,
    target: String,
}

#[derive(Debug, Deserialize)]
struct AuditEntries {
    entries: Vec<AuditEntry>,
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
    let mut found = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let asked = api.call(&endpoints::REVISIONS, &[project, slug]);
        let asked = asked
            .query("limit", Some(PAGE_LENGTH))
            .query("cursor", cursor);
        let page: RevisionEntries = asked.send_and_parse().await?;
        let were_live = page
            .revisions
            .into_iter()
            .filter(|one| one.promoted_at.is_some());
        found.extend(were_live.map(|one| PageText {
            sha256: one.content_sha256,
            title: Some(one.title),
        }));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(found)
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
    let mut found = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let asked = api.call(&endpoints::ACTION_VERSIONS, &[project, name]);
        let asked = asked
            .query("limit", Some(PAGE_LENGTH))
            .query("cursor", cursor);
        let page: VersionEntries = asked.send_and_parse().await?;
        found.extend(page.versions);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(found)
}

impl ReleaseOfPart {
    /// Release of a page's live text; `None` for a page that is not there.
    pub(super) fn of_page(frontend: Option<&RemoteFrontend>) -> Self {
        let Some(frontend) = frontend else {
            return Self::default();
        };
        let revision = frontend.active_revision_id.clone();
        Self {
            at: frontend.updated_at.clone(),
            version: revision.clone(),
            slug: Some(frontend.slug.clone()),
            targets: [Some(frontend.id.clone()), revision]
                .into_iter()
                .flatten()
                .collect(),
            is_there: true,
            ..Self::default()
        }
    }

    /// Definition of an action's version; `None` for an action that is not there.
    pub(super) fn of_action(action: Option<&RemoteAction>, state: &RemoteProjectState) -> Self {
        let Some(action) = action else {
            return Self::default();
        };
        Self {
            at: action.created_at.clone(),
            version: Some(action.version.to_string()),
            targets: state
                .backend
                .iter()
                .map(|backend| backend.id.clone())
                .collect(),
            by_moment: true,
            is_there: true,
            ..Self::default()
        }
    }

    /// Making of a price; `None` for one that is not on sale.
    pub(super) fn of_price(price: Option<&RemotePrice>) -> Self {
        let Some(price) = price else {
            return Self::default();
        };
        Self {
            at: price.created_at.clone(),
            version: Some(price.id.clone()),
            targets: vec![price.id.clone()],
            is_there: true,
            ..Self::default()
        }
    }

    /// Change of the project itself, whose time nobody knows.
    pub(super) fn of_project() -> Self {
        Self {
            is_there: true,
            ..Self::default()
        }
    }

    /// When it was, for a line of a plan.
    pub(super) fn moment(&self) -> String {
        match (&self.at, self.is_there) {
            (Some(at), true) => format!(" since {at}"),
            (None, true) => String::new(),
            (_, false) => ": it is not there any more".to_owned(),
        }
    }

    /// Whether an entry of the audit log is about the release.
    fn is_in(&self, entry: &AuditEntry) -> bool {
        let is_draft = entry.action == "revision.create";
        let is_then = !self.by_moment || self.at.as_ref() == Some(&entry.at);
        !is_draft && is_then && self.targets.contains(&entry.target)
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
        let mut text = format!("{} {}: ", self.kind, escape_excerpt(&self.name, MAX_NAME));
        text += match (self.reason, release.is_there) {
            (ConflictReason::BothChanged, true) => {
                "both have changed it; the server's was released"
            }
            (ConflictReason::BothChanged, false) => {
                "the folder has changed it, and it is not on the server any more"
            }
            (ConflictReason::Stale, _) => {
                "the folder has an earlier text; the server's was released"
            }
        };
        if release.is_there {
            let at = release.at.as_deref().unwrap_or("since they last met");
            text += &format!(" {at}");
        }
        if let Some(by) = &release.by {
            text += &format!(" by {by}");
        }
        if let Some(message) = &release.message {
            text += &format!(": {}", server_note(message));
        }
        text
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
    let asked = api.call(&endpoints::AUDIT, &[&workspace.slug]);
    let asked = asked.query("limit", Some(PAGE_LENGTH));
    let Ok(log) = asked.send_and_parse::<AuditEntries>().await else {
        return;
    };
    for conflict in conflicts {
        let mut entries = log.entries.iter();
        let entry = entries.find(|entry| conflict.release.is_in(entry));
        conflict.release.by = entry.map(|entry| entry.principal.clone());
    }
}
