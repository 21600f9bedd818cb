//! The platform's own pages: errors, forms, and what a problem's `type` URL explains. One shell for all.

use http::{HeaderValue, StatusCode};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::problem::{Code, Problem};

/// Policy of the platform's pages: they may load their own style, and send forms to their own origin.
pub const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
);

/// The colours and typefaces of every page, the guest's and ours.
pub const TOKENS: &str = include_str!("../../../guest-render/assets/tokens.css");
/// The elements of the platform's own pages.
pub const STYLE: &str = include_str!("../../assets/platform.css");
/// The frame of pages that say one thing, and of their forms.
const NOTICE: &str = include_str!("../../assets/notice.css");

/// A page of the platform that says one thing.
pub fn shell(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) }
                // Who shows a link to it shows no more than this.
                meta name="description" content=(title);
                meta property="og:title" content=(title);
                meta property="og:description" content=(title);
                meta property="og:type" content="website";
                style { (PreEscaped(TOKENS)) (PreEscaped(STYLE)) (PreEscaped(NOTICE)) }
            }
            body.notice { (body) }
        }
    }
}

/// An error, for a browser. Where nothing is, a visitor is led to `start`: a URL of ours, never one of the request's.
pub fn error(problem: &Problem, request_id: &str, start: &str) -> Markup {
    let title = problem.code.title();
    let is_nothing = problem.code.status() == StatusCode::NOT_FOUND;
    shell(
        title,
        &html! {
            main {
                h1 { (title) }
                p { (problem.detail) }
                @if is_nothing {
                    p { "Check the address for a slip, ask for a new link, or " a href=(start) { "go to the start page" } "." }
                }
                p.soft {
                    (problem.code.status().as_u16()) " · " code { (problem.code.as_str()) }
                    @if problem.code.status().is_server_error() { " · request " code { (request_id) } }
                }
            }
        },
    )
}

/// Writes the page at a problem's `type` URL.
pub fn about(code: Code) -> Markup {
    shell(
        code.title(),
        &html! {
            main {
                h1 { (code.title()) }
                p { (code.about()) }
                p.soft { "HTTP " (code.status().as_u16()) " · " code { (code.as_str()) } }
            }
        },
    )
}
