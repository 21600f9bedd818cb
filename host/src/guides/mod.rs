//! The guides of `docs/` and a reference of the API, as pages below `/_svc/docs/`, where no slug can be.
//!
//! Each is rendered like shared Markdown, by the serving guest: at the first request for it, and again when another guest serves.
//! While the guest is not loaded, or if it fails, the Markdown is answered.

mod frame;
mod reference;
mod rewriting;
pub mod routes;
pub mod search;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use tokio::sync::{Mutex, OnceCell};

use reference::Reference;
use search::{SearchIndex, SearchedPage};

use crate::config::Config;
use crate::http::document::{EncodedDocument, REVALIDATE};
use crate::landing::agents_guide;
use crate::mcp::resources::ResourceText;
use crate::openapi::ApiDescription;
use svc_sandbox::{CallerFlow, ContentType, GuestDigest, RenderFailure, RenderSource, Sandbox};

/// Name of the page of the API's reference.
const REFERENCE: &str = "api-reference";
/// Name of the list of pages, which is at the folder itself.
const INDEX_NAME: &str = "";

/// Longest wait for a rendering that another reader began.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// A guide of `docs/`.
#[derive(Clone, Copy, Debug)]
pub struct Guide {
    /// Name of its page, and of its file without the extension.
    pub name: &'static str,
    /// Sentence that says for whom it is.
    pub about: &'static str,
    text: &'static str,
}

macro_rules! guides {
    ($($name:literal $about:literal;)+) => {
        /// Every guide, in the order in which README has them.
        pub const GUIDES: &[Guide] = &[$(Guide {
            name: $name,
            about: $about,
            text: include_str!(concat!("../../../docs/", $name, ".md")),
        },)+];
    };
}

guides! {
    "share" "You publish a page without an account.";
    "folder" "You begin with a folder: templates, a server for it while you work, and a server for all.";
    "publish-folder" "You publish a folder that a tool has built: a site with its files and its history.";
    "client" "You work from a shell: publish, push, a folder as a project.";
    "apps" "You own a project: pages that stay, and a database.";
    "console" "You look at your projects in a browser: pages, data, history, people.";
    "sites" "You publish a site by requests, or have an agent do it: files, changes, previews, releases.";
    "team" "You work in a team: several folders of one project, and a job that applies.";
    "workspaces" "You work with others: roles, keys, plans.";
    "sign-in" "Your pages' visitors sign in.";
    "uploads" "Your pages' visitors upload pictures and other files.";
    "rooms" "Your pages send each other messages.";
    "payments" "Your pages sell something.";
    "domains" "Your project answers at a domain of yours.";
    "live" "Your pages show the database as it is, now.";
    "agents" "You connect an agent.";
    "app-tools" "Your visitors' agents call your actions as tools.";
    "api" "You write a client: errors, repeating safely, limits.";
    "coming-from" "You know PocketBase, wrangler, Supabase, Convex or PrivateBin.";
    "coming-from-hosts" "You know Netlify, Cloudflare Pages or Firebase Hosting.";
    "install" "You install the server, and keep it up to date.";
    "operate" "You run the server.";
    "cluster" "You run it on several machines, so that one may die.";
    "proxy" "You put Caddy or nginx in front of it.";
    "audit" "You want to know who changed what.";
    "guests" "You replace the components that render pages and judge SQL.";
}

macro_rules! images {
    ($($name:literal)+) => {
        /// Every picture of `docs/images`, by its name.
        pub const IMAGES: &[(&str, &[u8])] = &[$((
            $name,
            include_bytes!(concat!("../../../docs/images/", $name)),
        ),)+];
    };
}

images! {
    "console-data.webp" "console-overview.webp" "console-revision.webp"
    "folder-blank.webp" "folder-board.webp" "folder-docs.webp" "folder-guest-book.webp" "folder-survey.webp"
    "guides.webp" "landing.webp" "page-dark.webp" "page.webp"
}

impl Guide {
    /// Heading of the guide.
    fn title(&self) -> &'static str {
        let first = self.text.lines().next().unwrap_or_default();
        first.trim_start_matches(['#', ' '])
    }
}

/// Makes the pages, once.
type MakePagesFn = Box<dyn FnOnce() -> GuidePages + Send>;

/// The pages of an installation.
#[derive(Debug)]
pub struct Guides {
    sandbox: Sandbox,
    config: Arc<Config>,
    entries: Arc<LazyLock<GuidePages, MakePagesFn>>,
    images: [OnceCell<EncodedDocument>; IMAGES.len()],
}

/// All pages.
#[derive(Debug)]
struct GuidePages {
    by_name: BTreeMap<String, GuidePage>,
    /// All but the list itself, in its order.
    listed: Vec<ListedPage>,
    /// Texts that the search of the pages looks through.
    index: OnceCell<EncodedDocument>,
}

/// A page in the list of all.
#[derive(Debug)]
struct ListedPage {
    name: String,
    title: String,
}

/// A page with its Markdown.
#[derive(Debug)]
struct GuidePage {
    text: String,
    /// Markdown that the page is rendered from, if it is not the text.
    shown: Option<String>,
    written: OnceCell<EncodedDocument>,
    page: Mutex<Option<RenderedGuidePage>>,
}

/// A rendered page with the guest that rendered it; without a document if that guest failed.
#[derive(Debug)]
struct RenderedGuidePage {
    by: GuestDigest,
    document: Option<Arc<EncodedDocument>>,
}

/// The answer for a page.
#[derive(Debug)]
enum GuidePageAnswer<'a> {
    Page(Arc<EncodedDocument>),
    /// The Markdown, while the page cannot be rendered.
    Text(&'a str),
}

impl Guides {
    /// Makes the pages of an installation, none of which is rendered yet.
    pub fn new(sandbox: Sandbox, config: Arc<Config>, description: Arc<ApiDescription>) -> Self {
        let settings = Arc::clone(&config);
        let make = move || entries(&settings, &description);
        Self {
            sandbox,
            config,
            entries: Arc::new(LazyLock::new(Box::new(make))),
            images: std::array::from_fn(|_| OnceCell::new()),
        }
    }

    /// Returns the guide for agents and the guides, as texts for them.
    pub fn resources(&self) -> Vec<ResourceText> {
        let base_url = &self.config.base_url;
        let first = ResourceText {
            uri: format!("{base_url}/llms.txt"),
            name: "llms.txt",
            about: "What the service does, and how an agent calls it.".to_owned(),
            media_type: "text/plain",
            text: agents_guide(&self.config),
        };
        let guides = GUIDES.iter().map(|guide| ResourceText {
            uri: format!("{base_url}/_svc/docs/{}.md", guide.name),
            name: guide.name,
            about: format!("{}: {}", guide.title(), guide.about),
            media_type: "text/markdown",
            text: self
                .page_of(guide.name)
                .map_or_else(String::new, |page| page.text.clone()),
        });
        std::iter::once(first).chain(guides).collect()
    }

    /// Makes all pages off the async threads, if they are not made yet: it takes a while, and would hold up other requests. Call it before
    /// a page is served.
    async fn make_pages(&self) {
        let entries = Arc::clone(&self.entries);
        // A panic comes again where they are used.
        let _ = tokio::task::spawn_blocking(move || {
            LazyLock::force(&entries);
        })
        .await;
    }

    fn page_of(&self, name: &str) -> Option<&GuidePage> {
        self.entries.by_name.get(name)
    }

    /// Returns what the search of the pages looks through.
    ///
    /// # Errors
    /// Only when a compressor fails.
    async fn search_index(&self) -> io::Result<&EncodedDocument> {
        let make = || {
            let kind = HeaderValue::from_static("application/json");
            // A list of texts has no way to fail.
            let index = serde_json::to_vec(&self.entries.search_index()).unwrap_or_default();
            compressed_document(index.into(), headers(kind, REVALIDATE))
        };
        self.entries.index.get_or_try_init(make).await
    }

    /// Returns a page, if there is one of that name.
    ///
    /// # Errors
    /// Only when a compressor fails.
    async fn page(&self, name: &str) -> io::Result<Option<GuidePageAnswer<'_>>> {
        let Some(entry) = self.page_of(name) else {
            return Ok(None);
        };
        let text = GuidePageAnswer::Text(&entry.text);
        let Some(guest) = self.sandbox.renderer_digest() else {
            return Ok(Some(text));
        };
        // While all threads are busy, each reader would try to render it after the one before.
        let Ok(mut kept) = tokio::time::timeout(MAX_WAIT, entry.page.lock()).await else {
            return Ok(Some(text));
        };
        if let Some(kept) = kept.as_ref().filter(|kept| kept.by == guest) {
            let page = kept.document.as_ref().map(Arc::clone);
            return Ok(Some(page.map_or(text, GuidePageAnswer::Page)));
        }
        let shown = entry.shown.as_ref().unwrap_or(&entry.text);
        let rendering = self.render_text(rewriting::page_source(name, shown));
        let document = match rendering.await {
            Ok(page) => {
                let page = self.framed(name, page);
                Some(Arc::new(compressed_document(page, page_headers()).await?))
            }
            Err(RenderFailure::Busy | RenderFailure::Preparing) => return Ok(Some(text)),
            Err(error) => {
                tracing::warn!(guide = name, %error, "a guide cannot be rendered, and is served as it is written");
                None
            }
        };
        *kept = Some(RenderedGuidePage {
            by: guest,
            document: document.clone(),
        });
        Ok(Some(document.map_or(text, GuidePageAnswer::Page)))
    }

    /// Returns a picture of the guides, if there is one of that name.
    ///
    /// # Errors
    /// Only when a compressor fails.
    async fn image(&self, name: &str) -> io::Result<Option<&EncodedDocument>> {
        let Some(((_, bytes), image)) = IMAGES
            .iter()
            .zip(&self.images)
            .find(|((known, _), _)| *known == name)
        else {
            return Ok(None);
        };
        let make = || {
            let headers = headers(HeaderValue::from_static("image/webp"), REVALIDATE);
            compressed_document(Bytes::from_static(bytes), headers)
        };
        image.get_or_try_init(make).await.map(Some)
    }

    /// Returns the Markdown of a page, if there is one of that name.
    ///
    /// # Errors
    /// Only when a compressor fails.
    async fn markdown(&self, name: &str) -> io::Result<Option<&EncodedDocument>> {
        let Some(entry) = self.page_of(name) else {
            return Ok(None);
        };
        let make = || {
            let kind = HeaderValue::from_static("text/markdown; charset=utf-8");
            compressed_document(Bytes::from(entry.text.clone()), headers(kind, REVALIDATE))
        };
        entry.written.get_or_try_init(make).await.map(Some)
    }

    /// Puts the frame around a rendered page.
    fn framed(&self, name: &str, page: Bytes) -> Bytes {
        let text = std::str::from_utf8(&page).ok();
        let framed = text.and_then(|text| frame::frame(text, name, &self.entries.listed));
        framed.map_or(page, Bytes::from)
    }

    async fn render_text(&self, text: String) -> Result<Bytes, RenderFailure> {
        let source = RenderSource {
            content_type: ContentType::Markdown,
            title: None,
            name: None,
            text,
            runtime: None,
            page_bytes: usize::MAX,
            foot: None,
            is_private: false,
        };
        // Rendered as the server's own work, not as that of the first client.
        let rendering = CallerFlow::Server.scope(self.sandbox.render(source));
        Ok(rendering.await?.html)
    }
}

impl GuidePage {
    fn new(text: String) -> Self {
        Self {
            text,
            shown: None,
            written: OnceCell::new(),
            page: Mutex::new(None),
        }
    }
}

async fn compressed_document(bytes: Bytes, headers: HeaderMap) -> io::Result<EncodedDocument> {
    let compressing = tokio::task::spawn_blocking(move || EncodedDocument::new(bytes, &headers));
    compressing.await.map_err(io::Error::other)?
}

fn entries(config: &Config, description: &ApiDescription) -> GuidePages {
    let guides = GUIDES.iter().map(|guide| {
        let text = rewriting::rewrite_guide(guide.text, config);
        (guide.name.to_owned(), guide.title().to_owned(), text)
    });
    let reference = Reference::new(&description.value(), &config.base_url, REFERENCE);
    let parts = reference.parts.into_iter();
    let parts = parts.map(|part| (part.name, part.title, part.text));
    let (mut by_name, mut listed) = (BTreeMap::new(), Vec::new());
    let whole = (
        REFERENCE.to_owned(),
        "API reference".to_owned(),
        reference.whole,
    );
    for (name, title, text) in guides.chain([whole]).chain(parts) {
        by_name.insert(name.clone(), GuidePage::new(text));
        listed.push(ListedPage { name, title });
    }
    if let Some(page) = by_name.get_mut(REFERENCE) {
        page.shown = Some(reference.overview);
    }
    by_name.insert(
        INDEX_NAME.to_owned(),
        GuidePage::new(rewriting::index(&listed)),
    );
    GuidePages {
        by_name,
        listed,
        index: OnceCell::new(),
    }
}

impl GuidePages {
    /// Reads what the search looks through. Of the reference it is the parts, without their samples and tables.
    fn search_index(&self) -> SearchIndex {
        let pages = self.listed.iter().filter_map(|listed| {
            let page = self.by_name.get(&listed.name)?;
            let is_guide = GUIDES.iter().any(|guide| guide.name == listed.name);
            let text = page.shown.as_ref().unwrap_or(&page.text);
            Some(SearchedPage::read(
                &listed.name,
                &listed.title,
                text,
                is_guide,
            ))
        });
        SearchIndex {
            pages: pages.collect(),
        }
    }
}

fn headers(kind: HeaderValue, cache: HeaderValue) -> HeaderMap {
    HeaderMap::from_iter([
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, cache),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
    ])
}

fn page_headers() -> HeaderMap {
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    let mut headers = headers(kind, REVALIDATE);
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        frame::CONTENT_SECURITY_POLICY.clone(),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    headers
}
