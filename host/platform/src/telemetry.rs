//! Telemetry for operators: the metrics of `/metrics`.

use std::time::Duration;

use axum::response::Response;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Buckets of latencies in seconds, from a tenth of a millisecond to ten seconds.
const LATENCY_BUCKETS: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// Extension of an answer that tells the front which route was matched.
#[derive(Clone, Debug)]
pub struct MatchedRoute(pub axum::extract::MatchedPath);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolCallLabels {
    tool: &'static str,
    action: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolLabels {
    tool: &'static str,
    action: &'static str,
}

/// Metrics of the server.
#[derive(Debug)]
pub struct ServerMetrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    latency: Family<RouteLabels, Histogram>,
    tools: Family<ToolCallLabels, Counter>,
    tool_latency: Family<ToolLabels, Histogram>,
    /// Page views, by far the most requests: counted without a look-up.
    pages: RouteMetrics,
    /// Views of files of sites, of which a page has many: counted without a look-up.
    files: RouteMetrics,
    /// Calls of actions: counted without a look-up.
    calls: RouteMetrics,
    /// Connections that were refused because there were too many.
    pub connections_refused: Counter,
}

/// Metrics of a route whose common statuses are counted without a look-up.
#[derive(Debug)]
struct RouteMetrics {
    route: &'static str,
    usual: Vec<(u16, Counter)>,
    latency: Histogram,
}

impl ServerMetrics {
    /// Makes the metrics, and registers further ones by `register`.
    pub fn new(register: impl FnOnce(&mut Registry)) -> Self {
        let mut registry = Registry::default();
        let requests = Family::<RequestLabels, Counter>::default();
        registry.register("svc_http_requests", "Requests answered", requests.clone());
        let latency = Family::<RouteLabels, Histogram>::new_with_constructor(|| {
            Histogram::new(LATENCY_BUCKETS)
        });
        registry.register(
            "svc_http_request_seconds",
            "Time to the head of the answer",
            latency.clone(),
        );
        let tools = Family::<ToolCallLabels, Counter>::default();
        registry.register("svc_tool_calls", "Tools called, by result", tools.clone());
        let tool_latency = Family::<ToolLabels, Histogram>::new_with_constructor(|| {
            Histogram::new(LATENCY_BUCKETS)
        });
        registry.register("svc_tool_seconds", "Time of a call", tool_latency.clone());
        let connections_refused = Counter::default();
        registry.register(
            "svc_connections_refused",
            "Connections closed because there were too many",
            connections_refused.clone(),
        );
        register(&mut registry);
        let of_route = |route: &'static str, usual: &[u16]| RouteMetrics {
            route,
            usual: usual
                .iter()
                .map(|status| {
                    let answered = RequestLabels {
                        route: route.into(),
                        status: *status,
                    };
                    (*status, requests.get_or_create_owned(&answered))
                })
                .collect(),
            latency: latency.get_or_create_owned(&RouteLabels {
                route: route.into(),
            }),
        };
        Self {
            pages: of_route(PAGE_ROUTE, &[200, 304]),
            files: of_route(FILE_ROUTE, &[200, 304, 404]),
            calls: of_route(CALL_ROUTE, &[200]),
            registry,
            requests,
            latency,
            tools,
            tool_latency,
            connections_refused,
        }
    }

    /// Counts an answered request; without `known` the answer's [`MatchedRoute`] names its route.
    pub fn count_request(&self, known: Option<&str>, response: &Response, took: Duration) {
        let status = response.status().as_u16();
        let said = response.extensions().get::<MatchedRoute>();
        let route = known.or_else(|| said.map(|route| route.0.as_str()));
        match route {
            Some(PAGE_ROUTE) => return self.count_common(&self.pages, status, took),
            Some(FILE_ROUTE) => return self.count_common(&self.files, status, took),
            Some(CALL_ROUTE) => return self.count_common(&self.calls, status, took),
            _ => {}
        }
        let route = route.unwrap_or("none");
        self.count(route, status);
        let labels = RouteLabels {
            route: route.to_owned(),
        };
        self.latency
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    /// Counts a call of a tool; `code` is `ok` or its problem's.
    pub fn count_tool(
        &self,
        tool: &'static str,
        action: &'static str,
        code: &'static str,
        took: Duration,
    ) {
        self.tools
            .get_or_create(&ToolCallLabels { tool, action, code })
            .inc();
        self.tool_latency
            .get_or_create(&ToolLabels { tool, action })
            .observe(took.as_secs_f64());
    }

    fn count_common(&self, route: &RouteMetrics, status: u16, took: Duration) {
        match route.usual.iter().find(|(usual, _)| *usual == status) {
            Some((_, counter)) => counter.inc(),
            None => self.count(route.route, status),
        };
        route.latency.observe(took.as_secs_f64());
    }

    fn count(&self, route: &str, status: u16) -> u64 {
        self.requests
            .get_or_create(&RequestLabels {
                route: route.to_owned(),
                status,
            })
            .inc()
    }

    /// Encodes all metrics in the OpenMetrics text format.
    ///
    /// # Errors
    /// Never in practice: text is written into memory.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Path of the route of page views.
pub const PAGE_ROUTE: &str = "/{slug}";
/// Path of the route of the files of sites.
pub const FILE_ROUTE: &str = "/{slug}/{*path}";
/// Path of the route of downloads of visitors' files.
pub const DOWNLOAD_ROUTE: &str = "/{slug}/api/files/{action}/{file_id}";
/// Path of the route of calls.
pub const CALL_ROUTE: &str = "/{slug}/api/op";

/// A gauge whose value is computed when it is read.
pub struct PolledGauge {
    name: &'static str,
    help: &'static str,
    read: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl PolledGauge {
    /// Makes a gauge with a name, a help text, and the function that computes it.
    pub fn new(
        name: &'static str,
        help: &'static str,
        read: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            help,
            read: Box::new(read),
        }
    }
}

impl std::fmt::Debug for PolledGauge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PolledGauge")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Collector for PolledGauge {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let gauge = ConstGauge::<f64>::new((self.read)() as f64);
        let metric = encoder.encode_descriptor(self.name, self.help, None, gauge.metric_type())?;
        gauge.encode(metric)
    }
}
