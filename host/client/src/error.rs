//! Failures of the client's commands, as a message for people, JSON for programs, and an exit code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::output::{escape_excerpt, escape_line, escape_text};

/// The most characters of a title, a name and a detail, and the most entries of a list.
const MAX_TITLE: usize = 200;
const MAX_NAME: usize = 100;
const MAX_DETAIL: usize = 4_000;
const MAX_LISTED: usize = 50;

/// Result of a client's command.
pub(super) type Result<T> = std::result::Result<T, CliFailure>;

/// Exit code of a failed command. `docs/client.md` lists the numbers; they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureExitCode {
    /// The server refused, or something failed on this machine.
    Failed = 1,
    /// The credential is missing or does not suffice.
    Credential = 3,
    /// Nothing has this name.
    NotFound = 4,
    /// Another change came first, or the name is taken.
    Conflict = 5,
    /// No answer came from the server.
    NoAnswer = 6,
    /// The server is too busy, or limits the caller's rate.
    Busy = 7,
    /// Changes were planned and not made.
    Planned = 8,
    /// The command was stopped by Ctrl-C.
    Interrupted = 130,
}

/// Failure of a command: what went wrong, and what to do.
#[derive(Clone, Debug)]
pub(super) struct CliFailure {
    /// Exit code for the shell.
    pub(super) exit: FailureExitCode,
    title: Box<str>,
    detail: Box<str>,
    context: Box<FailureContext>,
}

/// Further parts of a failure, apart so that results stay small.
#[derive(Clone, Debug, Default)]
struct FailureContext {
    /// Advice that follows the detail.
    hints: Vec<String>,
    /// Files that were refused, by the names of the problem's entries; the empty name stands for a problem without entries.
    files: BTreeMap<String, PathBuf>,
    /// Line of the file that was refused, where its text is no script.
    line: Option<u64>,
    /// Problem document of the server.
    problem: Option<Map<String, Value>>,
    /// Lines below the message, each about one thing.
    lines: Vec<String>,
    /// Position in the refused file, where this machine found what is wrong.
    position: Option<TextPosition>,
}

/// Line about a file that is wrong, or about the failure as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailureLine {
    /// File that is wrong, if one is.
    pub(super) file: Option<PathBuf>,
    /// Text of the line, with the place before it as editors and compilers have it.
    pub(super) text: String,
}

/// Position in a text, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextPosition {
    line: u64,
    column: u64,
}

impl CliFailure {
    /// Builds a failure from its texts.
    pub(super) fn new(
        exit: FailureExitCode,
        title: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            exit,
            title: title.into().into(),
            detail: detail.into().into(),
            context: Box::default(),
        }
    }

    /// Builds a failure of a text at a byte of it.
    pub(super) fn in_text(
        title: &str,
        detail: impl Into<String>,
        (path, text): (&Path, &str),
        offset: usize,
    ) -> Self {
        let before = text.get(..offset).unwrap_or_default();
        let line_begin = before.rfind('\n').map_or(0, |at| at + 1);
        let count = |counted: usize| u64::try_from(counted + 1).unwrap_or(u64::MAX);
        let mut failure = Self::new(FailureExitCode::Failed, title, detail).with_file(path);
        failure.context.position = Some(TextPosition {
            line: count(before.matches('\n').count()),
            column: count(before[line_begin..].chars().count()),
        });
        failure
    }

    /// Builds a failure that arose on this machine.
    pub(super) fn local(detail: impl Into<String>) -> Self {
        Self::new(FailureExitCode::Failed, "Not done", detail)
    }

    /// Builds a failure of the file system.
    pub(super) fn file_system(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        let exit = match error.kind() {
            std::io::ErrorKind::NotFound => FailureExitCode::NotFound,
            _ => FailureExitCode::Failed,
        };
        let detail = format!("{doing} {}: {error}.", path.display());
        Self::new(exit, "The file cannot be used", detail)
    }

    /// Builds a failure from the server's problem document.
    pub(super) fn from_problem(status: StatusCode, problem: Map<String, Value>) -> Self {
        let exit = match status.as_u16() {
            401 | 403 => FailureExitCode::Credential,
            404 => FailureExitCode::NotFound,
            409 => FailureExitCode::Conflict,
            429 | 503 => FailureExitCode::Busy,
            _ => FailureExitCode::Failed,
        };
        let text = |name: &str| member_string(&problem, name).to_owned();
        let (title, detail) = (text("title"), text("detail"));
        let mut failure = Self::new(exit, title, detail);
        failure.context.problem = Some(problem);
        failure
    }

    /// Text of the failure, without its title.
    pub(super) fn detail(&self) -> &str {
        &self.detail
    }

    /// Replaces the detail.
    #[must_use]
    pub(super) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into().into();
        self
    }

    /// Returns a member of the server's problem.
    pub(super) fn member(&self, name: &str) -> Option<&Value> {
        self.context.problem.as_ref()?.get(name)
    }

    /// Stable code of the server's problem; empty if there is none.
    pub(super) fn code(&self) -> &str {
        self.problem_text("code")
    }

    /// Whether to wait and send the request again: the server has no room. If it went away, it may have done what was asked for, so
    /// only a `repeatable` request is sent again. What a server is not set up for does not come by waiting.
    pub(super) fn is_worth_waiting(&self, repeatable: bool) -> bool {
        let code = self.code();
        let is_busy = self.exit == FailureExitCode::Busy && !code.ends_with("_unconfigured");
        is_busy && (repeatable || code != "interrupted")
    }

    /// Whether the failure has this title.
    pub(super) fn is_titled(&self, title: &str) -> bool {
        &*self.title == title
    }

    /// Whether something was not found.
    pub(super) fn is_not_found(&self) -> bool {
        self.exit == FailureExitCode::NotFound
    }

    /// Adds the file whose text the server refused.
    #[must_use]
    pub(super) fn with_file(self, file: &Path) -> Self {
        self.with_files([(String::new(), file.to_owned())])
    }

    /// Adds the line of the file that was refused.
    #[must_use]
    pub(super) fn with_line(mut self, line: u64) -> Self {
        self.context.line = Some(line);
        self
    }

    /// Adds the files of a batch, by the names of the problem's entries.
    #[must_use]
    pub(super) fn with_files(mut self, files: impl IntoIterator<Item = (String, PathBuf)>) -> Self {
        self.context.files.extend(files);
        self
    }

    /// Adds advice.
    #[must_use]
    pub(super) fn with_hint(mut self, hint: &str) -> Self {
        if !self.context.hints.iter().any(|one| one == hint) {
            self.context.hints.push(hint.to_owned());
        }
        self
    }

    /// Adds a list for programs, with a line for each of its entries for people.
    #[must_use]
    pub(super) fn with_list(mut self, name: &str, list: Vec<Value>, lines: Vec<String>) -> Self {
        let problem = self.context.problem.get_or_insert_default();
        problem.insert(name.to_owned(), list.into());
        self.context.lines.extend(lines);
        self
    }

    fn problem_text(&self, name: &str) -> &str {
        let problem = self.context.problem.as_ref();
        problem.map_or("", |problem| member_string(problem, name))
    }

    /// Lists the refused entries of a batch.
    fn entries(&self) -> Vec<&Map<String, Value>> {
        let entries = self
            .context
            .problem
            .as_ref()
            .and_then(|problem| problem.get("errors"));
        let entries = entries.and_then(Value::as_array).into_iter().flatten();
        entries.filter_map(Value::as_object).collect()
    }

    /// Formats the message for people. It repeats nothing, and texts of the server cannot control the terminal.
    pub(super) fn to_text(&self) -> String {
        let title = escape_excerpt(&self.title, MAX_TITLE);
        let problem = self.context.problem.as_ref();
        let position = self.position();
        let entries = self.entries();
        let mut lines = Vec::new();
        match entries[..] {
            [] => {
                let file = self.context.files.get("").map(PathBuf::as_path);
                lines.push(self.summary_line(file, position, &title, &self.detail));
            }
            [one] => {
                let (name, detail) = (member_string(one, "name"), member_string(one, "detail"));
                let file = self.context.files.get(name).map(PathBuf::as_path);
                let detail = match file {
                    Some(_) => detail.to_owned(),
                    None => format!("`{name}`: {detail}"),
                };
                lines.push(self.summary_line(file, position, &title, &detail));
            }
            ref several => {
                let all = format!("{} are refused, and so nothing was done.", several.len());
                lines.push(format!("error: {title}: {all}"));
                lines.extend(
                    several
                        .iter()
                        .take(MAX_LISTED)
                        .map(|one| self.entry_line(one)),
                );
                if several.len() > MAX_LISTED {
                    lines.push(format!("  and {} more", several.len() - MAX_LISTED));
                }
            }
        }
        for hint in &self.context.hints {
            match lines.as_mut_slice() {
                [first] => *first = join_sentences([&**first, hint]),
                _ => lines.push(format!("  {hint}")),
            }
        }
        lines.extend(problem.into_iter().flat_map(name_lines));
        let shown = self.context.lines.iter().take(MAX_LISTED);
        lines.extend(shown.map(|line| format!("  {line}")));
        if self.context.lines.len() > MAX_LISTED {
            lines.push(format!(
                "  and {} more",
                self.context.lines.len() - MAX_LISTED
            ));
        }
        let id = self.problem_text("request_id");
        if !id.is_empty() {
            lines.push(format!("  request id: {}", escape_excerpt(id, MAX_NAME)));
        }
        escape_text(&lines.join("\n"))
    }

    /// Position in the refused text: that of a statement, of a page, or of a file of this machine.
    fn position(&self) -> Option<TextPosition> {
        let problem = self.context.problem.as_ref();
        let position = problem.and_then(|problem| match problem.get("position") {
            Some(position) => parse_position_member(position),
            None => TextPosition::from_members(problem.get("line")?, problem.get("column")?),
        });
        position.or(self.context.position)
    }

    /// Whether the failure lists all entries of a batch that are wrong.
    pub(super) fn is_whole_list(&self) -> bool {
        (1..=MAX_LISTED).contains(&self.entries().len())
    }

    /// Formats a line for each file that is wrong; one about the failure as a whole if no file is known.
    pub(super) fn lines(&self) -> Vec<FailureLine> {
        let at = |file: &Path, position: Option<TextPosition>, text: &str| FailureLine {
            file: Some(file.to_owned()),
            text: escape_text(&format!(
                "{}: {}",
                location(file, position),
                indent_paragraph(text)
            )),
        };
        let entries = self.entries();
        let entries = entries.iter().filter_map(|entry| {
            let file = self.context.files.get(member_string(entry, "name"))?;
            let (position, reason) = parse_position(member_string(entry, "detail"));
            Some(at(file, position, reason))
        });
        let mut lines: Vec<_> = entries.take(MAX_LISTED).collect();
        if let Some(file) = self.context.files.get("").filter(|_| lines.is_empty()) {
            let (position, reason) = (self.position(), self.problem_text("reason"));
            let text = match position {
                Some(_) if !reason.is_empty() => reason,
                _ => &self.detail,
            };
            lines.push(at(file, position, text));
        }
        if lines.is_empty() {
            lines.push(FailureLine {
                file: None,
                text: self.to_text(),
            });
        }
        lines
    }

    /// Formats the line with the error and its place.
    fn summary_line(
        &self,
        file: Option<&Path>,
        position: Option<TextPosition>,
        title: &str,
        detail: &str,
    ) -> String {
        let reason = self.problem_text("reason");
        // After a position, the reason alone is enough.
        let detail = match (position, file) {
            (Some(_), Some(_)) if !reason.is_empty() => reason,
            _ => detail,
        };
        let detail = indent_paragraph(detail);
        match (file, self.context.line) {
            (Some(file), Some(line)) => {
                format!("error: {}:{line}: {title}: {detail}", location(file, None))
            }
            (Some(file), None) => {
                format!("error: {}: {title}: {detail}", location(file, position))
            }
            (None, _) => format!("error: {title}: {detail}"),
        }
    }

    /// Formats the line of one entry of a batch.
    fn entry_line(&self, entry: &Map<String, Value>) -> String {
        let (name, detail) = (member_string(entry, "name"), member_string(entry, "detail"));
        match self.context.files.get(name) {
            Some(file) => {
                let (position, reason) = parse_position(detail);
                format!(
                    "  {}: {}",
                    location(file, position),
                    indent_paragraph(reason)
                )
            }
            None => format!(
                "  {}: {}",
                escape_excerpt(name, MAX_NAME),
                indent_paragraph(detail)
            ),
        }
    }

    /// Formats the failure as JSON, with the server's problem in `error`.
    pub(super) fn to_json(&self) -> Value {
        let mut error = self.context.problem.clone().unwrap_or_default();
        let hints = self.context.hints.iter().map(String::as_str);
        let detail = join_sentences([&*self.detail].into_iter().chain(hints));
        error.insert("title".into(), (&*self.title).into());
        error.insert("detail".into(), detail.into());
        error.insert("exit".into(), (self.exit as u8).into());
        if let Some(file) = self.context.files.get("") {
            error.insert("file".into(), file.display().to_string().into());
        }
        if let Some(line) = self.context.line {
            error.insert("line".into(), line.into());
        }
        if let Some(TextPosition { line, column }) = self.context.position {
            let position = json!({ "line": line, "column": column });
            error.entry("position").or_insert(position);
        }
        if let Some(entries) = error.get_mut("errors").and_then(Value::as_array_mut) {
            for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
                let file = self.context.files.get(member_string(entry, "name"));
                if let Some(file) = file {
                    entry.insert("file".into(), file.display().to_string().into());
                }
            }
        }
        json!({ "error": error })
    }
}

/// Joins sentences. Texts of a database end without a full stop.
fn join_sentences<'a>(sentences: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for sentence in sentences {
        let is_open = |c: char| !c.is_whitespace() && !matches!(c, '.' | '!' | '?' | ':' | '…');
        if text.ends_with(is_open) {
            text.push('.');
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(sentence);
    }
    text
}

/// Lists the lines that name the params which are missing or too many.
fn name_lines(problem: &Map<String, Value>) -> Vec<String> {
    let lines = ["missing", "extra"].into_iter().filter_map(|which| {
        let names = problem.get(which)?.as_array()?.iter();
        let names = names.filter_map(|name| Some(escape_excerpt(name.as_str()?, MAX_NAME)));
        let names: Vec<_> = names.take(MAX_LISTED).collect();
        (!names.is_empty()).then(|| format!("  {which}: {}", names.join(", ")))
    });
    lines.collect()
}

/// Returns a string member of a problem; empty if it is missing.
fn member_string<'a>(problem: &'a Map<String, Value>, name: &str) -> &'a str {
    let member = problem.get(name).and_then(Value::as_str);
    member.unwrap_or_default()
}

fn parse_position_member(position: &Value) -> Option<TextPosition> {
    TextPosition::from_members(position.get("line")?, position.get("column")?)
}

impl TextPosition {
    fn from_members(line: &Value, column: &Value) -> Option<Self> {
        Some(Self {
            line: line.as_u64()?,
            column: column.as_u64()?,
        })
    }
}

/// Splits off the position at the start of a detail, as entries of a batch have it: `Statement 1, line 2, column 7: …`.
fn parse_position(detail: &str) -> (Option<TextPosition>, &str) {
    let parse = || {
        let (head, reason) = detail.split_once(": ")?;
        let (_, place) = head.strip_prefix("Statement ")?.split_once(", line ")?;
        let (line, column) = place.split_once(", column ")?;
        let (line, column) = (line.parse().ok()?, column.parse().ok()?);
        Some((TextPosition { line, column }, reason))
    };
    parse().map_or((None, detail), |(position, reason)| {
        (Some(position), reason)
    })
}

/// Formats a place in a file as editors and compilers do.
fn location(file: &Path, position: Option<TextPosition>) -> String {
    let file = escape_line(&file.display().to_string());
    match position {
        Some(TextPosition { line, column }) => format!("{file}:{line}:{column}"),
        None => file,
    }
}

/// Formats a text of several lines: all but the first are indented.
fn indent_paragraph(text: &str) -> String {
    let cut: String = text.chars().take(MAX_DETAIL).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{more}", cut.trim_end().replace('\n', "\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, members: Value) -> CliFailure {
        let Value::Object(members) = members else {
            panic!("no object: {members}");
        };
        CliFailure::from_problem(StatusCode::from_u16(status).unwrap(), members)
    }

    #[test]
    fn statuses_have_numbers() {
        for (status, exit) in [
            (400, 1),
            (401, 3),
            (403, 3),
            (404, 4),
            (409, 5),
            (413, 1),
            (429, 7),
            (500, 1),
            (503, 7),
        ] {
            assert_eq!(problem(status, json!({})).exit as u8, exit, "{status}");
        }
    }

    #[test]
    fn what_may_have_been_done_is_not_sent_twice() {
        for (status, code, once, repeatable) in [
            (503, "database_busy", true, true),
            (503, "interrupted", false, true),
            (409, "slug_conflict", false, false),
            (503, "domains_unconfigured", false, false),
        ] {
            let failure = problem(status, json!({ "code": code }));
            assert_eq!(failure.is_worth_waiting(false), once, "{code}");
            assert_eq!(failure.is_worth_waiting(true), repeatable, "{code}");
        }
    }

    #[test]
    fn everything_that_helps_is_said_once() {
        let script = problem(
            400,
            json!({"title": "Script refused", "detail": "Statement 2, line 2, column 7: No DROP.", "code": "ddl_refused",
                "reason": "No DROP.", "statement": 2, "position": {"line": 2, "column": 7}, "request_id": "r1"}),
        );
        assert_eq!(
            script
                .clone()
                .with_file(Path::new("migrations/0002.sql"))
                .with_hint("Go on.")
                .to_text(),
            "error: migrations/0002.sql:2:7: Script refused: No DROP. Go on.\n  request id: r1"
        );
        // A statement of the command line has no file.
        assert_eq!(
            script.to_text(),
            "error: Script refused: Statement 2, line 2, column 7: No DROP.\n  request id: r1"
        );
        let differ = json!({"title": "Params differ", "detail": "See `missing` and `extra`.", "missing": ["text", "by"], "extra": []});
        assert_eq!(
            problem(400, differ).to_text(),
            "error: Params differ: See `missing` and `extra`.\n  missing: text, by"
        );
    }

    #[test]
    fn sentences_are_not_glued_together() {
        let failure =
            CliFailure::local("CHECK constraint failed: c < 100").with_hint("Nothing was loaded.");
        let expected = "CHECK constraint failed: c < 100. Nothing was loaded.";
        assert_eq!(failure.to_text(), format!("error: Not done: {expected}"));
        assert_eq!(failure.to_json()["error"]["detail"], expected);
        for (text, expected) in [
            ("No.", "No. Go."),
            ("No", "No. Go."),
            ("No:", "No: Go."),
            ("", "Go."),
        ] {
            assert_eq!(join_sentences([text, "Go."]), expected);
        }
    }

    #[test]
    fn a_line_has_the_place_as_editors_read_it() {
        let lines = |failure: CliFailure| {
            let lines = failure.lines().into_iter();
            lines.map(|line| line.text).collect::<Vec<_>>()
        };
        let page = json!({"title": "Not rendered", "detail": "No JSON.", "line": 3, "column": 5});
        assert_eq!(
            lines(problem(400, page).with_file(Path::new("a.json"))),
            ["a.json:3:5: No JSON."]
        );
        let text = "project = \"a\"\nöä = 1\n";
        let at = text.find('=').unwrap() + 8;
        let local = CliFailure::in_text("Not valid", "No.", (Path::new("svc.toml"), text), at);
        assert_eq!(local.to_text(), "error: svc.toml:2:2: Not valid: No.");
        assert_eq!(lines(local), ["svc.toml:2:2: No."]);
        let entry = |name: &str| json!({"name": name, "detail": "Statement 1, line 1, column 15: no such table: t"});
        let batch = json!({"title": "Refused", "detail": "d", "position": {"line": 1, "column": 15}, "errors": [entry("a"), entry("b")]});
        let files = ["a", "b"].map(|name| (name.to_owned(), format!("{name}.sql").into()));
        assert_eq!(
            lines(problem(400, batch).with_files(files)),
            [
                "a.sql:1:15: no such table: t",
                "b.sql:1:15: no such table: t"
            ]
        );
        assert_eq!(lines(CliFailure::local("No.")), ["error: Not done: No."]);
    }

    #[test]
    fn each_refused_entry_of_a_batch_is_told_with_its_place() {
        let files =
            || ["add", "bad"].map(|name| (name.to_owned(), format!("actions/{name}.sql").into()));
        let entry = |name: &str, detail: &str| json!({"name": name, "code": "x", "detail": detail});
        let first = entry(
            "bad",
            "Statement 1, line 1, column 15: no such table: nowhere",
        );
        let batch = |errors: &[Value]| {
            problem(
                400,
                json!({"title": "Statement refused", "detail": "Action `bad`: Statement 1, line 1, column 15: no such table: nowhere",
                    "reason": "no such table: nowhere", "position": {"line": 1, "column": 15}, "errors": errors}),
            )
        };
        let one = batch(std::slice::from_ref(&first));
        assert_eq!(
            one.clone().with_files(files()).to_text(),
            "error: actions/bad.sql:1:15: Statement refused: no such table: nowhere"
        );
        assert_eq!(
            one.to_text(),
            "error: Statement refused: `bad`: Statement 1, line 1, column 15: no such table: nowhere"
        );
        let two = batch(&[first, entry("add", "Params\nclash: yes.\u{1b}[2J")]).with_files(files());
        assert_eq!(
            two.to_text(),
            "error: Statement refused: 2 are refused, and so nothing was done.\n  actions/bad.sql:1:15: no such table: nowhere\n  \
             actions/add.sql: Params\n  clash: yes.\\u{1b}[2J"
        );
        assert_eq!(
            two.to_json()["error"]["errors"][1]["file"],
            "actions/add.sql"
        );
    }

    #[test]
    fn a_servers_text_is_bounded_and_passes_for_nothing_else() {
        let hostile = problem(
            500,
            json!({"title": format!("A\nerror: {}", "b".repeat(1000)), "detail": format!("c\rd\u{9b}2J\n$ {}", "e".repeat(100_000)),
                "code": 5, "position": {"line": -1, "column": "x"}, "errors": "none", "missing": {}, "request_id": "f\u{202e}\n"}),
        );
        let text = hostile.to_text();
        assert!(text.len() < 5_000 && text.lines().count() == 3, "{text}");
        assert!(
            text.lines().skip(1).all(|line| line.starts_with("  ")),
            "{text}"
        );
        assert!(!text.chars().any(|c| c.is_control() && c != '\n') && !text.contains('\u{202e}'));
    }
}
