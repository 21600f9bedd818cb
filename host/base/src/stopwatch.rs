//! A stopwatch for logs and metrics. It must decide nothing: decisions take a [`Clock`](crate::clock::Clock).

use std::time::{Duration, Instant};

/// A running stopwatch.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Default for Stopwatch {
    fn default() -> Self {
        Self::start()
    }
}

impl Stopwatch {
    /// Starts a stopwatch.
    #[must_use]
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place that reads the clock in order to measure"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Returns the seconds since the start, as histograms take them.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.elapsed().as_secs_f64()
    }
}
