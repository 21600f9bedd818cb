//! Bodies that are read in parts, for what is too large to be in memory as a whole.

use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use tokio::time::{Sleep, sleep, timeout};

use super::extract::{BODY_TIMEOUT, broken_body, invalid_request};
use super::problem::{Problem, ProblemCode};
use super::request_bodies::BodyMeter;
use super::stall::LEAST_RATE;

/// Proof that a request says how long its body is, before anything of it is read.
#[derive(Clone, Copy, Debug)]
pub struct RequiredBodyLength(u64);

impl<S: Send + Sync> FromRequestParts<S> for RequiredBodyLength {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::of(&parts.headers)
    }
}

impl RequiredBodyLength {
    fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let declared = headers.get(header::CONTENT_LENGTH);
        let declared = declared.and_then(|value| value.to_str().ok()?.parse().ok());
        declared.map(Self).ok_or_else(|| {
            Problem::new(
                ProblemCode::LengthRequired,
                "The request does not say how long its body is. Send it with a Content-Length.",
            )
        })
    }

    /// Returns the length in bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

/// A body of a declared length, of which nothing is read yet.
#[derive(Debug)]
pub struct StreamedBody {
    body: Body,
    meter: Option<BodyMeter>,
    declared: u64,
    read: u64,
    /// Bytes that were read and are still in memory, as the reader has said.
    held: usize,
    pace: BodyPace,
}

/// Rate at which a body comes, by periods in each of which so many bytes must come: a byte now and then would keep an upload's place for ever.
#[derive(Debug)]
struct BodyPace {
    /// Length of a period, and of the longest silence.
    period: Duration,
    least: u64,
    /// End of the current period; none while nothing is waited for.
    ends: Option<Pin<Box<Sleep>>>,
    /// Bytes of the current period.
    bytes: u64,
}

impl BodyPace {
    fn new(period: Duration) -> Self {
        Self {
            period,
            least: LEAST_RATE * period.as_secs(),
            ends: None,
            bytes: 0,
        }
    }

    /// Waits for the next frame of a body; `None` if nothing or too little came.
    async fn next<F>(&mut self, frame: impl Future<Output = F>) -> Option<F> {
        let mut frame = std::pin::pin!(timeout(self.period, frame));
        loop {
            let period = self.period;
            let ends = self.ends.get_or_insert_with(|| Box::pin(sleep(period)));
            tokio::select! {
                biased;
                found = &mut frame => return found.ok(),
                () = ends => {
                    if self.bytes < self.least {
                        return None;
                    }
                    (self.ends, self.bytes) = (None, 0);
                }
            }
        }
    }
}

impl<S: Send + Sync> FromRequest<S> for StreamedBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        Ok(Self {
            body,
            meter: parts.extensions.get().cloned(),
            declared: RequiredBodyLength::of(&parts.headers)?.bytes(),
            read: 0,
            held: 0,
            pace: BodyPace::new(BODY_TIMEOUT),
        })
    }
}

impl StreamedBody {
    /// Returns the declared length in bytes.
    pub fn declared_bytes(&self) -> u64 {
        self.declared
    }

    /// Reads the next bytes; `None` once all have come. `kept` is the number of those read before that are still in memory.
    ///
    /// # Errors
    /// The problem of the transfer.
    pub async fn next(&mut self, kept: usize) -> Result<Option<Bytes>, Problem> {
        if let Some(meter) = &self.meter {
            meter.release(self.held.saturating_sub(kept));
        }
        self.held = kept;
        loop {
            let frame = self.pace.next(self.body.frame()).await;
            let frame = frame.ok_or_else(|| {
                let (seconds, least) = (BODY_TIMEOUT.as_secs(), LEAST_RATE);
                let detail = format!("Nothing of the body arrived for {seconds} seconds, or less than {least} bytes a second.");
                Problem::new(ProblemCode::Timeout, detail)
            })?;
            let Some(frame) = frame else {
                break;
            };
            let frame = frame.map_err(|error| broken_body(&error))?;
            if let Ok(bytes) = frame.into_data() {
                self.read += bytes.len() as u64;
                self.held += bytes.len();
                self.pace.bytes += bytes.len() as u64;
                if self.read > self.declared {
                    break;
                }
                return Ok(Some(bytes));
            }
        }
        match self.read == self.declared {
            true => Ok(None),
            false => Err(invalid_request(
                "The body is not as long as its Content-Length says.",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn body(declared: Option<&str>, sent: &'static str) -> Result<StreamedBody, Problem> {
        let mut request = Request::new(Body::from(sent));
        if let Some(declared) = declared {
            let headers = request.headers_mut();
            headers.insert(header::CONTENT_LENGTH, declared.parse().unwrap());
        }
        StreamedBody::from_request(request, &()).await
    }

    #[tokio::test]
    async fn a_body_that_comes_too_slowly_is_given_up() {
        let period = Duration::from_millis(500);
        let pace = |least| BodyPace {
            least,
            ..BodyPace::new(period)
        };
        let mut steady = pace(1);
        for _ in 0..15 {
            assert!(steady.next(sleep(period / 10)).await.is_some());
            steady.bytes += 1;
        }
        let mut trickle = pace(1000);
        let mut came = 0;
        while trickle.next(sleep(period / 10)).await.is_some() {
            trickle.bytes += 1;
            came += 1;
        }
        assert!(came < 100, "{came}");
        let mut silent = pace(0);
        assert!(silent.next(std::future::pending::<()>()).await.is_none());
    }

    #[tokio::test]
    async fn a_body_has_the_length_that_it_declares() {
        for declared in [None, Some("much"), Some("-1")] {
            let refused = body(declared, "abc").await.unwrap_err();
            assert_eq!(refused.code, ProblemCode::LengthRequired);
        }
        let mut whole = body(Some("3"), "abc").await.unwrap();
        assert_eq!(whole.declared_bytes(), 3);
        assert_eq!(whole.next(0).await.unwrap().unwrap(), "abc");
        assert!(whole.next(3).await.unwrap().is_none());
        let mut longer = body(Some("2"), "abc").await.unwrap();
        let refused = longer.next(0).await.unwrap_err();
        assert_eq!(refused.code, ProblemCode::InvalidRequest);
        let mut shorter = body(Some("4"), "abc").await.unwrap();
        assert!(shorter.next(0).await.unwrap().is_some());
        assert!(shorter.next(0).await.is_err());
    }
}
