//! Figures of a node for operators.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Buckets of times, in seconds.
const SECONDS_BUCKETS: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Metrics of a node, which it shows from its start on, as a standby too.
#[derive(Debug)]
pub struct ClusterMetrics {
    append_seconds: Histogram,
    waiting_bytes: Gauge,
    unknown: Counter,
    control: Gauge,
    databases: Gauge,
    takeovers: Counter,
    tail_bytes: Gauge,
    /// Stays 0 at the node that has control.
    feed_lag: Gauge,
    proxied_seconds: Histogram,
}

impl Default for ClusterMetrics {
    fn default() -> Self {
        Self {
            append_seconds: Histogram::new(SECONDS_BUCKETS),
            waiting_bytes: Gauge::default(),
            unknown: Counter::default(),
            control: Gauge::default(),
            databases: Gauge::default(),
            takeovers: Counter::default(),
            tail_bytes: Gauge::default(),
            feed_lag: Gauge::default(),
            proxied_seconds: Histogram::new(SECONDS_BUCKETS),
        }
    }
}

impl ClusterMetrics {
    /// Adds them to the metrics of the server.
    pub fn register(&self, registry: &mut Registry) {
        for (name, help, histogram) in [
            (
                "svc_ledger_append_seconds",
                "Time until the ledger acknowledges an append",
                &self.append_seconds,
            ),
            (
                "svc_proxied_seconds",
                "Time of a request that another node answers",
                &self.proxied_seconds,
            ),
        ] {
            registry.register(name, help, histogram.clone());
        }
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
            (
                "svc_feed_lag_commits",
                "Commits of control that this node has not followed",
                &self.feed_lag,
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

    /// Counts a request that another node was asked to answer, by the time until it did.
    pub fn count_proxied(&self, took: Duration) {
        self.proxied_seconds.observe(took.as_secs_f64());
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

    /// Notes how many commits of control this node lacks.
    pub(super) fn set_feed_lag(&self, commits: u64) {
        self.feed_lag
            .set(i64::try_from(commits).unwrap_or(i64::MAX));
    }

    pub(super) fn set_amounts(&self, waiting: usize, databases: usize, tail: u64) {
        self.waiting_bytes
            .set(i64::try_from(waiting).unwrap_or(i64::MAX));
        self.databases
            .set(i64::try_from(databases).unwrap_or(i64::MAX));
        self.tail_bytes.set(i64::try_from(tail).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_of_a_node_is_there_with_its_kind() {
        let mut registry = Registry::default();
        ClusterMetrics::default().register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let mut types: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .collect();
        types.sort_unstable();
        assert_eq!(
            types,
            [
                "svc_cluster_control gauge",
                "svc_cluster_databases gauge",
                "svc_feed_lag_commits gauge",
                "svc_ledger_append_seconds histogram",
                "svc_ledger_tail_bytes gauge",
                "svc_ledger_unknown counter",
                "svc_ledger_waiting_bytes gauge",
                "svc_proxied_seconds histogram",
                "svc_takeovers counter",
            ]
        );
        for counter in ["svc_ledger_unknown_total 0", "svc_takeovers_total 0"] {
            assert!(text.lines().any(|line| line == counter), "{text}");
        }
    }
}
