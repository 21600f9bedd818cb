//! HTTP client for the server's REST API. Failures describe a missing or unexpected answer.

mod failures;
mod stream;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::redirect::Policy;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::Url;

use self::failures::{not_an_answer, too_large, too_slow};
use super::endpoints::{self, Endpoint};
use super::error::{CliFailure, FailureExitCode, Result};
use super::json_requested;
use super::output::print_error;
use super::profile::{
    FolderTarget, ServerSelectionArgs, ServerWithCredential, is_local, is_unencrypted,
};
use super::responses::{self, LEAST_RATE, ResponseBodyError};
use svc_base::random::Random;
use svc_outbound::{LOOPBACK, NO_ROOT_CERTIFICATES};

/// Time limit for a connection to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a silent server.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit for a whole answer that is read into memory, against servers that send very slowly.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);
/// Time limit for reading the API description, which only makes an error clearer.
const DESCRIPTION_TIMEOUT: Duration = Duration::from_secs(5);
/// The most retries when the server is busy.
const MAX_RETRIES: u32 = 5;
/// The longest wait before a retry, in seconds.
const MAX_RETRY_SECONDS: u64 = 60;
/// Bytes of a file that a slow line takes in a second at least.
const LEAST_UPLOAD_RATE: u64 = 16 << 10;
/// Parameter that is the rest of a path, with the slashes in it.
const REST_OF_PATH: &str = "{path}";
/// Characters of a path segment that need no escape.
const UNESCAPED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Client of one server, with the caller's credential.
#[derive(Clone, Debug)]
pub(super) struct ApiClient {
    client: reqwest::Client,
    target: ServerWithCredential,
    /// Whether to retry when the server is busy, as long work does.
    retries_when_busy: bool,
}

/// A request that is not sent yet.
#[derive(Debug)]
pub(super) struct ApiRequestBuilder<'a> {
    api: &'a ApiClient,
    call: &'static Endpoint,
    url: Url,
    /// Path segment that would change the path, such as `..`; the request fails then.
    invalid_part: Option<String>,
    body: Option<Value>,
    /// Body that is no document.
    bytes: Option<Bytes>,
    bearer: Option<String>,
    /// Idempotency key; one is made at random if the endpoint needs it.
    key: Option<String>,
    /// Id after whose event a stream of events begins; `None` for an answer that is no stream.
    events: Option<String>,
}

impl ApiClient {
    /// Client of the server that the command line, the environment or a profile names.
    ///
    /// # Errors
    /// When the address is not valid, or the profile does not exist.
    pub(super) fn new(remote: &ServerSelectionArgs) -> Result<Self> {
        Self::for_server(remote.target()?)
    }

    /// Client of the server that a folder is for.
    ///
    /// # Errors
    /// As of `new`, and when the login is for another server.
    pub(super) fn for_folder(remote: &ServerSelectionArgs, folder: &FolderTarget) -> Result<Self> {
        Self::for_server(remote.target_for(folder)?)
    }

    /// Client of the same server that sends no credential.
    ///
    /// # Errors
    /// As of `new`.
    pub(super) fn without_credential(remote: &ServerSelectionArgs) -> Result<Self> {
        Self::for_server(remote.target_without_credential()?)
    }

    /// Client of a given server.
    ///
    /// # Errors
    /// When the server uses HTTPS and this machine has no root certificates.
    pub(super) fn for_server(target: ServerWithCredential) -> Result<Self> {
        Self::with_read_timeout(target, Some(READ_TIMEOUT))
    }

    /// Client of the same server for files. It waits for a busy server, and for as long as a slow line takes: a server is silent while it
    /// reads.
    ///
    /// # Errors
    /// As of `for_server`.
    pub(super) fn for_uploads(&self) -> Result<Self> {
        Self::with_read_timeout(self.target.clone(), None).map(Self::with_retries)
    }

    fn with_read_timeout(
        target: ServerWithCredential,
        read_timeout: Option<Duration>,
    ) -> Result<Self> {
        let local = is_local(&target.server).then(|| target.server.host_str().unwrap_or_default());
        let settings = || {
            let mut builder = svc_outbound::client_builder();
            if let Some(name) = local {
                // A credential for this machine is sent to no proxy, and to no address that another machine's resolver says.
                builder = builder.no_proxy().resolve_to_addrs(name, &LOOPBACK);
            }
            if let Some(timeout) = read_timeout {
                builder = builder.read_timeout(timeout);
            }
            builder
                .user_agent(concat!("svc/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT_TIMEOUT)
                .redirect(Policy::none())
        };
        let (client, has_authorities) = svc_outbound::build_client(settings)
            .map_err(|error| CliFailure::local(format!("No client of HTTP: {error}.")))?;
        if !has_authorities && target.server.scheme() == "https" {
            let server = target.server.as_str();
            let detail = format!("{server} cannot be reached: {NO_ROOT_CERTIFICATES}.");
            return Err(CliFailure::new(
                FailureExitCode::NoAnswer,
                "No connection",
                detail,
            ));
        }
        Ok(Self {
            client,
            target,
            retries_when_busy: false,
        })
    }

    /// Turns on retries when the server is busy.
    #[must_use]
    pub(super) fn with_retries(mut self) -> Self {
        self.retries_when_busy = true;
        self
    }

    /// Base URL of the server.
    pub(super) fn server_url(&self) -> &Url {
        &self.target.server
    }

    /// URL of the server for messages, without the slash at the end.
    pub(super) fn server_address(&self) -> &str {
        self.target.server.as_str().trim_end_matches('/')
    }

    /// Environment of the folder that the command works for, where one was chosen.
    pub(super) fn environment(&self) -> Option<&str> {
        self.target.environment.as_deref()
    }

    /// Prepares a request; `parts` fill the parameters of the path.
    pub(super) fn call(&self, call: &'static Endpoint, parts: &[&str]) -> ApiRequestBuilder<'_> {
        let is_dot_segment = |part: &str| matches!(part, "" | "." | "..");
        let names_rest = call.path.ends_with(REST_OF_PATH);
        let is_invalid = |part: &&&str| match names_rest {
            true => part.split('/').any(is_dot_segment),
            false => is_dot_segment(part),
        };
        let invalid_part = parts.iter().find(is_invalid);
        let invalid_part = invalid_part.map(|part| (*part).to_owned());
        let mut parts = parts.iter();
        let encode = |part: &str| utf8_percent_encode(part, UNESCAPED_CHARACTERS).to_string();
        let segments = call.path.split('/').map(|segment| match segment {
            REST_OF_PATH => {
                let rest = parts.next().copied().unwrap_or_default();
                rest.split('/').map(encode).collect::<Vec<_>>().join("/")
            }
            _ if segment.starts_with('{') => encode(parts.next().copied().unwrap_or_default()),
            _ => segment.to_owned(),
        });
        let path = segments.collect::<Vec<_>>().join("/");
        let mut url = self.target.server.clone();
        url.set_path(&path);
        ApiRequestBuilder {
            api: self,
            call,
            url,
            invalid_part,
            body: None,
            bytes: None,
            bearer: self.target.credential.clone(),
            key: None,
            events: None,
        }
    }

    /// Lists the parts of a request that the server's API description does not have; empty if it cannot be read.
    async fn unknown_parts(&self, call: &Endpoint, query: &[&str], body: &[&str]) -> Vec<String> {
        let look = async {
            let url = self.target.server.join(endpoints::DESCRIPTION.path).ok()?;
            let asked = self
                .client
                .get(url)
                .timeout(DESCRIPTION_TIMEOUT)
                .send()
                .await
                .ok()?;
            let bytes =
                responses::read_body(asked, endpoints::DESCRIPTION.response_rules.max_bytes)
                    .await
                    .ok()?;
            let description = responses::parse_json(&bytes)?;
            description.get("paths")?;
            Some(endpoints::unknown_parts(&description, call, query, body))
        };
        look.await.unwrap_or_default()
    }
}

impl ApiRequestBuilder<'_> {
    /// Adds a query parameter, if it has a value.
    #[must_use]
    pub(super) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        debug_assert!(
            self.call.query.contains(&name),
            "{name} is not of {}",
            self.call.path
        );
        if let Some(value) = value {
            self.url
                .query_pairs_mut()
                .append_pair(name, &value.to_string());
        }
        self
    }

    /// Sets the body; members that are null are left out.
    #[must_use]
    pub(super) fn body(mut self, mut body: Value) -> Self {
        if let Value::Object(members) = &mut body {
            members.retain(|_, value| !value.is_null());
            debug_assert!(
                members
                    .keys()
                    .all(|name| self.call.body.contains(&name.as_str())),
                "{members:?} is not of {}",
                self.call.path
            );
        }
        self.body = Some(body);
        self
    }

    /// Sets a body that is no document: the bytes of a file.
    #[must_use]
    pub(super) fn raw(mut self, bytes: Bytes) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Time limit for the request and its answer.
    fn time_limit(&self) -> Duration {
        let bytes = self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
        REQUEST_TIMEOUT + Duration::from_secs(bytes / LEAST_UPLOAD_RATE)
    }

    /// Replaces the caller's credential by another token, or by none.
    #[must_use]
    pub(super) fn bearer(mut self, token: Option<&str>) -> Self {
        self.bearer = token.map(str::to_owned);
        self
    }

    /// Sends the request with an idempotency key; returns the answer, and whether the server replayed an earlier one.
    ///
    /// # Errors
    /// As of `send`.
    pub(super) async fn send_with_key(mut self, key: String) -> Result<(Value, bool)> {
        let (api, call) = (self.api, self.call);
        self.key = Some(key);
        let response = self.send_for_response(Some(REQUEST_TIMEOUT)).await?;
        let is_replayed = response.headers().contains_key("idempotency-replayed");
        Ok((parse_document(api, call, response).await?, is_replayed))
    }

    /// Sends the request; returns the document of the answer, null if it has none.
    ///
    /// # Errors
    /// The server's problem, or a failure without an answer.
    pub(super) async fn send(self) -> Result<Value> {
        let (api, call) = (self.api, self.call);
        let time = self.time_limit();
        parse_document(api, call, self.send_for_response(Some(time)).await?).await
    }

    /// Sends the request, and parses the answer.
    ///
    /// # Errors
    /// As of `send`.
    pub(super) async fn send_and_parse<T: DeserializeOwned>(self) -> Result<T> {
        let (api, call) = (self.api, self.call);
        let document = self.send().await?;
        serde_json::from_value(document).map_err(|_| not_an_answer(api, call, StatusCode::OK))
    }

    /// Sends the request, and passes the bytes of the answer on, at most `most` and no slower than [`LEAST_RATE`]. `begin` gets the
    /// announced length first.
    ///
    /// # Errors
    /// As of `send`, and those of `begin` and of `take`.
    pub(super) async fn send_and_stream<T>(
        self,
        most: u64,
        begin: impl FnOnce(Option<u64>) -> Result<T>,
        mut take: impl FnMut(&mut T, &[u8]) -> Result<()>,
    ) -> Result<(T, u64)> {
        let (api, call) = (self.api, self.call);
        let mut response = self.send_for_response(None).await?;
        let announced = response.content_length();
        if announced.is_some_and(|announced| announced > most) {
            return Err(too_large(api, call, most));
        }
        let mut to = begin(announced)?;
        let read = responses::stream_body(&mut response, most, LEAST_RATE, |part| {
            take(&mut to, part).map_err(BodyStreamError::Consumer)
        });
        match read.await {
            Ok(read) => Ok((to, read)),
            Err(BodyStreamError::Consumer(failure)) => Err(failure),
            Err(BodyStreamError::Body(ResponseBodyError::TooLarge)) => {
                Err(too_large(api, call, most))
            }
            Err(BodyStreamError::Body(ResponseBodyError::TooSlow)) => Err(too_slow(api, call)),
            Err(BodyStreamError::Body(ResponseBodyError::Broken(error))) => Err(CliFailure::new(
                FailureExitCode::NoAnswer,
                "The answer is not whole",
                format!("The server ended before its end: {error}. Nothing is kept; try again."),
            )),
        }
    }

    /// Sends the request; returns a successful answer.
    async fn send_for_response(self, time: Option<Duration>) -> Result<reqwest::Response> {
        if let Some(part) = &self.invalid_part {
            let detail = format!("`{part}` names nothing on a server.");
            return Err(CliFailure::new(
                FailureExitCode::NotFound,
                "No such thing",
                detail,
            ));
        }
        let key = match &self.key {
            Some(key) => Some(key.clone()),
            None if self.call.creates => Some(new_idempotency_key()?),
            None => None,
        };
        let authorization = self.authorization()?;
        let (mut busy, mut broken) = (0, 0);
        loop {
            let mut request = self.request(key.as_deref(), authorization.clone());
            if let Some(time) = time {
                request = request.timeout(time);
            }
            let sent = request.send().await;
            let response = match sent {
                Ok(response) => response,
                // The first try may have used a connection that the server was about to close.
                Err(error)
                    if self.call.repeatable
                        && broken == 0
                        && !error.is_connect()
                        && !error.is_timeout() =>
                {
                    broken += 1;
                    continue;
                }
                Err(error) => return Err(self.api.unreachable_failure(&error)),
            };
            if response.status().is_success() {
                return Ok(response);
            }
            let seconds = retry_after(&response);
            let failure = self.read_failure(response).await;
            let is_busy =
                self.api.retries_when_busy && failure.is_worth_waiting(self.call.repeatable);
            // An earlier request with this key is still running.
            let is_under_way = self.key.is_some() && failure.code() == "idempotency_conflict";
            if busy == MAX_RETRIES || !(is_busy || is_under_way) {
                return Err(failure);
            }
            busy += 1;
            if is_busy && !json_requested() {
                print_error(&format!(
                    "the server has no room just now: waiting for {seconds} s"
                ));
            }
            tokio::time::sleep(Duration::from_secs(seconds)).await;
        }
    }

    /// Header with the credential, if there is one.
    ///
    /// # Errors
    /// When it would be readable on the way, or is not one line of visible characters.
    fn authorization(&self) -> Result<Option<HeaderValue>> {
        let Some(token) = &self.bearer else {
            return Ok(None);
        };
        let target = &self.api.target;
        if is_unencrypted(&target.server) && !target.insecure {
            return Err(CliFailure::local(format!(
                "What is sent to {} can be read by everybody on the way, and the command would send a credential: use https, or set SVC_INSECURE=1 in a network that you trust. Nothing was sent.",
                target.server
            )));
        }
        // A secret from a file often ends with a newline.
        let token = token.trim_end_matches(['\r', '\n']);
        let Ok(mut value) = HeaderValue::try_from(format!("Bearer {token}")) else {
            return Err(CliFailure::new(
                FailureExitCode::Credential,
                "Not a credential",
                "The credential has a line break or another character that no credential has. Is it whole, and nothing else? Nothing was sent.",
            ));
        };
        value.set_sensitive(true);
        Ok(Some(value))
    }

    fn request(
        &self,
        key: Option<&str>,
        authorization: Option<HeaderValue>,
    ) -> reqwest::RequestBuilder {
        let client = &self.api.client;
        let accept = match &self.events {
            Some(_) => "text/event-stream",
            None => "application/json",
        };
        let mut request = client
            .request(self.call.method.clone(), self.url.clone())
            .header(header::ACCEPT, accept);
        if let Some(after) = &self.events {
            request = request.header("last-event-id", after);
        }
        if let Some(value) = authorization {
            request = request.header(header::AUTHORIZATION, value);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        match (&self.bytes, &self.body) {
            // Clients leave out the length of an empty body, which a server may require.
            (Some(bytes), _) => request
                .header(header::CONTENT_LENGTH, bytes.len())
                .body(bytes.clone()),
            (None, Some(body)) => request.json(body),
            (None, None) if self.call.method == Method::POST => request.body(""),
            (None, None) => request,
        }
    }

    /// Reads the failure that an answer describes, and makes it as clear as possible.
    async fn read_failure(&self, response: reqwest::Response) -> CliFailure {
        let status = response.status();
        let reading = responses::read_body(response, responses::MAX_PROBLEM_BYTES);
        let body = tokio::time::timeout(REQUEST_TIMEOUT, reading).await;
        let body = body.ok().and_then(|body| body.ok()).unwrap_or_default();
        let Ok(problem) = serde_json::from_slice::<Map<String, Value>>(&body) else {
            return not_an_answer(self.api, self.call, status);
        };
        if !problem.contains_key("code") {
            return not_an_answer(self.api, self.call, status);
        }
        let failure = CliFailure::from_problem(status, problem);
        match failure.code() {
            "not_found" | "method_not_allowed" | "invalid_request" => {
                let sent = self.body.as_ref().and_then(Value::as_object);
                let body: Vec<_> = sent
                    .into_iter()
                    .flatten()
                    .map(|(name, _)| name.as_str())
                    .collect();
                let query = self.url.query_pairs().collect::<Vec<_>>();
                let query: Vec<_> = query.iter().map(|(name, _)| name.as_ref()).collect();
                let unknown = self.api.unknown_parts(self.call, &query, &body).await;
                match unknown.is_empty() {
                    true => failure,
                    false => self.too_old_failure(&unknown),
                }
            }
            "unauthorized" if self.bearer.is_none() => {
                failure.with_hint("`svc login URL` keeps a credential for you.")
            }
            "unauthorized" => failure.with_hint("`svc login URL` takes another credential."),
            _ => failure,
        }
    }

    fn too_old_failure(&self, unknown: &[String]) -> CliFailure {
        CliFailure::new(
            FailureExitCode::Failed,
            "The server is too old",
            format!(
                "{} does not know {}, which this command needs (svc {}). Ask its operator for an update, or use the svc of its age.",
                self.api.server_url(),
                unknown.join(", "),
                env!("CARGO_PKG_VERSION")
            ),
        )
    }
}

/// Parses and checks the document of a successful answer; null if it has none.
async fn parse_document(
    api: &ApiClient,
    call: &Endpoint,
    response: reqwest::Response,
) -> Result<Value> {
    let status = response.status();
    let most = call.response_rules.max_bytes;
    let bytes = responses::read_body(response, most)
        .await
        .map_err(|unread| match unread {
            ResponseBodyError::TooLarge => too_large(api, call, most as u64),
            ResponseBodyError::TooSlow => too_slow(api, call),
            ResponseBodyError::Broken(error) => api.unreachable_failure(&error),
        })?;
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let document = responses::parse_json(&bytes).ok_or_else(|| not_an_answer(api, call, status))?;
    match call.response_rules.first_violation(&document) {
        None => Ok(document),
        Some((member, value)) => Err(CliFailure::new(
            FailureExitCode::NoAnswer,
            "Not an answer",
            format!(
                "{} answered `{} {}` with the {member} `{value}`, which no svc server gives. Nothing was done with it.",
                api.server_url(),
                call.method,
                call.path
            ),
        )),
    }
}

/// Error while a body was streamed.
enum BodyStreamError {
    Body(ResponseBodyError),
    Consumer(CliFailure),
}

impl From<ResponseBodyError> for BodyStreamError {
    fn from(unread: ResponseBodyError) -> Self {
        Self::Body(unread)
    }
}

/// Reads the seconds that a server asks to wait.
fn retry_after(response: &reqwest::Response) -> u64 {
    let said = response.headers().get(header::RETRY_AFTER);
    let seconds = said.and_then(|said| said.to_str().ok()?.parse().ok());
    seconds.unwrap_or(1).clamp(1, MAX_RETRY_SECONDS)
}

/// Makes a random idempotency key, so that a repeated request creates one thing.
fn new_idempotency_key() -> Result<String> {
    let key = Random::system().slug(24);
    key.map_err(|_| CliFailure::local("The system has no randomness."))
}
