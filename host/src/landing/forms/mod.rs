//! Pages that work without scripts: what the form answers, and the report of a page.

pub mod routes;

use maud::{Markup, PreEscaped, html};

use super::form::lifetime;
use super::qr;
use crate::config::Config;
use crate::deployments::quick_share::Deployed;
use crate::deployments::reports::Reason;
use crate::http::problem_page::shell;

/// What a form that was published without scripts has made.
pub(super) struct Shared<'a> {
    pub(super) deployed: &'a Deployed,
    pub(super) password: Option<&'a str>,
    pub(super) one_time: bool,
}

/// The page that answers the form: the link, what is to be known about it, and how to take it back.
pub(super) fn published(shared: &Shared<'_>, config: &Config) -> Markup {
    let Shared {
        deployed,
        password,
        one_time,
    } = shared;
    let life = deployed.expires_at.0 - deployed.created_at.0;
    shell(
        "Published",
        &html! {
            main {
                h1 { "Published" }
                label for="link" { "Link to the page" }
                input.field #link readonly value=(deployed.url);
                @if let Some(password) = password {
                    label for="secret" { "Password of the page" }
                    input.field #secret readonly value=(password);
                }
                @if *one_time {
                    p { "It burns at the first opening: do not open it yourself. Who opens the link first reads it, and nobody after." }
                } @else {
                    p { a href=(deployed.url) { "Open the page" } }
                }
                p {
                    "Expires after " (lifetime(u64::try_from(life / 1000).unwrap_or_default()))
                    ", " time datetime=(deployed.expires_at.to_string()) { (deployed.expires_at.to_string()) } "."
                }
                @if let Ok(code) = qr::svg(&deployed.url) { p.code { (PreEscaped(code)) } }
                form method="post" action="/_svc/share/delete" {
                    input type="hidden" name="id" value=(deployed.id.to_string());
                    input type="hidden" name="delete_token" value=(deployed.delete_token.text());
                    button.plain type="submit" { "Delete it" }
                }
                p.soft { "This page is shown once. Without it, the share stays until it expires." }
                (contact(config))
            }
        },
    )
}

/// Says that a share is gone.
pub(super) fn deleted() -> Markup {
    shell(
        "Deleted",
        &html! { main { h1 { "Deleted" } p { "The page is gone, and its link answers nobody." } p { a href="/" { "Share something else" } } } },
    )
}

/// Why people report pages, in their words.
const REASONS: [(Reason, &str); 5] = [
    (
        Reason::Phishing,
        "It pretends to be somebody else, to get passwords or money",
    ),
    (Reason::Malware, "It spreads harmful software"),
    (Reason::Abuse, "It harms or harasses people"),
    (Reason::Copyright, "It infringes somebody's rights"),
    (Reason::Other, "Something else"),
];

/// The form that reports a page; `wrong` says why the one before was not taken.
pub(super) fn report(slug: &str, wrong: Option<&str>, config: &Config) -> Markup {
    shell(
        "Report a page",
        &html! {
            main {
                h1 { "Report a page" }
                p { "Whoever operates this service reads it, and can take the page down." }
                form method="post" action="/api/v1/reports" {
                    label for="slug" { "Page " span.soft { (config.sites_url) "/…" } }
                    input.field #slug name="slug" required value=(slug) maxlength="63" autocapitalize="none" autocomplete="off" spellcheck="false"
                        aria-describedby=[wrong.map(|_| "wrong")] aria-invalid=[wrong.map(|_| "true")];
                    @if let Some(wrong) = wrong { p.wrong #wrong role="alert" { (wrong) } }
                    fieldset {
                        legend { "What is wrong with it?" }
                        @for (reason, words) in REASONS {
                            label.check { input type="radio" name="reason" value=(reason.as_str()) required; (words) }
                        }
                    }
                    label for="details" { "In your words " span.soft { "optional" } }
                    textarea.field #details name="details" maxlength="4000" rows="4" {}
                    label for="contact" { "How to reach you " span.soft { "optional" } }
                    input.field #contact name="contact" maxlength="320" autocomplete="email";
                    button type="submit" { "Send the report" }
                }
                (contact(config))
            }
        },
    )
}

/// Says that a report has come in.
pub(super) fn reported(config: &Config) -> Markup {
    shell(
        "Thank you",
        &html! { main { h1 { "Thank you" } p { "The report has come in. Whoever operates this service will read it." } (contact(config)) } },
    )
}

fn contact(config: &Config) -> Markup {
    html! { @if let Some(contact) = &config.contact { p.soft { a href=(contact) { "Contact the operator" } } } }
}
