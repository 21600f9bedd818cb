//! The landing page: an introduction, the form, and the first steps of agents and owners.

use std::sync::LazyLock;

use http::HeaderValue;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::form::share_form;
use super::pictures::gallery;
use super::replace_sample_origin;
use crate::config::{Config, format_duration};
use crate::http::content_policy::hash_source;
use crate::http::problem_page::{STYLE, TOKEN_STYLE};
use svc_sandbox::ContentType;

const OWN_STYLE: &str = include_str!("../../../assets/landing.css");
/// The script as it is served.
static SCRIPT: LazyLock<String> =
    LazyLock::new(|| strip_comment_lines_and_indentation(SCRIPT_PARTS));
/// Parts of the script, which share one scope.
const SCRIPT_PARTS: &str = concat!(
    include_str!("../../../assets/landing/form.js"),
    include_str!("../../../assets/landing/preview.js"),
    include_str!("../../../assets/landing/folders.js"),
    include_str!("../../../assets/landing/files.js"),
    include_str!("../../../assets/landing/draft.js"),
    include_str!("../../../assets/landing/publish.js"),
    include_str!("../../../assets/landing/shares.js"),
    include_str!("../../../assets/landing/pass.js"),
);

const OWNER_SETUP: &str = include_str!("../../../assets/connect/owner.sh");
const CLAUDE_CODE: &str = include_str!("../../../assets/connect/claude-code.sh");
const MCP_JSON: &str = include_str!("../../../assets/connect/mcp.json");
const CURSOR_JSON: &str = include_str!("../../../assets/connect/cursor.json");
const OWNER_CLAUDE_CODE: &str = include_str!("../../../assets/connect/owner-claude-code.sh");
const OWNER_MCP_JSON: &str = include_str!("../../../assets/connect/owner-mcp.json");
const OWNER_CURSOR_JSON: &str = include_str!("../../../assets/connect/owner-cursor.json");
/// Style that hides elements for scripts, where scripts are off.
const NO_SCRIPT_STYLE: &str = ".scripted{display:none}";

const TITLE: &str = "svc: publish a page, get a link";
const DESCRIPTION: &str = "Publish {{content_types}}, and pass the link on. No account needed. Agents and owners publish by API, with a database for what lasts.";

/// Host of the API for the page.
#[derive(Clone, Copy, Debug)]
pub(super) enum ApiHostKind {
    /// The host that serves the page.
    ThisHost,
    /// The API host, for a page of the landing host.
    OtherHost,
}

/// The page, and its Content-Security-Policy.
#[derive(Debug)]
pub(super) struct LandingPage {
    pub(super) html: String,
    pub(super) policy: HeaderValue,
}

/// Builds the page.
pub(super) fn landing_page(config: &Config, api: ApiHostKind) -> LandingPage {
    let style = [TOKEN_STYLE, STYLE, OWN_STYLE].concat();
    let api = match api {
        ApiHostKind::ThisHost => "",
        ApiHostKind::OtherHost => config.base_url.as_str(),
    };
    // Otherwise owners' pages have the same origin, and could read what is stored.
    let keeps = !api.is_empty() || config.sites_domain.is_some();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (html_head(config, &style))
            body.landing {
                header {
                    h1 { "Publish a page, get a link" }
                    p.lead {
                        "Paste " (ContentType::list(ContentType::phrase)) ", and pass the link on. No account needed. What you share lives for "
                        (format_duration(config.limits.quick_share_seconds))
                        "; it can have a password, and it can self-destruct after one view."
                    }
                }
                main {
                    (share_form(config, api, keeps))
                    (gallery(api))
                    (agents_section(&config.base_url))
                    (owners_section(config, api))
                }
                (footer(config, api))
                p hidden role="status" #said {}
                script type="module" { (PreEscaped(&*SCRIPT)) }
            }
        }
    };
    LandingPage {
        html: page.into_string(),
        policy: content_security_policy(&style, api),
    }
}

/// Returns a script without its comments and indentation, which are a fifteenth of its size. A comment must have its own lines,
/// and no string may span lines.
fn strip_comment_lines_and_indentation(script: &str) -> String {
    let is_comment = |line: &str| line.starts_with("//") || line.starts_with("/** ");
    let lines = script.lines().map(str::trim_start);
    let mut lean: String = lines
        .filter(|line| !line.is_empty() && !is_comment(line))
        .fold(String::with_capacity(script.len()), |lean, line| {
            lean + line + "\n"
        });
    lean.truncate(lean.trim_end().len());
    lean
}

/// Composes the page's Content-Security-Policy: its style and script by their digests, the API's calls, previews and QR codes, and the
/// form.
fn content_security_policy(style: &str, api: &str) -> HeaderValue {
    let (api, images) = match api {
        "" => ("'self'", "'self'".to_owned()),
        api => (api, format!("'self' {api}")),
    };
    let policy = format!(
        "default-src 'none'; style-src '{}' '{}'; script-src '{}'; connect-src {api}; frame-src {api}; img-src {images}; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash_source(style),
        hash_source(NO_SCRIPT_STYLE),
        hash_source(&SCRIPT),
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

fn html_head(config: &Config, style: &str) -> Markup {
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
            meta name="description" content=(config.limits.fill_in(DESCRIPTION));
            link rel="canonical" href=(home);
            link rel="icon" href="/favicon.svg" type="image/svg+xml";
            link rel="icon" href="/favicon.ico" sizes="32x32";
            style { (PreEscaped(style)) }
            noscript { style { (PreEscaped(NO_SCRIPT_STYLE)) } }
        }
    }
}

/// Setup texts of an MCP client: without a credential, and with one.
struct McpClientSetup {
    name: &'static str,
    anyone: &'static str,
    owner: &'static str,
}

const CLIENT_SETUPS: [McpClientSetup; 3] = [
    McpClientSetup {
        name: "Claude Code",
        anyone: CLAUDE_CODE,
        owner: OWNER_CLAUDE_CODE,
    },
    McpClientSetup {
        name: ".mcp.json of a repository",
        anyone: MCP_JSON,
        owner: OWNER_MCP_JSON,
    },
    McpClientSetup {
        name: "Cursor, in ~/.cursor/mcp.json",
        anyone: CURSOR_JSON,
        owner: OWNER_CURSOR_JSON,
    },
];

fn agents_section(base_url: &str) -> Markup {
    html! {
        section.prose aria-labelledby="agents" {
            h2 #agents { "Connect an agent" }
            p {
                "Agents find everything as tools of the Model Context Protocol at " code { (base_url) "/mcp" }
                ". Publishing a share needs no credential. Projects need one, which stays in the environment as " code { "SVC_CREDENTIAL" }
                ": never in a message or a page."
            }
            @for one in &CLIENT_SETUPS {
                (collapsed_section(one.name, &html! {
                    (snippet(&html! { h3 { "To share" } }, one.name, one.anyone, base_url))
                    (snippet(&html! { h3 { "To own projects" } }, &format!("{}, for owners", one.name), one.owner, base_url))
                }))
            }
            p { "Any other client: streamable HTTP, that address, and for owners the header " code { "Authorization: Bearer …" } "." }
        }
    }
}

fn owners_section(config: &Config, api: &str) -> Markup {
    let base_url = config.base_url.as_str();
    html! {
        section.prose aria-labelledby="owners" {
            h2 #owners { "Keep pages for good" }
            p {
                "A project keeps its pages for as long as you like. Its credential comes from the operator of this server (" code { "svc namespace create" }
                "). Then a page takes three lines."
            }
            (collapsed_section("The three lines, for a shell", &snippet(&html! { h3 { "In a shell" } }, "Make a project and publish in it", OWNER_SETUP, base_url)))
            @if let Some(console) = &config.console_url {
                p { a href=(console) { "The console" } " shows owners their projects: pages, data, history, people." }
            }
            p { "Drafts, previews, rollback and a database are a call each: " a href={ (api) "/_svc/docs/" } { "the guides" } " show how, and " a href={ (api) "/_svc/docs/api-reference" } { "the reference" } " lists every call." }
        }
    }
}

/// Makes content that is shown when its summary is opened.
fn collapsed_section(summary: &str, content: &Markup) -> Markup {
    html! { details.folded { summary { (summary) } (content) } }
}

fn footer(config: &Config, api: &str) -> Markup {
    html! {
        footer {
            a href={ (api) "/_svc/report" } { "Report a page" }
            @if let Some(contact) = &config.contact { a href=(contact) { "Contact" } }
            a href={ (api) "/_svc/docs/" } { "Guides" }
            a href={ (api) "/api/v1/openapi.json" } { "API description (OpenAPI)" }
            a href="/llms.txt" { "Guide for agents (llms.txt)" }
            a href={ (api) "/_svc/runtime.d.ts" } { "Typings for pages" }
        }
    }
}

/// Makes a text with a heading and a button that copies it.
pub(super) fn snippet(heading: &Markup, label: &str, text: &str, base_url: &str) -> Markup {
    html! {
        div.snippet {
            div.above { (heading) button.plain type="button" hidden { "Copy" } }
            pre tabindex="0" role="region" aria-label=(label) { code { (replace_sample_origin(text, base_url)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_has_the_tokens_that_it_uses_and_no_others() {
        let style = [STYLE, OWN_STYLE].concat();
        for used in style.split("var(").skip(1) {
            let (name, _) = used.split_once(')').unwrap();
            assert!(TOKEN_STYLE.contains(&format!("{name}:")), "{name}");
        }
        for declared in TOKEN_STYLE
            .split(['{', ';'])
            .filter(|one| one.starts_with("--"))
        {
            let (name, _) = declared.split_once(':').unwrap();
            assert!(style.contains(&format!("var({name})")), "{name}");
        }
    }

    #[test]
    fn the_script_loses_nothing_but_comments() {
        for line in SCRIPT_PARTS.lines().map(str::trim_start) {
            // Else a line could be the inside of a string or of a comment.
            assert_eq!(line.matches('`').count() % 2, 0, "{line}");
            assert!(!line.starts_with('*') && !line.ends_with('\\'), "{line}");
            assert_eq!(line.contains("/*"), line.ends_with("*/"), "{line}");
        }
        assert_eq!(
            strip_comment_lines_and_indentation(
                "// a\n/** b */\n  let c = '// d'; // e\n\n  /x/.test(c);\n"
            ),
            "let c = '// d'; // e\n/x/.test(c);"
        );
        assert!(SCRIPT.len() < SCRIPT_PARTS.len() * 9 / 10);
    }
}
