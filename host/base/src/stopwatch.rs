//! Measures how long things take. Nothing is decided by it: decisions take the time that they are handed.

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
    /// Starts one.
    #[must_use]
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place that reads the clock in order to measure"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// The time since the start, in seconds: what histograms take.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.elapsed().as_secs_f64()
    }
}
