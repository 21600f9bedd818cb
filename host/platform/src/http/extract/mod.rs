//! Extractors: they check a request's parts, so that a handler cannot forget to.
//!
//! A handler lists them in the order in which the checks run.

use std::borrow::Cow;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRef, FromRequest, FromRequestParts, Request};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use self::json_syntax::JsonSyntax;
use super::problem::{Problem, ProblemCode};
use super::query;
pub use super::query::{ApiQuery, NoQueryParams, UnparsedQuery};
use super::request_bodies::is_out_of_room;
pub use super::streamed_body::{RequiredBodyLength, StreamedBody};
use crate::config::Config;

/// Timeout of a body; of one that is read in parts, of each part.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of the smallest document that is read on a thread that may block.
const LARGE_DOCUMENT_BYTES: usize = 256 << 10;

/// Makes an `invalid_request`.
pub fn invalid_request(detail: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(ProblemCode::InvalidRequest, detail)
}

/// Refuses a text of more than `most` characters.
///
/// # Errors
/// `invalid_request`, naming the field.
pub fn check_characters(field: &str, text: Option<&str>, most: usize) -> Result<(), Problem> {
    match text.map(|text| text.chars().count()) {
        Some(length) if length > most => Err(invalid_request(format!(
            "`{field}` has {length} characters; {most} is the most."
        ))),
        _ => Ok(()),
    }
}

/// Credential of a request (RFC 6750, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresentedCredential<'a> {
    /// No credential, or an empty one, as sent by a client whose variable is not set.
    Missing,
    /// Another scheme than `Bearer`, or a malformed header.
    Malformed,
    /// A bearer token.
    Token(&'a str),
}

impl<'a> PresentedCredential<'a> {
    /// Reads the credential from headers.
    pub fn from_headers(headers: &'a HeaderMap) -> Self {
        let value = headers.get(header::AUTHORIZATION);
        value.map_or(Self::Missing, Self::from_value)
    }

    /// Reads the credential from the value of an `Authorization`.
    pub fn from_value(value: &'a HeaderValue) -> Self {
        let Ok(value) = value.to_str() else {
            return Self::Malformed;
        };
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        match (scheme, token.trim()) {
            ("", "") => Self::Missing,
            (scheme, "") if scheme.eq_ignore_ascii_case("bearer") => Self::Missing,
            (scheme, token) if scheme.eq_ignore_ascii_case("bearer") => Self::Token(token),
            _ => Self::Malformed,
        }
    }
}

/// A body whose declared length was checked and that is not read yet: the handler first checks that its target exists.
#[derive(Debug)]
pub struct UnreadBody {
    request: Request,
    limit: u64,
}

/// A parsed body.
#[derive(Debug)]
pub struct ParsedBody<T> {
    /// Parsed value.
    pub value: T,
    /// Bytes of the body, for the check of idempotency keys.
    pub raw: Bytes,
    /// Whether the body was a form, which a browser sends and whose answer is a page.
    pub form: bool,
}

impl<S> FromRequest<S> for UnreadBody
where
    S: Send + Sync,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        Self::new(request, Arc::from_ref(state).limits.body_bytes)
    }
}

/// An unread body of a publication: that of a site, which has many files, is larger than that of a page.
#[derive(Debug)]
pub struct PublicationBody(pub UnreadBody);

impl<S> FromRequest<S> for PublicationBody
where
    S: Send + Sync,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let limit = Arc::from_ref(state).limits.site_body_bytes;
        UnreadBody::new(request, limit).map(Self)
    }
}

impl UnreadBody {
    /// Wraps the body of a request, of at most `limit` bytes.
    ///
    /// # Errors
    /// `payload_too_large`, by the declared length; `unsupported_media_type`.
    pub fn new(request: Request, limit: u64) -> Result<Self, Problem> {
        check_length(request.headers(), limit)?;
        Ok(Self { request, limit })
    }

    /// Lowers the limit, on a route with a smaller one.
    ///
    /// # Errors
    /// `payload_too_large`, by the declared length.
    pub fn with_limit(mut self, limit: u64) -> Result<Self, Problem> {
        self.limit = self.limit.min(limit);
        check_length(self.request.headers(), self.limit)?;
        Ok(self)
    }

    /// Returns the headers, for what is checked before the body is read.
    pub fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// Reads the bytes; returns the request's head, too.
    ///
    /// # Errors
    /// The problem of the transfer.
    pub async fn read_with_head(self) -> Result<(Parts, Bytes), Problem> {
        let (parts, body) = self.request.into_parts();
        Ok((parts, read_body(body, self.limit).await?))
    }

    /// Reads the bytes, whatever the query parameters; the head is not kept meanwhile.
    ///
    /// # Errors
    /// The problem of the transfer.
    pub async fn bytes_alone(self) -> Result<Bytes, Problem> {
        read_body(self.request.into_body(), self.limit).await
    }

    /// Reads the bytes of a request that may have no query parameters.
    ///
    /// # Errors
    /// The problem of the query or the transfer.
    pub async fn bytes(self) -> Result<Bytes, Problem> {
        NoQueryParams::check(self.request.uri().query())?;
        read_body(self.request.into_body(), self.limit).await
    }

    /// Reads the bytes and the query parameters.
    ///
    /// # Errors
    /// The problem of the query or the transfer.
    pub async fn bytes_and_query<Q: DeserializeOwned>(self) -> Result<(Bytes, Q), Problem> {
        let query = query::parse_query(self.request.uri().query())?;
        Ok((
            read_body(self.request.into_body(), self.limit).await?,
            query,
        ))
    }

    /// Reads JSON, whatever the `Content-Type`, of a request that may have no query parameters.
    ///
    /// # Errors
    /// The problem of the query, the transfer or the document.
    pub async fn json<T>(self) -> Result<ParsedBody<T>, Problem>
    where
        T: DeserializeOwned + Send + 'static,
    {
        NoQueryParams::check(self.request.uri().query())?;
        self.json_only().await
    }

    /// Reads JSON and the query parameters.
    ///
    /// # Errors
    /// Like [`UnreadBody::json`].
    pub async fn json_and_query<T, Q>(self) -> Result<(ParsedBody<T>, Q), Problem>
    where
        T: DeserializeOwned + Send + 'static,
        Q: DeserializeOwned,
    {
        let query = query::parse_query(self.request.uri().query())?;
        Ok((self.json_only().await?, query))
    }

    /// Reads JSON like [`UnreadBody::json`]; an empty body means an empty object.
    ///
    /// # Errors
    /// Like [`UnreadBody::json`].
    pub async fn json_or_nothing<T: DeserializeOwned + Default>(self) -> Result<T, Problem> {
        let raw = self.bytes().await?;
        match raw.trim_ascii() {
            b"" => Ok(T::default()),
            _ => parse_json(&raw),
        }
    }

    async fn json_only<T>(self) -> Result<ParsedBody<T>, Problem>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let raw = read_body(self.request.into_body(), self.limit).await?;
        Ok(ParsedBody {
            value: read_document(&raw, parse_json::<T>).await??,
            raw,
            form: false,
        })
    }

    /// Reads a form, whatever the `Content-Type` and the query parameters.
    ///
    /// # Errors
    /// The problem of the transfer or the form.
    pub async fn form<T: DeserializeOwned>(self) -> Result<T, Problem> {
        parse_form(&self.bytes_alone().await?)
    }

    /// Reads `application/x-www-form-urlencoded` as a form, and everything else as JSON. A body that begins with `{` is JSON in any case:
    /// `curl -d` sends everything with the form's type.
    ///
    /// # Errors
    /// Like [`UnreadBody::json`].
    pub async fn form_or_json<T>(self) -> Result<ParsedBody<T>, Problem>
    where
        T: DeserializeOwned + Send + 'static,
    {
        if !is_form(self.request.headers()) {
            return self.json().await;
        }
        NoQueryParams::check(self.request.uri().query())?;
        let raw = read_body(self.request.into_body(), self.limit).await?;
        if raw.trim_ascii_start().first() == Some(&b'{') {
            let value = parse_json(&raw)?;
            return Ok(ParsedBody {
                value,
                raw,
                form: false,
            });
        }
        Ok(ParsedBody {
            value: parse_form(&raw)?,
            raw,
            form: true,
        })
    }
}

fn parse_form<T: DeserializeOwned>(raw: &[u8]) -> Result<T, Problem> {
    serde_urlencoded::from_bytes(raw)
        .map_err(|error| invalid_request(format!("In the form: {error}.")))
}

/// Whether the `Content-Type` is that of a form.
pub fn is_form(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .is_some_and(|value| {
            let media = value.split(';').next().unwrap_or_default().trim();
            media.eq_ignore_ascii_case("application/x-www-form-urlencoded")
        })
}

/// Proof that the declared length of the body is within the limit, for handlers that read none.
#[derive(Clone, Copy, Debug)]
pub struct CheckedBodyLength;

impl<S> FromRequestParts<S> for CheckedBodyLength
where
    S: Send + Sync,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        check_length(&parts.headers, Arc::from_ref(state).limits.body_bytes)?;
        Ok(Self)
    }
}

/// Refuses a request that has one of these headers twice: a proxy may read the first where the server reads the last.
///
/// # Errors
/// `invalid_request`.
pub fn check_single_headers(headers: &HeaderMap, names: &[HeaderName]) -> Result<(), Problem> {
    let twice = |name: &&HeaderName| headers.get_all(*name).iter().nth(1).is_some();
    match names.iter().find(twice) {
        Some(name) => Err(invalid_request(format!(
            "The request has the header `{name}` more than once. Send it once."
        ))),
        None => Ok(()),
    }
}

/// Refuses a body by its declared length or coding, before any of it is read.
///
/// # Errors
/// `payload_too_large` or `unsupported_media_type`.
pub fn check_length(headers: &HeaderMap, limit: u64) -> Result<(), Problem> {
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: u64| length > limit) {
        return Err(body_too_large(limit));
    }
    match headers.get(header::CONTENT_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => Err(Problem::new(
            ProblemCode::UnsupportedMediaType,
            "The body has a Content-Encoding. Send it as it is.",
        )
        .header(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        )),
        _ => Ok(()),
    }
}

async fn read_body(body: Body, limit: u64) -> Result<Bytes, Problem> {
    let limited = Limited::new(body, usize::try_from(limit).unwrap_or(usize::MAX));
    let mut collected = std::pin::pin!(limited.collect());
    // Most bodies arrive with their head, and need no timer.
    let now = std::future::poll_fn(|context| Poll::Ready(collected.as_mut().poll(context)));
    let arrived = match now.await {
        Poll::Ready(arrived) => Ok(arrived),
        Poll::Pending => tokio::time::timeout(BODY_TIMEOUT, collected).await,
    };
    match arrived {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(body_too_large(limit)),
        Ok(Err(error)) => Err(broken_body(&*error)),
        Err(_) => Err(Problem::new(
            ProblemCode::Timeout,
            format!(
                "The body did not arrive within {} seconds.",
                BODY_TIMEOUT.as_secs()
            ),
        )),
    }
}

/// Makes the problem of a body that ended with an error.
pub fn broken_body(error: &(dyn std::error::Error + 'static)) -> Problem {
    if is_out_of_room(error) {
        return Problem::new(
            ProblemCode::CapacityReached,
            "The server waits for too many bodies that arrive slowly. Try again in a minute, with fewer requests at once.",
        );
    }
    Problem::new(ProblemCode::InvalidRequest, "The body broke off.")
}

/// Makes the 413 of a body that exceeds its route's limit.
pub fn body_too_large(limit: u64) -> Problem {
    Problem::new(
        ProblemCode::PayloadTooLarge,
        format!("The request body is larger than {limit} bytes, which is all this route takes."),
    )
}

/// Reads a document by a function: a large one on a thread that may block, because other requests would wait for this one for
/// milliseconds.
///
/// # Errors
/// `internal` if the function panics.
pub async fn read_document<T: Send + 'static>(
    document: &Bytes,
    read: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Result<T, Problem> {
    if document.len() < LARGE_DOCUMENT_BYTES {
        return Ok(read(document));
    }
    let document = document.clone();
    let reading = tokio::task::spawn_blocking(move || read(&document));
    reading.await.map_err(|error| Problem::internal(&error))
}

/// Parses a JSON object: a syntax error is `invalid_json`, and a value that does not fit is `invalid_request` with its path.
///
/// # Errors
/// `invalid_json` or `invalid_request`.
pub fn parse_json<T: DeserializeOwned>(raw: &[u8]) -> Result<T, Problem> {
    let raw = without_byte_order_mark(raw);
    // serde would accept an array of the fields' values, too.
    if raw.trim_ascii_start().first() != Some(&b'{') {
        return Err(unparsable_json(raw, "It must be an object"));
    }
    // Most documents are valid, and need no tracking of paths.
    if let Ok(value) = serde_json::from_slice(raw) {
        return Ok(value);
    }
    let mut reader = serde_json::Deserializer::from_slice(raw);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let error = error.into_inner();
        if path == "." {
            unparsable_json(raw, &error.to_string())
        } else {
            unparsable_json(raw, &format!("`{path}`: {error}"))
        }
    })?;
    reader.end().map_err(|error| invalid_json(&error))?;
    Ok(value)
}

/// Returns a document without its byte order mark, which some editors write and readers ignore (RFC 8259, section 8.1).
pub fn without_byte_order_mark(raw: &[u8]) -> &[u8] {
    raw.strip_prefix(b"\xef\xbb\xbf").unwrap_or(raw)
}

/// Makes the problem of a body that does not fit: a syntax error takes precedence wherever parsing stopped.
fn unparsable_json(raw: &[u8], why: &str) -> Problem {
    match serde_json::from_slice::<JsonSyntax>(raw) {
        // A number out of range is valid JSON, and does not fit the field.
        Err(error) if !error.to_string().starts_with("number out of range") => invalid_json(&error),
        _ => Problem::new(ProblemCode::InvalidRequest, format!("In the body: {why}.")),
    }
}

fn invalid_json(error: &serde_json::Error) -> Problem {
    Problem::new(
        ProblemCode::InvalidJson,
        format!("The body is not valid JSON: {error}."),
    )
}

mod json_syntax;
#[cfg(test)]
mod tests;
