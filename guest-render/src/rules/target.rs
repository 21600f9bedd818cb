//! Targets of redirects: paths of the site and https URLs, with what the pattern has captured.

use super::pattern::{Pattern, digit, name_length};
use super::{Reason, Target, TargetPart, excerpt};

/// Scheme of targets on other hosts.
const SCHEME: &str = "https://";

/// Punctuation that stays as it is in a target.
const PLAIN: &[u8] = b"-._~!$&'()+,;=:@/?";

/// Most placeholders of a path or a query.
const MAX_CAPTURES: usize = 32;

/// Digits of encoded bytes.
const HEXADECIMAL: &[u8; 16] = b"0123456789ABCDEF";

/// Longest host with its port, in bytes.
const MAX_AUTHORITY_BYTES: usize = 259;

/// Where a target may lead.
#[derive(Clone, Copy, Debug)]
pub(super) struct TargetBounds {
    /// Whether the target answers itself, in place of the asked path.
    pub(super) is_rewrite: bool,
    /// Whether other hosts are refused.
    pub(super) within_site: bool,
}

/// Reads a target.
pub(super) fn parse(text: &str, pattern: &Pattern, bounds: TargetBounds) -> Result<Target, Reason> {
    let (origin, rest) = match text.strip_prefix(SCHEME) {
        Some(rest) => {
            let (origin, rest) = split_origin(rest, bounds)?;
            (Some(origin), rest)
        }
        None => (None, site_path(text)?),
    };
    let (rest, fragment) = split_off(rest, '#');
    let (path, query) = split_off(rest, '?');
    if bounds.is_rewrite && (query.is_some() || fragment.is_some()) {
        return Err(
            "With the status 200 a target is a file: leave its query string and fragment out."
                .into(),
        );
    }
    let path = path.strip_prefix('/').unwrap_or(path);
    if path.starts_with('/') {
        return Err(
            "A target does not begin with two slashes: write one, or https:// before a host."
                .into(),
        );
    }
    if path.split('/').any(is_dot_segment) {
        return Err(
            "The target has a segment `.` or `..`: write the path that it leads to.".into(),
        );
    }
    Ok(Target {
        origin,
        path: parts(path, pattern)?,
        query: query.map(|query| parts(query, pattern)).transpose()?,
        fragment: fragment.map(encoded).transpose()?,
    })
}

/// Returns a target that is a path of the site.
fn site_path(text: &str) -> Result<&str, Reason> {
    match text.starts_with('/') {
        true => Ok(text),
        false => Err(format!("`{}` is no target: write a path with a slash at its begin, or a URL that begins with https://.", excerpt(text)).into()),
    }
}

/// Divides what follows the scheme into the origin and the rest.
fn split_origin(text: &str, bounds: TargetBounds) -> Result<(String, &str), Reason> {
    if bounds.within_site {
        return Err("The redirects of a quick share lead to its own paths: write a path.".into());
    }
    if bounds.is_rewrite {
        return Err("Nothing is fetched from other hosts: give the rule a status from 301 to 308, or a path of the site.".into());
    }
    let end = text.find(['/', '?', '#']).unwrap_or(text.len());
    let (authority, rest) = text.split_at(end);
    match is_authority(authority) {
        true => Ok((format!("{SCHEME}{}", authority.to_ascii_lowercase()), rest)),
        false => Err("The host of the target is none: write its ASCII letters, digits, dots and hyphens, and its port at most.".into()),
    }
}

/// Whether a text is a host, with or without a port.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let ends = [host.bytes().next(), host.bytes().next_back()];
    let has_host = ends
        .iter()
        .flatten()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .count()
        == 2;
    let has_port = port.is_none_or(|port| {
        (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    has_host && has_port && host.bytes().all(is_inner) && text.len() <= MAX_AUTHORITY_BYTES
}

/// Divides a text at the first of a character.
fn split_off(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

/// Whether browsers leave a segment out of a path, or go up at it.
fn is_dot_segment(segment: &str) -> bool {
    let plain = segment.replace("%2e", ".").replace("%2E", ".");
    [".", ".."].contains(&plain.as_str())
}

/// Divides a path or a query into texts and captures.
fn parts(text: &str, pattern: &Pattern) -> Result<Vec<TargetPart>, Reason> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut captures = 0;
    let mut left = text;
    while let Some((before, after)) = left.split_once(':') {
        encode_into(&mut literal, before)?;
        let (name, rest) = after.split_at(name_length(after));
        left = rest;
        if name.is_empty() {
            literal.push(':');
            continue;
        }
        let Some(number) = pattern.capture(name) else {
            return Err(format!("The path of the rule has no placeholder `:{}`: add it there, or write %3A for a colon.", excerpt(name)).into());
        };
        if !literal.is_empty() {
            parts.push(TargetPart::Text(std::mem::take(&mut literal)));
        }
        captures += 1;
        if captures > MAX_CAPTURES {
            return Err(format!("A target has {MAX_CAPTURES} placeholders at most.").into());
        }
        parts.push(TargetPart::Capture(number));
    }
    encode_into(&mut literal, left)?;
    if !literal.is_empty() {
        parts.push(TargetPart::Text(literal));
    }
    Ok(parts)
}

fn encoded(text: &str) -> Result<String, Reason> {
    let mut encoded = String::with_capacity(text.len());
    encode_into(&mut encoded, text)?;
    Ok(encoded)
}

/// Writes a text as a URL has it: what is encoded stays so.
fn encode_into(out: &mut String, text: &str) -> Result<(), Reason> {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'*' => return Err("`*` stands in the path of a rule alone: write `:splat` for what it stands for, or %2A for an asterisk.".into()),
            b'%' => {
                let digits = bytes.next().and_then(digit).zip(bytes.next().and_then(digit));
                let Some((high, low)) = digits else {
                    return Err("The target has a `%` without two hexadecimal digits after it: write %25 for the sign itself.".into());
                };
                push_encoded(out, (high << 4) | low);
            }
            _ if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) => out.push(char::from(byte)),
            _ => push_encoded(out, byte),
        }
    }
    Ok(())
}

fn push_encoded(out: &mut String, byte: u8) {
    out.push('%');
    out.push(char::from(HEXADECIMAL[usize::from(byte >> 4)]));
    out.push(char::from(HEXADECIMAL[usize::from(byte & 15)]));
}
