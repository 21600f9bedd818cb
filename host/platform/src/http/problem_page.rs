//! The platform's own pages: errors, forms, and the pages at problems' `type` URLs. All have one layout.

use http::{HeaderValue, StatusCode};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::problem::{Problem, ProblemCode};

/// Content-Security-Policy of the platform's pages: inline style, and forms to the same origin.
pub const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
);

/// Colours and typefaces of all pages, those of guests and ours. Those of code and of notes are for pages that people make.
pub const TOKEN_STYLE: &str = include_str!("../../../../guest-render/assets/tokens.css");
/// Styles of the platform's own pages.
pub const STYLE: &str = include_str!("../../../assets/platform.css");
/// The frame of pages that say one thing, and of their forms.
const NOTICE_STYLE: &str = include_str!("../../../assets/notice.css");

/// Lays out a page of the platform.
pub fn page_shell(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) }
                // Link previews show no more than this.
                meta name="description" content=(title);
                meta property="og:title" content=(title);
                meta property="og:description" content=(title);
                meta property="og:type" content="website";
                style { (PreEscaped(TOKEN_STYLE)) (PreEscaped(STYLE)) (PreEscaped(NOTICE_STYLE)) }
            }
            body.notice { (body) }
        }
    }
}

/// Makes the page of an error. A 404 links to `start`, which never comes from the request.
pub fn error_page(problem: &Problem, request_id: &str, start: &str) -> Markup {
    let title = problem.code.title();
    let is_nothing = problem.code.status() == StatusCode::NOT_FOUND;
    page_shell(
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
pub fn problem_type_page(code: ProblemCode) -> Markup {
    page_shell(
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
