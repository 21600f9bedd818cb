//! The routes of reports: the call, and the form for people.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use svc_base::names::is_slug;
use utoipa::ToSchema;

use super::{AbuseReportService, NewAbuseReport, Reason, Reported, forms};
use crate::access::MaybeCaller;
use crate::access::idempotency::{IdempotencyScope, IdempotentRequest};
use crate::config::Config;
use crate::deployments::serving::answer::platform_page;
use crate::http::context::HttpRequestContext;
use crate::http::extract::{ParsedBody, UnreadBody, check_characters};
use crate::http::origin::check_origin;
use crate::http::problem::{Problem, ProblemCode};

/// The longest details of a report, in characters.
const MAX_DETAILS_CHARACTERS: usize = 4_000;
/// The longest path of a file, in characters.
const MAX_PATH_CHARACTERS: usize = 512;
/// The longest contact of a report, in characters.
const MAX_CONTACT_CHARACTERS: usize = 320;

/// A complaint about a page.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportRequest {
    /// Which page.
    slug: String,
    /// Which file of a site, by its path.
    #[schema(max_length = 512)]
    path: Option<String>,
    /// Reason of the report.
    reason: Reason,
    /// In your words.
    #[schema(max_length = 4000)]
    details: Option<String>,
    /// How the operator can reach you.
    #[schema(max_length = 320)]
    contact: Option<String>,
}

/// Report a page
///
/// Tells the operator about phishing, malware, abuse or an infringement.
#[utoipa::path(
    post, path = "/api/v1/reports", tag = "quick share",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")),
    request_body(content((ReportRequest = "application/json"), (ReportRequest = "application/x-www-form-urlencoded"))),
    responses((status = 202, description = "The operator will see it; a form gets a page.", content((Reported = "application/json"), (String = "text/html")))),
    extensions(("x-problems" = json!("invalid_request invalid_json unauthorized origin_refused not_found timeout idempotency_conflict payload_too_large unsupported_media_type rate_limited capacity_reached"))),
    security((), ("bearer" = []))
)]
pub async fn report(
    State(reports): State<Arc<AbuseReportService>>,
    context: HttpRequestContext,
    headers: HeaderMap,
    request: IdempotentRequest,
    caller: MaybeCaller,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.form_or_json::<ReportRequest>().await?;
    if !body.form {
        return take_report(reports, request, caller, body).await;
    }
    let config = Arc::clone(reports.config());
    check_origin(&config, &context, &headers)?;
    let slug = body.value.slug.clone();
    let reported = take_report(reports, request, caller, body).await;
    after_report(&config, &slug, reported)
}

/// Takes a report, once for each idempotency key.
async fn take_report(
    reports: Arc<AbuseReportService>,
    request: IdempotentRequest,
    MaybeCaller(caller): MaybeCaller,
    body: ParsedBody<ReportRequest>,
) -> Result<Response, Problem> {
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let route = IdempotencyScope {
        name: "reports",
        parent: "",
    };
    let wanted = body.value;
    let work = |keep| async move {
        check_characters("path", wanted.path.as_deref(), MAX_PATH_CHARACTERS)?;
        check_characters("details", wanted.details.as_deref(), MAX_DETAILS_CHARACTERS)?;
        check_characters("contact", wanted.contact.as_deref(), MAX_CONTACT_CHARACTERS)?;
        check_slug(&wanted.slug)?;
        let report = NewAbuseReport {
            slug: wanted.slug,
            path: given(wanted.path),
            reason: wanted.reason,
            details: given(wanted.details),
            contact: given(wanted.contact),
        };
        Ok::<_, Problem>(reports.insert(report, keep).await?)
    };
    let by = caller.as_ref();
    request
        .run_once(by, route, &body.raw, StatusCode::ACCEPTED, work)
        .await
}

/// The form that reports a page
///
/// For people; it posts to `/api/v1/reports`. An extension of this implementation.
#[utoipa::path(
    get, path = "/_svc/report/{slug}", tag = "quick share", operation_id = "report_form",
    params(("slug" = String, Path, description = "The page.")),
    responses((status = 200, description = "The form.", content_type = "text/html", body = String)),
    extensions(("x-problems" = json!("not_found")))
)]
pub async fn report_form(
    State(config): State<Arc<Config>>,
    Path(slug): Path<String>,
) -> Result<Response, Problem> {
    if !is_slug(&slug) {
        return Err(Problem::not_found());
    }
    let page = forms::report_form(&slug, None, &config);
    Ok(platform_page(StatusCode::OK, &page))
}

/// The form that reports any page
#[utoipa::path(
    get, path = "/_svc/report", tag = "quick share", operation_id = "report_form_of_any",
    responses((status = 200, description = "The form.", content_type = "text/html", body = String))
)]
pub async fn report_form_of_any(State(config): State<Arc<Config>>) -> Response {
    platform_page(StatusCode::OK, &forms::report_form("", None, &config))
}

/// The answer to the form that reports a page: thanks, or the form once more with what is wrong with it.
fn after_report(
    config: &Config,
    slug: &str,
    reported: Result<Response, Problem>,
) -> Result<Response, Problem> {
    let (status, page) = match reported {
        Ok(_) => (StatusCode::ACCEPTED, forms::report_received(config)),
        Err(problem) if problem.code == ProblemCode::NotFound => {
            let wrong = "There is no such page. It may have expired, or been deleted.";
            (
                StatusCode::NOT_FOUND,
                forms::report_form(slug, Some(wrong), config),
            )
        }
        Err(problem) => return Err(problem),
    };
    Ok(platform_page(status, &page))
}

fn check_slug(slug: &str) -> Result<(), Problem> {
    if is_slug(slug) {
        Ok(())
    } else {
        Err(Problem::not_found())
    }
}
