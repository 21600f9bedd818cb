//! The platform's own pages about a stranger's page: locked, one-time, disabled.

use maud::{Markup, html};

use crate::config::Config;
use crate::http::problem_page::page_shell;

/// Asks for a page's password; `wrong` after one that was not it.
pub fn password_form(slug: &str, wrong: bool) -> Markup {
    page_shell(
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
pub fn one_time_form(slug: &str) -> Markup {
    page_shell(
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
pub fn taken_down_notice(config: &Config) -> Markup {
    page_shell(
        "This page has been disabled",
        &html! {
            main {
                h1 { "This page has been disabled" }
                p { "The operator of this service has disabled it for safety. Nothing of it is shown." }
                p.soft { "403 · " code { "disabled" } }
                (contact_line(config))
            }
        },
    )
}

/// Contact of the operator, if configured.
pub fn contact_line(config: &Config) -> Markup {
    html! { @if let Some(contact) = &config.contact { p.soft { a href=(contact) { "Contact the operator" } } } }
}
