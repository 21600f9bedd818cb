//! Processor time of a thread, which passes only while the thread runs: a busy machine does not spend it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Measures the processor time of one thread. Start and read it on the same thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadCpuStopwatch(Duration);

impl ThreadCpuStopwatch {
    /// Starts a stopwatch for the calling thread.
    #[must_use]
    pub fn start() -> Self {
        Self(thread_cpu_time())
    }

    /// Returns the processor time of the calling thread since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        thread_cpu_time().saturating_sub(self.0)
    }
}

/// Returns the processor time of the calling thread since the thread began.
fn thread_cpu_time() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    let nanoseconds = u32::try_from(spent.tv_nsec).unwrap_or(0);
    Duration::new(spent.tv_sec.unsigned_abs(), nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_counts_and_waiting_does_not() {
        let stopwatch = ThreadCpuStopwatch::start();
        std::thread::sleep(Duration::from_millis(200));
        assert!(stopwatch.elapsed() < Duration::from_millis(100));
        let most = Duration::from_millis(20);
        let mut sum = 0_u64;
        while stopwatch.elapsed() < most {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(stopwatch.elapsed() >= most);
    }
}
