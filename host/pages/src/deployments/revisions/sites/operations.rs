//! Operations on sites and their files.

use std::sync::Arc;

use super::model::StoredSiteFile;
use super::requests::{CreateSiteRevision, RepublishSite, SiteQuery};
use super::service::{FileChange, SiteArchive};
use crate::access::{Editor, Viewer};
use crate::control::kept_answers::AnswerRecorder;
use crate::deployments::files::NewSiteFile;
use crate::deployments::frontends::scope::AuthorizedFrontend;
use crate::deployments::frontends::views::FrontendView;
use crate::deployments::revisions::views::RevisionCreated;
use crate::deployments::revisions::{RevisionError, Revisions};
use crate::http::extract::StreamedBody;
use crate::http::problem::{Problem, ProblemCode};

/// Makes a draft of a site with an unlisted preview. The same files, options and title make no second revision.
///
/// # Errors
/// `invalid_request`, `path_refused`, `revision_conflict`, `plan_limit`, `payload_too_large`, `files_missing`, `digest_mismatch`,
/// `storage_full`, `capacity_reached`.
pub async fn create(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Editor>,
    input: CreateSiteRevision,
    keep: AnswerRecorder<RevisionCreated>,
) -> Result<RevisionCreated, Problem> {
    let (new, target) = (input.checked()?, at.target());
    let config = Arc::clone(revisions.config());
    let keep = keep.map_view(move |drafted| RevisionCreated::new(drafted, &config));
    let drafted = revisions
        .create_site_draft(at.at.project, target, new, keep)
        .await?;
    Ok(RevisionCreated::new(&drafted, revisions.config()))
}

/// Publishes new files of a site at once, whatever is live.
///
/// # Errors
/// Those of [`create`], and `type_mismatch`.
pub async fn republish(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Editor>,
    input: RepublishSite,
) -> Result<FrontendView, Problem> {
    let (new, target, project) = (input.checked()?, at.target(), at.at.project);
    let frontend = revisions
        .republish_site(project.clone(), target, new)
        .await?;
    Ok(FrontendView::new(&frontend, &project, revisions.config()))
}

/// File of a site that is sent by itself.
#[derive(Debug)]
pub struct SiteFileUpload {
    /// Path of the file.
    pub path: String,
    /// Bytes of the file, which are not read yet.
    pub body: StreamedBody,
}

/// Publishes one file of a site at once: a new one, or other bytes of one that is there.
///
/// # Errors
/// Those of [`create`].
pub async fn put_file(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Editor>,
    input: SiteFileUpload,
) -> Result<FrontendView, Problem> {
    let (target, project) = (at.target(), at.at.project);
    revisions.check_file(&at.frontend, &input.path)?;
    let declared = input.body.declared_bytes();
    let file = revisions
        .files
        .receive_for_site(&project, declared, input.body)
        .await?;
    let change = FileChange {
        path: input.path,
        file: Some(NewSiteFile::Stored(Arc::new(file))),
    };
    let frontend = revisions.change_file(&project, &target, change).await?;
    Ok(FrontendView::new(&frontend, &project, revisions.config()))
}

/// Publishes a site without one of its files at once.
///
/// # Errors
/// `not_found` for a file that is not there, `invalid_request` for the last one.
pub async fn delete_file(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Editor>,
    path: String,
) -> Result<FrontendView, Problem> {
    let (target, project) = (at.target(), at.at.project);
    let change = FileChange { path, file: None };
    let frontend = revisions.change_file(&project, &target, change).await;
    let frontend = frontend.map_err(missing_file)?;
    Ok(FrontendView::new(&frontend, &project, revisions.config()))
}

/// Says that nothing is there, where a path leads to a file that the site does not have.
fn missing_file(error: RevisionError) -> Problem {
    match error {
        RevisionError::NoFile(_) => Problem::new(
            ProblemCode::NotFound,
            "The site has no such file. Read its `content` to see which it has.",
        ),
        error => error.into(),
    }
}

/// Returns a file of the live revision, or of a given one.
///
/// # Errors
/// `not_found` for the revision or the file.
pub async fn get_file(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Viewer>,
    (path, query): (String, SiteQuery),
) -> Result<StoredSiteFile, Problem> {
    let revision = query.checked()?;
    let found = revisions
        .site_file(at.project(), &at.target(), (revision, path))
        .await;
    found.map_err(missing_file)
}

/// Returns all files of the live revision, or of a given one.
///
/// # Errors
/// `not_found` for the revision.
pub async fn get_archive(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Viewer>,
    query: SiteQuery,
) -> Result<SiteArchive, Problem> {
    let revision = query.checked()?;
    let archive = revisions
        .archive(at.project(), &at.target(), revision)
        .await?;
    Ok(archive)
}
