//! The routes of pages that work without scripts, of the code of a link, and of `security.txt`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use svc_base::names::is_slug;
use utoipa::ToSchema;

use super::FormPublishedShare;
use crate::config::Config;
use crate::control::kept_answers::AnswerRecorder;
use crate::deployments::publication::SharePublisher;
use crate::deployments::requests::OtherTypesField;
use crate::deployments::serving::answer::platform_page;
use crate::deployments::shares::Shares;
use crate::deployments::shares::requests::DeployRequest;
use crate::http::NOSNIFF;
use crate::http::context::HttpRequestContext;
use crate::http::extract::{UnreadBody, invalid_request};
use crate::http::origin::check_origin;
use crate::http::problem::Problem;
use crate::landing::qr;
use svc_base::clock::Clock;
use svc_sandbox::ContentType;

/// Time until `security.txt` expires, in seconds: less than a year (RFC 9116, section 2.5.5).
const SECURITY_TXT_SECONDS: i64 = 180 * 24 * 3600;

/// The landing page's form, as a browser without scripts sends it: what is empty was left out.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareForm {
    content: String,
    #[serde(rename = "type")]
    #[schema(value_type = ContentType)]
    content_type: ContentType,
    #[serde(default)]
    title: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    expires_in: String,
    #[serde(default)]
    one_time: Option<String>,
}

impl ShareForm {
    fn request(self) -> Result<DeployRequest, Problem> {
        let given = |text: String| (!text.is_empty()).then_some(text);
        let expires_in = given(self.expires_in).map(|text| text.parse());
        let expires_in = expires_in.transpose();
        Ok(DeployRequest {
            // A form sends every line break as two characters.
            content: self.content.replace("\r\n", "\n"),
            content_type: Some(self.content_type),
            title: given(self.title),
            name: given(self.name),
            password: given(self.password),
            expires_in: expires_in
                .map_err(|_| invalid_request("`expires_in` must be a number of seconds."))?,
            one_time: Some(self.one_time.is_some()),
            files: OtherTypesField,
            options: OtherTypesField,
        })
    }
}

/// A share that its publisher takes back by a form.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteForm {
    id: String,
    delete_token: String,
}

/// Publish by a form
///
/// The landing page's form comes here from a browser without scripts. Programs call `POST /api/v1/deploy`. An extension of this
/// implementation.
#[utoipa::path(
    post, path = "/_svc/share", tag = "quick share", operation_id = "share_by_form",
    request_body(content = ShareForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 201, description = "A page with the link, and a form that deletes the share.", content_type = "text/html", body = String)),
    extensions(("x-problems" = json!("invalid_request invalid_json render_failed origin_refused timeout payload_too_large unsupported_media_type rate_limited capacity_reached")))
)]
pub async fn share(
    State(shares): State<Arc<Shares>>,
    State(config): State<Arc<Config>>,
    context: HttpRequestContext,
    headers: HeaderMap,
    body: UnreadBody,
) -> Result<Response, Problem> {
    check_origin(&config, &context, &headers)?;
    let form = body.form_or_json::<ShareForm>().await?.value;
    let share = form.request()?.checked(&config.limits)?;
    let (password, one_time) = (share.password.clone(), share.one_time);
    let publisher = SharePublisher::new(context.client.network(), None);
    let publishing = shares.publish(share, publisher, AnswerRecorder::none());
    let deployed = publishing.await?;
    let shared = FormPublishedShare {
        deployed: &deployed,
        password: password.as_deref(),
        one_time,
    };
    let page = super::published_page(&shared, &config);
    Ok(platform_page(StatusCode::CREATED, &page))
}

/// Delete a share by a form
///
/// Programs call `DELETE /api/v1/deploy/{id}`. An extension of this implementation.
#[utoipa::path(
    post, path = "/_svc/share/delete", tag = "quick share", operation_id = "delete_share_by_form",
    request_body(content = DeleteForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "A page that says that it is gone.", content_type = "text/html", body = String)),
    extensions(("x-problems" = json!("invalid_request invalid_json not_found origin_refused timeout payload_too_large unsupported_media_type rate_limited capacity_reached")))
)]
pub async fn delete(
    State(shares): State<Arc<Shares>>,
    State(config): State<Arc<Config>>,
    context: HttpRequestContext,
    headers: HeaderMap,
    body: UnreadBody,
) -> Result<Response, Problem> {
    check_origin(&config, &context, &headers)?;
    let form = body.form_or_json::<DeleteForm>().await?.value;
    let share = shares.authorize(&form.id, &form.delete_token).await?;
    shares.delete(share).await?;
    Ok(platform_page(StatusCode::OK, &super::deleted_page()))
}

/// The code of a link
///
/// The address of a page as a QR code, whether or not there is a page. An extension of this implementation.
#[utoipa::path(
    get, path = "/_svc/qr/{slug}", tag = "pages", operation_id = "qr_code",
    params(("slug" = String, Path, description = "The page.")),
    responses((status = 200, description = "The code.", content_type = "image/svg+xml", body = String)),
    extensions(("x-problems" = json!("not_found")))
)]
pub async fn qr_code(
    State(config): State<Arc<Config>>,
    Path(slug): Path<String>,
) -> Result<Response, Problem> {
    if !is_slug(&slug) {
        return Err(Problem::not_found());
    }
    let code = qr::qr_code_svg(&format!("{}/{slug}", config.sites_url));
    let code = code.map_err(|error| Problem::internal(&error))?;
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("image/svg+xml"),
        ),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=86400"),
        ),
        NOSNIFF,
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
        ),
    ];
    Ok((headers, code).into_response())
}

/// Contact for reports about weaknesses
///
/// RFC 9116, where the operator has set a contact.
#[utoipa::path(
    get, path = "/.well-known/security.txt", tag = "operation", operation_id = "security_txt",
    responses((status = 200, description = "The contact.", content_type = "text/plain", body = String)),
    extensions(("x-problems" = json!("not_found")))
)]
pub async fn security(
    State(config): State<Arc<Config>>,
    State(clock): State<Clock>,
) -> Result<Response, Problem> {
    let contact = config.contact.as_deref().ok_or_else(Problem::not_found)?;
    let until = clock.now().plus_seconds(SECURITY_TXT_SECONDS);
    let base = &config.base_url;
    let text = format!(
        "Contact: {contact}\nExpires: {until}\nPreferred-Languages: en\nCanonical: {base}/.well-known/security.txt\n"
    );
    Ok(text.into_response())
}
