//! The platform's own pages: errors, forms, and what a problem's `type` URL explains. One shell for all.

use http::HeaderValue;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::problem::{Code, Problem};

/// What the platform's pages may load and do: their own style, and forms to their own origin.
pub const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
);

const STYLE: &str = include_str!("../../assets/platform.css");

/// A page of the platform.
pub fn shell(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    }
}

/// An error, for a browser.
pub fn error(problem: &Problem, request_id: &str) -> Markup {
    let title = problem.code.title();
    shell(
        title,
        &html! {
            main {
                h1 { (title) }
                p { (problem.detail) }
                p.soft {
                    (problem.code.status().as_u16()) " · " code { (problem.code.as_str()) }
                    @if problem.code.status().is_server_error() { " · request " code { (request_id) } }
                }
            }
        },
    )
}

/// What stands at a problem's `type` URL.
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

/// What this service is and how to begin.
pub fn landing(base_url: &str) -> Markup {
    let command = format!(
        "curl {base_url}/api/v1/deploy \\\n  --json '{{\"type\":\"markdown\",\"content\":\"# Hello\"}}'"
    );
    shell(
        "svc",
        &html! {
            main.wide {
                h1 { "Send it, and get a link" }
                p {
                    "This server publishes HTML, Markdown, JSON and CSV at a URL. Nobody needs an account; "
                    "what you share lives for seven days, can carry a password, and can be readable once."
                }
                pre tabindex="0" role="region" aria-label="Example" { code { (command) } }
                p.soft {
                    "Everything it can do: " a href="/api/v1/openapi.json" { "the API's description" } "."
                }
            }
        },
    )
}
