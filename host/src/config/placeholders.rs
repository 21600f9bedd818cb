//! Numbers of the settings and types of content in texts for people and models: a text names a limit or a list, and gets what
//! it is set to.

use serde_json::Value;
use svc_sandbox::ContentType;

use super::Limits;

impl Limits {
    /// Puts limits and lists into a text, each in the place of its name: `{{body_bytes}}` becomes `1 MB`.
    #[must_use]
    pub fn fill_in(&self, text: &str) -> String {
        let limits = match serde_json::to_value(self) {
            Ok(Value::Object(limits)) => limits,
            _ => return text.to_owned(),
        };
        let mut said = text
            .replace("{{content_types}}", &ContentType::list(ContentType::phrase))
            .replace("{{type_names}}", &ContentType::list(ContentType::as_str))
            .replace("{{extensions}}", &extensions());
        for (name, value) in limits {
            let mark = format!("{{{{{name}}}}}");
            if said.contains(&mark) {
                said = said.replace(
                    &mark,
                    &format_limit(&name, value.as_u64().unwrap_or_default()),
                );
            }
        }
        said
    }
}

/// Extensions of files by which their type is known.
fn extensions() -> String {
    let all = ContentType::ALL.map(ContentType::extensions);
    all.concat().join(", ")
}

/// A limit as people say it, by the unit with which its name ends.
pub fn format_limit(name: &str, value: u64) -> String {
    if name.ends_with("_seconds") {
        format_duration(value)
    } else if name.ends_with("_bytes") {
        format_bytes(value)
    } else {
        value.to_string()
    }
}

/// A number of seconds as people say it.
pub fn format_duration(seconds: u64) -> String {
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute")];
    let (count, name) = largest_whole_unit(seconds, &units).unwrap_or((seconds, "second"));
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {name}{plural}")
}

/// A number of bytes as people say it.
fn format_bytes(bytes: u64) -> String {
    let units = [(1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    let (count, name) = largest_whole_unit(bytes, &units).unwrap_or((bytes, "bytes"));
    format!("{count} {name}")
}

/// A number in the first of some units in which it is a whole one.
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
        let text = "{{quick_share_seconds}}, {{mcp_per_minute}} a minute, {{body_bytes}}; {name} and {{nothing}} stay";
        assert_eq!(
            limits.fill_in(text),
            "1 hour, 7 a minute, 1 MB; {name} and {{nothing}} stay"
        );
    }
}
