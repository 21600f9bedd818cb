//! `Idempotency-Key`: a repeated POST gets the answer of the first, and changes nothing more.
//!
//! The first answer is stored in the transaction of its effect (`control/kept_answers.rs`), so that neither exists without the other.
//! Two requests with one key never run at once.

use axum::extract::{FromRef, FromRequestParts};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode, header};
use ring::hmac;
use serde::{Deserialize, Serialize};

use super::in_flight::InFlightKeys;
use crate::control::kept_answers::{self, AnswerRecorder, StoredAnswer, StoredAnswerKey};
use crate::control::{self, ControlDatabase};
use crate::http::context::HttpRequestContext;
use crate::http::problem::{Problem, ProblemCode};
use crate::infra::Infra;
use crate::workspaces::Caller;
use svc_base::clock::Clock;
use svc_base::flow::CallerFlow;

/// Header of a key.
pub const IDEMPOTENCY_HEADER: &str = "idempotency-key";
/// Header of an answer that is replayed.
pub const REPLAYED_HEADER: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Most characters of a key.
pub const MAX_KEY_CHARS: usize = 128;

/// How long first answers are kept, in seconds.
const RETENTION_SECONDS: i64 = 24 * 3600;

/// Key as one caller uses it on one route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InFlightKey {
    principal: String,
    route: String,
    key: String,
}

/// Service of idempotency keys.
#[derive(Clone, Debug)]
pub struct IdempotencyService {
    control: ControlDatabase,
    clock: Clock,
    secret: hmac::Key,
    in_flight: InFlightKeys<InFlightKey>,
}

impl IdempotencyService {
    /// Makes the service; request bodies are compared by a MAC with `secret`.
    pub fn new(infra: Infra, secret: hmac::Key) -> Self {
        Self {
            control: infra.control,
            clock: infra.clock,
            secret,
            in_flight: InFlightKeys::default(),
        }
    }

    /// Whether no first request with a key is running.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_idle()
    }

    /// Deletes expired answers.
    pub async fn forget_old(&self) -> Result<(), control::Error> {
        let before = self.clock.now().plus_seconds(-RETENTION_SECONDS);
        self.control
            .write(move |tx| kept_answers::delete_before(tx, before))
            .await
    }

    async fn find_answer(
        &self,
        key: StoredAnswerKey,
    ) -> Result<Option<StoredAnswer>, control::Error> {
        let after = self.clock.now().plus_seconds(-RETENTION_SECONDS);
        self.control
            .read(move |c| kept_answers::find_answer(c, &key, after))
            .await
    }
}

/// A request that may have an `Idempotency-Key`.
#[derive(Debug)]
pub struct IdempotentRequest {
    idempotency: IdempotencyService,
    client: String,
    header: Option<HeaderValue>,
}

impl<S> FromRequestParts<S> for IdempotentRequest
where
    S: Send + Sync,
    IdempotencyService: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let context = HttpRequestContext::from_request_parts(parts, state).await?;
        Ok(Self {
            idempotency: IdempotencyService::from_ref(state),
            client: format!("ip:{}", context.client.bucket()),
            header: parts.headers.get(IDEMPOTENCY_HEADER).cloned(),
        })
    }
}

/// Scope of a key: requests with the same key in different scopes are independent.
#[derive(Clone, Copy, Debug)]
pub struct IdempotencyScope<'a> {
    /// Name of the route.
    pub name: &'static str,
    /// Identifiers in the route's path.
    pub parent: &'a str,
}

impl IdempotentRequest {
    /// Answers as the first request with the key did; or runs `work` and answers its result with `status`.
    ///
    /// A key belongs to `by`, else to the client's address, and to a route. `work` gets the keeper that stores its answer in the
    /// transaction of the effect.
    ///
    /// # Errors
    /// `invalid_request` for a malformed key, `idempotency_conflict` for one that is used for something else or
    /// whose first request is still running; those of `work`.
    pub async fn run_once<T, E, W>(
        self,
        by: Option<&Caller>,
        route: IdempotencyScope<'_>,
        body: &[u8],
        status: StatusCode,
        work: impl FnOnce(AnswerRecorder<T>) -> W,
    ) -> Result<Response, Problem>
    where
        T: Serialize + Send + 'static,
        W: Future<Output = Result<T, E>>,
        Problem: From<E>,
    {
        // A caller with a credential has an owner's priority, even on public routes.
        let flow = by.map_or_else(CallerFlow::current, Caller::flow);
        let Some(key) = self.key()? else {
            let made = flow.scope(work(AnswerRecorder::none()));
            return respond(status, &made.await?);
        };
        let idempotency = self.idempotency;
        let principal = by.map_or(self.client, ToString::to_string);
        let route = format!("{}/{}", route.name, route.parent);
        let key = StoredAnswerKey::new(&idempotency.secret, principal, route, key, body);
        let running = idempotency.in_flight.begin(InFlightKey {
            principal: key.principal.clone(),
            route: key.route.clone(),
            key: key.key.clone(),
        })?;
        if let Some(kept) = idempotency.find_answer(key.clone()).await? {
            return replay_stored_answer(kept, &idempotency.secret, body);
        }
        let work = work(AnswerRecorder::for_key(
            key,
            status.as_u16(),
            idempotency.clock.now(),
        ));
        let made = flow.scope(work).await;
        drop(running);
        respond(status, &made?)
    }

    fn key(&self) -> Result<Option<String>, Problem> {
        self.header.as_ref().map(read_key).transpose()
    }
}

/// Reads a key.
///
/// # Errors
/// `invalid_request` for a malformed one.
pub fn read_key(value: &HeaderValue) -> Result<String, Problem> {
    let key = value.to_str().ok().filter(|key| {
        (1..=MAX_KEY_CHARS).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic())
    });
    key.map(ToOwned::to_owned).ok_or_else(|| {
        Problem::new(
            ProblemCode::InvalidRequest,
            format!("`Idempotency-Key` must be 1 to {MAX_KEY_CHARS} visible ASCII characters."),
        )
    })
}

fn replay_stored_answer(
    kept: StoredAnswer,
    secret: &hmac::Key,
    body: &[u8],
) -> Result<Response, Problem> {
    let same = hmac::verify(secret, body, &kept.body_mac).is_ok();
    let Some(body) = kept.body.filter(|_| same) else {
        return Err(Problem::new(
            ProblemCode::IdempotencyConflict,
            "This Idempotency-Key was used with another body. Use a new key for a new request.",
        ));
    };
    let status = StatusCode::from_u16(kept.status).map_err(|error| Problem::internal(&error))?;
    let mut response = json_response(status, body);
    let replayed = HeaderValue::from_static("true");
    response.headers_mut().insert(REPLAYED_HEADER, replayed);
    Ok(response)
}

/// Answers the result of an operation as JSON.
///
/// # Errors
/// `internal`: plain data always has a JSON form.
fn respond(status: StatusCode, made: &impl Serialize) -> Result<Response, Problem> {
    let body = serde_json::to_string(made).map_err(|error| Problem::internal(&error))?;
    Ok(json_response(status, body))
}

/// Makes a JSON answer. The `url` of a created resource becomes `Location`.
fn json_response(status: StatusCode, body: String) -> Response {
    #[derive(Deserialize)]
    struct CreatedLocation {
        url: Option<String>,
    }
    let location = (status == StatusCode::CREATED)
        .then(|| serde_json::from_str::<CreatedLocation>(&body).ok()?.url)
        .flatten()
        .and_then(|url| HeaderValue::try_from(url).ok());
    let kind = HeaderValue::from_static("application/json");
    let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
    if let Some(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

impl From<control::Error> for Problem {
    fn from(error: control::Error) -> Self {
        Self::from(&error)
    }
}

impl From<&control::Error> for Problem {
    fn from(error: &control::Error) -> Self {
        use control::Error::{Busy, Elsewhere, Full, Stale, TooManyReads, Unanswered};
        match error {
            Full | Busy => Self::new(
                ProblemCode::CapacityReached,
                "The server has no room or is busy with maintenance. Try again in a minute.",
            ),
            TooManyReads => Self::new(
                ProblemCode::CapacityReached,
                "Too many requests from this network wait for the server. Wait for answers, then go on with fewer at once.",
            ),
            // Another machine takes over within seconds, or this one hears of it again.
            Elsewhere | Stale | Unanswered => Self::new(
                ProblemCode::CapacityReached,
                "This server does not have the newest data of its installation just now, and nothing was done. Try again after Retry-After.",
            )
            .retry_soon(),
            other => Self::internal(other),
        }
    }
}
