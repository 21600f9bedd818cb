//! The routes of the landing page, and of the preview in it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CACHE_ONE_DAY, LandingDocuments, LazyLandingDocuments};
use crate::deployments::publication::{PageSource, PublicationPipeline};
use crate::deployments::requests::{MAX_TITLE_CHARACTERS, check_content};
use crate::http::NOSNIFF;
use crate::http::context::HttpRequestContext;
use crate::http::deadline::DeadlineBody;
use crate::http::extract::{UnreadBody, check_characters};
use crate::http::hosts::HostKind;
use crate::http::problem::Problem;
use svc_sandbox::{ContentType, Sandbox};

/// Longest time that the answer to a preview is kept for its reader, who waits in front of it.
const LONGEST_PREVIEW_ANSWER: Duration = Duration::from_secs(120);

/// Source to look at before it is published.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {
    /// The source; never empty.
    #[schema(min_length = 1)]
    content: String,
    /// Type of the source; `html` if absent.
    #[serde(rename = "type")]
    #[schema(default = "html", value_type = Option<ContentType>)]
    content_type: Option<ContentType>,
    /// The page's title.
    #[schema(max_length = 200)]
    title: Option<String>,
}

/// A page that is stored nowhere.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PreviewAnswer {
    /// The whole document, as publishing would make it. Show it in an origin that holds nothing.
    html: String,
}

/// Introduction to this service
///
/// The landing page: what this is, a form that publishes, and how agents and owners begin.
#[utoipa::path(
    get, path = "/", tag = "operation", operation_id = "landing_page",
    responses(
        (status = 200, description = "The landing page.", content_type = "text/html", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "text/html", body = String),
        (status = 302, description = "On a project's origin: to its home, else to its oldest frontend.", headers(("Location" = String, description = "The frontend."))),
        (status = 304, description = "The page has not changed.")
    ),
    extensions(("x-problems" = json!("not_found range_not_satisfiable")))
)]
pub async fn page(
    State(landing): State<Arc<LazyLandingDocuments>>,
    State(sandbox): State<Sandbox>,
    context: HttpRequestContext,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(preparing) = sandbox.compilation() {
        return Ok(landing.preparing_response(context.host == HostKind::Landing, &preparing));
    }
    let documents = documents(&landing).await?;
    match context.host {
        HostKind::Landing => documents.page_of_landing_host.answer(&headers),
        HostKind::Api
        | HostKind::Sites
        | HostKind::Project(_)
        | HostKind::Domain(_)
        | HostKind::Preview(_)
        | HostKind::Console => documents.page.answer(&headers),
    }
}

/// A guide for agents
///
/// It says what the service does and how to call it, in words and commands for a language model.
#[utoipa::path(
    get, path = "/llms.txt", tag = "operation", operation_id = "guide",
    responses(
        (status = 200, description = "The guide, in Markdown.", content_type = "text/plain", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "text/plain", body = String),
        (status = 304, description = "The guide has not changed.")
    ),
    extensions(("x-problems" = json!("range_not_satisfiable")))
)]
pub async fn guide(
    State(landing): State<Arc<LazyLandingDocuments>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    documents(&landing).await?.guide.answer(&headers)
}

/// Rules for crawlers
#[utoipa::path(
    get, path = "/robots.txt", tag = "operation", operation_id = "robots",
    responses(
        (status = 200, description = "What crawlers need not fetch (RFC 9309).", content_type = "text/plain", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "text/plain", body = String),
        (status = 304, description = "The rules have not changed.")
    ),
    extensions(("x-problems" = json!("range_not_satisfiable")))
)]
pub async fn robots(
    State(landing): State<Arc<LazyLandingDocuments>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    documents(&landing).await?.robots.answer(&headers)
}

/// The platform's icon
#[utoipa::path(
    get, path = "/favicon.svg", tag = "operation",
    responses(
        (status = 200, description = "The icon.", content_type = "image/svg+xml", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "image/svg+xml", body = String),
        (status = 304, description = "The icon has not changed.")
    ),
    extensions(("x-problems" = json!("range_not_satisfiable")))
)]
pub async fn icon_svg(
    State(landing): State<Arc<LazyLandingDocuments>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    documents(&landing).await?.icon_svg.answer(&headers)
}

/// The platform's icon, for browsers that ask without being told
#[utoipa::path(
    get, path = "/favicon.ico", tag = "operation",
    responses(
        (status = 200, description = "The icon.", content_type = "image/x-icon"),
        (status = 204, description = "On a project's origin, which has no icon but those that its pages name."),
        (status = 206, description = "The range that was asked for.", content_type = "image/x-icon"),
        (status = 304, description = "The icon has not changed.")
    ),
    extensions(("x-problems" = json!("range_not_satisfiable")))
)]
pub async fn icon_ico(
    State(landing): State<Arc<LazyLandingDocuments>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    documents(&landing).await?.icon_ico.answer(&headers)
}

/// A picture of what can be made
///
/// For the landing page.
#[utoipa::path(
    get, path = "/_svc/pictures/{picture}", tag = "operation",
    params(("picture" = String, Path, description = "The picture's file name, as the landing page names it.")),
    responses(
        (status = 200, description = "The picture.", content_type = "image/webp"),
        (status = 206, description = "The range that was asked for.", content_type = "image/webp"),
        (status = 304, description = "The picture has not changed.")
    ),
    extensions(("x-problems" = json!("not_found range_not_satisfiable")))
)]
pub async fn picture(
    State(landing): State<Arc<LazyLandingDocuments>>,
    Path(file): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let pictures = &documents(&landing).await?.pictures;
    let picture = pictures.iter().find(|(name, _)| *name == file);
    let (_, document) = picture.ok_or_else(Problem::not_found)?;
    document.answer(&headers)
}

/// Answers a browser that asks a project's origin for an icon: there is none, and nothing is wrong with that.
pub async fn no_icon() -> Response {
    (
        StatusCode::NO_CONTENT,
        [(header::CACHE_CONTROL, CACHE_ONE_DAY)],
    )
        .into_response()
}

/// The stage that previews play on
///
/// An empty page in an opaque origin, for a frame of the landing page: it shows the document that the landing page hands in.
#[utoipa::path(
    get, path = "/_svc/preview", tag = "quick share", operation_id = "preview_stage",
    responses(
        (status = 200, description = "The stage.", content_type = "text/html", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "text/html", body = String),
        (status = 304, description = "The stage has not changed.")
    ),
    extensions(("x-problems" = json!("range_not_satisfiable")))
)]
pub async fn stage(
    State(landing): State<Arc<LazyLandingDocuments>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    documents(&landing).await?.stage.answer(&headers)
}

/// Look at a page before it is published
///
/// Renders as publishing does, by the same guest, and stores nothing. A preview comes after all pages that are published, and may
/// use a quarter of a page's fuel. An extension of this implementation; anybody may call it, as often as a bucket of its own allows.
#[utoipa::path(
    post, path = "/_svc/preview", tag = "quick share", operation_id = "preview_share",
    request_body = PreviewRequest,
    responses((status = 200, description = "The page, as data: nobody is led to it as to a page of this host.", body = PreviewAnswer)),
    extensions(("x-problems" = json!("invalid_request invalid_json render_failed timeout payload_too_large unsupported_media_type rate_limited capacity_reached")))
)]
pub async fn preview(
    State(pipeline): State<Arc<PublicationPipeline>>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let request = body.json::<PreviewRequest>().await?.value;
    check_content(&request.content)?;
    check_characters("title", request.title.as_deref(), MAX_TITLE_CHARACTERS)?;
    let content_type = request.content_type.unwrap_or(ContentType::Html);
    let title = request.title.unwrap_or_default();
    let source = PageSource::titled(content_type, &title, &request.content);
    let page = pipeline.render_unstored(source).await?;
    let html = String::from_utf8(page.html.into()).map_err(|error| Problem::internal(&error))?;
    let answer = serde_json::to_vec(&PreviewAnswer { html });
    // It is in memory until its reader has taken all of it, however slowly.
    let answer = answer.map_err(|error| Problem::internal(&error))?;
    let answer = pipeline.hold_preview(answer).await?;
    let answer = DeadlineBody::new(answer, LONGEST_PREVIEW_ANSWER);
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        NOSNIFF,
    ];
    Ok((headers, Body::new(answer)).into_response())
}

async fn documents(landing: &LazyLandingDocuments) -> Result<&LandingDocuments, Problem> {
    let documents = landing.documents().await;
    documents.map_err(|error| Problem::internal(&error))
}
