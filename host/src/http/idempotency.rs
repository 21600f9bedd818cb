//! `Idempotency-Key`: a repeated POST answers what the first did, and does nothing more.
//!
//! The first answer is kept in the transaction of its effect (`control/answers.rs`), so that the two cannot
//! come apart. Two requests with one key never run at once.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use ring::hmac;

use super::front::Context;
use super::problem::{Code, Problem};
use crate::app::App;
use crate::control::answers::{self, AnswerKey, KeptAnswer};
use crate::deployments::expiry::ANSWERS;
use crate::workspaces::Principal;

const HEADER: &str = "idempotency-key";
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The longest key, in characters.
const LENGTH: usize = 128;

/// Keys whose first request is still running.
pub type InFlight = Arc<Mutex<HashSet<(String, String, String)>>>;

/// What a request with or without a key should do.
#[derive(Debug)]
pub enum Attempt {
    /// Answer this, and do nothing.
    Replay(Response),
    /// Do the work; with a key, keep the answer under it.
    Run(Option<Running>),
}

/// The first request of a key, until it is dropped.
#[derive(Debug)]
pub struct Running {
    key: AnswerKey,
    in_flight: InFlight,
}

impl Running {
    /// What to keep the answer under.
    pub fn key(&self) -> AnswerKey {
        self.key.clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = self
            .in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        running.remove(&(
            self.key.principal.clone(),
            self.key.route.clone(),
            self.key.key.clone(),
        ));
    }
}

/// Looks whether this request was made before.
///
/// # Errors
/// `invalid_request` for a malformed key, `idempotency_conflict` for one that is used for something else or
/// whose first request is still running.
pub async fn begin(
    app: &App,
    context: &Context,
    principal: Option<&Principal>,
    route: &'static str,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Attempt, Problem> {
    begin_in(app, context, principal, route, "", headers, body).await
}

/// The same on a route with a parent in its path: a key used below one parent says nothing below another.
///
/// # Errors
/// Like [`begin`].
pub async fn begin_in(
    app: &App,
    context: &Context,
    principal: Option<&Principal>,
    route: &'static str,
    parent: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Attempt, Problem> {
    let route = format!("{route}/{parent}");
    let Some(value) = headers.get(HEADER) else {
        return Ok(Attempt::Run(None));
    };
    let key = value.to_str().ok().filter(|key| {
        (1..=LENGTH).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic())
    });
    let Some(key) = key else {
        return Err(Problem::new(
            Code::InvalidRequest,
            format!("`Idempotency-Key` must be 1 to {LENGTH} visible ASCII characters."),
        ));
    };
    let key = AnswerKey {
        principal: match principal {
            Some(principal) => principal.to_string(),
            None => format!("ip:{}", context.client.bucket()),
        },
        route: route.clone(),
        key: key.to_owned(),
        body_mac: hmac::sign(&app.deployments.secrets.idempotency, body)
            .as_ref()
            .to_vec(),
    };
    let new = app
        .in_flight
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert((key.principal.clone(), route, key.key.clone()));
    if !new {
        return Err(Problem::new(
            Code::IdempotencyConflict,
            "The first request with this Idempotency-Key is still running. Repeat it in a second.",
        )
        .header(header::RETRY_AFTER, HeaderValue::from_static("1")));
    }
    let running = Running {
        key: key.clone(),
        in_flight: Arc::clone(&app.in_flight),
    };
    let after = app.clock.now().plus_seconds(-ANSWERS);
    let kept = app
        .control
        .read(move |c| answers::kept(c, &key, after))
        .await?;
    match kept {
        None => Ok(Attempt::Run(Some(running))),
        Some(kept) if same(&kept.body_mac, &running.key.body_mac) => {
            Ok(Attempt::Replay(replay(kept)?))
        }
        Some(_) => Err(Problem::new(
            Code::IdempotencyConflict,
            "This Idempotency-Key was used with another body. Use a new key for a new request.",
        )),
    }
}

/// Neither side is a secret to the other here, but comparing MACs has one way.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |diff, (x, y)| diff | (x ^ y)) == 0
}

fn replay(kept: KeptAnswer) -> Result<Response, Problem> {
    let status = StatusCode::from_u16(kept.status).map_err(|error| Problem::internal(&error))?;
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
        (REPLAYED, HeaderValue::from_static("true")),
    ];
    // What was made is where its answer says.
    let made: serde_json::Value = serde_json::from_str(&kept.body).unwrap_or_default();
    let location = made["url"]
        .as_str()
        .filter(|_| status == StatusCode::CREATED)
        .and_then(|url| HeaderValue::from_str(url).ok());
    let mut response = (status, headers, kept.body).into_response();
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
