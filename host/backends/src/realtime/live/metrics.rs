//! Metrics of live queries.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Default)]
pub(in crate::realtime) struct LiveMetrics {
    /// Number of evaluations.
    pub(super) evaluations: Counter,
    listeners: Gauge,
    queries: Gauge,
    subscriptions: Gauge,
    bytes: Gauge,
}

impl LiveMetrics {
    /// Sets the gauges.
    pub(super) fn set_gauges(
        &self,
        listeners: usize,
        queries: usize,
        subscriptions: usize,
        bytes: usize,
    ) {
        for (gauge, count) in [
            (&self.listeners, listeners),
            (&self.queries, queries),
            (&self.subscriptions, subscriptions),
            (&self.bytes, bytes),
        ] {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Registers the metrics.
    pub(in crate::realtime) fn register(&self, registry: &mut Registry) {
        for (name, help, gauge) in [
            (
                "svc_live_connections",
                "Sockets and streams of live queries",
                &self.listeners,
            ),
            (
                "svc_live_queries",
                "Live queries that somebody listens to",
                &self.queries,
            ),
            (
                "svc_live_subscriptions",
                "Subscriptions to live queries",
                &self.subscriptions,
            ),
            (
                "svc_live_bytes",
                "Bytes of answers of live queries in memory",
                &self.bytes,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
        registry.register(
            "svc_live_evaluations",
            "Evaluations of live queries",
            self.evaluations.clone(),
        );
    }
}
