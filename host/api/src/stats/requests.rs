//! Requests about what owners see, and their checks: for REST and for tools alike.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::activity::{EntryKind, HOUR_MS, LogFilter};
use crate::http::extract::invalid_request;
use crate::http::problem::Problem;
use svc_base::clock::Timestamp;
use svc_base::ids::LogEntryId;
use svc_base::names::is_action_name;
use svc_base::numbers::optional_whole_number;

/// Most points of a series.
const MAX_POINTS: i64 = 400;
/// Days of a series whose beginning is not named, the last one included.
const DEFAULT_DAYS: i64 = 7;
/// Times that have a form on the wire, in UTC: those of the years 0 to 9999.
const TIMES: std::ops::Range<i64> = -62_167_219_200_000..253_402_300_800_000;
/// Default number of entries of the log.
const DEFAULT_ENTRIES: u64 = 100;
/// Largest number of entries of the log.
const MAX_ENTRIES: u64 = 500;

/// Which counts.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StatsQuery {
    /// Where the series begins, at the start of its hour or day; if absent, six days before the day of `to`.
    #[param(format = "date-time")]
    pub from: Option<String>,
    /// Where it ends: now, if absent.
    #[param(format = "date-time")]
    pub to: Option<String>,
    /// How long a point is: `day`, if absent. Days are those of UTC.
    #[param(pattern = "^(hour|day)$")]
    pub step: Option<String>,
}

/// Length of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Hour,
    Day,
}

impl Step {
    /// Returns the number of hours.
    pub fn hours(self) -> i64 {
        match self {
            Self::Hour => 1,
            Self::Day => 24,
        }
    }

    fn millis(self) -> i64 {
        self.hours() * HOUR_MS
    }
}

/// Range of whole points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatsRange {
    pub step: Step,
    /// Number of the first point since the epoch.
    pub first: i64,
    /// Number of points.
    pub points: i64,
    /// Time until which counts are in the answer.
    pub to: Timestamp,
}

impl StatsRange {
    /// Returns the first hour of the range, and the first one after it.
    pub fn hours(&self) -> (i64, i64) {
        let hours = self.step.hours();
        (self.first * hours, (self.first + self.points) * hours)
    }

    /// Returns the beginning of a point.
    pub fn at(&self, point: i64) -> Timestamp {
        Timestamp((self.first + point) * self.step.millis())
    }
}

impl StatsQuery {
    /// Returns the range.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self, now: Timestamp) -> Result<StatsRange, Problem> {
        let step = match self.step.as_deref() {
            None | Some("day") => Step::Day,
            Some("hour") => Step::Hour,
            Some(_) => return Err(invalid_request("`step` must be `hour` or `day`.")),
        };
        let parse = |field: &str, text: Option<String>| {
            text.map(|text| parse_time(field, &text)).transpose()
        };
        let (from, to) = (
            parse("from", self.from)?,
            parse("to", self.to)?.unwrap_or(now),
        );
        let length = step.millis();
        // A point that begins before `to` is in the answer to its end, or until now.
        let end = to.0.saturating_add(length - 1).div_euclid(length);
        let last_day = (to.0 - 1).div_euclid(24 * HOUR_MS);
        let from = from.map_or((last_day - (DEFAULT_DAYS - 1)) * 24 * HOUR_MS, |from| {
            from.0
        });
        if from >= to.0 {
            return Err(invalid_request("`from` must be before `to`."));
        }
        let first = from.div_euclid(length);
        let points = end - first;
        if points > MAX_POINTS {
            let how = match step {
                Step::Hour => "ask for less time, or with `step=day`",
                Step::Day => "ask for less time",
            };
            return Err(invalid_request(format!(
                "From `from` to `to` there are {points} points; {MAX_POINTS} is the most: {how}."
            )));
        }
        let whole = Timestamp(end * length);
        let to = if whole > now { to.max(now) } else { whole };
        Ok(StatsRange {
            step,
            first,
            points,
            to: to.min(whole),
        })
    }
}

/// Which entries of the log.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// How many: 100, if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u64>,
    /// Only entries before this one: `next_before` of the answer before, or any id.
    #[param(format = "uuid")]
    pub before: Option<String>,
    /// Only those of a kind.
    #[param(pattern = "^(call|query|live|room|sign_in|payment|upload|tool)$")]
    pub kind: Option<String>,
    /// Only those that were answered with a status.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[param(minimum = 100, maximum = 599)]
    pub status: Option<u64>,
    /// Only those of an action.
    #[param(pattern = "^[a-z][a-z0-9_]{0,63}$")]
    pub action: Option<String>,
}

/// Entries of the log that are asked for.
#[derive(Clone, Debug, Default)]
pub struct WantedEntries {
    pub filter: LogFilter,
    pub before: Option<LogEntryId>,
    pub most: usize,
}

impl LogQuery {
    /// Returns what is asked for.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<WantedEntries, Problem> {
        let most = self.limit.unwrap_or(DEFAULT_ENTRIES);
        if !(1..=MAX_ENTRIES).contains(&most) {
            return Err(invalid_request(format!(
                "`limit` must be from 1 to {MAX_ENTRIES}."
            )));
        }
        let before = self.before.as_deref().map(|before| {
            before.parse().map_err(|_| {
                invalid_request("`before` is not valid: send `next_before` of the previous page, or the id of an entry.")
            })
        });
        let kind = self.kind.as_deref().map(|kind| {
            EntryKind::find_by_name(kind).ok_or_else(|| {
                invalid_request(format!(
                    "`kind` must be one of {}.",
                    EntryKind::NAMES.join(", ")
                ))
            })
        });
        let status = self.status.map(|status| {
            let status = u16::try_from(status).ok();
            let status = status.filter(|status| (100..600).contains(status));
            status.ok_or_else(|| invalid_request("`status` must be one status, from 100 to 599."))
        });
        if self
            .action
            .as_deref()
            .is_some_and(|name| !is_action_name(name))
        {
            return Err(invalid_request("`action` must be the name of an action."));
        }
        Ok(WantedEntries {
            filter: LogFilter {
                kind: kind.transpose()?,
                status: status.transpose()?,
                action: self.action,
            },
            before: before.transpose()?,
            most: usize::try_from(most).unwrap_or(usize::MAX),
        })
    }
}

fn parse_time(field: &str, text: &str) -> Result<Timestamp, Problem> {
    let time = Timestamp::parse(text).filter(|time| TIMES.contains(&time.0));
    time.ok_or_else(|| {
        invalid_request(format!(
            "`{field}` must be a time as in RFC 3339, such as 2026-11-20T12:00:00.000Z."
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: &str, to: &str, step: &str) -> Result<(String, String, i64), String> {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let query = StatsQuery {
            from: given(from),
            to: given(to),
            step: given(step),
        };
        let now = Timestamp::parse("2026-11-20T12:34:56.789Z").unwrap();
        let range = query
            .checked(now)
            .map_err(|problem| problem.detail.into_owned())?;
        Ok((range.at(0).to_string(), range.to.to_string(), range.points))
    }

    #[test]
    fn ranges_are_of_whole_points() {
        let day = "2026-11-20T00:00:00.000Z";
        let now = "2026-11-20T12:34:56.789Z";
        for (from, to, step, begins, ends, points) in [
            ("", "", "", "2026-11-14T00:00:00.000Z", now, 7),
            ("", "", "hour", "2026-11-14T00:00:00.000Z", now, 157),
            ("2026-11-20T03:30:00Z", "", "", day, now, 1),
            (
                "2026-11-20T12:30:00Z",
                "",
                "hour",
                "2026-11-20T12:00:00.000Z",
                now,
                1,
            ),
            ("", day, "", "2026-11-13T00:00:00.000Z", day, 7),
            (
                day,
                "2026-11-20T02:10:00Z",
                "hour",
                day,
                "2026-11-20T03:00:00.000Z",
                3,
            ),
            (
                day,
                "2026-11-20T02:00:00Z",
                "hour",
                day,
                "2026-11-20T02:00:00.000Z",
                2,
            ),
            (
                day,
                "2026-11-21T02:10:00Z",
                "",
                day,
                "2026-11-21T02:10:00.000Z",
                2,
            ),
        ] {
            let expected = (begins.to_owned(), ends.to_owned(), points);
            assert_eq!(range(from, to, step), Ok(expected), "{from} {to} {step}");
        }
        for (from, to, step, said) in [
            ("yesterday", "", "", "`from` must be a time"),
            ("", "1", "", "`to` must be a time"),
            (
                "9999-12-31T00:00:00Z",
                "9999-12-31T23:59:59-23:59",
                "",
                "`to` must be a time",
            ),
            ("", "", "week", "`step` must be"),
            (now, now, "", "`from` must be before `to`"),
            ("2026-11-21T00:00:00Z", "", "", "`from` must be before `to`"),
            (
                "2026-11-01T00:00:00Z",
                "",
                "hour",
                "469 points; 400 is the most",
            ),
            ("2020-01-01T00:00:00Z", "", "", "points; 400 is the most"),
            (
                "0001-01-01T00:00:00Z",
                "9999-12-31T23:59:59Z",
                "",
                "400 is the most",
            ),
        ] {
            let refused = range(from, to, step).unwrap_err();
            assert!(refused.contains(said), "{from} {to} {step}: {refused}");
        }
    }
}
