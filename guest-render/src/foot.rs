//! Foot of a page: its source, its expiry, and a link to report it. Inconspicuous, because a page belongs to its author.

use maud::{Markup, html};

use crate::Foot;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Renders the foot, in English whatever the page's language is.
pub(crate) fn footer_markup(foot: &Foot) -> Markup {
    html! {
        footer.foot lang="en" dir="ltr" {
            @if let Some(raw) = &foot.raw { a href=(raw) { "Source" } " " }
            @if let Some(end) = &foot.expires_at {
                span { "Expires " time datetime=(end) { (format_day(end).unwrap_or_else(|| end.clone())) } } " "
            }
            @if let Some(report) = &foot.report { a href=(report) rel="nofollow" { "Report" } }
        }
    }
}

/// Formats the date of an RFC 3339 time for people.
fn format_day(moment: &str) -> Option<String> {
    let mut parts = moment.get(..10)?.split('-');
    let year = parts.next()?;
    let month = MONTHS.get(parts.next()?.parse::<usize>().ok()?.checked_sub(1)?)?;
    let day: u8 = parts.next()?.parse().ok()?;
    Some(format!("{month} {day}, {year}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foot_says_what_it_knows() {
        let foot = Foot {
            raw: Some("/a/raw?\"".to_owned()),
            expires_at: Some("2026-11-09T12:00:00.000Z".to_owned()),
            report: None,
        };
        assert_eq!(
            footer_markup(&foot).0,
            "<footer class=\"foot\" lang=\"en\" dir=\"ltr\"><a href=\"/a/raw?&quot;\">Source</a> \
             <span>Expires <time datetime=\"2026-11-09T12:00:00.000Z\">November 9, 2026</time></span> </footer>"
        );
        for odd in [
            "",
            "soon",
            "2026-13-01T00:00:00Z",
            "2026-00-01",
            "2026-01-xx",
        ] {
            assert_eq!(format_day(odd), None, "{odd}");
        }
    }
}
