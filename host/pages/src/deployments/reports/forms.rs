//! The platform's own pages by which people report a page.

use maud::{Markup, html};

use super::Reason;
use crate::config::Config;
use crate::deployments::forms::contact_line;
use crate::http::problem_page::page_shell;

/// Why people report pages, in their words.
const REASON_LABELS: [(Reason, &str); 5] = [
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
pub(super) fn report_form(slug: &str, wrong: Option<&str>, config: &Config) -> Markup {
    page_shell(
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
                    label for="path" { "File below it " span.soft { "optional" } }
                    input.field #path name="path" maxlength="512" autocapitalize="none" autocomplete="off" spellcheck="false";
                    fieldset {
                        legend { "What is wrong with it?" }
                        @for (reason, words) in REASON_LABELS {
                            label.check { input type="radio" name="reason" value=(reason.as_str()) required; (words) }
                        }
                    }
                    label for="details" { "In your words " span.soft { "optional" } }
                    textarea.field #details name="details" maxlength="4000" rows="4" {}
                    label for="contact" { "How to reach you " span.soft { "optional" } }
                    input.field #contact name="contact" maxlength="320" autocomplete="email";
                    button type="submit" { "Send the report" }
                }
                (contact_line(config))
            }
        },
    )
}

/// Says that a report has come in.
pub(super) fn report_received(config: &Config) -> Markup {
    page_shell(
        "Thank you",
        &html! { main { h1 { "Thank you" } p { "The report has come in. Whoever operates this service will read it." } (contact_line(config)) } },
    )
}
