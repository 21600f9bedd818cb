//! `svc backend history`: the moments that can be restored, with what was done at them where the audit knows.

use serde_json::{Value, json};

use super::{BackendTargetArgs, ProjectHandle};
use crate::audit_log::{AuditEntry, read_audit};
use crate::endpoints;
use crate::error::{FailureExitCode, Result};
use crate::output::{OutputFormat, escape_line, quote_shell_word};
use svc_base::clock::Timestamp;

/// Most milliseconds between a moment and the entry of what was done at it.
const MAX_DISTANCE: i64 = 1000;
/// Acts that write rows, or the schema.
const WRITING_ACTS: [&str; 6] = [
    "backend.create",
    "backend.migrate",
    "backend.query",
    "backend.call",
    "backend.restore",
    "release.publish",
];

/// Lists moments, newest first.
pub(super) async fn list(
    limit: u32,
    before: Option<String>,
    args: &BackendTargetArgs,
) -> Result<()> {
    let at = args.find().await?;
    let asked = at.api.call(&endpoints::HISTORY, &at.path_parts());
    let asked = asked.query("limit", Some(limit)).query("before", before);
    let mut history = asked.send().await?;
    if let Some(next) = history["next_before"].as_str() {
        args.output().print_note(&format!(
            "There are more: --before {}",
            quote_shell_word(next)
        ));
    }
    add_acts(&at, &mut history, args.output()).await;
    let moments = history["moments"].as_array().into_iter().flatten();
    let lines: Vec<_> = moments.map(line_of).collect();
    args.output().print_answer(&history, &lines.join("\n"))
}

/// Formats a moment, with what was done at it if that is known.
fn line_of(moment: &Value) -> String {
    let members = ["at", "action", "principal"].into_iter();
    let members = members.filter_map(|name| moment[name].as_str());
    escape_line(&members.collect::<Vec<_>>().join("  "))
}

/// Adds to each moment what was done at it, if the caller may read the audit and exactly one entry tells.
async fn add_acts(at: &ProjectHandle, history: &mut Value, out: OutputFormat) {
    let moments = times(history);
    let Some(oldest) = moments.last().copied() else {
        return;
    };
    let Some(entries) = read_entries(at, oldest, out).await else {
        return;
    };
    let is_whole = history["next_before"].is_null();
    let acts = match_entries(&moments, &entries, is_whole);
    let listed = history["moments"].as_array_mut().into_iter().flatten();
    for (moment, act) in listed.zip(acts) {
        if let Some(act) = act {
            moment["action"] = json!(act.action);
            moment["principal"] = json!(act.principal);
        }
    }
}

/// Times of the moments, newest first; none if one is no time.
fn times(history: &Value) -> Vec<Timestamp> {
    let moments = history["moments"].as_array().into_iter().flatten();
    let times = moments.map(|moment| Timestamp::parse(moment["at"].as_str()?));
    times.collect::<Option<_>>().unwrap_or_default()
}

/// Reads the entries about the rows of the backend that may belong to moments from `oldest` on. `None` if the caller may not, or if
/// entries that were not read could fit, too.
async fn read_entries(
    at: &ProjectHandle,
    oldest: Timestamp,
    out: OutputFormat,
) -> Option<Vec<AuditEntry>> {
    let workspace = at.project.workspace.as_ref()?;
    let backend = at.project.backend.as_ref()?["id"].as_str()?;
    let targets = [backend, &at.project.id];
    let is_older = |entry: &AuditEntry| entry.at.0 < oldest.0 - MAX_DISTANCE;
    let is_enough = |entries: &[AuditEntry]| entries.iter().any(is_older);
    match read_audit(&at.api, &workspace.slug, is_enough).await {
        Ok(read) if read.is_enough => {
            let mut entries = read.entries;
            entries.retain(|entry| {
                WRITING_ACTS.contains(&entry.action.as_str())
                    && targets.contains(&entry.target.as_str())
            });
            Some(entries)
        }
        Ok(_) => None,
        Err(failure) => {
            // The moments are what was asked for.
            if !matches!(
                failure.exit,
                FailureExitCode::Credential | FailureExitCode::NotFound
            ) {
                out.print_note(&format!(
                    "warning: what was done at these moments is not known: {}",
                    failure.detail()
                ));
            }
            None
        }
    }
}

/// Returns the entry of each moment: the only one that is near it, if no other moment is near the entry. Visitors' writes have no
/// entry, so that a moment beside such a write tells nothing. `is_whole` says that there are no older moments.
fn match_entries<'e>(
    moments: &[Timestamp],
    entries: &'e [AuditEntry],
    is_whole: bool,
) -> Vec<Option<&'e AuditEntry>> {
    let is_near =
        |moment: Timestamp, entry: &AuditEntry| (moment.0 - entry.at.0).abs() <= MAX_DISTANCE;
    let oldest = moments.last().map_or(0, |moment| moment.0);
    let act = |moment: &Timestamp| {
        let mut near = entries.iter().filter(|entry| is_near(*moment, entry));
        let entry = near.next()?;
        let is_only = near.next().is_none()
            && moments
                .iter()
                .filter(|other| is_near(**other, entry))
                .count()
                == 1;
        // Near the end of the list, a moment that is not listed could be the one.
        let is_inside = is_whole || entry.at.0 - MAX_DISTANCE > oldest;
        (is_only && is_inside).then_some(entry)
    };
    moments.iter().map(act).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: i64, action: &str) -> AuditEntry {
        AuditEntry {
            at: Timestamp(at),
            principal: "key".to_owned(),
            action: action.to_owned(),
            target: "b".to_owned(),
        }
    }

    /// Actions by the moments, a dash for none.
    fn matched(moments: &[i64], entries: &[(i64, &str)], is_whole: bool) -> String {
        let moments: Vec<_> = moments.iter().copied().map(Timestamp).collect();
        let entries: Vec<_> = entries
            .iter()
            .map(|(at, action)| entry(*at, action))
            .collect();
        let acts = match_entries(&moments, &entries, is_whole);
        let acts = acts
            .iter()
            .map(|act| act.map_or("-", |entry| &entry.action));
        acts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_what_fits_alone_is_told() {
        let entries = [(10_005, "c"), (5_000, "b"), (990, "a")];
        for (moments, entries, is_whole, expected) in [
            (&[10_000, 5_100, 1_000][..], &entries[..], true, "c b a"),
            // Older moments may be nearer to the entry of the last.
            (&[10_000, 5_100, 1_000], &entries, false, "c b -"),
            // A visitor has written at nearly the same time.
            (&[10_000, 5_300, 5_100, 1_000], &entries, true, "c - - a"),
            (
                &[10_000, 1_000],
                &[(10_005, "c"), (9_500, "b"), (990, "a")],
                true,
                "- a",
            ),
            (&[10_000, 5_000], &[(7_000, "a")], true, "- -"),
            (&[], &entries, true, ""),
        ] {
            assert_eq!(
                matched(moments, entries, is_whole),
                expected,
                "{moments:?} {entries:?}"
            );
        }
    }
}
