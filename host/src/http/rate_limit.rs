//! Rate limits: token buckets, as route layers, so that a request is counted before anything else is done.

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

use super::front::Context;
use super::problem::{Code, Problem};
use crate::app::App;
use crate::clock::Clock;
use crate::config::Limits;
use crate::ids::DeploymentId;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");

/// Which of the clients' buckets a route draws from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Publishing.
    Deploy,
    /// Deleting shares.
    Delete,
    /// Looking at what is yet to be published.
    Preview,
    /// Password attempts.
    Auth,
    /// Reports of abuse.
    Report,
    /// The tool endpoint.
    Mcp,
    /// Calls of a backend; a deployment has a bucket for them too.
    Op,
}

/// All buckets.
#[derive(Debug)]
pub struct RateLimits {
    deploy: Buckets<IpAddr>,
    delete: Buckets<IpAddr>,
    preview: Buckets<IpAddr>,
    auth: Buckets<IpAddr>,
    report: Buckets<IpAddr>,
    mcp: Buckets<IpAddr>,
    op: Buckets<IpAddr>,
    /// Calls of the backend behind a deployment, by deployment, whoever makes them.
    pub op_deployment: Buckets<DeploymentId>,
    /// Owner routes without a limit of their own, by principal.
    pub owner: Buckets<String>,
}

impl RateLimits {
    /// Full buckets of the configured sizes.
    pub fn new(limits: &Limits, clock: &Clock) -> Self {
        Self {
            deploy: Buckets::new(
                "deploy",
                limits.deploy_per_minute,
                limits.deploy_burst,
                clock,
            ),
            // As often as one publishes.
            delete: Buckets::new(
                "delete",
                limits.deploy_per_minute,
                limits.deploy_burst,
                clock,
            ),
            preview: Buckets::new(
                "preview",
                limits.preview_per_minute,
                limits.preview_burst,
                clock,
            ),
            auth: Buckets::new("auth", limits.auth_per_minute, limits.auth_burst, clock),
            report: Buckets::new(
                "report",
                limits.report_per_minute,
                limits.report_burst,
                clock,
            ),
            mcp: Buckets::new("mcp", limits.mcp_per_minute, limits.mcp_burst, clock),
            op: Buckets::new("op", limits.op_per_minute, limits.op_burst, clock),
            op_deployment: Buckets::new(
                "op_deployment",
                limits.op_deployment_per_minute,
                limits.op_deployment_burst,
                clock,
            ),
            owner: Buckets::new("owner", limits.owner_per_minute, limits.owner_burst, clock),
        }
    }

    /// Forgets whoever's bucket is full again.
    pub fn tidy(&self) {
        self.deploy.tidy();
        self.delete.tidy();
        self.preview.tidy();
        self.auth.tidy();
        self.report.tidy();
        self.mcp.tidy();
        self.op.tidy();
        self.op_deployment.tidy();
        self.owner.tidy();
    }

    /// The clients' buckets of a rule.
    pub fn by_client(&self, rule: Rule) -> &Buckets<IpAddr> {
        match rule {
            Rule::Deploy => &self.deploy,
            Rule::Delete => &self.delete,
            Rule::Preview => &self.preview,
            Rule::Auth => &self.auth,
            Rule::Report => &self.report,
            Rule::Mcp => &self.mcp,
            Rule::Op => &self.op,
        }
    }
}

/// A bucket for each key.
#[derive(Debug)]
pub struct Buckets<K: Clone + Hash + Eq> {
    name: &'static str,
    limiter: RateLimiter<K, DashMapStateStore<K>, Ticks, StateInformationMiddleware>,
    policy: HeaderValue,
    /// Seconds until a spent token is back, rounded up.
    refill: u64,
}

/// Our clock, as the governor reads it.
#[derive(Clone, Debug)]
struct Ticks(Clock);

impl GovernorClock for Ticks {
    type Instant = Nanos;
    fn now(&self) -> Nanos {
        // An hour on, so that the arithmetic before the start does not saturate.
        (self.0.elapsed() + Duration::from_secs(3600)).into()
    }
}

impl<K: Clone + Hash + Eq> Buckets<K> {
    fn new(name: &'static str, per_minute: u64, burst: u64, clock: &Clock) -> Self {
        let number = |n: u64| {
            NonZeroU32::new(u32::try_from(n).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN)
        };
        let quota = Quota::per_minute(number(per_minute)).allow_burst(number(burst));
        Self {
            name,
            limiter: RateLimiter::new(quota, DashMapStateStore::default(), Ticks(clock.clone())),
            policy: header(format!("\"{name}\";q={per_minute};w=60")),
            refill: 60_u64.div_ceil(per_minute),
        }
    }

    /// Runs a request if its bucket has a token, and says in its answer what is left.
    pub async fn draw(&self, key: &K, request: Request, next: Next) -> Response {
        let left = self.take(key);
        let mut response = match left {
            Some(_) => next.run(request).await,
            None => self.refusal().into_response(),
        };
        self.announce(left, response.headers_mut());
        response
    }

    /// Takes a token; answers how many are left, or that there was none.
    pub fn take(&self, key: &K) -> Option<u32> {
        let taken = self.limiter.check_key(key).ok()?;
        Some(taken.remaining_burst_capacity())
    }

    /// Takes `tokens` at once; answers how many are left.
    ///
    /// # Errors
    /// `rate_limited` if there were fewer: none is taken then.
    pub fn take_all(&self, key: &K, tokens: NonZeroU32) -> Result<u32, Problem> {
        match self.limiter.check_key_n(key, tokens) {
            Ok(Ok(taken)) => Ok(taken.remaining_burst_capacity()),
            // More than a full bucket holds, or more than this one has now.
            Err(_) | Ok(Err(_)) => Err(self.refusal()),
        }
    }

    /// Adds what a bucket allows, and what is left in it, to an answer's headers.
    pub fn announce(&self, left: Option<u32>, headers: &mut HeaderMap) {
        headers.append(POLICY, self.policy.clone());
        let left = left.unwrap_or(0);
        let state = format!("\"{}\";r={left};t={}", self.name, self.refill);
        headers.append(STATE, header(state));
    }

    /// The answer to a request for which there was no token.
    pub fn refusal(&self) -> Problem {
        Problem::new(
            Code::RateLimited,
            format!(
                "Too many {} requests for now. Wait a minute, then go on more slowly.",
                self.name
            ),
        )
    }

    fn tidy(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }
}

fn header(text: String) -> HeaderValue {
    HeaderValue::from_maybe_shared(Bytes::from(text)).unwrap_or(HeaderValue::from_static(""))
}

/// The layer by client: `post(handler).route_layer(from_fn_with_state((app, rule), rate_limit::enforce))`.
pub async fn enforce(
    State((app, rule)): State<(Arc<App>, Rule)>,
    request: Request,
    next: Next,
) -> Response {
    match request
        .extensions()
        .get::<Context>()
        .map(|context| context.client.bucket())
    {
        Some(client) => {
            app.rate_limits
                .by_client(rule)
                .draw(&client, request, next)
                .await
        }
        None => Problem::internal(&"a request without a context").into_response(),
    }
}
