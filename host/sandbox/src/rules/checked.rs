//! The second wall around rules of sites: what a guest answers is compared with what rules may be, whatever the guest has let through.

use anyhow::Context as _;

use super::values::{
    HeaderRule, PatternPart, RedirectRule, RedirectTarget, RuleFiles, SiteRules, TargetPart,
};
use crate::bindings::rules::exports::svc::rules::judge as wit;

/// Most rules of each kind.
const MAX_REDIRECTS: usize = 1_000;
const MAX_HEADER_RULES: usize = 100;

/// Most headers of a rule.
const MAX_RULE_HEADERS: usize = 100;

/// Most captures of a pattern, and of a path or a query that they are written into.
const MAX_PATTERN_CAPTURES: usize = 16;
const MAX_TARGET_PARTS: usize = 65;

/// Most bytes of all texts: what is encoded takes three times as much as in the files.
const MAX_TEXT_BYTES: usize = 512 << 10;

/// Longest name and value of a header, in bytes.
const MAX_NAME_BYTES: usize = 128;
const MAX_VALUE_BYTES: usize = 8 << 10;

/// Longest origin of a target, in bytes.
const MAX_ORIGIN_BYTES: usize = 300;

/// Headers that rules may set, beside those that begin with `x-`.
const ALLOWED_HEADERS: [&str; 14] = [
    "cache-control",
    "content-disposition",
    "content-language",
    "content-security-policy",
    "content-security-policy-report-only",
    "content-type",
    "cross-origin-embedder-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "link",
    "permissions-policy",
    "referrer-policy",
    "service-worker-allowed",
    "timing-allow-origin",
];

/// Begins of names that rules never set: the platform's, and commands to a server in front of it.
const RESERVED_BEGINS: [&str; 10] = [
    "x-accel-",
    "x-content-type-options",
    "x-forwarded",
    "x-lighttpd-",
    "x-litespeed-",
    "x-real-ip",
    "x-reproxy-",
    "x-request-id",
    "x-sendfile",
    "x-svc-",
];

/// Punctuation of paths and queries in URLs, beside `%` with its digits.
const URL_PUNCTUATION: &[u8] = b"-._~!$&'()*+,;=:@/?";

/// Checks the rules that a guest has made of files.
///
/// # Errors
/// The guest answers what cannot be.
pub(super) fn checked_rules(files: &RuleFiles, rules: wit::SiteRules) -> anyhow::Result<SiteRules> {
    let wit::SiteRules { redirects, headers } = rules;
    anyhow::ensure!(
        files.redirects.is_some() || redirects.is_empty(),
        "redirects of no file"
    );
    anyhow::ensure!(
        files.headers.is_some() || headers.is_empty(),
        "headers of no file"
    );
    anyhow::ensure!(redirects.len() <= MAX_REDIRECTS, "too many redirects");
    anyhow::ensure!(headers.len() <= MAX_HEADER_RULES, "too many header rules");
    let mut checker = RuleChecker {
        left: MAX_TEXT_BYTES,
        within_site: files.within_site,
    };
    let redirects = redirects.into_iter().map(|rule| checker.redirect(rule));
    let redirects = redirects.collect::<anyhow::Result<_>>()?;
    let headers = headers.into_iter().map(|rule| checker.header_rule(rule));
    Ok(SiteRules {
        redirects,
        headers: headers.collect::<anyhow::Result<_>>()?,
    })
}

/// Checks rules, and counts their texts.
struct RuleChecker {
    /// Bytes of texts that may still come.
    left: usize,
    /// Whether redirects may lead to paths of the site alone.
    within_site: bool,
}

impl RuleChecker {
    fn count(&mut self, text: String) -> anyhow::Result<String> {
        let left = self.left.checked_sub(text.len());
        self.left = left.context("rules with too many bytes")?;
        anyhow::ensure!(!text.is_empty(), "an empty text");
        Ok(text)
    }

    fn redirect(&mut self, rule: wit::Redirect) -> anyhow::Result<RedirectRule> {
        let wit::Redirect {
            pattern,
            target,
            status,
        } = rule;
        let is_rewrite = status == 200;
        anyhow::ensure!(
            is_rewrite || [301, 302, 303, 307, 308].contains(&status),
            "the status {status}"
        );
        let pattern = self.pattern(pattern)?;
        let is_last = |rest: usize| rest + 1 == pattern.len();
        let rest = pattern.iter().position(|part| *part == PatternPart::Rest);
        anyhow::ensure!(
            rest.is_none_or(is_last),
            "a redirect of paths with an ending"
        );
        let captures = pattern.iter().filter(|part| is_capture(part)).count();
        let target = self.target(target, captures)?;
        let has_path_alone =
            target.origin.is_none() && target.query.is_none() && target.fragment.is_none();
        anyhow::ensure!(has_path_alone || !is_rewrite, "a rewrite to no path");
        Ok(RedirectRule {
            pattern,
            target,
            status,
        })
    }

    fn pattern(&mut self, parts: Vec<wit::PatternPart>) -> anyhow::Result<Vec<PatternPart>> {
        let mut checked: Vec<PatternPart> = Vec::new();
        for part in parts {
            let part = match part {
                wit::PatternPart::Text(text) => PatternPart::Text(self.count(text)?),
                wit::PatternPart::Placeholder => PatternPart::Placeholder,
                wit::PatternPart::Rest => PatternPart::Rest,
            };
            let mut before = checked.iter().rev().skip(1);
            let has_ended = before.any(|part| *part == PatternPart::Rest);
            let fits = match (checked.last(), &part) {
                _ if has_ended => false,
                (Some(PatternPart::Rest), PatternPart::Placeholder | PatternPart::Rest)
                | (Some(PatternPart::Text(_)), PatternPart::Text(_))
                | (Some(PatternPart::Placeholder), PatternPart::Placeholder | PatternPart::Rest) => {
                    false
                }
                (Some(PatternPart::Placeholder), PatternPart::Text(text)) => text.starts_with('/'),
                (None, PatternPart::Text(text)) => !text.starts_with('/'),
                (Some(PatternPart::Text(before)), PatternPart::Placeholder) => {
                    before.ends_with('/')
                }
                (Some(PatternPart::Text(_)), PatternPart::Rest)
                | (Some(PatternPart::Rest), PatternPart::Text(_))
                | (None, PatternPart::Placeholder | PatternPart::Rest) => true,
            };
            anyhow::ensure!(fits, "a pattern with parts that do not fit");
            checked.push(part);
            let captures = checked.iter().filter(|part| is_capture(part)).count();
            anyhow::ensure!(captures <= MAX_PATTERN_CAPTURES, "too many placeholders");
        }
        Ok(checked)
    }

    fn target(&mut self, target: wit::Target, captures: usize) -> anyhow::Result<RedirectTarget> {
        let wit::Target {
            origin,
            path,
            query,
            fragment,
        } = target;
        if let Some(origin) = &origin {
            anyhow::ensure!(!self.within_site, "a redirect out of its site");
            anyhow::ensure!(is_https_origin(origin), "a target that is no https URL");
        }
        if let [wit::TargetPart::Text(first), ..] = path.as_slice() {
            anyhow::ensure!(!first.starts_with('/'), "a path with two slashes");
        }
        let is_path = |text: &str| is_url_text(text) && !text.contains('?');
        anyhow::ensure!(
            fragment.as_deref().is_none_or(is_url_text),
            "a malformed fragment"
        );
        let query = match query {
            Some(query) => Some(self.target_parts(query, captures, is_url_text)?),
            None => None,
        };
        let mut count = |text: Option<String>| {
            let counted = text.filter(|text| !text.is_empty());
            counted.map(|text| self.count(text)).transpose()
        };
        Ok(RedirectTarget {
            origin: count(origin)?,
            fragment: count(fragment)?,
            path: self.target_parts(path, captures, is_path)?,
            query,
        })
    }

    fn target_parts(
        &mut self,
        parts: Vec<wit::TargetPart>,
        captures: usize,
        is_allowed: impl Fn(&str) -> bool,
    ) -> anyhow::Result<Vec<TargetPart>> {
        anyhow::ensure!(parts.len() <= MAX_TARGET_PARTS, "too many parts");
        let parts = parts.into_iter().map(|part| match part {
            wit::TargetPart::Text(text) => {
                anyhow::ensure!(is_allowed(&text), "a malformed target");
                Ok(TargetPart::Text(self.count(text)?))
            }
            wit::TargetPart::Capture(number) => {
                let number = usize::try_from(number)?;
                anyhow::ensure!(number < captures, "a capture that is none");
                Ok(TargetPart::Capture(number))
            }
        });
        parts.collect()
    }

    fn header_rule(&mut self, rule: wit::HeaderRule) -> anyhow::Result<HeaderRule> {
        let wit::HeaderRule { pattern, headers } = rule;
        anyhow::ensure!(
            (1..=MAX_RULE_HEADERS).contains(&headers.len()),
            "another number of headers"
        );
        let headers = headers.into_iter().map(|header| {
            let wit::Header { name, value } = header;
            anyhow::ensure!(is_allowed_name(&name), "the header `{name}`");
            anyhow::ensure!(is_valid_value(&value), "a malformed value of `{name}`");
            Ok::<_, anyhow::Error>((self.count(name)?, self.count(value)?))
        });
        let headers = headers.collect::<anyhow::Result<_>>()?;
        Ok(HeaderRule {
            pattern: self.pattern(pattern)?,
            headers,
        })
    }
}

fn is_capture(part: &PatternPart) -> bool {
    matches!(part, PatternPart::Placeholder | PatternPart::Rest)
}

/// Whether a text is `https://`, a host, and a port or none.
fn is_https_origin(text: &str) -> bool {
    let Some(authority) = text.strip_prefix("https://") else {
        return false;
    };
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let (host, port) = authority.split_once(':').unwrap_or((authority, "0"));
    text.len() <= MAX_ORIGIN_BYTES
        && host.starts_with(|first: char| first.is_ascii_alphanumeric())
        && host.bytes().all(is_inner)
        && !port.is_empty()
        && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text stands in a URL as it is.
fn is_url_text(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_plain = byte.is_ascii_alphanumeric() || URL_PUNCTUATION.contains(&byte);
        let mut is_digit = || bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit());
        let is_escape = byte == b'%' && is_digit() && is_digit();
        if !is_plain && !is_escape {
            return false;
        }
    }
    true
}

fn is_allowed_name(name: &str) -> bool {
    let is_own = name.starts_with("x-")
        && (3..=MAX_NAME_BYTES).contains(&name.len())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
        && !RESERVED_BEGINS.iter().any(|begin| name.starts_with(begin));
    is_own || ALLOWED_HEADERS.contains(&name)
}

fn is_valid_value(value: &str) -> bool {
    (1..=MAX_VALUE_BYTES).contains(&value.len())
        && value.trim_matches([' ', '\t']).len() == value.len()
        && value
            .bytes()
            .all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> wit::TargetPart {
        wit::TargetPart::Text(text.to_owned())
    }

    fn literal(text: &str) -> wit::PatternPart {
        wit::PatternPart::Text(text.to_owned())
    }

    fn redirect() -> wit::Redirect {
        wit::Redirect {
            pattern: vec![
                literal("a/"),
                wit::PatternPart::Placeholder,
                literal("/"),
                wit::PatternPart::Rest,
            ],
            target: wit::Target {
                origin: Some("https://example.com:8443".to_owned()),
                path: vec![text("b/"), wit::TargetPart::Capture(1)],
                query: Some(vec![text("c="), wit::TargetPart::Capture(0)]),
                fragment: Some("d".to_owned()),
            },
            status: 301,
        }
    }

    fn header_rule(name: &str, value: &str) -> wit::HeaderRule {
        wit::HeaderRule {
            pattern: vec![wit::PatternPart::Rest],
            headers: vec![wit::Header {
                name: name.to_owned(),
                value: value.to_owned(),
            }],
        }
    }

    fn check(
        redirects: Vec<wit::Redirect>,
        headers: Vec<wit::HeaderRule>,
    ) -> anyhow::Result<SiteRules> {
        let files = RuleFiles {
            redirects: Some("x".into()),
            headers: Some("x".into()),
            within_site: false,
        };
        checked_rules(&files, wit::SiteRules { redirects, headers })
    }

    #[test]
    fn rules_that_may_be_are_taken() {
        let headers = [
            ("cache-control", "no-store"),
            ("content-security-policy", "script-src 'self'"),
            ("x-frame-options", "DENY"),
            ("x-robots-tag", "noindex"),
            ("x-a", "b\tc ~"),
        ];
        let headers = headers.map(|(name, value)| header_rule(name, value));
        let rules = check(vec![redirect(); 1_000], headers.to_vec()).unwrap();
        assert_eq!((rules.redirects.len(), rules.headers.len()), (1_000, 5));
        for (status, origin) in [(200, None), (308, None), (302, Some("https://a"))] {
            let mut rule = redirect();
            rule.status = status;
            rule.target.origin = origin.map(str::to_owned);
            rule.target.query = None;
            rule.target.fragment = None;
            check(vec![rule], Vec::new()).unwrap();
        }
    }

    #[test]
    fn redirects_that_cannot_be_are_the_guests_fault() {
        type Change = fn(&mut wit::Redirect);
        let changes: [Change; 14] = [
            |rule| rule.status = 200,
            |rule| rule.status = 404,
            |rule| rule.status = 0,
            |rule| rule.target.path = vec![wit::TargetPart::Capture(2)],
            |rule| rule.target.path = vec![wit::TargetPart::Capture(u32::MAX)],
            |rule| rule.target.path = vec![wit::TargetPart::Capture(0); 66],
            |rule| rule.target.path = vec![text("/example.com")],
            |rule| rule.target.path = vec![text("a\r\nSet-Cookie: a=b")],
            |rule| rule.target.path = vec![text("a?b")],
            |rule| rule.target.path = vec![text("a%2")],
            |rule| rule.target.query = Some(vec![text("a#b")]),
            |rule| rule.target.fragment = Some("a b".to_owned()),
            |rule| rule.target.fragment = Some("\u{e4}".to_owned()),
            |rule| rule.target.path = vec![text(&"a".repeat(600 << 10))],
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut rule = redirect();
            change(&mut rule);
            assert!(check(vec![rule], Vec::new()).is_err(), "change {number}");
        }
        for origin in [
            "http://a",
            "https://",
            "https://a/b",
            "https://a:",
            "https://a:b",
            "https://user@a",
            "//a",
            "javascript:",
            "https://a\\b",
            "https://.a",
            "https://\u{e4}",
        ] {
            let mut rule = redirect();
            rule.target.origin = Some(origin.to_owned());
            assert!(check(vec![rule], Vec::new()).is_err(), "{origin}");
        }
        assert!(check(vec![redirect(); 1_001], Vec::new()).is_err());
    }

    #[test]
    fn patterns_that_cannot_be_are_the_guests_fault() {
        use wit::PatternPart::{Placeholder, Rest};
        let check = |pattern: Vec<wit::PatternPart>| {
            let mut rule = redirect();
            rule.pattern = pattern;
            rule.target.path = vec![text("b")];
            rule.target.query = None;
            check(vec![rule], Vec::new())
        };
        let crowded = |count| {
            (0..count)
                .flat_map(|_| [Placeholder, literal("/")])
                .collect()
        };
        for pattern in [
            vec![],
            vec![Rest],
            vec![Placeholder],
            vec![literal("a"), Rest],
            crowded(16),
        ] {
            check(pattern).unwrap();
        }
        for pattern in [
            vec![Rest, Rest],
            vec![Rest, literal("/a")],
            vec![literal("a"), literal("b")],
            vec![literal("")],
            vec![literal("/a")],
            vec![literal("a"), Placeholder],
            vec![Placeholder, literal("a")],
            vec![Placeholder, Placeholder],
            vec![Placeholder, Rest],
            crowded(17),
        ] {
            assert!(check(pattern.clone()).is_err(), "{pattern:?}");
        }
    }

    #[test]
    fn patterns_of_headers_have_one_ending_at_most() {
        use wit::PatternPart::{Placeholder, Rest};
        let check = |pattern: Vec<wit::PatternPart>| {
            let mut rule = header_rule("x-a", "b");
            rule.pattern = pattern;
            check(Vec::new(), vec![rule])
        };
        for pattern in [
            vec![Rest, literal(".js")],
            vec![Placeholder, literal("/"), Rest, literal("/a")],
        ] {
            check(pattern).unwrap();
        }
        for pattern in [
            vec![Rest, Placeholder],
            vec![Rest, literal("a"), literal("b")],
            vec![Rest, literal("/"), Placeholder],
            vec![Rest, literal("/"), Rest],
            vec![Rest, literal("")],
        ] {
            assert!(check(pattern.clone()).is_err(), "{pattern:?}");
        }
    }

    #[test]
    fn headers_that_cannot_be_are_the_guests_fault() {
        for (name, value) in [
            ("set-cookie", "a=b"),
            ("Cache-Control", "no-store"),
            ("location", "/"),
            ("content-length", "1"),
            ("strict-transport-security", "max-age=0"),
            ("cdn-cache-control", "max-age=1"),
            ("access-control-allow-origin", "*"),
            ("x-content-type-options", "none"),
            ("x-accel-redirect", "/x"),
            ("x-sendfile", "/x"),
            ("x-", "b"),
            ("x-A", "b"),
            ("x-a b", "c"),
            ("x-a", ""),
            ("x-a", " b"),
            ("x-a", "b\r\nc"),
            ("x-a", "b\0"),
            ("x-a", "\u{e4}"),
            ("", "b"),
        ] {
            let refused = check(Vec::new(), vec![header_rule(name, value)]);
            assert!(refused.is_err(), "{name}: {value:?}");
        }
        let mut none = header_rule("x-a", "b");
        none.headers.clear();
        assert!(check(Vec::new(), vec![none]).is_err());
        assert!(check(Vec::new(), vec![header_rule("x-a", "b"); 101]).is_err());
        let long = header_rule("x-a", &"b".repeat(8_193));
        assert!(check(Vec::new(), vec![long]).is_err());
    }

    #[test]
    fn rules_are_those_of_the_files_that_were_sent() {
        let rules = |redirects, headers| wit::SiteRules { redirects, headers };
        let mut files = RuleFiles {
            redirects: Some("x".into()),
            ..RuleFiles::default()
        };
        checked_rules(&files, rules(vec![redirect()], Vec::new())).unwrap();
        let other = rules(Vec::new(), vec![header_rule("x-a", "b")]);
        assert!(checked_rules(&files, other).is_err());
        files.within_site = true;
        assert!(checked_rules(&files, rules(vec![redirect()], Vec::new())).is_err());
    }
}
