//! `Idempotency-Key`: a repeated POST answers what the first did, and does nothing more.
//!
//! The first answer is kept in the transaction of its effect (`control/answers.rs`), so that the two cannot
//! come apart. Two requests with one key never run at once.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode, header};

use super::front::Context;
use super::problem::{Code, Problem};
use super::serve::to_the_end;
use crate::app::SharedApp;
use crate::control::answers::{self, AnswerKey, KeptAnswer};
use crate::deployments::expiry::ANSWERS;
use crate::workspaces::Principal;

const HEADER: &str = "idempotency-key";
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The longest key, in characters.
const LENGTH: usize = 128;

/// Keys whose first request is still running.
pub type InFlight = Arc<Mutex<HashSet<(String, String, String)>>>;

/// A request that may be the repetition of another.
#[derive(Debug)]
pub struct Repeatable {
    app: SharedApp,
    client: String,
    header: Option<HeaderValue>,
}

impl FromRequestParts<SharedApp> for Repeatable {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, Problem> {
        let context = Context::from_request_parts(parts, app).await?;
        Ok(Self {
            app: Arc::clone(app),
            client: format!("ip:{}", context.client.bucket()),
            header: parts.headers.get(HEADER).cloned(),
        })
    }
}

impl Repeatable {
    /// Answers what the first request with the key did, or does `work`, to its end whatever becomes of the client.
    ///
    /// A key belongs to `by`, else to the client's address, and to a route; `parent` is what stands in the route's path,
    /// for a key used below one parent says nothing below another. `work` keeps its answer under the key that it is given,
    /// in the transaction of its effect.
    ///
    /// # Errors
    /// `invalid_request` for a malformed key, `idempotency_conflict` for one that is used for something else or
    /// whose first request is still running; those of `work`.
    pub async fn once<W>(
        self,
        by: Option<&Principal>,
        route: &'static str,
        parent: &str,
        body: &[u8],
        work: impl FnOnce(Option<AnswerKey>) -> W,
    ) -> Result<Response, Problem>
    where
        W: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        let Some(key) = self.key()? else {
            return to_the_end(work(None)).await?;
        };
        let secret = &self.app.deployments.secrets.idempotency;
        let principal = by.map_or(self.client, ToString::to_string);
        let key = AnswerKey::new(secret, principal, format!("{route}/{parent}"), key, body);
        let running = Running::begin(&self.app.in_flight, &key)?;
        if let Some(kept) = kept(&self.app, key.clone()).await? {
            return replay(kept, &key);
        }
        let work = work(Some(key));
        to_the_end(async move {
            let _running = running;
            work.await
        })
        .await?
    }

    fn key(&self) -> Result<Option<String>, Problem> {
        let Some(value) = &self.header else {
            return Ok(None);
        };
        let key = value.to_str().ok().filter(|key| {
            (1..=LENGTH).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic())
        });
        match key {
            Some(key) => Ok(Some(key.to_owned())),
            None => Err(Problem::new(
                Code::InvalidRequest,
                format!("`Idempotency-Key` must be 1 to {LENGTH} visible ASCII characters."),
            )),
        }
    }
}

/// The first request of a key, until it is dropped.
#[derive(Debug)]
struct Running {
    key: (String, String, String),
    in_flight: InFlight,
}

impl Running {
    fn begin(in_flight: &InFlight, key: &AnswerKey) -> Result<Self, Problem> {
        let key = (key.principal.clone(), key.route.clone(), key.key.clone());
        let mut running = in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        if !running.insert(key.clone()) {
            return Err(Problem::new(
                Code::IdempotencyConflict,
                "The first request with this Idempotency-Key is still running. Repeat it in a second.",
            )
            .header(header::RETRY_AFTER, HeaderValue::from_static("1")));
        }
        Ok(Self {
            key,
            in_flight: Arc::clone(in_flight),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = self
            .in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        running.remove(&self.key);
    }
}

async fn kept(app: &SharedApp, key: AnswerKey) -> Result<Option<KeptAnswer>, Problem> {
    let after = app.clock.now().plus_seconds(-ANSWERS);
    let kept = app.control.read(move |c| answers::kept(c, &key, after));
    Ok(kept.await?)
}

/// Neither side is a secret to the other here, but comparing MACs has one way.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |diff, (x, y)| diff | (x ^ y)) == 0
}

fn replay(kept: KeptAnswer, key: &AnswerKey) -> Result<Response, Problem> {
    let body = kept.body.filter(|_| same(&kept.body_mac, &key.body_mac));
    let Some(body) = body else {
        return Err(Problem::new(
            Code::IdempotencyConflict,
            "This Idempotency-Key was used with another body. Use a new key for a new request.",
        ));
    };
    let status = StatusCode::from_u16(kept.status).map_err(|error| Problem::internal(&error))?;
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
        (REPLAYED, HeaderValue::from_static("true")),
    ];
    // What was made is where its answer says.
    let made: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
    let location = made["url"]
        .as_str()
        .filter(|_| status == StatusCode::CREATED)
        .and_then(|url| HeaderValue::from_str(url).ok());
    let mut response = (status, headers, body).into_response();
    if let Some(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

impl From<crate::control::Error> for Problem {
    fn from(error: crate::control::Error) -> Self {
        use crate::control::Error::{Busy, Full};
        match error {
            Full | Busy => Self::new(
                Code::CapacityReached,
                "The server has no room or is busy with maintenance. Try again in a minute.",
            ),
            other => Self::internal(&other),
        }
    }
}
