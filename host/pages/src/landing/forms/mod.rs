//! Pages that answer the form without scripts.

pub mod routes;

use maud::{Markup, PreEscaped, html};

use super::qr;
use crate::config::Config;
use crate::config::format_duration;
use crate::deployments::forms::contact_line;
use crate::deployments::shares::views::Deployed;
use crate::http::problem_page::page_shell;

/// A share that was published by the form without scripts.
pub(super) struct FormPublishedShare<'a> {
    pub(super) deployed: &'a Deployed,
    pub(super) password: Option<&'a str>,
    pub(super) one_time: bool,
}

/// Makes the page that answers the form: the link, its details, and a form that deletes the share.
pub(super) fn published_page(shared: &FormPublishedShare<'_>, config: &Config) -> Markup {
    let FormPublishedShare {
        deployed,
        password,
        one_time,
    } = shared;
    let life = deployed.expires_at.0 - deployed.created_at.0;
    page_shell(
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
                    "Expires after " (format_duration(u64::try_from(life / 1000).unwrap_or_default()))
                    ", " time datetime=(deployed.expires_at.to_string()) { (deployed.expires_at.to_string()) } "."
                }
                @if let Ok(code) = qr::qr_code_svg(&deployed.url) { p.code { (PreEscaped(code)) } }
                form method="post" action="/_svc/share/delete" {
                    input type="hidden" name="id" value=(deployed.id.to_string());
                    input type="hidden" name="delete_token" value=(deployed.delete_token.text());
                    button.plain type="submit" { "Delete it" }
                }
                p.soft { "This page is shown once. Without it, the share stays until it expires." }
                (contact_line(config))
            }
        },
    )
}

/// Makes the page after a deletion.
pub(super) fn deleted_page() -> Markup {
    page_shell(
        "Deleted",
        &html! { main { h1 { "Deleted" } p { "The page is gone, and its link answers nobody." } p { a href="/" { "Share something else" } } } },
    )
}
