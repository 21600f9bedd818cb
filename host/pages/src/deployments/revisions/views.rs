//! Views of revisions.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::model::{
    CreatedDraft, FetchedContent, FetchedRevisionSource, Revision, RevisionHistoryPage,
    RevisionKind, RevisionState,
};
use super::preview::preview_url;
use super::releases::{OmittedRevisions, ReleaseEntry, ReleaseOutcome};
use crate::config::Config;
use crate::deployments::frontends::views::FrontendView;
use crate::deployments::model::{DeploymentType, display_title};
use crate::deployments::sites::{MediaType, SiteFile, SiteOptions, SiteSize};
use crate::deployments::views::Warning;
use crate::projects::Project;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, RevisionId};

/// A revision.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevisionView {
    /// Identifier of the revision.
    #[schema(value_type = String, format = "uuid")]
    pub revision_id: RevisionId,
    /// SHA-256 of its source, in hexadecimal; of a site, of the canonical form of its files and options.
    pub content_sha256: String,
    /// Number and length of a site's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteSize>,
    /// The page's title.
    pub title: String,
    /// Why it was made.
    pub message: Option<String>,
    /// Kind of the latest release.
    pub kind: RevisionKind,
    /// Where it is in its life.
    pub state: RevisionState,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When it last became live.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub promoted_at: Option<Timestamp>,
    /// Origin at whose root a site's revision is previewed without a sandbox; absent for pages, and where certificates are ordered host
    /// by host.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uri")]
    pub preview_origin: Option<String>,
    /// Where to look at it; of a revision that is asked for by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uri")]
    pub preview_url: Option<String>,
}

impl RevisionView {
    /// A revision of a frontend, by itself.
    pub fn alone(revision: &Revision, frontend: DeploymentId, config: &Config) -> Self {
        Self {
            preview_url: Some(preview_url(config, frontend, revision.id)),
            ..Self::new(revision, config)
        }
    }

    /// A revision as it is answered.
    pub fn new(revision: &Revision, config: &Config) -> Self {
        let origin = revision
            .site
            .and_then(|_| config.preview_origin(revision.id));
        Self {
            preview_origin: origin.map(|origin| format!("{origin}/")),
            preview_url: None,
            revision_id: revision.id,
            content_sha256: revision.source.to_string(),
            site: revision.site,
            title: display_title(&revision.title),
            message: revision.message.clone(),
            kind: revision.kind,
            state: revision.state,
            created_at: revision.created_at,
            promoted_at: revision.promoted_at,
        }
    }
}

/// A draft.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevisionCreated {
    /// The revision.
    pub revision: RevisionView,
    /// Where to look at it.
    #[schema(format = "uri")]
    pub preview_url: String,
    /// Origin at whose root a site's draft is looked at without a sandbox; absent as in the revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uri")]
    pub preview_origin: Option<String>,
    /// Warnings for the author of a site; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Whether an older revision has the same content and title, and is answered instead.
    pub deduplicated: bool,
}

/// A page of a frontend's history.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevisionList {
    /// Live revision.
    #[schema(value_type = String, format = "uuid")]
    pub active_revision_id: RevisionId,
    /// Newest first.
    pub revisions: Vec<RevisionView>,
    /// The `cursor` of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// Outcome of a release.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleaseView {
    /// The frontend as it is now.
    pub frontend: FrontendView,
    /// Live revision.
    pub revision: RevisionView,
    /// Note about revisions that are not in it, where a draft was promoted that was made from one which was no longer
    /// live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How many revisions a note names.
const NAMED_REVISIONS: usize = 5;

impl ReleaseView {
    /// A release as it is answered.
    pub fn new(done: &ReleaseOutcome, project: &Project, config: &Config) -> Self {
        Self {
            frontend: FrontendView::new(&done.frontend, project, config),
            revision: RevisionView::new(&done.revision, config),
            note: done.omitted.as_ref().map(describe_omission),
        }
    }
}

/// Describes what a release leaves out, for its caller.
fn describe_omission(omitted: &OmittedRevisions) -> String {
    let OmittedRevisions {
        base,
        active,
        since,
    } = omitted;
    let mut named: Vec<String> = since
        .iter()
        .take(NAMED_REVISIONS)
        .map(ToString::to_string)
        .collect();
    if since.len() > NAMED_REVISIONS {
        named.push(format!("{} more", since.len() - NAMED_REVISIONS));
    }
    format!(
        "This draft was made from revision {base}. What became live after that is not in it, and is no longer live: {}. To undo this, roll back to {active}.",
        named.join(", ")
    )
}

/// A source, or that it has not changed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ContentView {
    /// The source that you hold is the one that is stored.
    Unchanged {
        /// Always true.
        unchanged: bool,
        /// SHA-256 of the source.
        content_sha256: String,
    },
    /// The source.
    Content {
        /// Exactly as it was published.
        content: String,
        /// SHA-256 of the source.
        content_sha256: String,
        /// Type of the source.
        #[serde(rename = "type")]
        content_type: DeploymentType,
        /// Revision of the source; null until the frontend is in the revision workflow.
        #[schema(value_type = Option<String>, format = "uuid")]
        revision_id: Option<RevisionId>,
    },
    /// The files of a site, without their bytes.
    Site {
        /// Always `site`.
        #[serde(rename = "type")]
        content_type: DeploymentType,
        /// SHA-256 of the canonical form (RFC 8785) of `{"files":{path: sha256},"options":…}`.
        content_sha256: String,
        /// Revision of the files; null until the frontend is in the revision workflow.
        #[schema(value_type = Option<String>, format = "uuid")]
        revision_id: Option<RevisionId>,
        /// Files by their paths.
        files: BTreeMap<String, SiteFileView>,
        /// Options of the site.
        options: SiteOptions,
    },
}

/// A file of a site.
#[derive(Debug, Serialize, ToSchema)]
pub struct SiteFileView {
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// Length in bytes.
    pub size: u64,
    /// Media type as which it is served.
    pub media_type: String,
}

fn view_file((path, file): (&String, &SiteFile)) -> (String, SiteFileView) {
    let view = SiteFileView {
        sha256: file.digest.to_string(),
        size: file.bytes,
        media_type: MediaType::of(path).as_str().to_owned(),
    };
    (path.clone(), view)
}

impl From<FetchedRevisionSource> for ContentView {
    fn from(found: FetchedRevisionSource) -> Self {
        let content_sha256 = found.stored.digest.to_string();
        let content_type = found.stored.frontend.content_type;
        let revision_id = found.stored.revision;
        match found.content {
            FetchedContent::Known => Self::Unchanged {
                unchanged: true,
                content_sha256,
            },
            FetchedContent::Text(content) => Self::Content {
                content,
                content_sha256,
                content_type,
                revision_id,
            },
            FetchedContent::Site(site) => Self::Site {
                content_type,
                content_sha256,
                revision_id,
                files: site.files.iter().map(view_file).collect(),
                options: site.options,
            },
        }
    }
}

/// Something that became live.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleaseEntryView {
    /// Revision that became live.
    #[schema(value_type = String, format = "uuid")]
    pub revision_id: RevisionId,
    /// How: baseline, publish, promote or rollback.
    pub kind: String,
    /// Reason for the release.
    pub message: Option<String>,
    /// Time of the release.
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
}

/// All that ever was live.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleaseList {
    /// Newest first.
    pub releases: Vec<ReleaseEntryView>,
}

impl RevisionList {
    /// A page of a history as it is answered.
    pub fn new(history: &RevisionHistoryPage, config: &Config) -> Self {
        let view = |revision| RevisionView::new(revision, config);
        Self {
            active_revision_id: history.active,
            revisions: history.revisions.iter().map(view).collect(),
            next_cursor: history.next.map(|number| number.to_string()),
        }
    }
}

impl From<ReleaseEntry> for ReleaseEntryView {
    fn from(entry: ReleaseEntry) -> Self {
        Self {
            revision_id: entry.revision,
            kind: entry.kind,
            message: entry.message,
            at: entry.at,
        }
    }
}

impl From<Vec<ReleaseEntry>> for ReleaseList {
    fn from(releases: Vec<ReleaseEntry>) -> Self {
        Self {
            releases: releases.into_iter().map(ReleaseEntryView::from).collect(),
        }
    }
}

impl RevisionCreated {
    /// A draft as it is answered.
    pub fn new(drafted: &CreatedDraft, config: &Config) -> Self {
        let revision = RevisionView::new(&drafted.revision, config);
        Self {
            preview_origin: revision.preview_origin.clone(),
            revision,
            preview_url: preview_url(config, drafted.deployment, drafted.revision.id),
            warnings: drafted.revision.warnings.clone(),
            deduplicated: drafted.deduplicated,
        }
    }
}
