//! The routes of the guides.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, header};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::search::SearchIndex;
use super::{GuidePageAnswer, Guides, INDEX_NAME};
use crate::http::problem::Problem;

/// Returns the routes, whose state is the guides.
pub fn router() -> OpenApiRouter<Arc<Guides>> {
    OpenApiRouter::new()
        .routes(routes!(index))
        .routes(routes!(index_without_slash))
        .routes(routes!(page))
        .routes(routes!(search))
        .routes(routes!(image))
}

/// The list of guides
#[utoipa::path(
    get, path = "/_svc/docs/", tag = "operation", operation_id = "guides",
    responses(
        (status = 200, description = "The guides, as a page. The text as it is written, where no page can be made of it now.", content((String = "text/html"), (String = "text/plain"))),
        (status = 206, description = "The range that was asked for.", content_type = "text/html", body = String),
        (status = 304, description = "The page has not changed.")
    ),
    extensions(("x-problems" = json!("range_not_satisfiable")))
)]
pub async fn index(
    State(guides): State<Arc<Guides>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer(&guides, INDEX_NAME, &headers).await
}

/// The list of guides, by its address without the slash
#[utoipa::path(
    get, path = "/_svc/docs", tag = "operation", operation_id = "guides_without_slash",
    responses((status = 308, description = "To the list.", headers(("Location" = String, description = "The list."))))
)]
pub async fn index_without_slash() -> Response {
    Redirect::permanent("/_svc/docs/").into_response()
}

/// A guide
///
/// One of the guides that the list links, `api-reference`, or a part of it. With `.md` behind its name it is Markdown.
#[utoipa::path(
    get, path = "/_svc/docs/{guide}", tag = "operation", operation_id = "show_guide",
    params(("guide" = String, Path, description = "The name of the guide.")),
    responses(
        (status = 200, description = "The guide: a page, or Markdown. The text as it is written, where no page can be made of it now.", content((String = "text/html"), (String = "text/markdown"), (String = "text/plain"))),
        (status = 206, description = "The range that was asked for.", content((String = "text/html"), (String = "text/markdown"))),
        (status = 304, description = "It has not changed.")
    ),
    extensions(("x-problems" = json!("not_found range_not_satisfiable")))
)]
pub async fn page(
    State(guides): State<Arc<Guides>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    match name.strip_suffix(".md") {
        None => answer(&guides, &name, &headers).await,
        Some(name) => {
            guides.make_pages().await;
            let written = guides.markdown(name).await;
            let written = written.map_err(|error| Problem::internal(&error))?;
            written.ok_or_else(Problem::not_found)?.answer(&headers)
        }
    }
}

/// Texts of the guides
///
/// For the search of their pages, which looks through them in the reader's browser.
#[utoipa::path(
    get, path = "/_svc/docs/search.json", tag = "operation", operation_id = "search_guides",
    responses(
        (status = 200, description = "The texts, by page and section.", content((SearchIndex = "application/json", example = json!({ "pages": [{ "name": "share", "title": "Share a page", "sections": [{ "id": "", "heading": "Share a page", "text": "You publish a page without an account." }] }] })))),
        (status = 206, description = "The range that was asked for.", content((String = "application/json", example = json!("{\"pages\":")))),
        (status = 304, description = "They have not changed.")
    ),
    extensions(("x-problems" = json!("range_not_satisfiable")))
)]
pub async fn search(
    State(guides): State<Arc<Guides>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    guides.make_pages().await;
    let index = guides.search_index().await;
    index
        .map_err(|error| Problem::internal(&error))?
        .answer(&headers)
}

/// A picture of a guide
#[utoipa::path(
    get, path = "/_svc/docs/images/{image}", tag = "operation", operation_id = "show_image",
    params(("image" = String, Path, description = "The name of the picture.")),
    responses(
        (status = 200, description = "The picture.", content_type = "image/webp"),
        (status = 206, description = "The range that was asked for.", content_type = "image/webp"),
        (status = 304, description = "It has not changed.")
    ),
    extensions(("x-problems" = json!("not_found range_not_satisfiable")))
)]
pub async fn image(
    State(guides): State<Arc<Guides>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let image = guides.image(&name).await;
    let image = image.map_err(|error| Problem::internal(&error))?;
    image.ok_or_else(Problem::not_found)?.answer(&headers)
}

async fn answer(guides: &Guides, name: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    guides.make_pages().await;
    let page = guides.page(name).await;
    let page = page.map_err(|error| Problem::internal(&error))?;
    match page.ok_or_else(Problem::not_found)? {
        GuidePageAnswer::Page(page) => page.answer(headers),
        GuidePageAnswer::Text(text) => {
            let headers = [
                (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
                (header::CACHE_CONTROL, "no-store"),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            Ok((headers, text.to_owned()).into_response())
        }
    }
}
