//! Clocks that are passed in: the system's, or one that a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::format_description::BorrowedFormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

const FORMAT: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

/// Time in milliseconds since the Unix epoch. On the wire it is RFC 3339 in UTC with milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the time `seconds` later, or earlier if `seconds` is negative.
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1000)))
    }

    /// Parses RFC 3339 and drops what is below a millisecond; `None` if the text is not RFC 3339.
    pub fn parse(text: &str) -> Option<Self> {
        let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        let millis = at.unix_timestamp_nanos().div_euclid(1_000_000);
        i64::try_from(millis).ok().map(Self)
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .ok()
            .and_then(|at| at.format(FORMAT).ok())
            .ok_or(std::fmt::Error)?;
        f.write_str(&text)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let at = PrimitiveDateTime::parse(&text, FORMAT).map_err(serde::de::Error::custom)?;
        let millis = at.assume_utc().unix_timestamp_nanos() / 1_000_000;
        i64::try_from(millis)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

impl rusqlite::ToSql for Timestamp {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(self.0.into())
    }
}

impl rusqlite::types::FromSql for Timestamp {
    fn column_result(value: rusqlite::types::ValueRef<'_>) -> rusqlite::types::FromSqlResult<Self> {
        value.as_i64().map(Self)
    }
}

/// Source of the current time.
#[derive(Clone, Debug)]
pub struct Clock(ClockSource);

#[derive(Clone, Debug)]
enum ClockSource {
    /// The wall clock, with the start of the clock for [`Clock::elapsed`].
    System(Instant),
    /// Milliseconds since the epoch, moved by a test, with their value at the start.
    Manual(Arc<AtomicI64>, i64),
    /// Milliseconds since the epoch, moved by a test, with the machine's time since the start.
    ManualDay(Arc<AtomicI64>, Instant),
}

impl Clock {
    /// Returns the machine's clock.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads it")]
    pub fn system() -> Self {
        Self(ClockSource::System(Instant::now()))
    }

    /// Returns a clock that stands at `start` until [`Clock::advance`] moves it.
    pub fn manual(start: Timestamp) -> Self {
        Self(ClockSource::Manual(
            Arc::new(AtomicI64::new(start.0)),
            start.0,
        ))
    }

    /// Returns a clock with the same time of day, whose elapsed time is the machine's even if a test moves the day: other machines measure
    /// it, too.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "the one place that reads it")]
    pub fn with_machine_time(&self) -> Self {
        match &self.0 {
            ClockSource::Manual(millis, _) => {
                Self(ClockSource::ManualDay(Arc::clone(millis), Instant::now()))
            }
            ClockSource::System(_) | ClockSource::ManualDay(..) => self.clone(),
        }
    }

    /// Returns the time of day.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads it")]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            ClockSource::System(_) => {
                let since = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
            ClockSource::Manual(millis, _) | ClockSource::ManualDay(millis, _) => {
                Timestamp(millis.load(Ordering::SeqCst))
            }
        }
    }

    /// Returns the time since this clock was made. It never runs backwards: for rates and measurements.
    pub fn elapsed(&self) -> Duration {
        match &self.0 {
            ClockSource::System(start) | ClockSource::ManualDay(_, start) => start.elapsed(),
            ClockSource::Manual(millis, start) => Duration::from_millis(
                u64::try_from(millis.load(Ordering::SeqCst) - start).unwrap_or(0),
            ),
        }
    }

    /// Moves a manual clock forward; does nothing to the system's clock.
    pub fn advance(&self, by: Duration) {
        if let ClockSource::Manual(millis, _) | ClockSource::ManualDay(millis, _) = &self.0 {
            let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
            millis.fetch_add(by, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_rfc3339_with_milliseconds() {
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            Timestamp(1_795_262_400_007).to_string(),
            "2026-11-21T12:00:00.007Z"
        );
    }

    #[test]
    fn timestamps_are_read_in_any_form_of_rfc3339() {
        for (text, expected) in [
            ("2026-11-21T12:00:00.007Z", Some(1_795_262_400_007)),
            ("2026-11-21T13:30:00.007999+01:30", Some(1_795_262_400_007)),
            ("2026-11-21T12:00:00Z", Some(1_795_262_400_000)),
            ("1969-12-31T23:59:59.9995Z", Some(-1)),
            ("2026-11-21 12:00", None),
            ("2026-11-21T25:00:00Z", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(Timestamp::parse(text), expected.map(Timestamp), "{text}");
        }
    }

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = Clock::manual(Timestamp(1_000));
        assert_eq!(clock.now(), Timestamp(1_000));
        clock.advance(Duration::from_secs(2));
        assert_eq!(clock.now(), Timestamp(3_000));
        assert_eq!(clock.elapsed(), Duration::from_secs(2));
    }

    #[test]
    fn the_machine_s_time_does_not_move_with_the_day() {
        let clock = Clock::manual(Timestamp(1_000));
        let machine = clock.with_machine_time();
        clock.advance(Duration::from_secs(86_400));
        assert_eq!(machine.now(), clock.now());
        assert!(machine.elapsed() < Duration::from_secs(3_600));
    }
}
