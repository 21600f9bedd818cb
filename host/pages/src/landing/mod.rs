//! The landing page and what stands beside it: the guide for agents, rules for crawlers, icons, and the stage that
//! previews play on. All of it is made once, at the first request for any of it.
//!
//! The page holds no authority but that over its own shares. What it keeps, a draft and the tokens that delete this browser's
//! shares, it keeps only where no owner's page has its origin: with a sites domain, where every page beside it is in an opaque
//! one, or on the landing host. Else it keeps them in memory, and removes what it kept before. It works without scripts, too:
//! the form posts to `/_svc/share`, which answers a page with the link and a form that deletes it, and refuses other origins.

mod form;
pub mod forms;
mod page;
mod pictures;
mod qr;
pub mod routes;

use std::io;
use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use maud::{DOCTYPE, PreEscaped, html};
use tokio::sync::OnceCell;

use crate::config::Config;
use crate::http::NOSNIFF;
use crate::http::document::{EncodedDocument, REVALIDATE};
use svc_database::FUNCTIONS;
use svc_sandbox::GuestCompilation;

/// The origin that stands in the texts of `host/assets`, which show commands as people run them at home.
const SAMPLE_ORIGIN: &str = "http://localhost:8080";

const GUIDE_TEXT: &str = include_str!("../../../assets/llms.txt");
/// Placeholder in the guide for the functions that SQL may call.
const SQL_FUNCTIONS_PLACEHOLDER: &str = "SQL_FUNCTIONS";
/// Placeholder in the guide for the console's origin. A line with it is for installations that have a console.
const CONSOLE_PLACEHOLDER: &str = "CONSOLE_ORIGIN";
const ROBOTS_TEXT: &str = include_str!("../../../assets/robots.txt");
const ICON_SVG: &str = include_str!("../../../assets/favicon.svg");
const ICON_ICO: &[u8] = include_bytes!("../../../assets/favicon.ico");
const STAGE_SCRIPT: &str = include_str!("../../../assets/stage.js");

/// `Cache-Control` of icons and pictures.
const CACHE_ONE_DAY: HeaderValue = HeaderValue::from_static("public, max-age=86400");
const HTML_TYPE: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const TEXT_TYPE: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The landing page's documents, made at the first request for one.
#[derive(Debug)]
pub struct LazyLandingDocuments {
    config: Arc<Config>,
    documents: OnceCell<LandingDocuments>,
}

/// The finished documents.
#[derive(Debug)]
pub struct LandingDocuments {
    /// The landing page on a host that serves the API.
    pub page: EncodedDocument,
    /// The landing page on the landing host, whose form calls the API host.
    pub page_of_landing_host: EncodedDocument,
    /// The guide for agents.
    pub guide: EncodedDocument,
    /// The rules for crawlers.
    pub robots: EncodedDocument,
    /// The icon, as lines.
    pub icon_svg: EncodedDocument,
    /// The icon, as dots.
    pub icon_ico: EncodedDocument,
    /// The empty page that previews play on.
    pub stage: EncodedDocument,
    /// Pictures of what can be made, by their file names.
    pub pictures: Vec<(String, EncodedDocument)>,
}

impl LazyLandingDocuments {
    /// Makes the landing page of an installation.
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            documents: OnceCell::new(),
        }
    }

    /// Answers the landing page while the guests are being compiled, with their progress in the form.
    pub fn preparing_response(&self, is_elsewhere: bool, preparing: &GuestCompilation) -> Response {
        let api = match is_elsewhere {
            true => page::ApiHostKind::OtherHost,
            false => page::ApiHostKind::ThisHost,
        };
        let page = page::landing_page(&self.config, api);
        let note = html! {
            p.soft role="status" {
                "This server has just been started and is still " (preparing) ". What you publish now waits for it."
            }
        };
        let send = r#"<div class="send">"#;
        let noted = format!("{send}{}", note.into_string());
        let headers = page_headers(page.policy, HeaderValue::from_static("no-store"));
        (headers, page.html.replacen(send, &noted, 1)).into_response()
    }

    /// Returns the documents, which are made at the first call: a start need not wait for their compression.
    ///
    /// # Errors
    /// Only when a compressor fails, or the process ends meanwhile.
    pub async fn documents(&self) -> io::Result<&LandingDocuments> {
        self.documents
            .get_or_try_init(async || {
                let config = Arc::clone(&self.config);
                let made = tokio::task::spawn_blocking(move || LandingDocuments::new(&config));
                made.await.map_err(io::Error::other)?
            })
            .await
    }
}

impl LandingDocuments {
    fn new(config: &Config) -> io::Result<Self> {
        let page = |api| {
            let page = page::landing_page(config, api);
            let headers = page_headers(page.policy, REVALIDATE);
            // Compressed densely, so that the page fits into the first flight of a connection.
            EncodedDocument::compressed_densely(Bytes::from(page.html), &headers)
        };
        let guide = agents_guide(config);
        let robots = Bytes::from_static(ROBOTS_TEXT.as_bytes());
        let svg = Bytes::from_static(ICON_SVG.as_bytes());
        let kind = HeaderValue::from_static;
        Ok(Self {
            page: page(page::ApiHostKind::ThisHost)?,
            page_of_landing_host: page(page::ApiHostKind::OtherHost)?,
            guide: EncodedDocument::new(guide.into(), &headers(TEXT_TYPE, REVALIDATE, None))?,
            robots: EncodedDocument::new(robots, &headers(TEXT_TYPE, CACHE_ONE_DAY, None))?,
            icon_svg: EncodedDocument::new(
                svg,
                &headers(kind("image/svg+xml"), CACHE_ONE_DAY, None),
            )?,
            icon_ico: EncodedDocument::new(
                Bytes::from_static(ICON_ICO),
                &headers(kind("image/x-icon"), CACHE_ONE_DAY, None),
            )?,
            stage: preview_frame_document(config)?,
            pictures: pictures::picture_documents()?,
        })
    }
}

/// Returns the guide for agents of an installation.
pub fn agents_guide(config: &Config) -> String {
    let guide = replace_sample_origin(&config.limits.fill_in(GUIDE_TEXT), &config.base_url);
    let guide = guide.replace(SQL_FUNCTIONS_PLACEHOLDER, &FUNCTIONS.join(", "));
    name_console(&guide, config.console_url.as_deref())
}

/// Names the console in a text, or leaves out its lines where there is none.
fn name_console(text: &str, console_url: Option<&str>) -> String {
    let named = |line: &str| match console_url {
        Some(url) => Some(line.replace(CONSOLE_PLACEHOLDER, url)),
        None => (!line.contains(CONSOLE_PLACEHOLDER)).then(|| line.to_owned()),
    };
    text.split_inclusive('\n').filter_map(named).collect()
}

/// Replaces the sample's origin in a text with the installation's.
fn replace_sample_origin(text: &str, base_url: &str) -> String {
    text.replace(SAMPLE_ORIGIN, base_url)
}

fn page_headers(policy: HeaderValue, cache: HeaderValue) -> HeaderMap {
    let mut headers = headers(HTML_TYPE, cache, Some(policy));
    // Without scripts the form's POST must carry its origin, which `no-referrer` would turn into `null`.
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("same-origin"),
    );
    headers
}

fn headers(kind: HeaderValue, cache: HeaderValue, policy: Option<HeaderValue>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CACHE_CONTROL, cache);
    headers.insert(NOSNIFF.0, NOSNIFF.1);
    if let Some(policy) = policy {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        headers.insert(
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        );
    }
    headers
}

/// Makes the frame of previews: an opaque origin, which only the landing page may embed.
fn preview_frame_document(config: &Config) -> io::Result<EncodedDocument> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "Preview" }
                script { (PreEscaped(STAGE_SCRIPT)) }
            }
            body {}
        }
    };
    let mut ancestors = String::from("'self'");
    if let Some(host) = &config.landing_host {
        // The landing host answers on any port.
        ancestors.push_str(&format!(" {}://{host}:*", config.scheme));
    }
    let policy = format!("sandbox allow-scripts; frame-ancestors {ancestors}");
    let policy = HeaderValue::try_from(policy).map_err(io::Error::other)?;
    let mut headers = headers(HTML_TYPE, REVALIDATE, Some(policy));
    headers.insert(
        HeaderName::from_static("x-robots-tag"),
        HeaderValue::from_static("noindex"),
    );
    EncodedDocument::new(Bytes::from(page.into_string()), &headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_names_a_console_that_is_there() {
        let text = "a\n- [Console](CONSOLE_ORIGIN)\nb\n";
        assert_eq!(name_console(text, None), "a\nb\n");
        let named = name_console(text, Some("https://console.example.com"));
        assert_eq!(named, "a\n- [Console](https://console.example.com)\nb\n");
        assert!(GUIDE_TEXT.contains(CONSOLE_PLACEHOLDER));
    }
}
