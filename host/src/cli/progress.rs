//! The bar that shows how far a long command is, to a person at a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::backup::Stage;

/// How a stage is counted, as a rule.
const COUNT_TEMPLATE: &str = "{pos}/{len}";
/// How often the sign of what is under way moves.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// A bar on standard error; none where that is no terminal.
#[derive(Debug)]
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// A bar that has yet to begin.
    pub(super) fn new() -> Self {
        Self(ProgressBar::with_draw_target(
            None,
            ProgressDrawTarget::stderr(),
        ))
    }

    /// Shows how far a stage is.
    pub(super) fn show_stage(&self, stage: Stage, done: u64, all: u64) {
        let (name, counted) = match stage {
            Stage::Databases => ("databases", COUNT_TEMPLATE),
            Stage::Content => ("content", "{bytes}/{total_bytes} {bytes_per_sec} {eta}"),
            Stage::Check => ("check", ""),
        };
        self.draw(
            name,
            &format!("{{msg:10}} [{{bar:40}}] {counted}"),
            done,
            all,
        );
    }

    /// Shows how many of so many are done.
    pub(super) fn show_count(&self, name: &'static str, done: u64, all: u64) {
        self.draw(
            name,
            &format!("{{msg:10}} [{{bar:40}}] {COUNT_TEMPLATE} {{eta}}"),
            done,
            all,
        );
    }

    /// Shows that something is under way, of which nobody knows how far it is.
    pub(super) fn show_spinner(&self, name: &'static str) {
        self.draw(name, "{msg:10} {spinner} {elapsed}", 0, 1);
        self.0.enable_steady_tick(SPINNER_INTERVAL);
    }

    fn draw(&self, name: &'static str, template: &str, done: u64, all: u64) {
        if self.0.message() != name {
            self.0.disable_steady_tick();
            // Its form is written above, so it is one.
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.0.set_style(style.progress_chars("=> "));
            }
            self.0.set_message(name);
            self.0.reset_eta();
        }
        self.0.set_length(all);
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
