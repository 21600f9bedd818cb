//! The client's one way to a server: REST, with what is said when no answer comes or another than expected.

use std::time::Duration;

use http::{HeaderValue, Method, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::redirect::Policy;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::Url;

use super::endpoints::{self, Endpoint};
use super::error::{Failure, FailureCode, Result};
use super::json_requested;
use super::output::print_error;
use super::profile::{Remote, ServerTarget};
use super::responses::{self, BodyError};
use svc_base::random::Random;
use svc_outbound::NO_ROOT_CERTIFICATES;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may be silent.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a server may take for a whole answer that is read into memory: one that drips is given up.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a look at the description may take, which only makes an error clearer.
const DESCRIPTION_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a patient client comes again when the server has no room.
const MAX_RETRIES: u32 = 5;
/// The longest wait of a patient client.
const MAX_RETRY_SECONDS: u64 = 60;
/// Characters that may stand in a path as they are.
const UNESCAPED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A server to speak to, with the caller's credential.
#[derive(Clone, Debug)]
pub(super) struct Api {
    client: reqwest::Client,
    target: ServerTarget,
    /// Whether to wait when the server has no room, as a long piece of work does.
    retries_when_busy: bool,
}

/// A request to be.
#[derive(Debug)]
pub(super) struct PendingRequest<'a> {
    api: &'a Api,
    call: &'static Endpoint,
    url: Url,
    /// A part of the path that names nothing, and would make it another path.
    invalid_part: Option<String>,
    body: Option<Value>,
    bearer: Option<String>,
    /// Key of its own, under which the answer is kept.
    key: Option<String>,
}

impl Api {
    /// The server that the command line, the environment or a profile names.
    ///
    /// # Errors
    /// When they name none that can be.
    pub(super) fn new(remote: &Remote) -> Result<Self> {
        Self::for_server(remote.target()?)
    }

    /// A server.
    ///
    /// # Errors
    /// When it speaks HTTPS and this machine believes no authority.
    pub(super) fn for_server(target: ServerTarget) -> Result<Self> {
        let settings = || {
            svc_outbound::builder()
                .user_agent(concat!("svc/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT_TIMEOUT)
                .read_timeout(READ_TIMEOUT)
                .redirect(Policy::none())
        };
        let (client, has_authorities) = svc_outbound::build_client(settings)
            .map_err(|error| Failure::local(format!("No client of HTTP: {error}.")))?;
        if !has_authorities && target.server.scheme() == "https" {
            let server = target.server.as_str();
            let detail = format!("{server} cannot be reached: {NO_ROOT_CERTIFICATES}.");
            return Err(Failure::new(FailureCode::NoAnswer, "No connection", detail));
        }
        Ok(Self {
            client,
            target,
            retries_when_busy: false,
        })
    }

    /// Waits when the server has no room.
    #[must_use]
    pub(super) fn with_retries(mut self) -> Self {
        self.retries_when_busy = true;
        self
    }

    /// Where it speaks to.
    pub(super) fn server_url(&self) -> &Url {
        &self.target.server
    }

    /// The address of the server, for sentences.
    pub(super) fn server_address(&self) -> &str {
        self.target.server.as_str().trim_end_matches('/')
    }

    /// A request whose path has these parts in place of its parameters.
    pub(super) fn call(&self, call: &'static Endpoint, parts: &[&str]) -> PendingRequest<'_> {
        let is_dot_segment = |part: &&&str| matches!(**part, "" | "." | "..");
        let invalid_part = parts.iter().find(is_dot_segment);
        let invalid_part = invalid_part.map(|part| (*part).to_owned());
        let mut parts = parts.iter();
        let segments = call.path.split('/').map(|segment| {
            if segment.starts_with('{') {
                let part = parts.next().copied().unwrap_or_default();
                utf8_percent_encode(part, UNESCAPED_CHARACTERS).to_string()
            } else {
                segment.to_owned()
            }
        });
        let path = segments.collect::<Vec<_>>().join("/");
        let mut url = self.target.server.clone();
        url.set_path(&path);
        PendingRequest {
            api: self,
            call,
            url,
            invalid_part,
            body: None,
            bearer: self.target.credential.clone(),
            key: None,
        }
    }

    /// Lists the parts of a request that the server does not know; nothing where it does not say.
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
            let description: Value = serde_json::from_slice(&bytes).ok()?;
            description.get("paths")?;
            Some(endpoints::unknown_parts(&description, call, query, body))
        };
        look.await.unwrap_or_default()
    }

    fn unreachable_failure(&self, error: &reqwest::Error) -> Failure {
        let server = self.target.server.as_str();
        // Below is what the system said; what is around it repeats the address.
        let mut inner: &dyn std::error::Error = error;
        while let Some(source) = inner.source() {
            inner = source;
        }
        let (title, detail) = if error.is_timeout() {
            (
                "No answer in time",
                format!("{server} did not answer in time. Try again, or ask its operator."),
            )
        } else if error.is_connect() {
            (
                "No connection",
                format!(
                    "{server} cannot be reached: {inner}. Is the address right, and does the server run? `--server URL` or `svc login URL` names another."
                ),
            )
        } else {
            (
                "The connection broke",
                format!(
                    "{server} ended the connection before its answer was there: {inner}. Try again."
                ),
            )
        };
        Failure::new(FailureCode::NoAnswer, title, detail)
    }
}

impl PendingRequest<'_> {
    /// Adds a parameter of the query, if it has a value.
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

    /// Adds a body; members that are null are left out.
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

    /// Uses another token as the caller's credential.
    #[must_use]
    pub(super) fn bearer(mut self, token: Option<&str>) -> Self {
        self.bearer = token.map(str::to_owned);
        self
    }

    /// The answer to a request with this key: also to one that was sent before, which `true` says.
    ///
    /// # Errors
    /// As of `answer`.
    pub(super) async fn send_with_key(mut self, key: String) -> Result<(Value, bool)> {
        let (api, call) = (self.api, self.call);
        self.key = Some(key);
        let response = self.send_for_response(Some(REQUEST_TIMEOUT)).await?;
        let is_replayed = response.headers().contains_key("idempotency-replayed");
        Ok((parse_document(api, call, response).await?, is_replayed))
    }

    /// The document that the server answers; null where it answers none.
    ///
    /// # Errors
    /// The server's problem, or that there is no answer.
    pub(super) async fn send(self) -> Result<Value> {
        let (api, call) = (self.api, self.call);
        parse_document(
            api,
            call,
            self.send_for_response(Some(REQUEST_TIMEOUT)).await?,
        )
        .await
    }

    /// The answer as a type.
    ///
    /// # Errors
    /// As of `answer`.
    pub(super) async fn send_and_parse<T: DeserializeOwned>(self) -> Result<T> {
        let (api, call) = (self.api, self.call);
        let document = self.send().await?;
        serde_json::from_value(document).map_err(|_| not_an_answer(api, call, StatusCode::OK))
    }

    /// Hands on the bytes of an answer that succeeded, at most so many, after `begin` was told how many are announced.
    ///
    /// # Errors
    /// As of `answer`, and those of `begin` and of `take`.
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
        let read = responses::stream_body(&mut response, most, |part| {
            take(&mut to, part).map_err(StreamError::Consumer)
        });
        match read.await {
            Ok(read) => Ok((to, read)),
            Err(StreamError::Consumer(failure)) => Err(failure),
            Err(StreamError::Body(BodyError::TooLarge)) => Err(too_large(api, call, most)),
            Err(StreamError::Body(BodyError::Broken(error))) => Err(Failure::new(
                FailureCode::NoAnswer,
                "The answer is not whole",
                format!("The server ended before its end: {error}. Nothing is kept; try again."),
            )),
        }
    }

    /// Sends the request, and returns an answer that succeeded.
    async fn send_for_response(self, time: Option<Duration>) -> Result<reqwest::Response> {
        if let Some(part) = &self.invalid_part {
            let detail = format!("`{part}` names nothing on a server.");
            return Err(Failure::new(FailureCode::NotFound, "No such thing", detail));
        }
        let key = match &self.key {
            Some(key) => Some(key.clone()),
            None if self.call.creates => Some(new_idempotency_key()?),
            None => None,
        };
        let (mut busy, mut broken) = (0, 0);
        loop {
            let mut request = self.request(key.as_deref());
            if let Some(time) = time {
                request = request.timeout(time);
            }
            let sent = request.send().await;
            let response = match sent {
                Ok(response) => response,
                // The first try may have been on a connection that the server was about to end.
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
            let is_busy = self.api.retries_when_busy && failure.exit == FailureCode::Busy;
            // The one before it is still being answered.
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

    fn request(&self, key: Option<&str>) -> reqwest::RequestBuilder {
        let client = &self.api.client;
        let mut request = client
            .request(self.call.method.clone(), self.url.clone())
            .header(header::ACCEPT, "application/json");
        if let Some(token) = &self.bearer
            && let Ok(mut value) = HeaderValue::try_from(format!("Bearer {token}"))
        {
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        match &self.body {
            Some(body) => request.json(body),
            None if self.call.method == Method::POST => request.body(""),
            None => request,
        }
    }

    /// The failure that an answer is, said as clearly as it can be.
    async fn read_failure(&self, response: reqwest::Response) -> Failure {
        let status = response.status();
        let body = responses::read_body(response, responses::MAX_PROBLEM_BYTES).await;
        let body = body.unwrap_or_default();
        let Ok(problem) = serde_json::from_slice::<Map<String, Value>>(&body) else {
            return not_an_answer(self.api, self.call, status);
        };
        if !problem.contains_key("code") {
            return not_an_answer(self.api, self.call, status);
        }
        let failure = Failure::from_problem(status, problem);
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

    fn too_old_failure(&self, unknown: &[String]) -> Failure {
        Failure::new(
            FailureCode::Failed,
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

/// The document of an answer that succeeded, judged as its kind is; null where there is none.
async fn parse_document(api: &Api, call: &Endpoint, response: reqwest::Response) -> Result<Value> {
    let status = response.status();
    let most = call.response_rules.max_bytes;
    let bytes = responses::read_body(response, most)
        .await
        .map_err(|unread| match unread {
            BodyError::TooLarge => too_large(api, call, most as u64),
            BodyError::Broken(error) => api.unreachable_failure(&error),
        })?;
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let document = serde_json::from_slice(&bytes).map_err(|_| not_an_answer(api, call, status))?;
    match call.response_rules.first_violation(&document) {
        None => Ok(document),
        Some((member, value)) => Err(Failure::new(
            FailureCode::NoAnswer,
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

/// The failure of an answer that is larger than one of its kind may be.
fn too_large(api: &Api, call: &Endpoint, most: u64) -> Failure {
    let detail = format!(
        "{} answered `{} {}` with more than {} MB, and so much is not read.",
        api.server_url(),
        call.method,
        call.path,
        most >> 20
    );
    Failure::new(FailureCode::NoAnswer, "The answer is too large", detail)
}

/// The failure of an answer that no server of ours gives.
fn not_an_answer(api: &Api, call: &Endpoint, status: StatusCode) -> Failure {
    let detail = format!(
        "{} answered `{} {}` with {status}, and not as svc does. Is it the address of an svc server, and nothing in between?",
        api.server_url(),
        call.method,
        call.path
    );
    Failure::new(FailureCode::NoAnswer, "Not an answer", detail)
}

/// Why the parts of a body were not all taken.
enum StreamError {
    Body(BodyError),
    Consumer(Failure),
}

impl From<BodyError> for StreamError {
    fn from(unread: BodyError) -> Self {
        Self::Body(unread)
    }
}

/// How many seconds a server asks to wait.
fn retry_after(response: &reqwest::Response) -> u64 {
    let said = response.headers().get(header::RETRY_AFTER);
    let seconds = said.and_then(|said| said.to_str().ok()?.parse().ok());
    seconds.unwrap_or(1).clamp(1, MAX_RETRY_SECONDS)
}

/// A key under which the answer to one request is kept, so that sending it twice makes one thing.
fn new_idempotency_key() -> Result<String> {
    let key = Random::system().slug(24);
    key.map_err(|_| Failure::local("The system has no randomness."))
}
