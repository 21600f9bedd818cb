//! Points at which a test kills the process, to show that what follows a crash is whole. Debug builds only.

/// Ends the process at once, without any clean-up, if the environment's `SVC_FAULT` names this point.
#[cfg(debug_assertions)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests name the point from outside the process"
)]
pub fn point(name: &str) {
    static WANTED: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    if WANTED
        .get_or_init(|| std::env::var("SVC_FAULT").ok())
        .as_deref()
        == Some(name)
    {
        std::process::abort();
    }
}

/// Nothing, in a release build.
#[cfg(not(debug_assertions))]
pub fn point(_: &str) {}
