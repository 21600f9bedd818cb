//! `_redirects`: a rule a line, `from to [status]`.

use super::lines::RuleText;
use super::pattern::{Pattern, StarPlace};
use super::target::{self, TargetBounds};
use super::{Fault, Reason, Redirect, RuleFile, excerpt};

/// Most lines of the file.
const MAX_LINES: u32 = 1_000;

/// Status of a rule that names none.
const DEFAULT_STATUS: u16 = 302;

/// Status of a path that answers in place of another one.
const REWRITE_STATUS: u16 = 200;

/// Reads the rules of a file.
pub(super) fn parse(bytes: &[u8], within_site: bool) -> Result<Vec<Redirect>, Fault> {
    let text = RuleText::new(RuleFile::Redirects, bytes)?;
    let mut rules = Vec::new();
    for line in text.lines() {
        let line = line?;
        if line.number > MAX_LINES {
            let reason = format!("The file has more than {MAX_LINES} lines: leave rules out.");
            return Err(text.fault(line.number, reason.into()));
        }
        if line.is_blank() {
            continue;
        }
        let rule = parse_rule(line.text, within_site);
        rules.push(rule.map_err(|reason| text.fault(line.number, reason))?);
    }
    Ok(rules)
}

fn parse_rule(line: &str, within_site: bool) -> Result<Redirect, Reason> {
    let words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let mut words = words.take_while(|word| !word.starts_with('#'));
    let (Some(from), Some(to)) = (words.next(), words.next()) else {
        return Err("A rule has a path and a target: write `/from /to`.".into());
    };
    let pattern = Pattern::parse(from, StarPlace::End)?;
    if is_condition(to) {
        return Err(format!(
            "Query strings of requests take no part in rules: leave `{}` out.",
            excerpt(to)
        )
        .into());
    }
    let status = words.next().map_or(Ok(DEFAULT_STATUS), parse_status)?;
    if let Some(more) = words.next() {
        return Err(surplus_reason(more));
    }
    let bounds = TargetBounds {
        is_rewrite: status == REWRITE_STATUS,
        within_site,
    };
    Ok(Redirect {
        target: target::parse(to, &pattern, bounds)?,
        pattern: pattern.parts,
        status,
    })
}

/// Whether a word is a condition on requests, as other services have them.
fn is_condition(word: &str) -> bool {
    !word.starts_with('/') && !word.contains("://") && word.contains('=')
}

fn parse_status(word: &str) -> Result<u16, Reason> {
    match word {
        "200" => Ok(REWRITE_STATUS),
        "301" => Ok(301),
        "302" => Ok(302),
        "303" => Ok(303),
        "307" => Ok(307),
        "308" => Ok(308),
        _ if word.ends_with('!') => Err("A status takes no `!`: redirects come before files anyway, and a path with the status 200 never hides one.".into()),
        _ if is_condition(word) => Err(surplus_reason(word)),
        _ => Err(format!("`{}` is none of the statuses 301, 302, 303, 307, 308 and 200.", excerpt(word)).into()),
    }
}

/// Explains that a word follows a rule's status.
fn surplus_reason(word: &str) -> Reason {
    let what = match is_condition(word) {
        true => "Rules have no conditions",
        false => "A rule ends with its status",
    };
    format!("{what}: leave `{}` out.", excerpt(word)).into()
}
