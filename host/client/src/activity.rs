//! `svc tail` and `svc stats`: what a project's pages do.

use std::time::Duration;

use serde_json::Value;

use super::backends::{BackendTargetArgs, ProjectHandle};
use super::error::{CliFailure, FailureExitCode, Result};
use super::output::{OutputFormat, member_text, table_of};
use super::{endpoints, responses};

/// Number of entries that `svc tail` begins with.
const DEFAULT_LINES: u32 = 10;
/// Most entries that the server lists at once.
const MAX_LINES: u32 = 500;
/// Id before those of all entries, after which a log goes on that is empty: what comes in between is missed by no follower.
const BEFORE_ALL: &str = "00000000-0000-0000-0000-000000000000";
/// Pause before a stream that has ended is asked for again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Follows the requests of a project's pages.
#[derive(Debug, clap::Args)]
pub struct TailCommand {
    /// Only what was refused or failed
    #[arg(long)]
    errors: bool,
    /// Only calls of this action
    #[arg(long, value_name = "NAME")]
    action: Option<String>,
    /// How many of the latest to begin with, at most 500
    #[arg(long, short = 'n', default_value_t = DEFAULT_LINES)]
    lines: u32,
    /// Only those that are there already
    #[arg(long)]
    no_follow: bool,
    #[command(flatten)]
    args: BackendTargetArgs,
}

/// Counts what a project's pages did.
#[derive(Debug, clap::Args)]
pub struct StatsCommand {
    /// Where to begin [default: six days ago]
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Where to end [default: now]
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// How long a line is
    #[arg(long, value_parser = ["hour", "day"])]
    step: Option<String>,
    #[command(flatten)]
    args: BackendTargetArgs,
}

impl StatsCommand {
    pub(super) async fn run(self) -> Result<()> {
        let at = self.args.find().await?;
        let asked = at.api.call(&endpoints::STATS, &at.path_parts());
        let asked = asked.query("from", self.from).query("to", self.to);
        let stats = asked.query("step", self.step).send().await?;
        let points = [
            "at", "views", "calls", "errors", "limited", "messages", "sign_ins", "payments",
        ];
        let actions = [
            "name", "calls", "errors", "p50_ms", "p95_ms", "p99_ms", "rows",
        ];
        let tables = [
            table_of(&stats["series"], &points),
            table_of(&stats["pages"], &["slug", "views"]),
            table_of(&stats["actions"], &actions),
        ];
        let text: Vec<String> = tables
            .into_iter()
            .filter(|table| !table.is_empty())
            .collect();
        self.args.output().print_answer(&stats, &text.join("\n\n"))
    }
}

impl TailCommand {
    pub(super) async fn run(self) -> Result<()> {
        let at = self.args.find().await?;
        let mut last = self.print_latest(&at).await?;
        if self.no_follow {
            return Ok(());
        }
        loop {
            let asked = at.api.call(&endpoints::LOG, &at.path_parts());
            let asked = asked.query("action", self.action.as_deref());
            let mut events = EventBuffer::default();
            let followed = asked.follow(last.clone(), |part| {
                for entry in events.take(part)? {
                    if let Some(id) = entry["id"].as_str() {
                        id.clone_into(&mut last);
                    }
                    self.print(&entry)?;
                }
                Ok(())
            });
            match followed.await {
                // The server restarts, or the project has moved to another one.
                Ok(()) => {}
                Err(failure) if failure.exit == FailureExitCode::NoAnswer => {
                    self.args
                        .output()
                        .print_note("the connection broke: trying again");
                }
                Err(failure) => return Err(failure),
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    /// Prints the latest entries; returns the id after which others follow.
    async fn print_latest(&self, at: &ProjectHandle) -> Result<String> {
        let asked = at.api.call(&endpoints::LOG, &at.path_parts());
        // Those that failed are looked for among as many as an answer has.
        let most = match self.errors {
            true => MAX_LINES,
            false => self.lines.clamp(1, MAX_LINES),
        };
        let asked = asked.query("limit", Some(most));
        let log = asked.query("action", self.action.as_deref()).send().await?;
        let entries = || log["entries"].as_array().into_iter().flatten();
        let shown = usize::try_from(self.lines).unwrap_or(usize::MAX);
        let shown: Vec<&Value> = entries()
            .filter(|entry| self.is_wanted(entry))
            .take(shown)
            .collect();
        for entry in shown.into_iter().rev() {
            self.print(entry)?;
        }
        let newest = entries().next().and_then(|entry| entry["id"].as_str());
        Ok(newest.unwrap_or(BEFORE_ALL).to_owned())
    }

    /// Whether an entry is shown.
    fn is_wanted(&self, entry: &Value) -> bool {
        !self.errors || !entry["code"].is_null()
    }

    fn print(&self, entry: &Value) -> Result<()> {
        if !self.is_wanted(entry) {
            return Ok(());
        }
        let out: OutputFormat = self.args.output();
        out.print_answer(entry, &line_of(entry))
    }
}

/// Returns an entry as one line.
fn line_of(entry: &Value) -> String {
    let text = |name| super::output::escape_line(&member_text(entry, name));
    let mut line = format!(
        "{}  {:<7}  {}  {}/{}  {} ms",
        text("at"),
        text("kind"),
        text("status"),
        text("slug"),
        text("action"),
        text("ms"),
    );
    for name in ["code", "user_id", "detail"] {
        if !entry[name].is_null() {
            line.push_str("  ");
            line.push_str(&text(name));
        }
    }
    line
}

/// Bytes of a stream of events that are no whole event yet.
#[derive(Debug, Default)]
struct EventBuffer(Vec<u8>);

impl EventBuffer {
    /// Takes a part of the stream; returns the entries that are whole now.
    ///
    /// # Errors
    /// When an event is larger than an entry can be, breaks a rule of its members, or says that the stream has ended.
    fn take(&mut self, part: &[u8]) -> Result<Vec<Value>> {
        self.0.extend_from_slice(part);
        let mut entries = Vec::new();
        while let Some(end) = self.0.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = self.0.drain(..end + 2).collect();
            entries.extend(parse_event(&String::from_utf8_lossy(&event))?);
        }
        match self.0.len() > responses::LOG_ENTRY.max_bytes {
            true => Err(invalid_stream()),
            false => Ok(entries),
        }
    }
}

/// Reads an event; `None` for a comment.
fn parse_event(event: &str) -> Result<Option<Value>> {
    let member = |name: &str| {
        let mut lines = event.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    let data = member("data").map(serde_json::from_str::<Value>);
    match (member("event"), data) {
        (Some("entry"), Some(Ok(entry))) => match responses::LOG_ENTRY.first_violation(&entry) {
            Some(_) => Err(invalid_stream()),
            None => Ok(Some(entry)),
        },
        (Some("error"), Some(Ok(problem))) => Err(CliFailure::new(
            FailureExitCode::Failed,
            "The log has ended",
            member_text(&problem, "detail"),
        )),
        (None, None) => Ok(None),
        _ => Err(invalid_stream()),
    }
}

fn invalid_stream() -> CliFailure {
    CliFailure::new(
        FailureExitCode::Failed,
        "Not a log",
        "The server's stream of events is not that of a log.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let stream = b": still here\n\nevent: entry\nid: 1\ndata: {\"id\":\"a\",\"n\":1}\n\nevent: entry\nid: 2\ndata: {\"id\":\"b\"}\n\n";
        for size in [1, 7, stream.len()] {
            let mut events = EventBuffer::default();
            let parts = stream.chunks(size).map(|part| events.take(part).unwrap());
            let entries: Vec<Value> = parts.flatten().collect();
            let ids: Vec<_> = entries.iter().map(|entry| entry["id"].clone()).collect();
            assert_eq!(ids, ["a", "b"], "{size}");
        }
        for bad in [
            "event: entry\ndata: {\n\n",
            "event: entry\ndata: {\"id\":\"a b\"}\n\n",
            "event: error\ndata: {\"detail\":\"gone\"}\n\n",
        ] {
            assert!(
                EventBuffer::default().take(bad.as_bytes()).is_err(),
                "{bad}"
            );
        }
    }
}
