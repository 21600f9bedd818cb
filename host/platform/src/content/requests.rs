//! HTTP requests to a remote store, by the host's outbound client: bounded in time and in bytes.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    SpawnService,
};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use url::Url;

use crate::outbound::{OutboundClient, OutboundError, OutboundResponse};

/// Timeout of a request with its answer; a write has a second more for each `BYTES_PER_SECOND`.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
const BYTES_PER_SECOND: usize = 256 << 10;
/// Both for the store of a cluster.
const SHARED_REQUEST_TIMEOUT: Duration = Duration::from_secs(4);
const SHARED_BYTES_PER_SECOND: usize = 8 << 20;
/// Lower bound of the limit on an answer's bytes, however small pages may be; and the limit on an error's bytes.
const MIN_ANSWER_LIMIT: usize = 64 << 20;
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Most requests at once.
const MAX_CONCURRENT: usize = 64;
/// S3's error code of a missing object.
const NO_OBJECT_CODE: &str = "NoSuchKey";
/// Most characters of an error that are passed on.
const MAX_ERROR_CHARS: usize = 200;

/// Connector to a remote store.
#[derive(Clone, Debug)]
pub struct StoreConnector(BoundedStoreClient);

impl StoreConnector {
    /// Makes a connector for a store of pages of at most `page_bytes`.
    pub fn new(outbound: OutboundClient, page_bytes: u64) -> Self {
        // An object has a page in all its encodings.
        let page_bytes = usize::try_from(page_bytes).unwrap_or(usize::MAX);
        Self(BoundedStoreClient {
            outbound,
            bytes: page_bytes.saturating_mul(4).max(MIN_ANSWER_LIMIT),
            turns: Arc::new(Semaphore::new(MAX_CONCURRENT)),
            timeout: REQUEST_TIMEOUT,
            bytes_per_second: BYTES_PER_SECOND,
        })
    }

    /// Makes a connector for the store of a cluster, which answers soon or not at all: a node that waits for it keeps others waiting.
    pub fn for_cluster(outbound: OutboundClient, page_bytes: u64) -> Self {
        Self(BoundedStoreClient {
            timeout: SHARED_REQUEST_TIMEOUT,
            bytes_per_second: SHARED_BYTES_PER_SECOND,
            ..Self::new(outbound, page_bytes).0
        })
    }
}

impl HttpConnector for StoreConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let service = self.0.clone();
        // Connections belong to the runtime that made them, and a command's own runtime ends before the server's.
        Ok(HttpClient::new(SpawnService::new(
            service,
            Handle::current(),
        )))
    }
}

#[derive(Clone, Debug)]
struct BoundedStoreClient {
    outbound: OutboundClient,
    /// Most bytes of an answer.
    bytes: usize,
    turns: Arc<Semaphore>,
    /// Timeout of a request with its answer,
    timeout: Duration,
    /// and bytes for which a write has a second more.
    bytes_per_second: usize,
}

impl HttpService for BoundedStoreClient {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(self.send(request))
    }
}

impl BoundedStoreClient {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let url = Url::parse(&parts.uri.to_string());
        let url = url.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let mut request = reqwest::Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        let seconds = Duration::from_secs((body.len() / self.bytes_per_second) as u64);
        *request.timeout_mut() = Some(self.timeout + seconds);
        if !body.is_empty() || *request.method() == Method::PUT {
            *request.body_mut() = Some(body.into());
        }
        let is_read = *request.method() == Method::GET;
        let answer = self.ask(request).await?;
        let is_error = is_error(answer.status);
        let body = match is_error {
            true => Bytes::from(error_summary(&answer.body)),
            false => answer.body.clone(),
        };
        // A 404 for another reason than a missing object: of the bucket, or from a proxy.
        let is_foreign_answer = is_read
            && answer.status == StatusCode::NOT_FOUND
            && xml_element(&answer.body, "Code").as_deref() != Some(NO_OBJECT_CODE);
        if is_foreign_answer || is_refusal(answer.status) {
            let kind = match is_foreign_answer {
                true => HttpErrorKind::Unknown,
                false => HttpErrorKind::Decode,
            };
            let said = String::from_utf8_lossy(&body).into_owned();
            return Err(HttpError::new(
                kind,
                RefusedStoreRequest(answer.status, said),
            ));
        }
        let mut response = HttpResponse::new(body.into());
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }

    async fn ask(&self, request: reqwest::Request) -> Result<OutboundResponse, HttpError> {
        let turn = self.turns.acquire().await;
        let _turn = turn.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let most = |status| match is_error(status) {
            true => MAX_ERROR_BYTES,
            false => self.bytes,
        };
        let answer = self.outbound.send(request, most).await;
        answer.map_err(to_http_error)
    }
}

fn is_error(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

/// A status by which the store has refused a request.
#[derive(Debug, thiserror::Error)]
#[error("{0}: {1}")]
struct RefusedStoreRequest(StatusCode, String);

/// Whether a status is a refusal that the library does not handle: it maps or retries the listed ones.
fn is_refusal(status: StatusCode) -> bool {
    let known = matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::CONFLICT
            | StatusCode::PRECONDITION_FAILED
            | StatusCode::TOO_MANY_REQUESTS
    );
    status.is_client_error() && !known
}

fn to_http_error(error: OutboundError) -> HttpError {
    let kind = match error {
        OutboundError::Timeout => HttpErrorKind::Timeout,
        OutboundError::TooLarge => HttpErrorKind::Decode,
        OutboundError::Unconnected(_) => HttpErrorKind::Connect,
        OutboundError::Failed(_) => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, error)
}

/// Returns code and message of an S3 error document. The rest of it may name a key and a signed string.
fn error_summary(body: &[u8]) -> String {
    let names = ["Code", "Message"].into_iter();
    let said = names.filter_map(|name| xml_element(body, name));
    let said = said.collect::<Vec<_>>().join(": ");
    let printable = said.chars().filter(|c| !c.is_control());
    printable.take(MAX_ERROR_CHARS).collect()
}

/// Returns the text of an XML element.
fn xml_element(body: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_error_its_code_and_message_are_told() {
        let long = format!("<Error><Code>Slow</Code><Message>{}\n", "é".repeat(300));
        for (body, said) in [
            (
                "<?xml version='1.0'?><Error><Code>SignatureDoesNotMatch</Code><Message>Check\n your key.</Message><AWSAccessKeyId>secret</AWSAccessKeyId></Error>",
                "SignatureDoesNotMatch: Check your key.",
            ),
            ("<Error><Code>NoSuchKey</Code></Error>", "NoSuchKey"),
            ("<html>secret", ""),
            (long.as_str(), "Slow"),
            ("", ""),
        ] {
            assert_eq!(error_summary(body.as_bytes()), said);
        }
        let long = format!("<Code>Slow</Code><Message>{}</Message>", "é".repeat(300));
        assert_eq!(
            error_summary(long.as_bytes()).chars().count(),
            MAX_ERROR_CHARS
        );
        assert_eq!(error_summary(b"<Code>\xff\x00</Code>"), "\u{fffd}");
    }
}
