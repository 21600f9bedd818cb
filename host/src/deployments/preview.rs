//! Previews: revisions at an address of their own, before or after they were live. Immutable, unlisted, static.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};

use super::pages::{Kind, Page};
use super::serve::LookupError;
use super::{Deployments, answer, revision_store, store};
use crate::app::SharedApp;
use crate::control;
use crate::http::problem::Problem;
use crate::ids::{DeploymentId, RevisionId};

impl Deployments {
    /// The address of a revision's preview.
    pub fn preview_url(&self, deployment: DeploymentId, revision: RevisionId) -> String {
        format!(
            "{}/_preview/{deployment}/{revision}/",
            self.config.sites_url
        )
    }

    /// The page of a revision; rendered at the first look where it was never a draft.
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn preview(
        &self,
        deployment: DeploymentId,
        revision: RevisionId,
    ) -> Result<Page, LookupError> {
        let found = self
            .control
            .read(move |c| {
                let Some(deployment) = store::by_id(c, &deployment)? else {
                    return Ok(None);
                };
                let revision = revision_store::by_id(c, &deployment.id, &revision)?;
                Ok(revision.map(|revision| (deployment, revision)))
            })
            .await;
        let (deployment, revision) = found
            .map_err(anyhow::Error::from)?
            .ok_or(LookupError::NotFound)?;
        let page = |artifact| Page::preview(&deployment, artifact, self.page_policy());
        if let Some(digest) = revision.preview {
            let page = page(self.artifact(digest).await?);
            self.check(&page)?;
            return Ok(page);
        }
        let text = self
            .text_of(revision.source)
            .await
            .map_err(anyhow::Error::from)?;
        let rendered = self
            .render(deployment.content_type, &revision.title, &text)
            .await;
        let rendered = rendered.map_err(anyhow::Error::from)?;
        let stored = self
            .store_page(text.into(), rendered)
            .await
            .map_err(anyhow::Error::from)?;
        let (_source, preview) = stored;
        let (id, digest) = (revision.id, preview.digest());
        let kept: Result<(), control::Error> = self
            .control
            .write(move |tx| revision_store::set_preview(tx, &id, &digest))
            .await;
        kept.map_err(anyhow::Error::from)?;
        let page = page(self.artifact(digest).await?);
        self.check(&page)?;
        Ok(page)
    }
}

/// Look at a revision
///
/// Unlisted, immutable and static: a preview has no runtime.
#[utoipa::path(
    get, path = "/_preview/{deployment_id}/{revision_id}/", tag = "pages",
    params(
        ("deployment_id" = String, Path, description = "The frontend's id."),
        ("revision_id" = String, Path, description = "The revision.")
    ),
    responses(
        (status = 200, description = "The page.", content_type = "text/html", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "text/html", body = String),
        (status = 304, description = "It never changes.")
    ),
    extensions(("x-problems" = json!("disabled not_found range_not_satisfiable internal")))
)]
pub async fn preview(
    State(app): State<SharedApp>,
    Path((deployment, revision)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (Ok(deployment), Ok(revision)) = (deployment.parse(), revision.parse()) else {
        return Err(Problem::not_found());
    };
    let page = match app.deployments.preview(deployment, revision).await {
        Ok(page) => page,
        Err(LookupError::Disabled) => return Ok(super::routes::disabled_page()),
        Err(error) => return Err(error.into()),
    };
    debug_assert_eq!(page.kind, Kind::Preview);
    answer::page(&page, false, app.clock.now(), &headers)
}

/// Add the slash
///
/// The address of a preview ends with a slash.
#[utoipa::path(
    get, path = "/_preview/{deployment_id}/{revision_id}", tag = "pages",
    params(
        ("deployment_id" = String, Path, description = "The frontend's id."),
        ("revision_id" = String, Path, description = "The revision.")
    ),
    responses((status = 308, description = "To the preview.")),
    extensions(("x-problems" = json!("not_found")))
)]
pub async fn with_slash(Path((deployment, revision)): Path<(String, String)>) -> Response {
    let location = match (
        deployment.parse::<DeploymentId>(),
        revision.parse::<RevisionId>(),
    ) {
        (Ok(deployment), Ok(revision)) => format!("/_preview/{deployment}/{revision}/"),
        _ => return Problem::not_found().into_response(),
    };
    let headers = [
        (header::LOCATION, location),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    (StatusCode::PERMANENT_REDIRECT, headers).into_response()
}
