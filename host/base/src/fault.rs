//! Crash points for tests: a test kills the process at one and looks at what remains. Debug builds only.

/// Aborts the process if the environment's `SVC_FAULT` names this point. `NAME@3` aborts when the point is passed for the third
/// time.
#[cfg(debug_assertions)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests name the point from outside the process"
)]
pub fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    /// Name of the point, and the number of passes until the process aborts there.
    static WANTED: OnceLock<Option<(String, AtomicU32)>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| {
        let wanted = std::env::var("SVC_FAULT").ok()?;
        let (name, time) = wanted.split_once('@').unwrap_or((&wanted, "1"));
        // A value that cannot be parsed would abort nothing, and its test would pass.
        let time = time.parse().unwrap_or_else(|_| std::process::abort());
        Some((name.to_owned(), AtomicU32::new(time)))
    });
    if let Some((point, times)) = wanted
        && point == name
        && times.fetch_sub(1, Ordering::Relaxed) == 1
    {
        std::process::abort();
    }
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
pub fn point(_: &str) {}
