//! The platform's own pages about a stranger's page: locked, one-time, disabled, reported.

use maud::{Markup, html};

use super::reports::Reason;
use crate::config::Config;
use crate::http::problem_page::shell;

/// Asks for a page's password; `wrong` after one that was not it.
pub fn locked(slug: &str, wrong: bool) -> Markup {
    shell(
        "This page is protected",
        &html! {
            main {
                h1 { "This page is protected" }
                p { "Whoever sent you the link can tell you its password." }
                form method="post" action={ "/api/v1/auth/" (slug) } {
                    label for="password" { "Password" }
                    input.field #password name="password" type="password" required autofocus
                        autocomplete="current-password"
                        aria-describedby=[wrong.then_some("wrong")] aria-invalid=[wrong.then_some("true")];
                    @if wrong { p.wrong #wrong role="alert" { "That is not the password." } }
                    button type="submit" { "Open the page" }
                }
            }
        },
    )
}

/// Asks before a one-time page is shown, because showing it is the end of it.
pub fn one_time(slug: &str) -> Markup {
    shell(
        "This page can be read once",
        &html! {
            main {
                h1 { "This page can be read once" }
                p {
                    "When you open it, it is deleted here for good: neither you nor anybody else can open it "
                    "again. Make sure that this is the moment."
                }
                form method="post" action={ "/" (slug) } {
                    button type="submit" { "Open it now" }
                }
            }
        },
    )
}

/// Says that the operator has taken a page down.
pub fn disabled(config: &Config) -> Markup {
    shell(
        "This page has been disabled",
        &html! {
            main {
                h1 { "This page has been disabled" }
                p { "The operator of this service has disabled it for safety. Nothing of it is shown." }
                p.soft { "403 · " code { "disabled" } }
                (contact(config))
            }
        },
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
pub fn report(slug: &str, wrong: Option<&str>, config: &Config) -> Markup {
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
pub fn reported(config: &Config) -> Markup {
    shell(
        "Thank you",
        &html! { main { h1 { "Thank you" } p { "The report has come in. Whoever operates this service will read it." } (contact(config)) } },
    )
}

/// How to reach the operator, where that is known.
pub fn contact(config: &Config) -> Markup {
    html! { @if let Some(contact) = &config.contact { p.soft { a href=(contact) { "Contact the operator" } } } }
}
