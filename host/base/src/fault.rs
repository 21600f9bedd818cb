//! Points at which a test kills the process, to show that what follows a crash is whole. Debug builds only.

/// Ends the process at once, without any clean-up, if the environment's `SVC_FAULT` names this point: `NAME`, or `NAME@3` for the
/// third time that it is passed.
#[cfg(debug_assertions)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests name the point from outside the process"
)]
pub fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    /// Name of the point, and how often it is passed still before the process ends there.
    static WANTED: OnceLock<Option<(String, AtomicU32)>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| {
        let wanted = std::env::var("SVC_FAULT").ok()?;
        let (name, time) = wanted.split_once('@').unwrap_or((&wanted, "1"));
        // A point that cannot be read would kill nothing, and its test would pass.
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

/// Nothing, in a release build.
#[cfg(not(debug_assertions))]
pub fn point(_: &str) {}
