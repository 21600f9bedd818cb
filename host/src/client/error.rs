//! Failures of a client's command: as a person, a program and a shell are told.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::output::plain;

/// Result of a client's command.
pub(super) type Result<T> = std::result::Result<T, Failure>;

/// How a command ends that does not succeed. `docs/client.md` lists the numbers; they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// The server refused, or something here did not work.
    Failed = 1,
    /// No credential, or one that does not suffice.
    Credential = 3,
    /// Nothing has the name.
    NotFound = 4,
    /// Somebody else has changed it, or it is there already.
    Conflict = 5,
    /// No answer came from the server.
    NoAnswer = 6,
    /// The server has no room or no time now.
    Busy = 7,
    /// There are changes that were planned and not made.
    Planned = 8,
    /// Somebody pressed Ctrl-C.
    Interrupted = 130,
}

/// Why a command failed, and what to do.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The number that the shell sees.
    pub(super) exit: Exit,
    title: String,
    detail: String,
    /// The problem as the server answered it.
    problem: Option<Map<String, Value>>,
}

impl Failure {
    /// A failure with what went wrong and what to do.
    pub(super) fn new(exit: Exit, title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            exit,
            title: title.into(),
            detail: detail.into(),
            problem: None,
        }
    }

    /// A failure on this side.
    pub(super) fn here(detail: impl Into<String>) -> Self {
        Self::new(Exit::Failed, "Not done", detail)
    }

    /// A failure of the file system.
    pub(super) fn file(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        let exit = match error.kind() {
            std::io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::Failed,
        };
        let detail = format!("{doing} {}: {error}.", path.display());
        Self::new(exit, "The file cannot be used", detail)
    }

    /// The problem that a server answered.
    pub(super) fn of(status: StatusCode, problem: Map<String, Value>) -> Self {
        let exit = match status.as_u16() {
            401 | 403 => Exit::Credential,
            404 => Exit::NotFound,
            409 => Exit::Conflict,
            429 | 503 => Exit::Busy,
            _ => Exit::Failed,
        };
        let text = |name: &str| {
            problem
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        Self {
            exit,
            title: text("title").to_owned(),
            detail: text("detail").to_owned(),
            problem: Some(problem),
        }
    }

    /// The stable code of a server's problem; empty where the server did not answer.
    pub(super) fn code(&self) -> &str {
        self.member("code").unwrap_or_default()
    }

    /// Whether the server says that there is no such thing.
    pub(super) fn is_missing(&self) -> bool {
        self.exit == Exit::NotFound
    }

    /// Says more before the server's message.
    #[must_use]
    pub(super) fn about(mut self, what: &str) -> Self {
        self.detail = format!("{what}: {}", self.detail);
        self
    }

    /// Adds what else to do.
    #[must_use]
    pub(super) fn hint(mut self, hint: &str) -> Self {
        self.detail = format!("{} {hint}", self.detail);
        self
    }

    fn member(&self, name: &str) -> Option<&str> {
        self.problem.as_ref()?.get(name)?.as_str()
    }

    /// Every line that a person is told.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![format!("error: {}: {}", self.title, self.detail.trim_end())];
        if let Some(position) = self.problem.as_ref().and_then(|p| p.get("position"))
            && let (Some(line), Some(column)) = (position.get("line"), position.get("column"))
        {
            lines.push(format!("  at line {line}, column {column}"));
        }
        for which in ["missing", "extra"] {
            let names = self.problem.as_ref().and_then(|p| p.get(which)?.as_array());
            let names: Vec<_> = names
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            if !names.is_empty() {
                lines.push(format!("  {which}: {}", names.join(", ")));
            }
        }
        let several = self.problem.as_ref().and_then(|p| p.get("errors"));
        for one in several.and_then(Value::as_array).into_iter().flatten() {
            let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default();
            lines.push(format!("  {}: {}", text("name"), text("detail")));
        }
        if let Some(id) = self.member("request_id") {
            lines.push(format!("  request id: {id}"));
        }
        plain(&lines.join("\n"))
    }

    /// Writes the failure for programs: the server's problem, if there is one, in `error`.
    pub(super) fn document(&self) -> Value {
        let mut error = self.problem.clone().unwrap_or_default();
        error.insert("title".into(), self.title.clone().into());
        error.insert("detail".into(), self.detail.clone().into());
        error.insert("exit".into(), (self.exit as u8).into());
        json!({ "error": error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, members: Value) -> Failure {
        let Value::Object(members) = members else {
            panic!("no object: {members}");
        };
        Failure::of(StatusCode::from_u16(status).unwrap(), members)
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
    fn everything_that_helps_is_said() {
        let failure = problem(
            400,
            json!({"title": "Script refused", "detail": "No DROP.", "code": "ddl_refused", "request_id": "r1",
                "position": {"line": 2, "column": 7}, "errors": [{"name": "add", "detail": "bad\u{1b}[2J"}]}),
        );
        assert_eq!(
            failure.about("0002.sql").text(),
            "error: Script refused: 0002.sql: No DROP.\n  at line 2, column 7\n  add: bad\\u{1b}[2J\n  request id: r1"
        );
        let differ = json!({"title": "Params differ", "detail": "See `missing` and `extra`.", "missing": ["text", "by"], "extra": []});
        assert_eq!(
            problem(400, differ).text(),
            "error: Params differ: See `missing` and `extra`.\n  missing: text, by"
        );
    }
}
