//! The page on which a reader reports a page: a plain form, because who meets harm writes no JSON.

use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;

use crate::app::SharedApp;
use crate::deployments::model::is_slug;
use crate::deployments::reports::{NewReport, Reason};
use crate::deployments::routes::{CONTACT, DETAILS, platform_page};
use crate::http::extract::{UnreadBody, check_characters};
use crate::http::problem::Problem;
use crate::http::problem_page::shell;

/// The reasons, in the words of the form.
const REASONS: [(Reason, &str); 5] = [
    (Reason::Phishing, "It pretends to be somebody else"),
    (Reason::Malware, "It spreads harmful software"),
    (Reason::Abuse, "It harms or harasses people"),
    (Reason::Copyright, "It infringes rights"),
    (Reason::Other, "Something else"),
];

/// What the form sends.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportForm {
    /// Why.
    reason: Reason,
    /// In the reporter's words.
    #[serde(default)]
    #[schema(max_length = 4000)]
    details: String,
    /// How the operator can reach the reporter.
    #[serde(default)]
    #[schema(max_length = 320)]
    contact: String,
}

/// The page on which a page is reported
///
/// A form for people; programs send `POST /api/v1/reports`.
#[utoipa::path(
    get, path = "/_svc/report/{slug}", tag = "quick share", operation_id = "report_form",
    params(("slug" = String, Path, description = "The page.")),
    responses((status = 200, description = "The form.", content_type = "text/html", body = String)),
    extensions(("x-problems" = json!("not_found")))
)]
pub async fn form(Path(slug): Path<String>) -> Result<Response, Problem> {
    if !is_slug(&slug) {
        return Err(Problem::not_found());
    }
    Ok(platform_page(StatusCode::OK, &asking(&slug)))
}

/// Report a page by its form
///
/// Tells the operator what `POST /api/v1/reports` does.
#[utoipa::path(
    post, path = "/_svc/report/{slug}", tag = "quick share", operation_id = "report_by_form",
    params(("slug" = String, Path, description = "The page.")),
    request_body(content = ReportForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 202, description = "The operator will see it.", content_type = "text/html", body = String)),
    extensions(("x-problems" = json!("invalid_request invalid_json not_found timeout payload_too_large unsupported_media_type rate_limited capacity_reached")))
)]
pub async fn send(
    State(app): State<SharedApp>,
    Path(slug): Path<String>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let form = body.form_or_json::<ReportForm>().await?.value;
    let given = |text: String| (!text.trim().is_empty()).then_some(text);
    let (details, contact) = (given(form.details), given(form.contact));
    check_characters("details", details.as_deref(), DETAILS)?;
    check_characters("contact", contact.as_deref(), CONTACT)?;
    if !is_slug(&slug) {
        return Err(Problem::not_found());
    }
    let report = NewReport {
        slug,
        reason: form.reason,
        details,
        contact,
    };
    app.deployments.report(report, None).await?;
    Ok(platform_page(StatusCode::ACCEPTED, &thanks()))
}

fn asking(slug: &str) -> Markup {
    shell(
        "Report a page",
        &html! {
            main {
                h1 { "Report a page" }
                p { "What is wrong with " strong { "/" (slug) } "? The operator of this service reads every report." }
                form method="post" {
                    fieldset {
                        legend { "Reason" }
                        @for (reason, words) in REASONS {
                            label { input type="radio" name="reason" value=(reason.as_str()) required; " " (words) }
                        }
                    }
                    label for="details" { "Details, if you like" }
                    textarea.field #details name="details" rows="4" maxlength=(DETAILS) {}
                    label for="contact" { "How to reach you, if you like" }
                    input.field #contact name="contact" maxlength=(CONTACT) autocomplete="email";
                    button type="submit" { "Send the report" }
                }
            }
        },
    )
}

fn thanks() -> Markup {
    shell(
        "The report was sent",
        &html! {
            main {
                h1 { "The report was sent" }
                p { "Thank you. The operator of this service will look at it." }
            }
        },
    )
}
