//! Progress bar of a long command, for a person at a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::backup::BackupStage;

/// Template of the counter, for most stages.
const COUNT_TEMPLATE: &str = "{pos}/{len}";
/// Interval at which the spinner moves.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// A progress bar on standard error; hidden if that is no terminal.
#[derive(Debug)]
pub(super) struct TerminalProgressBar(ProgressBar);

impl TerminalProgressBar {
    /// Creates a bar that shows nothing yet.
    pub(super) fn new() -> Self {
        Self(ProgressBar::with_draw_target(
            None,
            ProgressDrawTarget::stderr(),
        ))
    }

    /// Shows the progress of a stage of a backup.
    pub(super) fn show_stage(&self, stage: BackupStage, done: u64, all: u64) {
        let (name, counted) = match stage {
            BackupStage::Databases => ("databases", COUNT_TEMPLATE),
            BackupStage::Content => ("content", "{bytes}/{total_bytes} {bytes_per_sec} {eta}"),
            BackupStage::Check => ("check", COUNT_TEMPLATE),
        };
        self.draw(
            name,
            &format!("{{msg:10}} [{{bar:40}}] {counted}"),
            done,
            all,
        );
    }

    /// Shows how many of `all` are done.
    pub(super) fn show_count(&self, name: &'static str, done: u64, all: u64) {
        self.draw(
            name,
            &format!("{{msg:10}} [{{bar:40}}] {COUNT_TEMPLATE} {{eta}}"),
            done,
            all,
        );
    }

    /// Shows a spinner for work of unknown length.
    pub(super) fn show_spinner(&self, name: &'static str) {
        self.draw(name, "{msg:10} {spinner} {elapsed}", 0, 1);
        self.0.enable_steady_tick(SPINNER_INTERVAL);
    }

    fn draw(&self, name: &'static str, template: &str, done: u64, all: u64) {
        if self.0.message() != name {
            self.0.disable_steady_tick();
            // The templates are constants of this file, so all of them parse.
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

impl Drop for TerminalProgressBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
