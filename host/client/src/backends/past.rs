//! `svc backend restore`, and the times that people write for it.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Span, ZonedDateTime};
use serde_json::json;

use super::{BackendTargetArgs, ProjectHandle};
use crate::endpoints;
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::output::{member_text, quote_shell_word};
use svc_base::clock::{Clock, Timestamp};

/// Form of a local time in a question.
const LOCAL_FORMAT: &str = "%Y-%m-%d %H:%M:%S %:z";

/// A time as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WrittenTime {
    /// A moment that the server takes as it is.
    Exact(String),
    /// A time in words, or a local one.
    Local(Timestamp),
}

/// Makes the rows what they were at a time.
pub(super) async fn restore(text: &str, yes: bool, args: &BackendTargetArgs) -> Result<()> {
    let (zone, fault) = local_zone();
    let time = parse(text, Clock::system().now(), &zone)?;
    if let (WrittenTime::Local(_), Some(fault)) = (&time, fault) {
        return Err(fault);
    }
    let at = args.find().await?;
    let (moment, place) = match time {
        WrittenTime::Exact(moment) => (moment, String::new()),
        WrittenTime::Local(time) => {
            let moment = newest_moment(&at, time, text).await?;
            let local = local_text(&moment, &zone);
            (
                moment,
                format!(" ({local}the newest moment until `{text}`)"),
            )
        }
    };
    if yes && !place.is_empty() {
        args.output()
            .print_note(&format!("restoring {moment}{place}"));
    }
    let change = format!("Make every row what it was at {moment}{place}");
    at.question(&change).confirm(args.output(), yes)?;
    let restored = at
        .send(&endpoints::RESTORE, json!({ "at": moment }))
        .await?;
    let text = format!(
        "restored to {}\nto undo this: svc backend restore {}",
        member_text(&restored, "restored_to"),
        quote_shell_word(&member_text(&restored, "previous"))
    );
    args.output().print_answer(&restored, &text)
}

/// Returns the zone of the shell, with the fault where `TZ` names none. Where nothing names one, it is UTC.
#[allow(
    clippy::disallowed_methods,
    reason = "the shell says by its environment which zone it has"
)]
fn local_zone() -> (TimeZone, Option<CliFailure>) {
    let named = std::env::var("TZ").unwrap_or_default();
    match TimeZone::try_system() {
        Ok(zone) => (zone, None),
        Err(_) if named.is_empty() => (TimeZone::UTC, None),
        Err(error) => {
            let fault = CliFailure::local(format!(
                "The variable TZ is `{named}`, which is no time zone ({error}): set it to one such as `Europe/Berlin`, or write a moment as `svc backend history` lists it."
            ));
            (TimeZone::UTC, Some(fault))
        }
    }
}

/// Finds the newest moment that is not after a time.
async fn newest_moment(at: &ProjectHandle, time: Timestamp, text: &str) -> Result<String> {
    let asked = at.api.call(&endpoints::HISTORY, &at.path_parts());
    // The server lists those before a time.
    let asked = asked
        .query("limit", Some(1))
        .query("before", Some(Timestamp(time.0.saturating_add(1))));
    let history = asked.send().await?;
    if let Some(moment) = history["moments"][0]["at"].as_str() {
        return Ok(moment.to_owned());
    }
    let oldest = match history["oldest"].as_str() {
        Some(oldest) => format!("the oldest that can be restored is {oldest}."),
        None => "there is no history yet.".to_owned(),
    };
    Err(CliFailure::new(
        FailureExitCode::NotFound,
        "No such moment",
        format!("Nothing was committed until `{text}`, which is {time}: {oldest}"),
    ))
}

/// Local time of a moment with a comma, for a sentence; empty if it is none.
fn local_text(moment: &str, zone: &TimeZone) -> String {
    let local = moment.parse::<jiff::Timestamp>();
    local.map_or_else(
        |_| String::new(),
        |moment| {
            format!(
                "{} here, ",
                moment
                    .to_zoned_datetime(zone.clone())
                    .strftime(LOCAL_FORMAT)
            )
        },
    )
}

/// Parses a time that is exact, in words, or local.
fn parse(text: &str, now: Timestamp, zone: &TimeZone) -> Result<WrittenTime> {
    // A line of the history begins with its moment.
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    if Timestamp::parse(first).is_some() {
        return Ok(WrittenTime::Exact(first.to_owned()));
    }
    let unknown = || {
        CliFailure::local(format!(
            "`{text}` is no time: write a moment as `svc backend history` lists it, or a local time such as \"5 minutes ago\", \"2 hours ago\", \"today 09:30\", \"yesterday 18:00\" or \"2026-11-20 18:00\"."
        ))
    };
    let now = jiff::Timestamp::from_millisecond(now.0).map_err(|_| unknown())?;
    let time = parse_local(text, &now.to_zoned_datetime(zone.clone())).ok_or_else(unknown)?;
    Ok(WrittenTime::Local(Timestamp(
        time.timestamp().as_millisecond(),
    )))
}

fn parse_local(text: &str, now: &ZonedDateTime) -> Option<ZonedDateTime> {
    let text = text.to_ascii_lowercase();
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    match words[..] {
        [count, unit, "ago"] => now.checked_sub(parse_span(count, unit)?).ok(),
        [day, time] => {
            let date = match day {
                "today" => now.date(),
                "yesterday" => now.date().yesterday().ok()?,
                date => date.parse::<Date>().ok().filter(|_| is_plain_date(date))?,
            };
            let local = date.to_datetime(parse_clock_time(time)?);
            // A time that the clocks showed twice is the earlier one; one that they left out is as much later.
            local.to_zoned_datetime(now.time_zone().clone()).ok()
        }
        _ => None,
    }
}

/// Parses a duration: `5 minutes`, `an hour`.
fn parse_span(count: &str, unit: &str) -> Option<Span> {
    let count = match count {
        "a" | "an" | "one" => 1_i64,
        count => count.parse::<u32>().ok()?.into(),
    };
    let span = Span::new();
    match unit.strip_suffix('s').unwrap_or(unit) {
        "second" | "sec" => span.try_seconds(count),
        "minute" | "min" => span.try_minutes(count),
        "hour" => span.try_hours(count),
        "day" => span.try_days(count),
        "week" => span.try_weeks(count),
        _ => return None,
    }
    .ok()
}

/// Whether a text is a date alone.
fn is_plain_date(text: &str) -> bool {
    text.len() == 10
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Parses `18:00` and `18:00:30`.
fn parse_clock_time(text: &str) -> Option<Time> {
    let numbers = text.split(':').map(|part| {
        let is_number =
            (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<i8>().ok().filter(|_| is_number)
    });
    match numbers.collect::<Option<Vec<_>>>()?[..] {
        [hour, minute] => Time::new(hour, minute, 0, 0).ok(),
        [hour, minute, second] => Time::new(hour, minute, second, 0).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        // Clocks of this zone went an hour back on 2026-10-25 at 03:00, and forward on 2026-03-29 at 02:00.
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let now = Timestamp::parse("2026-10-25T12:00:00.000Z").unwrap();
        for (text, expected) in [
            ("5 minutes ago", "2026-10-25T11:55:00.000Z"),
            ("1 minute ago", "2026-10-25T11:59:00.000Z"),
            ("an hour ago", "2026-10-25T11:00:00.000Z"),
            ("90 Seconds  Ago", "2026-10-25T11:58:30.000Z"),
            // A day is one of the calendar: this one had 25 hours.
            ("1 day ago", "2026-10-24T11:00:00.000Z"),
            ("2 weeks ago", "2026-10-11T11:00:00.000Z"),
            ("today 09:30", "2026-10-25T08:30:00.000Z"),
            ("today 2:30", "2026-10-25T00:30:00.000Z"),
            ("yesterday 18:00", "2026-10-24T16:00:00.000Z"),
            ("Yesterday 18:00:30", "2026-10-24T16:00:30.000Z"),
            ("2026-03-29 02:30", "2026-03-29T01:30:00.000Z"),
            ("2026-11-20 18:00", "2026-11-20T17:00:00.000Z"),
        ] {
            let expected = WrittenTime::Local(Timestamp::parse(expected).unwrap());
            assert_eq!(parse(text, now, &zone).unwrap(), expected, "{text}");
        }
        for (text, exact) in [
            ("2026-11-20T12:00:00.000Z", "2026-11-20T12:00:00.000Z"),
            ("2026-11-20T12:00:00+01:00", "2026-11-20T12:00:00+01:00"),
            (
                "2026-11-20T12:00:00.000Z  backend.query  key",
                "2026-11-20T12:00:00.000Z",
            ),
        ] {
            let exact = WrittenTime::Exact(exact.to_owned());
            assert_eq!(parse(text, now, &zone).unwrap(), exact, "{text}");
        }
        for wrong in [
            "",
            "now",
            "yesterday",
            "today 25:00",
            "today 9",
            "5 ago",
            "5 years ago",
            "-5 minutes ago",
            "99999999999 days ago",
            "4294967295 weeks ago",
            "2026-11-20",
            "2026-13-01 18:00",
            "2026-11-20T18:00 18:00",
            "today +9:30",
            "yesterday 18:00 sharp",
        ] {
            let refused = parse(wrong, now, &zone).unwrap_err().to_text();
            assert!(refused.contains("yesterday 18:00"), "{wrong}: {refused}");
        }
    }

    #[test]
    fn a_moment_is_shown_in_local_time() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(
            local_text("2026-07-01T12:00:00.000Z", &zone),
            "2026-07-01 14:00:00 +02:00 here, "
        );
        assert_eq!(local_text("x", &zone), "");
    }
}
