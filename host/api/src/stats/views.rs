//! Views of what owners see.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::requests::{StatsRange, Step};
use crate::activity::{ActionCounts, LogEntry, LogPage, PointCounts, RangeCounts};
use svc_base::clock::Timestamp;
use svc_base::ids::LogEntryId;

/// Most pages and most actions of an answer: those that were used most.
const MAX_NAMED: usize = 1000;

/// Counts of a project's pages in a range of time.
#[derive(Debug, Serialize, ToSchema)]
pub struct StatsView {
    /// Beginning of the first point.
    #[schema(value_type = String, format = "date-time")]
    from: Timestamp,
    /// Until when counts are in the answer.
    #[schema(value_type = String, format = "date-time")]
    to: Timestamp,
    step: Step,
    /// A point for each hour or day, oldest first, those without anything too.
    series: Vec<StatsPoint>,
    /// Pages that were viewed, those with most views first.
    pages: Vec<PageStats>,
    /// Actions that were called, those with most calls first.
    actions: Vec<ActionStats>,
}

/// An hour or a day.
#[derive(Debug, Serialize, ToSchema)]
pub struct StatsPoint {
    /// When it begins.
    #[schema(value_type = String, format = "date-time")]
    at: Timestamp,
    /// Views of pages.
    views: u64,
    /// Calls of actions: each op of a batch, each live query that began, each call of an app's tool.
    calls: u64,
    /// Requests that were answered with an error, but for those in `limited`.
    errors: u64,
    /// Requests that a rate limit or a quota refused (429).
    limited: u64,
    /// Messages of visitors in rooms.
    messages: u64,
    /// Sign-ins that were completed.
    sign_ins: u64,
    /// Checkouts that were paid.
    payments: u64,
}

/// Views of a page.
#[derive(Debug, Serialize, ToSchema)]
pub struct PageStats {
    slug: String,
    views: u64,
}

/// Calls of an action.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActionStats {
    name: String,
    calls: u64,
    /// Calls that were answered with an error.
    errors: u64,
    /// Time that half of the calls did not pass, in milliseconds; null without calls.
    p50_ms: Option<f64>,
    /// Time that 95 of 100 calls did not pass.
    p95_ms: Option<f64>,
    /// Time that 99 of 100 calls did not pass.
    p99_ms: Option<f64>,
    /// Rows that were answered.
    rows: u64,
}

impl StatsView {
    /// Shows the counts of a range.
    pub fn new(range: StatsRange, counts: RangeCounts) -> Self {
        let point = |number: i64| {
            let point = counts.points.get(&(range.first + number));
            let PointCounts { views, totals } = point.copied().unwrap_or_default();
            StatsPoint {
                at: range.at(number),
                views,
                calls: totals.calls,
                errors: totals.errors,
                limited: totals.limited,
                messages: totals.messages,
                sign_ins: totals.sign_ins,
                payments: totals.payments,
            }
        };
        Self {
            from: range.at(0),
            to: range.to,
            step: range.step,
            series: (0..range.points).map(point).collect(),
            pages: most_used(counts.all.pages, |views| *views)
                .map(|(slug, views)| PageStats { slug, views })
                .collect(),
            actions: most_used(counts.all.actions, |counts| counts.calls)
                .map(ActionStats::new)
                .collect(),
        }
    }
}

/// Returns what was used most, and of those with one number the first by name.
fn most_used<T>(
    all: BTreeMap<String, T>,
    number: impl Fn(&T) -> u64,
) -> impl Iterator<Item = (String, T)> {
    let mut all: Vec<(String, T)> = all.into_iter().collect();
    all.sort_by_key(|(_, one)| std::cmp::Reverse(number(one)));
    all.into_iter().take(MAX_NAMED)
}

impl ActionStats {
    fn new((name, counts): (String, ActionCounts)) -> Self {
        let percentile = |percent| counts.times.percentile_ms(percent);
        Self {
            name,
            calls: counts.calls,
            errors: counts.errors,
            p50_ms: percentile(50),
            p95_ms: percentile(95),
            p99_ms: percentile(99),
            rows: counts.rows,
        }
    }
}

/// Entries of a project's log.
#[derive(Debug, Serialize, ToSchema)]
pub struct LogView {
    /// Newest first.
    entries: Vec<LogEntryView>,
    /// `before` for the next page; null on the last one.
    #[schema(value_type = Option<String>, format = "uuid")]
    next_before: Option<LogEntryId>,
}

/// A request that was answered.
#[derive(Debug, Serialize, ToSchema)]
pub struct LogEntryView {
    #[schema(value_type = String, format = "uuid")]
    id: LogEntryId,
    /// When it was answered.
    #[schema(value_type = String, format = "date-time")]
    at: Timestamp,
    /// `call`, `query`, `live`, `room`, `sign_in`, `payment`, `upload` or `tool`.
    #[schema(value_type = String, example = "call")]
    kind: &'static str,
    /// Name of the action; a batch has none, unless one of its calls failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    action: Option<Arc<str>>,
    /// The page.
    #[schema(value_type = String)]
    slug: Arc<str>,
    status: u16,
    /// Code of the problem, or of a sign-in that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    code: Option<&'static str>,
    /// Time that it took, in milliseconds.
    ms: f64,
    /// The visitor, if signed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    user_id: Option<Box<str>>,
    /// Tells clients of one day apart; it is no address.
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    /// `X-Request-Id` of the answer.
    #[schema(value_type = String)]
    request_id: Box<str>,
    /// Text of the problem, without anything that the visitor had sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    detail: Option<Box<str>>,
}

impl LogView {
    /// Shows a page of the log.
    pub fn new(page: &LogPage) -> Self {
        let last = page.entries.last().map(|entry| entry.id);
        Self {
            entries: page
                .entries
                .iter()
                .map(|entry| LogEntryView::new(entry))
                .collect(),
            next_before: last.filter(|_| page.more),
        }
    }

    /// Returns how many entries there are.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }
}

impl LogEntryView {
    /// Shows an entry.
    pub fn new(entry: &LogEntry) -> Self {
        Self {
            id: entry.id,
            at: entry.at,
            kind: entry.kind.name(),
            action: entry.action.clone(),
            slug: Arc::clone(&entry.slug),
            status: entry.outcome.status,
            code: entry.outcome.code,
            ms: (entry.took.as_secs_f64() * 100_000.0).round() / 100.0,
            user_id: entry.user_id.clone(),
            client: entry.client.map(|client| format!("{client:016x}")),
            request_id: entry.request_id.clone(),
            detail: entry.outcome.detail.clone(),
        }
    }
}
