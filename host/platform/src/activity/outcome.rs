//! Outcome of a request for the log: its status, and what its problem says, without anything that the visitor had sent.

use axum::response::Response;

use crate::http::problem::{Problem, ProblemCode};

/// Longest text, in bytes.
const MAX_BYTES: usize = 400;
/// Codes whose texts have the platform's words, its settings and the schema's names, and nothing that was sent.
const FIXED: [ProblemCode; 20] = [
    ProblemCode::CapacityReached,
    ProblemCode::ConstraintViolation,
    ProblemCode::DatabaseBusy,
    ProblemCode::DatabaseFull,
    ProblemCode::Disabled,
    ProblemCode::Forbidden,
    ProblemCode::IdentityRequired,
    ProblemCode::IdentityUnconfigured,
    ProblemCode::Internal,
    ProblemCode::Interrupted,
    ProblemCode::LengthRequired,
    ProblemCode::ParamsMismatch,
    ProblemCode::PayloadTooLarge,
    ProblemCode::PaymentsUnconfigured,
    ProblemCode::PriceInactive,
    ProblemCode::QueryTimeout,
    ProblemCode::RateLimited,
    ProblemCode::StorageFull,
    ProblemCode::Timeout,
    ProblemCode::Unauthorized,
];
/// Beginning of what SQLite says of a name that it does not know, which follows after a colon.
const UNKNOWN_NAME: &str = "no such ";
/// Words after which a name or a value is quoted that was sent, whatever it is and whatever marks it has.
const BEFORE_SENT: [&str; 5] = [
    "unknown field ",
    "duplicate field ",
    "unknown variant ",
    "invalid type: ",
    "invalid value: ",
];
/// Names that the platform's own texts put between quotation marks.
const OWN_NAMES: [&str; 34] = [
    "action",
    "as",
    "code",
    "count",
    "data",
    "email",
    "error",
    "event",
    "extra",
    "from",
    "id",
    "identify",
    "iss",
    "limit",
    "missing",
    "name",
    "null",
    "ops",
    "params",
    "price",
    "provider",
    "read_only",
    "return_to",
    "room",
    "slug",
    "sql",
    "state",
    "text/event-stream",
    "ticket",
    "type",
    "user_id",
    "v",
    "agents",
    "Accept",
];

/// Answer of a request, for the log.
#[derive(Clone, Debug)]
pub struct LoggedOutcome {
    pub status: u16,
    /// Code of the problem, or of a sign-in that failed.
    pub code: Option<&'static str>,
    pub detail: Option<Box<str>>,
}

impl LoggedOutcome {
    /// Returns the outcome of a request without a problem.
    pub fn ok(status: u16) -> Self {
        Self {
            status,
            code: None,
            detail: None,
        }
    }

    /// Returns the outcome of a request that failed.
    pub fn failed(problem: &Problem) -> Self {
        Self {
            status: problem.code.status().as_u16(),
            code: Some(problem.code.as_str()),
            detail: Some(detail_of(problem)),
        }
    }

    /// Returns the outcome that an answer is of, with its problem if it carries one.
    pub fn of(response: &Response) -> Self {
        match response.extensions().get::<Box<Problem>>() {
            Some(problem) => Self::failed(problem),
            None => Self::ok(response.status().as_u16()),
        }
    }

    /// Whether the request was refused or failed.
    pub fn is_failure(&self) -> bool {
        self.code.is_some()
    }
}

/// Returns what a problem says, up to the first quotation of what may have been sent.
fn detail_of(problem: &Problem) -> Box<str> {
    let text = &*problem.detail;
    let end = match FIXED.contains(&problem.code) {
        true => text.len(),
        false => first_foreign_quotation(text)
            .min(first_unknown_name(text))
            .min(first_sent_quotation(text)),
    };
    let is_cut = end < text.len() || end > MAX_BYTES;
    let end = text.floor_char_boundary(end.min(MAX_BYTES));
    match is_cut {
        true => format!("{}…", text[..end].trim_end()).into(),
        false => text.into(),
    }
}

/// Returns where the first quotation begins that is no name of the platform's own; the length of the text, if there is none.
fn first_foreign_quotation(text: &str) -> usize {
    let mut at = 0;
    while let Some(open) = text[at..].find(['`', '"', '\'']) {
        let open = at + open;
        let mark = text.as_bytes()[open];
        // An apostrophe within a word quotes nothing.
        let in_word = mark == b'\'' && text[..open].ends_with(char::is_alphanumeric);
        let rest = &text[open + 1..];
        let close = rest.find(char::from(mark));
        at = match close {
            _ if in_word => open + 1,
            Some(close) if OWN_NAMES.contains(&&rest[..close]) => open + close + 2,
            _ => return open,
        };
    }
    text.len()
}

/// Returns where the first quotation begins behind words of [`BEFORE_SENT`]; the length of the text, if there is none.
fn first_sent_quotation(text: &str) -> usize {
    let places = BEFORE_SENT.iter().filter_map(|words| {
        let behind = text.find(words)? + words.len();
        let quotation = text[behind..].find(['`', '"', '\''])?;
        Some(behind + quotation)
    });
    places.min().unwrap_or(text.len())
}

/// Returns where the first name begins that SQLite does not know; the length of the text, if there is none.
fn first_unknown_name(text: &str) -> usize {
    let name = text.find(UNKNOWN_NAME).and_then(|start| {
        let colon = text[start..].find(':')?;
        Some(start + colon)
    });
    name.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_left_out() {
        for (code, said, kept) in [
            (
                ProblemCode::InvalidRequest,
                "`params`: invalid type: string \"secret\", expected a map",
                "`params`: invalid type: string…",
            ),
            (
                ProblemCode::InvalidRequest,
                "unknown field `secret`, expected `action`",
                "unknown field…",
            ),
            (
                ProblemCode::InvalidRequest,
                "unknown field `id` secret `name`, expected `action`",
                "unknown field…",
            ),
            (
                ProblemCode::InvalidRequest,
                "`action` must be the page's name of an action.",
                "`action` must be the page's name of an action.",
            ),
            (
                ProblemCode::StatementFailed,
                "The statement failed: JSON path error near 'secret'. Look.",
                "The statement failed: JSON path error near…",
            ),
            (
                ProblemCode::StatementFailed,
                "The statement failed: integer overflow. Look.",
                "The statement failed: integer overflow. Look.",
            ),
            (
                ProblemCode::StatementRefused,
                "Statement 1, line 1, column 8: no such column: secret",
                "Statement 1, line 1, column 8: no such column…",
            ),
            (
                ProblemCode::OriginRefused,
                "The page at `https://secret.example` may not call.",
                "The page at…",
            ),
            (
                ProblemCode::ConstraintViolation,
                "CHECK constraint failed: kind IN ('a', 'b')",
                "CHECK constraint failed: kind IN ('a', 'b')",
            ),
        ] {
            let problem = Problem::new(code, said);
            assert_eq!(&*detail_of(&problem), kept, "{said}");
        }
        let long = Problem::new(ProblemCode::ConstraintViolation, "ü".repeat(MAX_BYTES));
        assert_eq!(detail_of(&long).len(), MAX_BYTES + "…".len());
    }
}
