//! Metrics of the sandbox.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Labels of a call: the function and its outcome.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct CallLabels {
    /// `render`, `draw`, `judge` or `check`.
    pub(super) function: &'static str,
    /// `ok`, the name of a budget, `abandoned`, or `broken`.
    pub(super) outcome: &'static str,
}

/// Label of a call: the function.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct FunctionLabels {
    /// `render`, `draw`, `judge` or `check`.
    pub(super) function: &'static str,
}

/// Label of a metric: the world of a guest.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct WorldLabels {
    /// `render` or `gate`.
    pub(super) world: &'static str,
}

/// Labels of the metrics of a lane.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct LaneLabels {
    /// `pages` or `checks`.
    pub(super) lane: &'static str,
    /// `owner`, `stranger`, `server` or `preview`.
    pub(super) class: &'static str,
}

/// Constructor of the histograms of a family.
#[derive(Clone, Copy, Debug)]
pub(super) struct HistogramConstructor {
    first: f64,
    factor: f64,
    count: u16,
}

impl MetricConstructor<Histogram> for HistogramConstructor {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(self.first, self.factor, self.count))
    }
}

/// Metrics of the sandbox; clones share the counters.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Number of finished calls.
    pub(super) calls: Family<CallLabels, Counter>,
    /// Fuel of the finished calls.
    pub(super) fuel: Family<FunctionLabels, Histogram, HistogramConstructor>,
    /// Seconds from instantiation to result.
    pub(super) duration: Family<FunctionLabels, Histogram, HistogramConstructor>,
    /// Memory of the finished calls, in bytes.
    pub(super) memory: Family<FunctionLabels, Histogram, HistogramConstructor>,
    /// Largest memory of any call, in bytes.
    pub(super) memory_peak: Family<FunctionLabels, Gauge<u64, AtomicU64>>,
    /// Calls that ended in a trap.
    pub(super) traps: Family<FunctionLabels, Counter>,
    /// Guests that replaced another while the server ran.
    pub(super) switches: Family<WorldLabels, Counter>,
    /// Guests that were rolled back, because they failed where the previous one did not.
    pub(super) rollbacks: Family<WorldLabels, Counter>,
    /// Seconds that jobs waited for a thread.
    pub(super) queue_wait: Family<LaneLabels, Histogram, HistogramConstructor>,
    /// Jobs that were refused a thread.
    pub(super) refused: Family<LaneLabels, Counter>,
    /// Jobs that are waiting for a thread.
    pub(super) waiting: Family<LaneLabels, Gauge>,
    /// Jobs that hold a thread.
    pub(super) running: Family<LaneLabels, Gauge>,
    /// Instances that exist.
    pub(super) live_instances: Arc<Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        let fuel = HistogramConstructor {
            first: 1e5,
            factor: 4.0,
            count: 9,
        };
        let bytes = HistogramConstructor {
            first: 65_536.0,
            factor: 2.0,
            count: 13,
        };
        let seconds = HistogramConstructor {
            first: 50e-6,
            factor: 4.0,
            count: 9,
        };
        Self {
            calls: Family::default(),
            fuel: Family::new_with_constructor(fuel),
            duration: Family::new_with_constructor(seconds),
            memory: Family::new_with_constructor(bytes),
            memory_peak: Family::default(),
            traps: Family::default(),
            switches: Family::default(),
            rollbacks: Family::default(),
            queue_wait: Family::new_with_constructor(seconds),
            refused: Family::default(),
            waiting: Family::default(),
            running: Family::default(),
            live_instances: Arc::default(),
        }
    }
}

/// Resources that one call used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallUsage {
    pub(super) fuel: u64,
    pub(super) memory: usize,
    pub(super) duration: Duration,
    /// Processor time, which on a busy machine is less than the duration.
    pub(super) processor: Duration,
}

impl CallUsage {
    /// Returns the memory in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        u64::try_from(self.memory).unwrap_or(u64::MAX)
    }
}

impl Metrics {
    /// Registers the metrics for `/metrics`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "svc_guest_calls",
            "Calls of guests by function and outcome",
            self.calls.clone(),
        );
        registry.register(
            "svc_guest_fuel",
            "Fuel that a call of a guest used",
            self.fuel.clone(),
        );
        registry.register(
            "svc_guest_seconds",
            "Time that a call of a guest took",
            self.duration.clone(),
        );
        registry.register(
            "svc_guest_memory_bytes",
            "Memory that a call of a guest used",
            self.memory.clone(),
        );
        registry.register(
            "svc_guest_memory_peak_bytes",
            "The most memory that a call of a guest used",
            self.memory_peak.clone(),
        );
        registry.register(
            "svc_guest_traps",
            "Calls of guests that trapped",
            self.traps.clone(),
        );
        registry.register(
            "svc_guest_switches",
            "Guests that took the place of another",
            self.switches.clone(),
        );
        registry.register(
            "svc_guest_rollbacks",
            "Guests that failed where the one before them did not, and lost their place to it",
            self.rollbacks.clone(),
        );
        registry.register(
            "svc_guest_instances",
            "Instances of guests that exist",
            (*self.live_instances).clone(),
        );
        self.register_lanes(registry);
    }

    fn register_lanes(&self, registry: &mut Registry) {
        registry.register(
            "svc_worker_wait_seconds",
            "Time that jobs waited for a worker thread",
            self.queue_wait.clone(),
        );
        registry.register(
            "svc_worker_refused",
            "Jobs that got no worker thread in time, or whose caller left",
            self.refused.clone(),
        );
        registry.register(
            "svc_worker_waiting",
            "Jobs that wait for a worker thread",
            self.waiting.clone(),
        );
        registry.register(
            "svc_worker_running",
            "Jobs that hold a worker thread",
            self.running.clone(),
        );
    }

    /// Counts a finished call; `trapped` if its instance is spoilt.
    pub(super) fn record_call(
        &self,
        function: &'static str,
        outcome: &'static str,
        trapped: bool,
        used: CallUsage,
    ) {
        let labels = FunctionLabels { function };
        self.calls
            .get_or_create(&CallLabels { function, outcome })
            .inc();
        #[allow(
            clippy::cast_precision_loss,
            reason = "a histogram's sum is approximate"
        )]
        self.fuel.get_or_create(&labels).observe(used.fuel as f64);
        self.duration
            .get_or_create(&labels)
            .observe(used.duration.as_secs_f64());
        let memory = used.memory_bytes();
        #[allow(
            clippy::cast_precision_loss,
            reason = "a histogram's sum is approximate"
        )]
        self.memory.get_or_create(&labels).observe(memory as f64);
        let peak = self.memory_peak.get_or_create(&labels);
        peak.inner()
            .fetch_max(memory, std::sync::atomic::Ordering::Relaxed);
        drop(peak);
        if trapped {
            self.traps.get_or_create(&labels).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_shown_by_function_and_outcome() {
        let metrics = Metrics::default();
        let used = |memory| CallUsage {
            fuel: 1000,
            memory,
            duration: Duration::from_millis(2),
            ..CallUsage::default()
        };
        metrics.record_call("render", "ok", false, used(4096));
        metrics.record_call("render", "fuel", true, used(2048));
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            r#"svc_guest_calls_total{function="render",outcome="ok"} 1"#,
            r#"svc_guest_calls_total{function="render",outcome="fuel"} 1"#,
            r#"svc_guest_traps_total{function="render"} 1"#,
            r#"svc_guest_memory_peak_bytes{function="render"} 4096"#,
            r#"svc_guest_fuel_count{function="render"} 2"#,
            r#"svc_guest_memory_bytes_count{function="render"} 2"#,
            r#"svc_guest_memory_bytes_bucket{le="65536.0",function="render"} 2"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
