//! Activity on the pages of projects, for their owners: counts by the hour, and a log of the latest requests.
//!
//! A count is an addition to a number of its own page or action, which is found once and held with it. Every minute the sums of the
//! hour are written down. The log is in memory alone: it holds what was answered and never what was sent.

mod clients;
mod counts;
mod errand;
mod flush;
mod founding;
mod log;
mod outcome;
mod project;
mod registry;
mod store;
mod times;

pub use counts::{ActionCounts, HourCounts, PointCounts, RangeCounts, Totals};
pub use errand::SharedHours;
pub use founding::share_own_hours;
pub use log::{EntryKind, LogEntry, LogFilter, LogFollower, LogPage, LoggedRequest};
pub use outcome::LoggedOutcome;
pub use project::{ActionActivity, PageActivity, ProjectActivity};
pub use registry::Activity;
pub use times::CallTimes;

use svc_base::clock::Timestamp;

/// Milliseconds of an hour.
pub const HOUR_MS: i64 = 3_600_000;
/// Days for which counts are kept.
pub const KEPT_DAYS: i64 = 90;

/// Returns the number of the hour of a time, since the epoch.
pub fn hour_of(at: Timestamp) -> i64 {
    at.0.div_euclid(HOUR_MS)
}
