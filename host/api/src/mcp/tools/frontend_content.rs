//! `content` of `manage_frontend`: a page's source, a site's list of files, or one of them, as much as fits into a result.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::find::SourceSearch;
use super::{ToolSession, to_json};
use crate::access::Viewer;
use crate::config::Config;
use crate::deployments::frontends::scope::AuthorizedFrontend;
use crate::deployments::revisions::sites::operations as sites;
use crate::deployments::revisions::sites::requests::SiteQuery;
use crate::deployments::revisions::views::ContentView;
use crate::deployments::revisions::{RevisionError, operations as revisions};
use crate::deployments::sites::{MediaType, url_path};
use crate::http::extract::invalid_request;
use crate::http::problem::Problem;
use crate::mcp::arguments::ToolArguments;
use crate::mcp::results;

/// Largest file of a site that is read, in bytes: as large as the source of a page may be.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Member of an answer with the text, of a page or of a file.
const TEXT_MEMBER: &str = "content";
/// Member of an answer with the bytes of a file that is no text.
const BYTES_MEMBER: &str = "base64";
/// Note in place of a file that no result can hold.
const FILE_NOTE: &str = "The file is too large for a tool, or no text. GET the url with the header Authorization: Bearer <the credential of this connection>, which never goes into a URL or a page.";

/// Part of a source that a call asks for.
struct WantedPart {
    offset: Option<usize>,
    limit: Option<usize>,
    find: Option<SourceSearch>,
}

impl WantedPart {
    fn take(arguments: &mut ToolArguments) -> Result<Self, Problem> {
        let wanted = Self {
            offset: arguments.count("offset")?,
            limit: arguments.count("limit")?,
            find: arguments.optional("find", "a text, or the number of a line")?,
        };
        if wanted.find.is_some() && (wanted.offset.is_some() || wanted.limit.is_some()) {
            return Err(invalid_request(
                "In the arguments: `find` is sent without `offset` and `limit`.",
            ));
        }
        match wanted.limit {
            Some(0) => Err(invalid_request("`limit` must be at least 1.")),
            _ => Ok(wanted),
        }
    }

    /// Whether no part is named.
    fn is_whole(&self) -> bool {
        self.offset.is_none() && self.limit.is_none()
    }

    /// Returns where to begin, and how much of `total` is asked for.
    fn range(&self, total: usize, (whole, parts): (&str, &str)) -> Result<(usize, usize), Problem> {
        let start = self.offset.unwrap_or(0);
        if start > total {
            return Err(invalid_request(format!(
                "`offset` is {start}, and {whole} has {total} {parts}."
            )));
        }
        Ok((start, self.limit.unwrap_or(total).min(total - start)))
    }
}

/// Returns a source: a range of it, or with `find` the lines around each match.
pub(super) async fn content(
    session: &ToolSession,
    mut arguments: ToolArguments,
) -> Result<Value, Problem> {
    let service = Arc::clone(&session.services.revisions);
    let at: AuthorizedFrontend<Viewer> = session.frontend(&mut arguments).await?;
    let wanted = WantedPart::take(&mut arguments)?;
    let path: Option<String> = arguments.optional("path", "the path of a file")?;
    let is_list = at.frontend.content_type.is_site() && path.is_none();
    if wanted.find.is_some() {
        if is_list {
            return Err(invalid_request(
                "In the arguments: `find` looks into one file of a site: send its `path`, too.",
            ));
        }
        // A caller that searches a source is about to change it, and needs the id of the active revision.
        let target = at.target();
        service.begin_history(at.project(), &target).await?;
    }
    if let Some(path) = path {
        return file_content(session, at, (path, arguments), &wanted).await;
    }
    let source = revisions::content(service, at, arguments.parse_rest()?).await?;
    let mut document = to_json(&source)?;
    match &source {
        ContentView::Unchanged { .. } => Ok(document),
        ContentView::Content { content, .. } => match &wanted.find {
            Some(find) => {
                let mut found = find.run(content)?;
                for member in ["type", "revision_id"] {
                    found[member] = document[member].take();
                }
                Ok(found)
            }
            None => text_range(document, content, &wanted),
        },
        ContentView::Site { .. } => files_range(document, &wanted),
    }
}

/// Returns one file of a site: a text as a page's source is, anything else in base64.
async fn file_content(
    session: &ToolSession,
    at: AuthorizedFrontend<Viewer>,
    (path, mut arguments): (String, ToolArguments),
    wanted: &WantedPart,
) -> Result<Value, Problem> {
    let service = Arc::clone(&session.services.revisions);
    let known: Option<String> = arguments.optional("known_content_sha256", "a SHA-256")?;
    let query: SiteQuery = arguments.parse_rest()?;
    let url = file_url(&session.services.config, &at, (&path, &query));
    let file = sites::get_file(service, at, (path, query)).await?;
    let digest = file.reader.digest().to_string();
    if known.is_some_and(|known| known.eq_ignore_ascii_case(&digest)) {
        return Ok(json!({ "unchanged": true, "sha256": digest }));
    }
    let about = json!({
        "path": file.path,
        "sha256": digest,
        "size": file.reader.bytes(),
        "media_type": MediaType::of(&file.path).as_str(),
        "revision_id": file.revision,
    });
    if file.reader.bytes() > MAX_FILE_BYTES {
        return Ok(elsewhere(about, url));
    }
    let bytes = file.read_whole().await.map_err(RevisionError::from)?;
    match (as_text(&bytes), &wanted.find) {
        (Some(text), Some(find)) => {
            let mut found = find.run(text)?;
            for member in ["path", "revision_id"] {
                found[member] = about[member].clone();
            }
            Ok(found)
        }
        (Some(text), None) => {
            let mut document = about;
            document[TEXT_MEMBER] = text.into();
            text_range(document, text, wanted)
        }
        (None, _) => bytes_content(about, &bytes, url, wanted),
    }
}

/// Returns the text of a file that is one. No text has the character NUL, and small pictures may be UTF-8 otherwise.
fn as_text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// Returns a file that is no text, if a result can hold it.
fn bytes_content(
    about: Value,
    bytes: &Bytes,
    url: String,
    wanted: &WantedPart,
) -> Result<Value, Problem> {
    if wanted.find.is_some() || !wanted.is_whole() {
        return Err(invalid_request(
            "In the arguments: `find`, `offset` and `limit` are for texts, and the file is none.",
        ));
    }
    if bytes.len() > results::RESULT_BYTES {
        return Ok(elsewhere(about, url));
    }
    let mut document = about.clone();
    document[BYTES_MEMBER] = STANDARD.encode(bytes).into();
    match results::fits_in_result(&document) {
        true => Ok(document),
        false => Ok(elsewhere(about, url)),
    }
}

/// Says where REST answers a file.
fn elsewhere(mut about: Value, url: String) -> Value {
    about["url"] = url.into();
    about["note"] = FILE_NOTE.into();
    about
}

/// Returns the URL at which REST answers a file.
fn file_url(
    config: &Config,
    at: &AuthorizedFrontend<Viewer>,
    (path, query): (&str, &SiteQuery),
) -> String {
    let revision = query.revision_id.as_deref();
    let revision = revision.map_or(String::new(), |id| format!("?revision_id={id}"));
    format!(
        "{}/api/v1/projects/{}/frontends/{}/files/{}{revision}",
        config.base_url,
        at.project().id,
        at.frontend.id,
        url_path(path)
    )
}

/// Returns a text, or a range of it in characters: as much as was requested and fits into a result. The document has all of it.
fn text_range(mut document: Value, text: &str, wanted: &WantedPart) -> Result<Value, Problem> {
    if wanted.is_whole() && results::fits_in_result(&document) {
        return Ok(document);
    }
    let total = text.chars().count();
    let (start, length) = wanted.range(total, ("the source", "characters"))?;
    document[TEXT_MEMBER] = "".into();
    document["offset"] = start.into();
    document["total_characters"] = total.into();
    document["next_offset"] = total.into();
    document["note"] = format!("This is not the whole source: read on with offset {total}.").into();
    let part = || text.chars().skip(start).take(length);
    let taken = results::fitting_chars(&document, part());
    let next = start + taken;
    document[TEXT_MEMBER] = part().take(taken).collect::<String>().into();
    set_next(&mut document, next, total, "the whole source");
    Ok(document)
}

/// Returns the list of a site's files, or a part of it: as much as was requested and fits into a result.
fn files_range(mut document: Value, wanted: &WantedPart) -> Result<Value, Problem> {
    if wanted.is_whole() && results::fits_in_result(&document) {
        return Ok(document);
    }
    let Value::Object(files) = document["files"].take() else {
        return Ok(document);
    };
    let total = files.len();
    let (start, length) = wanted.range(total, ("the site", "files"))?;
    document["files"] = json!({});
    document["offset"] = start.into();
    document["total_files"] = total.into();
    document["next_offset"] = total.into();
    document["note"] = format!("This is not all files: read on with offset {total}.").into();
    let part: Vec<(String, Value)> = files.into_iter().skip(start).take(length).collect();
    let taken = results::fitting_members(&document, &part);
    document["files"] = Value::Object(part.into_iter().take(taken).collect());
    set_next(&mut document, start + taken, total, "all files");
    Ok(document)
}

/// Says in an answer where the next part begins, if there is one.
fn set_next(document: &mut Value, next: usize, total: usize, whole: &str) {
    if next < total {
        document["next_offset"] = next.into();
        document["note"] = format!("This is not {whole}: read on with offset {next}.").into();
        return;
    }
    document["next_offset"] = Value::Null;
    if let Value::Object(members) = document {
        members.remove("note");
    }
}
