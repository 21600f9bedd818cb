//! Figures of a node for operators.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Buckets of the time of an append, in seconds.
const APPEND_BUCKETS: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Metrics of a node.
#[derive(Debug)]
pub struct ClusterMetrics {
    append_seconds: Histogram,
    waiting_bytes: Gauge,
    unknown: Counter,
    control: Gauge,
    databases: Gauge,
    takeovers: Counter,
    tail_bytes: Gauge,
}

impl Default for ClusterMetrics {
    fn default() -> Self {
        Self {
            append_seconds: Histogram::new(APPEND_BUCKETS),
            waiting_bytes: Gauge::default(),
            unknown: Counter::default(),
            control: Gauge::default(),
            databases: Gauge::default(),
            takeovers: Counter::default(),
            tail_bytes: Gauge::default(),
        }
    }
}

impl ClusterMetrics {
    /// Adds them to the metrics of the server.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "svc_ledger_append_seconds",
            "Time until the ledger acknowledges an append",
            self.append_seconds.clone(),
        );
        for (name, help, gauge) in [
            (
                "svc_ledger_waiting_bytes",
                "Bytes of commits that the ledger has not acknowledged",
                &self.waiting_bytes,
            ),
            (
                "svc_cluster_control",
                "Whether this node has control",
                &self.control,
            ),
            (
                "svc_cluster_databases",
                "Databases that this node has",
                &self.databases,
            ),
            (
                "svc_ledger_tail_bytes",
                "Bytes of commits since the bases of this node's databases",
                &self.tail_bytes,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
        for (name, help, counter) in [
            (
                "svc_ledger_unknown",
                "Appends whose answer was lost, and looked up",
                &self.unknown,
            ),
            (
                "svc_takeovers",
                "Times that this process took control over",
                &self.takeovers,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
    }

    pub(super) fn count_append(&self, took: Duration) {
        self.append_seconds.observe(took.as_secs_f64());
    }

    pub(super) fn count_lost_answer(&self) {
        self.unknown.inc();
    }

    /// Notes that this process has control; `took_over` if another one had it before.
    pub(super) fn note_control(&self, took_over: bool) {
        self.control.set(1);
        if took_over {
            self.takeovers.inc();
        }
    }

    pub(super) fn set_amounts(&self, waiting: usize, databases: usize, tail: u64) {
        self.waiting_bytes
            .set(i64::try_from(waiting).unwrap_or(i64::MAX));
        self.databases
            .set(i64::try_from(databases).unwrap_or(i64::MAX));
        self.tail_bytes.set(i64::try_from(tail).unwrap_or(i64::MAX));
    }
}
