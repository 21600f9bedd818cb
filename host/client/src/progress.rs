//! Progress bars and spinners on standard error, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time between two frames of a spinner.
const TICK: Duration = Duration::from_millis(100);

/// A progress bar, removed when it is dropped.
#[derive(Debug)]
pub(super) struct TerminalProgressBar(ProgressBar);

impl TerminalProgressBar {
    /// Spinner for work of unknown length.
    pub(super) fn spinner(name: &'static str) -> Self {
        let bar = Self::new(None, "{msg} {spinner} {elapsed}", name);
        bar.0.enable_steady_tick(TICK);
        bar
    }

    /// Bar for a number of steps.
    pub(super) fn steps(name: &'static str, all: usize) -> Self {
        let all = u64::try_from(all).unwrap_or(u64::MAX);
        Self::new(Some(all), "{msg:10} [{bar:40}] {pos}/{len}", name)
    }

    /// Bar for bytes; `all` may be unknown.
    pub(super) fn bytes(name: &'static str, all: Option<u64>) -> Self {
        let template = match all {
            Some(_) => "{msg:10} [{bar:40}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
            None => "{msg:10} {bytes} {bytes_per_sec}",
        };
        Self::new(all, template, name)
    }

    fn new(all: Option<u64>, template: &str, name: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(all, ProgressDrawTarget::stderr());
        // The templates above are valid.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(name);
        Self(bar)
    }

    /// Runs `write` while the bar is hidden.
    pub(super) fn suspend(&self, write: impl FnOnce()) {
        self.0.suspend(write);
    }

    /// Advances the bar.
    pub(super) fn add(&self, more: usize) {
        self.0.inc(u64::try_from(more).unwrap_or(u64::MAX));
    }
}

impl Drop for TerminalProgressBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
