//! The bar that shows how far a long command is, to a person at a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::backup::Stage;

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
    pub(super) fn show(&self, stage: Stage, done: u64, all: u64) {
        let (name, counted) = match stage {
            Stage::Databases => ("databases", "{pos}/{len}"),
            Stage::Content => ("content", "{bytes}/{total_bytes} {bytes_per_sec} {eta}"),
            Stage::Check => ("check", ""),
        };
        if self.0.message() != name {
            // Its form is written above, so it is one.
            if let Ok(style) =
                ProgressStyle::with_template(&format!("{{msg:10}} [{{bar:40}}] {counted}"))
            {
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
