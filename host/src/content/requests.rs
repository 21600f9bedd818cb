//! Requests to a store of other machines, by the one client that asks other servers: bounded in time and in bytes.

use std::pin::Pin;
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
use url::Url;

use crate::outbound::{Outbound, OutboundError};

/// How long one request may take, with its answer; one that writes takes a second more for each so many bytes.
const TIME: Duration = Duration::from_secs(20);
const BYTES_A_SECOND: usize = 256 << 10;
/// The most bytes of an answer: many times what an object may have by the default limits.
const BYTES: usize = 256 << 20;
/// The most characters of an error that are told.
const TOLD: usize = 200;

/// Gives out the client.
#[derive(Debug)]
pub(super) struct Connector(pub(super) Outbound);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let service = Requests(self.0.clone());
        // Connections live where they were made, and a command's thread with a runtime of its own ends before the server.
        Ok(HttpClient::new(SpawnService::new(
            service,
            Handle::current(),
        )))
    }
}

#[derive(Clone, Debug)]
struct Requests(Outbound);

impl HttpService for Requests {
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

impl Requests {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let url = Url::parse(&parts.uri.to_string());
        let url = url.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let mut request = reqwest::Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        let seconds = Duration::from_secs((body.len() / BYTES_A_SECOND) as u64);
        *request.timeout_mut() = Some(TIME + seconds);
        if !body.is_empty() || *request.method() == Method::PUT {
            *request.body_mut() = Some(body.into());
        }
        let answer = self.0.send(request, BYTES).await.map_err(failed)?;
        let body = match answer.status.is_client_error() || answer.status.is_server_error() {
            true => Bytes::from(told(&answer.body)),
            false => answer.body,
        };
        if is_refusal(answer.status) {
            let said = String::from_utf8_lossy(&body).into_owned();
            let refused = Refused(answer.status, said);
            return Err(HttpError::new(HttpErrorKind::Decode, refused));
        }
        let mut response = HttpResponse::new(body.into());
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

/// A status by which the store has answered and done nothing.
#[derive(Debug, thiserror::Error)]
#[error("{0}: {1}")]
struct Refused(StatusCode, String);

/// Whether the library has no error of its own for a status that says no. It has one for each of these, or sends them again.
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

fn failed(error: OutboundError) -> HttpError {
    let kind = match error {
        OutboundError::Timeout => HttpErrorKind::Timeout,
        OutboundError::TooLarge => HttpErrorKind::Decode,
        OutboundError::Failed(_) => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, error)
}

/// Code and message of an error as the protocol writes them. The rest of the document may name a key and what was signed by it.
fn told(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0)
    };
    let said = ["Code", "Message"].into_iter().filter_map(element);
    let said = said.collect::<Vec<_>>().join(": ");
    let printable = said.chars().filter(|c| !c.is_control());
    printable.take(TOLD).collect()
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
            assert_eq!(told(body.as_bytes()), said);
        }
        let long = format!("<Code>Slow</Code><Message>{}</Message>", "é".repeat(300));
        assert_eq!(told(long.as_bytes()).chars().count(), TOLD);
        assert_eq!(told(b"<Code>\xff\x00</Code>"), "\u{fffd}");
    }
}
