//! Figures: medians, tables and goals.

use std::io::Write;
use std::time::Duration;

/// Prints a line of the report.
pub(crate) fn print_line(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}

/// Prints the heading of a part.
pub(crate) fn print_title(text: &str) -> anyhow::Result<()> {
    print_line(&format!("\n{text}\n"))
}

/// Returns the median of figures; `NaN` if there are none.
pub(crate) fn median(figures: &[f64]) -> f64 {
    quantile(figures, 0.5)
}

/// Returns a percentile of figures, by nearest rank.
pub(crate) fn quantile(figures: &[f64], share: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is a small whole number"
    )]
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or(f64::NAN)
}

/// Milliseconds, as a figure.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Goals that were missed.
#[derive(Debug, Default)]
pub(crate) struct Goals(Vec<String>);

impl Goals {
    /// Checks that a figure is at least `least`.
    pub(crate) fn at_least(&mut self, what: &str, found: f64, least: f64) {
        self.record_goal(what, found, "at least", least, found >= least);
    }

    /// Checks that a figure is at most `most`.
    pub(crate) fn at_most(&mut self, what: &str, found: f64, most: f64) {
        self.record_goal(what, found, "at most", most, found <= most);
    }

    fn record_goal(&mut self, what: &str, found: f64, word: &str, bound: f64, reached: bool) {
        let verdict = if reached { "reached" } else { "MISSED" };
        let bound = (bound * 100.0).round() / 100.0;
        self.0
            .push(format!("{verdict}  {what}: {found:.2} ({word} {bound})"));
    }

    /// Prints all missed goals.
    pub(crate) fn print(&self) -> anyhow::Result<()> {
        print_title("Goals")?;
        self.0.iter().try_for_each(|line| print_line(line))
    }
}
