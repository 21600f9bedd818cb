//! Rate limits: token buckets by client, as route layers, so that a request is counted before anything else is done.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use governor::clock::Clock as GovernorClock;
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use http::{HeaderName, HeaderValue};

use super::front::Context;
use super::problem::{Code, Problem};
use crate::app::App;
use crate::clock::Clock;
use crate::config::Limits;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");

/// Which bucket a route draws from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Publishing.
    Deploy,
    /// Password attempts.
    Auth,
    /// Reports of abuse.
    Report,
}

/// The buckets of all clients.
#[derive(Debug)]
pub struct RateLimits {
    deploy: Buckets,
    auth: Buckets,
    report: Buckets,
}

impl RateLimits {
    /// Full buckets of the configured sizes.
    pub fn new(limits: &Limits, clock: &Clock) -> Self {
        let buckets = |name, per_minute, burst| Buckets::new(name, per_minute, burst, clock);
        Self {
            deploy: buckets("deploy", limits.deploy_per_minute, limits.deploy_burst),
            auth: buckets("auth", limits.auth_per_minute, limits.auth_burst),
            report: buckets("report", limits.report_per_minute, limits.report_burst),
        }
    }

    /// Forgets clients whose buckets are full again.
    pub fn tidy(&self) {
        for buckets in [&self.deploy, &self.auth, &self.report] {
            buckets.limiter.retain_recent();
            buckets.limiter.shrink_to_fit();
        }
    }

    fn buckets(&self, rule: Rule) -> &Buckets {
        match rule {
            Rule::Deploy => &self.deploy,
            Rule::Auth => &self.auth,
            Rule::Report => &self.report,
        }
    }
}

type Limiter = RateLimiter<IpAddr, DashMapStateStore<IpAddr>, Ticks, StateInformationMiddleware>;

#[derive(Debug)]
struct Buckets {
    name: &'static str,
    limiter: Limiter,
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

impl Buckets {
    fn new(name: &'static str, per_minute: u64, burst: u64, clock: &Clock) -> Self {
        let number = |n: u64| {
            NonZeroU32::new(u32::try_from(n).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN)
        };
        let quota = Quota::per_minute(number(per_minute)).allow_burst(number(burst));
        let limiter = Limiter::new(quota, DashMapStateStore::default(), Ticks(clock.clone()));
        let policy = header(&format!("\"{name}\";q={per_minute};w=60"));
        Self {
            name,
            limiter,
            policy,
            refill: 60_u64.div_ceil(per_minute),
        }
    }

    fn state(&self, remaining: u32) -> HeaderValue {
        header(&format!(
            "\"{}\";r={remaining};t={}",
            self.name, self.refill
        ))
    }
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

/// The layer: `post(handler).route_layer(from_fn_with_state((app, rule), rate_limit::enforce))`.
pub async fn enforce(
    State((app, rule)): State<(Arc<App>, Rule)>,
    request: Request,
    next: Next,
) -> Response {
    let client = request
        .extensions()
        .get::<Context>()
        .map(|context| context.client);
    let Some(client) = client else {
        return Problem::internal(&"a request without a context").into_response();
    };
    let buckets = app.rate_limits.buckets(rule);
    let (remaining, mut response) = match buckets.limiter.check_key(&client.bucket()) {
        Ok(state) => (state.remaining_burst_capacity(), next.run(request).await),
        Err(_) => (0, refusal(buckets.name).into_response()),
    };
    let headers = response.headers_mut();
    headers.insert(POLICY, buckets.policy.clone());
    headers.insert(STATE, buckets.state(remaining));
    response
}

fn refusal(name: &str) -> Problem {
    Problem::new(
        Code::RateLimited,
        format!(
            "Too many {name} requests from this client. Wait a minute, then go on more slowly."
        ),
    )
}
