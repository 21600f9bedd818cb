//! Placeholders in texts for people and models: the name of a limit or of a list is replaced by its value.

use serde_json::Value;
use svc_sources::ContentType;
use svc_sources::media::MEDIA_EXTENSIONS;

use super::Limits;

/// Marks around the name of a placeholder.
const OPEN: &str = "{{";
const CLOSE: &str = "}}";

impl Limits {
    /// Replaces the placeholders of a text: `{{body_bytes}}` becomes `1 MB`. Unknown ones stay.
    #[must_use]
    pub fn fill_in(&self, text: &str) -> String {
        let Some((start, mut rest)) = text.split_once(OPEN) else {
            return text.to_owned();
        };
        let limits = serde_json::to_value(self).unwrap_or_default();
        let mut filled = start.to_owned();
        loop {
            // Between this mark and the next is the name of the placeholder, with the text behind it.
            let (part, next) = match rest.split_once(OPEN) {
                Some((part, next)) => (part, Some(next)),
                None => (rest, None),
            };
            match part.split_once(CLOSE) {
                Some((name, text)) if let Some(value) = placeholder_value(name, &limits) => {
                    filled.extend([value.as_str(), text]);
                }
                _ => filled.extend([OPEN, part]),
            }
            match next {
                Some(next) => rest = next,
                None => return filled,
            }
        }
    }
}

/// Returns the text for a placeholder, if it is known.
fn placeholder_value(name: &str, limits: &Value) -> Option<String> {
    Some(match name {
        "content_types" => ContentType::list(ContentType::phrase),
        "type_names" => ContentType::list(ContentType::as_str),
        "extensions" => extensions(),
        "media_extensions" => MEDIA_EXTENSIONS.map(|(extension, _)| extension).join(", "),
        _ => format_limit(name, limits.get(name)?.as_u64().unwrap_or_default()),
    })
}

/// Lists the file extensions of all types.
fn extensions() -> String {
    let all = ContentType::ALL.map(ContentType::extensions);
    all.concat().join(", ")
}

/// Formats a limit for people, by the unit at the end of its name.
pub fn format_limit(name: &str, value: u64) -> String {
    if name.ends_with("_seconds") {
        format_duration(value)
    } else if name.ends_with("_bytes") {
        format_bytes(value)
    } else {
        value.to_string()
    }
}

/// Formats a number of seconds for people.
pub fn format_duration(seconds: u64) -> String {
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute")];
    let (count, name) = largest_whole_unit(seconds, &units).unwrap_or((seconds, "second"));
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {name}{plural}")
}

/// Formats a number of bytes for people.
fn format_bytes(bytes: u64) -> String {
    let units = [(1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    let (count, name) = largest_whole_unit(bytes, &units).unwrap_or((bytes, "bytes"));
    format!("{count} {name}")
}

/// Converts a number to the first unit that divides it.
fn largest_whole_unit(number: u64, units: &[(u64, &'static str)]) -> Option<(u64, &'static str)> {
    let mut units = units.iter();
    let (unit, name) = units.find(|(unit, _)| number >= *unit && number.is_multiple_of(*unit))?;
    Some((number / unit, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_in_their_largest_whole_unit() {
        for (seconds, said) in [
            (604_800, "7 days"),
            (86_400, "1 day"),
            (129_600, "36 hours"),
            (60, "1 minute"),
            (61, "61 seconds"),
            (1, "1 second"),
        ] {
            assert_eq!(format_duration(seconds), said);
        }
        for (bytes, said) in [
            (5_242_880, "5 MB"),
            (65_536, "64 KB"),
            (1_048_577, "1048577 bytes"),
            (2 << 30, "2 GB"),
            (0, "0 bytes"),
        ] {
            assert_eq!(format_bytes(bytes), said);
        }
    }

    #[test]
    fn a_text_gets_the_numbers_that_it_names() {
        let limits = Limits {
            mcp_per_minute: 7,
            quick_share_seconds: 3_600,
            ..Limits::default()
        };
        let text = "{{quick_share_seconds}}, {{mcp_per_minute}} a minute, {{body_bytes}}; {name} and {{nothing}} stay, {{{{body_bytes}}, {{";
        assert_eq!(
            limits.fill_in(text),
            "1 hour, 7 a minute, 1 MB; {name} and {{nothing}} stay, {{1 MB, {{"
        );
    }
}
