//! Runs of three nodes that tests repeat: a few rounds each time, and many where there are minutes. What judges a run is a function of its
//! own.

mod kills;
mod names;
mod one_time;
mod revocations;

use std::time::Duration;

pub use kills::kill_nodes;
pub use names::{NameAnswer, name_faults, race_for_names};
pub use one_time::{Opened, open_one_time_pages, opening_fault};
pub use revocations::{Attempt, end_authorities};

/// Prints the median of some times, and the longest but for one of a hundred. People judge them: they depend on the machine.
fn print_times(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| {
        let rank = (times.len() * percent).div_ceil(100);
        times[rank.max(1) - 1]
    };
    println!("{what}: p50 {:?} p99 {:?}", at(50), at(99));
}
