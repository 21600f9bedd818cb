//! Sums of what a project's pages did in an hour, as they are written down.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::times::CallTimes;

macro_rules! totals {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Sums of a project that are no page's and no action's.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Totals {
            $($(#[$doc])* #[serde(skip_serializing_if = "is_zero")] pub $name: u64,)+
        }

        impl Totals {
            /// Adds the sums of another time.
            pub fn merge(&mut self, other: &Self) {
                $(self.$name += other.$name;)+
            }
        }

        /// Counters of these sums.
        #[derive(Debug, Default)]
        pub(super) struct TotalCounters {
            $(pub(super) $name: std::sync::atomic::AtomicU64,)+
        }

        impl TotalCounters {
            /// Takes what was counted.
            pub(super) fn take(&self) -> Totals {
                use std::sync::atomic::Ordering::Relaxed;
                Totals { $($name: self.$name.swap(0, Relaxed),)+ }
            }
        }
    };
}

totals! {
    /// Calls of actions: each op of a batch, each live query that began, each call of an app's tool.
    calls,
    /// Requests that were answered with an error, but for those in `limited`.
    errors,
    /// Requests that a rate limit or a quota refused.
    limited,
    /// Messages of visitors in rooms.
    messages,
    /// Sign-ins that were completed.
    sign_ins,
    /// Checkouts that were paid.
    payments,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Sums of an action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionCounts {
    #[serde(skip_serializing_if = "is_zero")]
    pub calls: u64,
    /// Calls that were answered with an error.
    #[serde(skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// Rows that were answered.
    #[serde(skip_serializing_if = "is_zero")]
    pub rows: u64,
    /// Times that calls took.
    #[serde(skip_serializing_if = "CallTimes::is_empty")]
    pub times: CallTimes,
}

impl ActionCounts {
    /// Adds the sums of another time.
    pub fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.rows += other.rows;
        self.times.merge(&other.times);
    }
}

/// Sums of a project in an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HourCounts {
    #[serde(flatten)]
    pub totals: Totals,
    /// Views of each page, by its slug.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pages: BTreeMap<String, u64>,
    /// Calls of each action, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub actions: BTreeMap<String, ActionCounts>,
}

impl HourCounts {
    /// Adds other sums.
    pub fn merge(&mut self, other: &Self) {
        self.totals.merge(&other.totals);
        for (slug, views) in &other.pages {
            *self.pages.entry(slug.clone()).or_default() += views;
        }
        for (name, counts) in &other.actions {
            self.actions.entry(name.clone()).or_default().merge(counts);
        }
    }

    /// Returns the views of all pages.
    pub fn views(&self) -> u64 {
        self.pages.values().sum()
    }

    /// Whether nothing was counted.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Sums of a point of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointCounts {
    /// Views of all pages.
    pub views: u64,
    pub totals: Totals,
}

/// Sums of a range of hours. Those of a page or an action are of the whole range, so that many hours take no more memory than one.
#[derive(Clone, Debug, Default)]
pub struct RangeCounts {
    /// Points at which something was counted, by their numbers.
    pub points: BTreeMap<i64, PointCounts>,
    /// Sums of the whole range.
    pub all: HourCounts,
}

impl RangeCounts {
    /// Adds the sums of an hour to a point.
    pub(super) fn add(&mut self, point: i64, counts: &HourCounts) {
        self.points.entry(point).or_default().merge(&PointCounts {
            views: counts.views(),
            totals: counts.totals,
        });
        self.all.merge(counts);
    }

    /// Adds what was counted elsewhere in the range.
    pub(super) fn merge(&mut self, other: &Self) {
        for (point, counts) in &other.points {
            self.points.entry(*point).or_default().merge(counts);
        }
        self.all.merge(&other.all);
    }
}

impl PointCounts {
    fn merge(&mut self, other: &Self) {
        self.views += other.views;
        self.totals.merge(&other.totals);
    }
}
