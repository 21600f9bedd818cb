//! The landing page itself: what this is, a form to share something at once, and how agents and owners begin.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

use super::at_origin;
use crate::config::{Config, lifetime};
use crate::http::problem_page::{STYLE, TOKENS};

const OWN_STYLE: &str = include_str!("../../assets/landing.css");
const SCRIPT: &str = include_str!("../../assets/landing.js");

const SHARE: &str = include_str!("../../assets/connect/share.sh");
const OWNER: &str = include_str!("../../assets/connect/owner.sh");
const CLAUDE_CODE: &str = include_str!("../../assets/connect/claude-code.sh");
const MCP_JSON: &str = include_str!("../../assets/connect/mcp.json");
const CURSOR_JSON: &str = include_str!("../../assets/connect/cursor.json");

const TITLE: &str = "svc: publish a page, get a link";
const DESCRIPTION: &str = "Publish HTML, Markdown, a diagram, JSON or CSV, and pass the link on. Nobody needs an account. Agents and owners publish by API, with a database for what lasts.";

/// The types of content, by the name that people know, and what a page of each begins with.
const TYPES: [(&str, &str); 5] = [
    ("markdown", "Markdown"),
    ("html", "HTML"),
    ("mermaid", "Mermaid"),
    ("json", "JSON"),
    ("csv", "CSV"),
];

/// Where the page finds the API.
#[derive(Clone, Copy, Debug)]
pub(super) enum Api {
    /// On the host that serves the page, under whichever of its names.
    Here,
    /// On the API host.
    Elsewhere,
}

/// The page, and what it may load and do.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) html: String,
    pub(super) policy: HeaderValue,
}

/// Builds the page.
pub(super) fn landing(config: &Config, api: Api) -> Page {
    let style = [TOKENS, STYLE, OWN_STYLE].concat();
    let api = match api {
        Api::Here => "",
        Api::Elsewhere => config.base_url.as_str(),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(config, &style))
            body.landing {
                header {
                    h1 { "Publish a page, get a link" }
                    p.lead {
                        "Paste HTML, Markdown, a diagram, JSON or CSV, and pass the link on. Nobody needs an account. What you share lives for "
                        (lifetime(config.limits.quick_share_seconds))
                        "; it can carry a password, and it can be readable once."
                    }
                }
                main {
                    (share(config, api))
                    (gets())
                    (agents(&config.base_url))
                    (owners(&config.base_url))
                }
                (footer(api))
                p hidden role="status" #said {}
                script type="module" { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Page {
        html: page.into_string(),
        policy: policy(&style, api),
    }
}

/// Its own style and script by their digests, calls and previews to the API, and nothing else.
fn policy(style: &str, api: &str) -> HeaderValue {
    let api = if api.is_empty() { "'self'" } else { api };
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; connect-src {api}; frame-src {api}; img-src 'self'; \
         form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        source(style),
        source(SCRIPT),
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// A text as a source of a Content-Security-Policy.
fn source(text: &str) -> String {
    let digest = STANDARD.encode(digest(&SHA256, text.as_bytes()));
    format!("sha256-{digest}")
}

fn head(config: &Config, style: &str) -> Markup {
    let home = match &config.landing_host {
        Some(host) => format!("{}://{host}/", config.scheme),
        None => format!("{}/", config.base_url),
    };
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="theme-color" content="#ffffff" media="(prefers-color-scheme: light)";
            meta name="theme-color" content="#14161a" media="(prefers-color-scheme: dark)";
            title { (TITLE) }
            meta name="description" content=(DESCRIPTION);
            link rel="canonical" href=(home);
            link rel="icon" href="/favicon.svg" type="image/svg+xml";
            link rel="icon" href="/favicon.ico" sizes="32x32";
            style { (PreEscaped(style)) }
        }
    }
}

fn share(config: &Config, api: &str) -> Markup {
    html! {
        section.share aria-labelledby="now" {
            h2 #now { "Share something now" }
            noscript {
                (snippet(&html! { "This form needs JavaScript. A command does the same:" }, "Publish from a shell", SHARE, &config.base_url))
            }
            form #share data-api=(api) autocomplete="off" {
                div.write { (content()) }
                div.look role="group" aria-labelledby="looks" {
                    h3 #looks { "Preview" }
                    div.preview #preview { p { "What you type is shown here as it will look." } }
                    p.soft #hint role="status" {}
                }
                div.choose {
                    (choices(&config.sites_url))
                    div.send {
                        button #send type="submit" { "Publish" }
                        p.wrong #wrong role="alert" {}
                    }
                    (result())
                }
            }
        }
    }
}

fn content() -> Markup {
    html! {
        fieldset {
            legend { "What is it?" }
            div.types {
                @for (at, (value, name)) in TYPES.into_iter().enumerate() {
                    label { input type="radio" name="type" value=(value) checked[at == 0]; span { (name) } }
                }
            }
        }
        div {
            div.above {
                label for="content" { "Content" }
                label.file { "Open a file" input #file type="file" accept=".md,.markdown,.txt,.html,.htm,.mmd,.mermaid,.json,.csv,text/*,application/json"; }
            }
            textarea.field #content name="content" required spellcheck="false" autocapitalize="none" {}
        }
    }
}

fn choices(sites_url: &str) -> Markup {
    html! {
        div.pair {
            div {
                label for="title" { "Title " span.soft { "optional" } }
                input.field #title name="title" maxlength="200" autocomplete="off";
            }
            div {
                label for="name" { "Address " span.soft { (sites_url) "/…" } }
                input.field #name name="name" maxlength="63" pattern="[a-z0-9]([a-z0-9\\-]*[a-z0-9])?" placeholder="chosen for you"
                    title="a to z, 0 to 9 and -, beginning and ending with a letter or digit"
                    autocomplete="off" autocapitalize="none" spellcheck="false";
            }
            div {
                label for="password" { "Password " span.soft { "optional" } }
                input.field #password name="password" maxlength="1024" autocomplete="off" autocapitalize="none" spellcheck="false";
            }
            label.check { input type="checkbox" name="one_time"; "Can be opened only once" }
        }
    }
}

fn result() -> Markup {
    html! {
        div.result #result hidden {
            h3 #published tabindex="-1" { "It is published" }
            div.link {
                input.field #link readonly aria-label="Link to the page";
                button #copy type="button" { "Copy the link" }
            }
            p {
                a #open href="/" target="_blank" rel="noopener" { "Open the page" }
                ". It is there until " time #expires {} ". "
                span #renamed {}
            }
        }
    }
}

fn gets() -> Markup {
    html! {
        section aria-labelledby="gets" {
            h2 #gets { "What you get" }
            ul.gets {
                li { "A finished page. It is rendered when you publish it and loads nothing from elsewhere, so that it is there at once: on a phone, in the dark and on paper." }
                li { "A link that is public to whoever has it, unless you give it a password. What can be opened once is deleted by its first reader." }
                li { "Nothing to clean up. A share cannot be changed; it goes when its time is over." }
                li { "Safe pages. What strangers publish runs in an origin of its own, without cookies and without storage." }
                li { "For owners, pages that last: projects with an origin of their own, a history with previews and rollback, and an SQLite database that visitors reach through named actions." }
                li { "The same by form, by HTTP and as tools for agents." }
            }
        }
    }
}

fn agents(base_url: &str) -> Markup {
    html! {
        section.prose aria-labelledby="agents" {
            h2 #agents { "Connect an agent" }
            p {
                "Agents find everything as tools of the Model Context Protocol at " code { (base_url) "/mcp" }
                ". Publishing a share needs no credential; projects need one, which stays in the environment: never in a message or a page."
            }
            (snippet(&html! { h3 { "Claude Code" } }, "Claude Code", CLAUDE_CODE, base_url))
            (snippet(&html! { h3 { "A repository: " code { ".mcp.json" } } }, ".mcp.json", MCP_JSON, base_url))
            (snippet(&html! { h3 { "Cursor: " code { "~/.cursor/mcp.json" } } }, "Cursor", CURSOR_JSON, base_url))
            p { "Any other client: streamable HTTP, that address, and the header " code { "Authorization: Bearer …" } "." }
        }
    }
}

fn owners(base_url: &str) -> Markup {
    html! {
        section.prose aria-labelledby="owners" {
            h2 #owners { "Own what lasts" }
            p {
                "A project keeps its pages for as long as you like. Its credential comes from whoever operates this server (" code { "svc namespace create" }
                "). Then a page takes three lines."
            }
            (snippet(&html! { h3 { "In a shell" } }, "Make a project and publish in it", OWNER, base_url))
            p { "Drafts, previews, rollback and a database are a call each: the description below lists them, whole or by part with " code { "?tag=projects" } "." }
        }
    }
}

fn footer(api: &str) -> Markup {
    html! {
        footer {
            a href={ (api) "/api/v1/openapi.json" } { "API description (OpenAPI)" }
            a href="/llms.txt" { "Guide for agents (llms.txt)" }
            a href={ (api) "/_svc/runtime.d.ts" } { "Typings for pages" }
        }
    }
}

/// A text of ours below its heading, which can be copied.
fn snippet(heading: &Markup, label: &str, text: &str, base_url: &str) -> Markup {
    html! {
        div.snippet {
            div.above { (heading) button.plain type="button" hidden { "Copy" } }
            pre tabindex="0" role="region" aria-label=(label) { code { (at_origin(text, base_url)) } }
        }
    }
}
