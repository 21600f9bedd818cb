//! Text of a problem for the log: as it was answered, without what the visitor had sent.

use crate::http::problem::{Problem, ProblemCode};

/// Longest text, in bytes.
const MAX_BYTES: usize = 400;
/// Codes whose texts may quote what was sent.
const QUOTING: [ProblemCode; 5] = [
    ProblemCode::InvalidRequest,
    ProblemCode::InvalidJson,
    ProblemCode::ReservedParam,
    ProblemCode::NotFound,
    ProblemCode::StatementFailed,
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

/// Returns what a problem says, up to the first quotation of what may have been sent.
pub(super) fn detail_of(problem: &Problem) -> Box<str> {
    let text = problem.detail.as_str();
    let end = match QUOTING.contains(&problem.code) {
        true => first_foreign_quotation(text),
        false => text.len(),
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
