//! The route that unlocks a protected page, and the cookie that it sets.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use cookie::{Cookie, SameSite};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{MAX_PASSWORD_BYTES, UNLOCKED_SECONDS};
use crate::deployments::forms;
use crate::deployments::serving::answer::platform_page;
use crate::deployments::serving::{PageService, UnlockError, pages};
use crate::http::context::HttpRequestContext;
use crate::http::cookies;
use crate::http::extract::{UnreadBody, invalid_request};
use crate::http::problem::Problem;

const UNLOCK_COOKIE: &str = "svc_unlock";

/// A password, for its page.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UnlockRequest {
    /// The password.
    #[schema(max_length = 1024)]
    password: String,
}

/// A page that this client may now open.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct UnlockedAnswer {
    /// The page.
    slug: String,
    /// Always true.
    unlocked: bool,
}

/// Unlock a protected page
///
/// The right password is answered with a cookie that opens the page for an hour.
#[utoipa::path(
    post, path = "/api/v1/auth/{slug}", tag = "quick share",
    params(("slug" = String, Path, description = "The page.")),
    request_body(content(
        (UnlockRequest = "application/json"),
        (UnlockRequest = "application/x-www-form-urlencoded")
    )),
    responses(
        (status = 200, description = "Unlocked, for a client that sent JSON.", body = UnlockedAnswer),
        (status = 303, description = "Unlocked, for a form: on to the page."),
        (status = 401, description = "Not the password: for a form, the form once more.", content_type = "text/html", body = String)
    ),
    extensions(("x-problems" = json!("invalid_request invalid_json unauthorized disabled not_found timeout payload_too_large unsupported_media_type rate_limited capacity_reached")))
)]
pub async fn unlock(
    State(serving): State<Arc<PageService>>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let page = serving.page_on_host(&context.host, &slug).await?;
    if !page.is_protected() {
        return Err(Problem::not_found());
    }
    let body = body.form_or_json::<UnlockRequest>().await?;
    if body.value.password.len() > MAX_PASSWORD_BYTES {
        return Err(invalid_request(format!(
            "`password` is longer than {MAX_PASSWORD_BYTES} bytes."
        )));
    }
    let unlocked = match serving.unlock(&page, body.value.password).await {
        Ok(unlocked) => unlocked,
        Err(UnlockError::Wrong) if body.form => {
            return Ok(platform_page(
                StatusCode::UNAUTHORIZED,
                &forms::password_form(&slug, true),
            ));
        }
        Err(error) => return Err(error.into()),
    };
    let cookie = Cookie::build((UNLOCK_COOKIE, unlocked.token))
        .path(format!("/{slug}"))
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(serving.config().secure)
        .max_age(time::Duration::seconds(UNLOCKED_SECONDS))
        .build();
    let mut response = if body.form {
        (
            StatusCode::SEE_OTHER,
            [(header::LOCATION, format!("/{slug}"))],
        )
            .into_response()
    } else {
        axum::Json(UnlockedAnswer {
            slug,
            unlocked: true,
        })
        .into_response()
    };
    let cookie = HeaderValue::try_from(cookie.to_string()).map_err(|e| Problem::internal(&e))?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, pages::NO_STORE);
    Ok(response)
}

/// Returns the tokens that say that a browser has unlocked the page. Each proves that by itself, so that one that a sibling has set beside
/// them locks nobody out.
pub(in crate::deployments) fn unlock_tokens(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    cookies::cookie_values(headers, UNLOCK_COOKIE)
}
