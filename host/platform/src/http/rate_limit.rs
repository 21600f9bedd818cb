//! Rate limits: token buckets, as route layers, so that a request is counted before any other work.

use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use governor::clock::Clock as GovernorClock;
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::context::HttpRequestContext;
use super::problem::{Problem, ProblemCode};
use crate::config::Limits;
use svc_base::clock::Clock;
use svc_base::ids::DeploymentId;

const POLICY_HEADER: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE_HEADER: HeaderName = HeaderName::from_static("ratelimit");

/// Size and refill of a bucket, and their settings' keys.
#[derive(Clone, Copy, Debug)]
struct BucketRate {
    per_minute: u64,
    burst: u64,
    /// The settings' keys.
    keys: [&'static str; 2],
}

/// Makes the rate from two settings.
macro_rules! rate {
    ($limits:ident.$per_minute:ident, $same:ident.$burst:ident) => {
        BucketRate {
            per_minute: $limits.$per_minute,
            burst: $limits.$burst,
            keys: [stringify!($per_minute), stringify!($burst)],
        }
    };
}

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident $name:literal $per_minute:ident $burst:ident;)+) => {
        /// Rate limit of a route, by client.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RateLimitRule {
            $($(#[$doc])* $rule,)+
        }

        fn by_client(limits: &Limits, clock: &Clock) -> Vec<TokenBuckets<IpAddr>> {
            vec![$({
                let quota = rate!(limits.$per_minute, limits.$burst);
                TokenBuckets::new($name, "from this address", quota, clock)
            },)+]
        }
    };
}

// Each is a row here, and two keys of the settings' `[limits]`.
rules! {
    /// Publishing pages.
    Deploy "deploy" deploy_per_minute deploy_burst;
    /// Deleting shares, with the limits of publishing.
    Delete "delete" deploy_per_minute deploy_burst;
    /// Previews of unpublished pages.
    Preview "preview" preview_per_minute preview_burst;
    /// Password attempts.
    Auth "auth" auth_per_minute auth_burst;
    /// Steps of visitors' sign-ins.
    SignIn "sign_in" sign_in_per_minute sign_in_burst;
    /// Reports of abuse.
    Report "report" report_per_minute report_burst;
    /// The tool endpoint.
    Mcp "mcp" mcp_per_minute mcp_burst;
    /// Calls of a backend; a deployment has a bucket for them too.
    Op "op" op_per_minute op_burst;
    /// Files that visitors bring; a deployment has a bucket for them too.
    Upload "upload" upload_per_minute upload_burst;
    /// Files that visitors get by actions.
    File "file" file_per_minute file_burst;
    /// Checkouts: each calls the payment provider, and adds a row that is never deleted.
    Checkout "checkout" checkout_per_minute checkout_burst;
}

/// The buckets of all rate limits.
#[derive(Debug)]
pub struct RateLimits {
    /// Buckets by client, in the order of the rules.
    by_client: Vec<TokenBuckets<IpAddr>>,
    /// Calls of a backend, by deployment, from all clients together.
    pub op_deployment: TokenBuckets<DeploymentId>,
    /// Files that visitors bring, by deployment, from all clients together.
    pub upload_deployment: TokenBuckets<DeploymentId>,
    /// Owner routes without a limit of their own, by principal.
    pub owner: TokenBuckets<String>,
    /// Files that owners send, by principal: a folder has many.
    pub blob: TokenBuckets<String>,
}

impl RateLimits {
    /// Makes full buckets of the configured sizes.
    pub fn new(limits: &Limits, clock: &Clock) -> Self {
        Self {
            by_client: by_client(limits, clock),
            op_deployment: TokenBuckets::new(
                "op_deployment",
                "for this page",
                rate!(limits.op_deployment_per_minute, limits.op_deployment_burst),
                clock,
            ),
            upload_deployment: TokenBuckets::new(
                "upload_deployment",
                "for this page",
                rate!(
                    limits.upload_deployment_per_minute,
                    limits.upload_deployment_burst
                ),
                clock,
            ),
            owner: TokenBuckets::new(
                "owner",
                "by this owner, with all keys and free workspaces together",
                rate!(limits.owner_per_minute, limits.owner_burst),
                clock,
            ),
            blob: TokenBuckets::new(
                "blob",
                "by this owner, with all keys and free workspaces together",
                rate!(limits.blob_per_minute, limits.blob_burst),
                clock,
            ),
        }
    }

    /// Removes the buckets that are full again.
    pub fn tidy(&self) {
        self.by_client.iter().for_each(TokenBuckets::tidy);
        self.op_deployment.tidy();
        self.upload_deployment.tidy();
        self.owner.tidy();
        self.blob.tidy();
    }

    /// Returns the buckets of a rule, by client.
    pub fn by_client(&self, rule: RateLimitRule) -> &TokenBuckets<IpAddr> {
        &self.by_client[rule as usize]
    }
}

/// Token buckets by key.
#[derive(Debug)]
pub struct TokenBuckets<K: Clone + Hash + Eq> {
    name: &'static str,
    limiter: RateLimiter<K, DashMapStateStore<K>, GovernorTimeAdapter, StateInformationMiddleware>,
    policy: HeaderValue,
    /// Seconds until a token refills, rounded up.
    refill: u64,
    /// Text of a refusal, with the numbers and their settings.
    refusal: Arc<str>,
}

/// Outcome of taking a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenDraw {
    /// A token was taken; contains the remaining number.
    Left(u32),
    /// The bucket was empty.
    Empty,
}

/// Error of an empty bucket, with its text for the client.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct RateLimitExceeded(Arc<str>);

impl From<RateLimitExceeded> for Problem {
    fn from(RateLimitExceeded(refusal): RateLimitExceeded) -> Self {
        Self::new(ProblemCode::RateLimited, refusal.to_string())
    }
}

/// Adapter from our clock to the governor's.
#[derive(Clone, Debug)]
struct GovernorTimeAdapter(Clock);

impl GovernorClock for GovernorTimeAdapter {
    type Instant = Nanos;
    fn now(&self) -> Nanos {
        // One hour later, so that the arithmetic before the start does not saturate.
        (self.0.elapsed() + Duration::from_secs(3600)).into()
    }
}

impl<K: Clone + Hash + Eq> TokenBuckets<K> {
    fn new(name: &'static str, whose: &str, rate: BucketRate, clock: &Clock) -> Self {
        let BucketRate {
            per_minute, burst, ..
        } = rate;
        let number = |n: u64| {
            NonZeroU32::new(u32::try_from(n).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN)
        };
        let quota = Quota::per_minute(number(per_minute)).allow_burst(number(burst));
        Self {
            name,
            limiter: RateLimiter::new(
                quota,
                DashMapStateStore::default(),
                GovernorTimeAdapter(clock.clone()),
            ),
            policy: header_value(format!("\"{name}\";q={per_minute};w=60")),
            refill: 60_u64.div_ceil(per_minute),
            refusal: rate_limit_text(name, whose, rate).into(),
        }
    }

    /// Runs a request if its bucket has a token, and adds the bucket's state to the answer's headers.
    pub async fn run_if_allowed(&self, key: &K, request: Request, next: Next) -> Response {
        let draw = self.take(key);
        let mut response = match draw {
            TokenDraw::Left(_) => next.run(request).await,
            TokenDraw::Empty => Problem::from(self.empty_error()).into_response(),
        };
        self.add_headers(draw, response.headers_mut());
        response
    }

    /// Takes a token.
    pub fn take(&self, key: &K) -> TokenDraw {
        match self.limiter.check_key(key) {
            Ok(taken) => TokenDraw::Left(taken.remaining_burst_capacity()),
            Err(_) => TokenDraw::Empty,
        }
    }

    /// Takes `tokens` tokens, or none.
    ///
    /// # Errors
    /// [`Spent`] if there were fewer; then none is taken.
    pub fn take_many(&self, key: &K, tokens: NonZeroU32) -> Result<TokenDraw, RateLimitExceeded> {
        match self.limiter.check_key_n(key, tokens) {
            Ok(Ok(taken)) => Ok(TokenDraw::Left(taken.remaining_burst_capacity())),
            // More than a full bucket holds, or more than this one has now.
            Err(_) | Ok(Err(_)) => Err(self.empty_error()),
        }
    }

    /// Adds the headers `RateLimit-Policy` and `RateLimit` to an answer.
    pub fn add_headers(&self, draw: TokenDraw, headers: &mut HeaderMap) {
        headers.append(POLICY_HEADER, self.policy.clone());
        let left = match draw {
            TokenDraw::Left(left) => left,
            TokenDraw::Empty => 0,
        };
        let state = format!("\"{}\";r={left};t={}", self.name, self.refill);
        headers.append(STATE_HEADER, header_value(state));
    }

    /// Returns the error of a caller for whom there was no token.
    pub fn empty_error(&self) -> RateLimitExceeded {
        RateLimitExceeded(Arc::clone(&self.refusal))
    }

    fn tidy(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }
}

fn rate_limit_text(name: &str, whose: &str, rate: BucketRate) -> String {
    let BucketRate {
        per_minute,
        burst,
        keys: [per_minute_key, burst_key],
    } = rate;
    format!(
        "Too many `{name}` requests {whose}: {per_minute} a minute are allowed, {burst} at once. Wait a minute, then go on more slowly. \
         The operator of this server can raise both: `{per_minute_key}` and `{burst_key}` in `[limits]` of the settings."
    )
}

fn header_value(text: String) -> HeaderValue {
    HeaderValue::from_maybe_shared(Bytes::from(text)).unwrap_or(HeaderValue::from_static(""))
}

/// Layer of a rate limit by client: `post(handler).route_layer(from_fn_with_state((limits, rule), rate_limit::enforce))`.
pub async fn enforce_rate_limit(
    State((limits, rule)): State<(Arc<RateLimits>, RateLimitRule)>,
    request: Request,
    next: Next,
) -> Response {
    match request
        .extensions()
        .get::<HttpRequestContext>()
        .map(|context| context.client.bucket())
    {
        Some(client) => {
            limits
                .by_client(rule)
                .run_if_allowed(&client, request, next)
                .await
        }
        None => Problem::internal(&"a request without a context").into_response(),
    }
}
