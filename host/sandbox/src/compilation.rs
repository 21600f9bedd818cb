//! How far the first compilation of the guests is: for the log, for probes, and for people who wait to publish.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use super::values::World;
use svc_base::Stopwatch;

/// How often the log says how far a compilation is.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// A guest that is being compiled before it can serve for the first time on this machine.
#[derive(Clone, Copy, Debug)]
pub struct GuestCompilation {
    /// Which guest.
    pub world: World,
    /// Time since its compilation began.
    pub elapsed: Duration,
    /// Time that its compilation is likely to take, by that of the guest before it.
    pub expected: Option<Duration>,
}

impl fmt::Display for GuestCompilation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guest = match self.world {
            World::Render => "renderer",
            World::Gate => "gate",
        };
        let seconds = self.elapsed.as_secs();
        write!(
            f,
            "compiling the {guest} for this machine, {seconds} s so far"
        )?;
        match self.expected.filter(|expected| *expected > self.elapsed) {
            Some(expected) => write!(f, " of about {}", expected.as_secs().max(1)),
            None => Ok(()),
        }
    }
}

/// The progress of the first compilation.
#[derive(Debug, Default)]
pub(super) struct CompilationProgress(Mutex<CompilationState>);

#[derive(Debug, Default)]
struct CompilationState {
    compiling: Option<RunningCompilation>,
    /// Seconds for a byte of code, as the last compilation took them.
    pace: Option<f64>,
}

#[derive(Debug)]
struct RunningCompilation {
    world: World,
    since: Stopwatch,
    expected: Option<Duration>,
}

impl CompilationProgress {
    fn state(&self) -> MutexGuard<'_, CompilationState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is being compiled now.
    pub(super) fn now(&self) -> Option<GuestCompilation> {
        let state = self.state();
        state.compiling.as_ref().map(|compiling| GuestCompilation {
            world: compiling.world,
            elapsed: compiling.since.elapsed(),
            expected: compiling.expected,
        })
    }

    /// Runs the compilation of so many bytes of code, and reports how far it is until it ends.
    pub(super) fn track<T>(&self, world: World, code_bytes: u64, compile: impl FnOnce() -> T) -> T {
        let since = Stopwatch::start();
        {
            let mut state = self.state();
            // Precise enough for seconds.
            #[allow(clippy::cast_precision_loss, reason = "a forecast")]
            let expected = state.pace.map(|pace| pace * code_bytes as f64);
            state.compiling = Some(RunningCompilation {
                world,
                since,
                expected: expected.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            });
        }
        let (done, ended) = mpsc::channel::<()>();
        let compiled = thread::scope(|scope| {
            let report = move || {
                while ended.recv_timeout(REPORT_INTERVAL) == Err(mpsc::RecvTimeoutError::Timeout) {
                    if let Some(preparing) = self.now() {
                        tracing::info!("still {preparing}; publishing waits for it");
                    }
                }
            };
            // Without a thread for it the log says nothing until the end.
            let _ = thread::Builder::new().spawn_scoped(scope, report);
            let compiled = compile();
            drop(done);
            compiled
        });
        let mut state = self.state();
        #[allow(clippy::cast_precision_loss, reason = "a forecast")]
        let pace = since.elapsed().as_secs_f64() / code_bytes.max(1) as f64;
        (state.compiling, state.pace) = (None, Some(pace));
        compiled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_compilation_is_forecast_by_the_first() {
        let progress = CompilationProgress::default();
        assert!(progress.now().is_none());
        let first = progress.track(World::Gate, 1000, || {
            thread::sleep(Duration::from_millis(20));
            progress.now()
        });
        let first = first.unwrap();
        assert_eq!((first.world, first.expected), (World::Gate, None));
        assert!(first.elapsed >= Duration::from_millis(20));
        let second = progress
            .track(World::Render, 10_000, || progress.now())
            .unwrap();
        assert!(second.expected.unwrap() >= Duration::from_millis(200));
        assert!(progress.now().is_none());
    }

    #[test]
    fn a_forecast_that_was_too_short_is_not_shown() {
        let shown = |elapsed, expected: Option<u64>| {
            let preparing = GuestCompilation {
                world: World::Render,
                elapsed: Duration::from_secs(elapsed),
                expected: expected.map(Duration::from_secs),
            };
            preparing.to_string()
        };
        let begun = "compiling the renderer for this machine, 3 s so far";
        assert_eq!(shown(3, None), begun);
        assert_eq!(shown(3, Some(5)), format!("{begun} of about 5"));
        assert_eq!(shown(3, Some(2)), begun);
    }
}
