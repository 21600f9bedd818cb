//! Redirects and rewrites of a path.

use http::StatusCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use svc_sandbox::{RedirectRule, TargetPart};

use super::SiteRules;
use super::matching::captures;

/// Longest path or query of a target, in bytes: captures may be written into it many times.
const MAX_TARGET_BYTES: usize = 8 << 10;

/// Characters of captures that stay as they are in a query.
const ENCODED_IN_QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Characters of captures that stay as they are in a path.
const ENCODED_IN_PATH: &AsciiSet = &ENCODED_IN_QUERY.remove(b'/');

/// Answer of a rule: the client is to ask elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRedirect<'s> {
    /// Status of the answer.
    pub status: StatusCode,
    origin: Option<&'s str>,
    /// Path, encoded, without the slash at its begin.
    path: String,
    query: Option<String>,
    fragment: Option<&'s str>,
}

impl RuleRedirect<'_> {
    /// Returns the address that is to be asked, for a site at a mount and a request with a query.
    pub fn location(&self, mount: &str, query: Option<&str>) -> String {
        let mut location = match self.origin {
            Some(origin) => format!("{origin}/{}", self.path),
            None => format!("{mount}{}", self.path),
        };
        if let Some(query) = self.query.as_deref().or(query) {
            location.push('?');
            location.push_str(query);
        }
        if let Some(fragment) = self.fragment {
            location.push('#');
            location.push_str(fragment);
        }
        location
    }
}

/// A target that captures make longer than it may be. The rule is for the path all the same, so that no later one is tried.
#[derive(Clone, Copy, Debug)]
struct TargetTooLong;

impl SiteRules {
    /// Returns the redirect of a path, which is decoded and relative to the site.
    pub fn redirect(&self, path: &str) -> Option<RuleRedirect<'_>> {
        for number in self.redirects.candidates(path) {
            let rule = self.judged.redirects.get(number)?;
            match redirect(rule, path) {
                Ok(None) => {}
                Ok(found) => return found,
                Err(TargetTooLong) => return None,
            }
        }
        None
    }

    /// Returns the path that answers in place of another one.
    pub fn rewrite(&self, path: &str) -> Option<String> {
        for number in self.rewrites.candidates(path) {
            let rule = self.judged.redirects.get(number)?;
            match rewrite(rule, path) {
                Ok(None) => {}
                Ok(found) => return found,
                Err(TargetTooLong) => return None,
            }
        }
        None
    }
}

/// Applies a rule; `None` if it is not for the path, or would lead to the path itself for ever.
fn redirect<'s>(
    rule: &'s RedirectRule,
    path: &str,
) -> Result<Option<RuleRedirect<'s>>, TargetTooLong> {
    let Some(captured) = captures(&rule.pattern, path) else {
        return Ok(None);
    };
    let target = &rule.target;
    let composed = match target.origin {
        Some(_) => compose(&target.path, &captured, ENCODED_IN_PATH)?,
        None => match site_path(rule, &captured)? {
            Some(composed) if decoded(&composed).as_deref() != Some(path) => composed,
            _ => return Ok(None),
        },
    };
    let query = target.query.as_ref();
    let query = query.map(|query| compose(query, &captured, ENCODED_IN_QUERY));
    let query = query.transpose()?;
    Ok(StatusCode::from_u16(rule.status)
        .ok()
        .map(|status| RuleRedirect {
            status,
            origin: target.origin.as_deref(),
            path: composed,
            query,
            fragment: target.fragment.as_deref(),
        }))
}

/// Applies a rule with status 200; `None` if it is not for the path.
fn rewrite(rule: &RedirectRule, path: &str) -> Result<Option<String>, TargetTooLong> {
    let Some(captured) = captures(&rule.pattern, path) else {
        return Ok(None);
    };
    let target = site_path(rule, &captured)?;
    Ok(target.and_then(|target| decoded(&target)))
}

/// Composes a path of the site; `None` for one that browsers would follow out of it.
fn site_path(rule: &RedirectRule, captured: &[&str]) -> Result<Option<String>, TargetTooLong> {
    let path = compose(&rule.target.path, captured, ENCODED_IN_PATH)?;
    // At the root of a host two slashes would begin the name of another one.
    let path = path.trim_start_matches('/');
    let leads_out = path.split('/').any(is_dot_segment);
    Ok((!leads_out).then(|| path.to_owned()))
}

/// Whether browsers leave a segment out, or go up at it.
fn is_dot_segment(segment: &str) -> bool {
    const LONGEST: usize = "%2e%2e".len();
    segment.len() <= LONGEST
        && [".", ".."].contains(&segment.to_ascii_lowercase().replace("%2e", ".").as_str())
}

/// Writes the parts of a target one after another, once it is known that they are not too long together.
fn compose(
    parts: &[TargetPart],
    captured: &[&str],
    encoded: &'static AsciiSet,
) -> Result<String, TargetTooLong> {
    // A capture that a pattern does not have is empty.
    let capture = |number: &usize| {
        let text = captured.get(*number).copied().unwrap_or_default();
        utf8_percent_encode(text, encoded)
    };
    let mut length: usize = 0;
    for part in parts {
        length += match part {
            TargetPart::Text(text) => text.len(),
            TargetPart::Capture(number) => capture(number).map(str::len).sum::<usize>(),
        };
        if length > MAX_TARGET_BYTES {
            return Err(TargetTooLong);
        }
    }
    let mut composed = String::with_capacity(length);
    for part in parts {
        match part {
            TargetPart::Text(text) => composed.push_str(text),
            TargetPart::Capture(number) => composed.extend(capture(number)),
        }
    }
    Ok(composed)
}

fn decoded(path: &str) -> Option<String> {
    let path = percent_decode_str(path).decode_utf8().ok()?;
    Some(path.into_owned())
}

#[cfg(test)]
mod tests {
    use svc_sandbox::{PatternPart, RedirectTarget, SiteRules as JudgedRules};

    use super::*;
    use PatternPart::{Placeholder, Rest};
    use TargetPart::Capture;

    fn path(text: &str) -> PatternPart {
        PatternPart::Text(text.to_owned())
    }

    fn to(text: &str) -> TargetPart {
        TargetPart::Text(text.to_owned())
    }

    fn rule(status: u16, pattern: Vec<PatternPart>, target: Vec<TargetPart>) -> RedirectRule {
        RedirectRule {
            pattern,
            target: RedirectTarget {
                origin: None,
                path: target,
                query: None,
                fragment: None,
            },
            status,
        }
    }

    fn rules(redirects: Vec<RedirectRule>) -> SiteRules {
        let judged = JudgedRules {
            redirects,
            headers: Vec::new(),
        };
        SiteRules::new(judged).unwrap()
    }

    fn location(rules: &SiteRules, path: &str, mount: &str) -> Option<String> {
        let found = rules.redirect(path)?;
        Some(format!(
            "{} {}",
            found.status.as_u16(),
            found.location(mount, Some("q=1"))
        ))
    }

    #[test]
    fn targets_are_composed_for_a_mount() {
        let mut elsewhere = rule(
            307,
            vec![path("out/"), Placeholder, path("/"), Rest],
            vec![to("x/"), Capture(1)],
        );
        elsewhere.target = RedirectTarget {
            origin: Some("https://example.com".to_owned()),
            query: Some(vec![to("a="), Capture(0)]),
            fragment: Some("top".to_owned()),
            ..elsewhere.target
        };
        let rules = rules(vec![
            rule(200, vec![path("old")], vec![to("rewritten")]),
            rule(301, vec![path("old")], vec![to("new")]),
            rule(302, vec![path("old")], vec![to("never")]),
            rule(
                302,
                vec![path("blog/"), Rest],
                vec![to("news/"), Capture(0)],
            ),
            elsewhere,
        ]);
        for (path, expected) in [
            ("old", Some("301 /site/new?q=1")),
            ("old/", None),
            (
                "blog/a b/%\u{fc}",
                Some("302 /site/news/a%20b/%25%C3%BC?q=1"),
            ),
            ("out/a&b/c", Some("307 https://example.com/x/c?a=a%26b#top")),
        ] {
            assert_eq!(
                location(&rules, path, "/site/").as_deref(),
                expected,
                "{path}"
            );
        }
        assert_eq!(rules.rewrite("old").as_deref(), Some("rewritten"));
        assert_eq!(rules.rewrite("blog/x"), None);
    }

    #[test]
    fn no_request_makes_a_redirect_lead_elsewhere() {
        let all = rules(vec![rule(302, vec![path("r/"), Rest], vec![Capture(0)])]);
        for (path, expected) in [
            ("r//example.com", Some("302 /example.com?q=1")),
            ("r///example.com", Some("302 /example.com?q=1")),
            ("r/\\example.com", Some("302 /%5Cexample.com?q=1")),
            ("r/a\r\nb", Some("302 /a%0D%0Ab?q=1")),
            ("r/../a", None),
            ("r/./a", None),
            ("r/%2e%2e/a", Some("302 /%252e%252e/a?q=1")),
        ] {
            assert_eq!(location(&all, path, "/").as_deref(), expected, "{path}");
        }
        let joined = rules(vec![rule(
            302,
            vec![path("r/"), Rest],
            vec![to("a/%2e"), Capture(0)],
        )]);
        assert_eq!(location(&joined, "r/./a", "/"), None);
        assert_eq!(location(&joined, "r//a", "/"), None);
    }

    #[test]
    fn the_first_rule_for_a_path_counts_even_if_its_target_is_too_long() {
        for status in [302, 200] {
            let all = rules(vec![
                rule(status, vec![Rest], vec![Capture(0); 60]),
                rule(status, vec![Rest], vec![to("later")]),
            ]);
            let applied = |path: &str| match status {
                200 => all.rewrite(path),
                _ => location(&all, path, "/"),
            };
            assert!(applied("a").unwrap().contains(&"a".repeat(60)));
            assert_eq!(applied(&"a".repeat(1_000)), None);
            // What is written is longer than what was asked for.
            assert!(applied(&"a".repeat(130)).is_some());
            assert_eq!(applied(&"\u{fc}".repeat(65)), None);
        }
    }

    #[test]
    fn a_redirect_to_itself_is_none() {
        let rules = rules(vec![
            rule(302, vec![path("a")], vec![to("a")]),
            rule(302, vec![path("caf\u{e9}")], vec![to("caf%C3%A9")]),
            rule(301, vec![Rest], vec![to("index.html")]),
        ]);
        assert_eq!(rules.redirect("index.html"), None);
        assert_eq!(
            location(&rules, "a", "/").as_deref(),
            Some("301 /index.html?q=1")
        );
        assert!(rules.redirect("caf\u{e9}").is_some());
    }
}
