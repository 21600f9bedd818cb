//! `_headers`: a path, and below it the headers of its answers.

use super::lines::{RuleLine, RuleText};
use super::pattern::{Pattern, StarPlace};
use super::{Fault, Header, HeaderRule, Reason, RuleFile, excerpt};

/// Most rules of the file.
const MAX_RULES: usize = 100;

/// Most headers of a rule.
const MAX_RULE_HEADERS: usize = 100;

/// Longest name and value of a header, in bytes.
const MAX_NAME_BYTES: usize = 128;
const MAX_VALUE_BYTES: usize = 8 << 10;

/// Headers of which an answer has one at most.
const SINGLE: [&str; 8] = [
    "content-disposition",
    "content-type",
    "cross-origin-embedder-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "referrer-policy",
    "service-worker-allowed",
    "x-frame-options",
];

/// Headers whose values are lists.
const LISTS: [&str; 8] = [
    CACHE_CONTROL,
    "content-language",
    "content-security-policy",
    "content-security-policy-report-only",
    "link",
    "permissions-policy",
    "timing-allow-origin",
    "x-robots-tag",
];

/// Header whose values in one rule are joined, since those of a later rule replace it.
const CACHE_CONTROL: &str = "cache-control";

/// Begins of names that are the platform's, or that command a server in front of it.
const RESERVED: [&str; 10] = [
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

/// A rule under way.
struct OpenRule {
    line: u32,
    rule: HeaderRule,
}

/// Reads the rules of a file.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<HeaderRule>, Fault> {
    let text = RuleText::new(RuleFile::Headers, bytes)?;
    let mut rules = Vec::new();
    let mut open: Option<OpenRule> = None;
    for line in text.lines() {
        let line = line?;
        if line.is_blank() {
            continue;
        }
        if is_path(line.text) {
            close(text, open.take(), &mut rules)?;
            open = Some(begin(text, line, rules.len())?);
            continue;
        }
        let added = match &mut open {
            Some(OpenRule { rule, .. }) => add_header(rule, line.text),
            None => {
                Err("A header stands below the path that it is for: write the path first.".into())
            }
        };
        added.map_err(|reason| text.fault(line.number, reason))?;
    }
    close(text, open, &mut rules)?;
    Ok(rules)
}

/// Whether a line is a path and no header: a URL is one, too, which is refused.
fn is_path(line: &str) -> bool {
    let scheme = line.split_once("://").map(|(scheme, _)| scheme);
    line.starts_with('/')
        || scheme.is_some_and(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

fn begin(text: RuleText<'_>, line: RuleLine<'_>, before: usize) -> Result<OpenRule, Fault> {
    let fault = |reason| text.fault(line.number, reason);
    if before == MAX_RULES {
        let reason = format!("The file has more than {MAX_RULES} paths: leave some out.");
        return Err(fault(reason.into()));
    }
    let pattern = Pattern::parse(line.text, StarPlace::Anywhere).map_err(fault)?;
    Ok(OpenRule {
        line: line.number,
        rule: HeaderRule {
            pattern: pattern.parts,
            headers: Vec::new(),
        },
    })
}

/// Adds a finished rule to those before it.
fn close(
    text: RuleText<'_>,
    open: Option<OpenRule>,
    rules: &mut Vec<HeaderRule>,
) -> Result<(), Fault> {
    let Some(OpenRule { line, rule }) = open else {
        return Ok(());
    };
    if rule.headers.is_empty() {
        let reason = "The path has no headers: write them below it, each as `Name: value`.";
        return Err(text.fault(line, reason.into()));
    }
    rules.push(rule);
    Ok(())
}

fn add_header(rule: &mut HeaderRule, line: &str) -> Result<(), Reason> {
    if line.starts_with('!') {
        return Err("A rule takes no header away: have a later rule set another value.".into());
    }
    let Some((name, value)) = line.split_once(':') else {
        return Err(format!(
            "`{}` is no header: write it as `Name: value`.",
            excerpt(line)
        )
        .into());
    };
    let (name, value) = (name.trim_end(), value.trim());
    let lower = name.to_ascii_lowercase();
    check_name(name, &lower)?;
    check_value(&lower, value)?;
    let twice = rule.headers.iter_mut().find(|header| header.name == lower);
    match twice {
        Some(header) if lower == CACHE_CONTROL => {
            header.value = format!("{}, {value}", header.value);
            return check_value(&lower, &header.value);
        }
        Some(_) if SINGLE.contains(&lower.as_str()) => {
            return Err(format!("The rule has `{}` twice: write it once.", excerpt(name)).into());
        }
        _ => {}
    }
    if rule.headers.len() == MAX_RULE_HEADERS {
        return Err(
            format!("A path has {MAX_RULE_HEADERS} headers at most: leave some out.").into(),
        );
    }
    rule.headers.push(Header {
        name: lower,
        value: value.to_owned(),
    });
    Ok(())
}

fn check_name(name: &str, lower: &str) -> Result<(), Reason> {
    if SINGLE.contains(&lower) || LISTS.contains(&lower) {
        return Ok(());
    }
    let is_reserved = RESERVED.iter().any(|begin| lower.starts_with(begin));
    if is_reserved {
        return Err(format!("`{}` is the platform's own: leave it out.", excerpt(name)).into());
    }
    let is_named = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_own = lower.strip_prefix("x-").is_some_and(|rest| {
        !rest.is_empty() && rest.bytes().all(is_named) && lower.len() <= MAX_NAME_BYTES
    });
    match is_own {
        true => Ok(()),
        false => Err(format!("`{}` is none of the headers that rules set: leave it out, or choose a name that begins with `X-`.", excerpt(name)).into()),
    }
}

fn check_value(name: &str, value: &str) -> Result<(), Reason> {
    if value.is_empty() {
        return Err("The header has no value: write one after the colon.".into());
    }
    if value.len() > MAX_VALUE_BYTES {
        return Err(
            format!("The value has more than {MAX_VALUE_BYTES} bytes: make it shorter.").into(),
        );
    }
    if !value
        .bytes()
        .all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
    {
        return Err(
            "The value has a character that is none of ASCII's: encode it, or leave it out.".into(),
        );
    }
    let essence = value.split(';').next().unwrap_or_default().trim_end();
    let is_token = |part: &str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        !part.is_empty() && part.bytes().all(is_inner)
    };
    let is_media_type = essence
        .split_once('/')
        .is_some_and(|(kind, sub)| is_token(kind) && is_token(sub));
    match name == "content-type" && !is_media_type {
        true => {
            Err("The value is no media type: write one such as `text/plain; charset=utf-8`.".into())
        }
        false => Ok(()),
    }
}
