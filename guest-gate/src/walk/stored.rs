//! Expressions that a table or an index keeps: CHECKs, generated columns, and what indexes are made of.
//!
//! SQLite takes a date function that looks at the clock in them, and then refuses every row: the table could never be
//! written to, and nothing drops a table.

use sqlite3_parser::ast::{Expr, Literal};

use super::{Task, Walk};
use crate::parse::token_index;
use crate::position::quote_excerpt;
use crate::token::unquote;

/// The functions that read the clock where they are told to, or are told no time.
const DATE_FUNCTIONS: &[&str] = &[
    "date",
    "datetime",
    "julianday",
    "strftime",
    "time",
    "timediff",
    "unixepoch",
];

impl<'b> Walk<'_, 'b> {
    /// An expression that is kept.
    pub(super) fn walk_stored(&mut self, expr: &'b Expr<'b>, depth: usize) {
        // The last to come is the first to be looked at.
        self.tasks.push(Task::SetStored(false));
        self.push_expression(expr, depth);
        self.tasks.push(Task::SetStored(true));
    }

    /// Refuses a call that answers something else at another time.
    pub(super) fn check_stored_call(&mut self, name: &str, args: &[Expr<'b>]) {
        let function = self.resolve_name(name);
        if !DATE_FUNCTIONS.contains(&function.name.as_str()) {
            return;
        }
        // A format comes before the time.
        let times = args.get(usize::from(function.name == "strftime")..);
        let times: Vec<Option<String>> = times
            .unwrap_or_default()
            .iter()
            .map(|arg| self.literal_text(arg))
            .collect();
        let first = times.first();
        let is_now = match first {
            None => true,
            Some(Some(text)) => matches!(text.as_str(), "subsec" | "subsecond"),
            Some(None) => false,
        };
        let reads_clock = times
            .iter()
            .flatten()
            .any(|text| matches!(text.as_str(), "now" | "localtime" | "utc"));
        if is_now || reads_clock {
            let shown = quote_excerpt(&function.name);
            let reason = format!(
                "Here {shown} depends on the clock or its zone, and SQLite would refuse every row: compare when a row is written, in the INSERT, or give the column DEFAULT CURRENT_TIMESTAMP."
            );
            self.refuse(function.token, reason);
        }
    }

    /// A text as it is written in the SQL, in lower case.
    fn literal_text(&self, expr: &Expr<'b>) -> Option<String> {
        let Expr::Literal(Literal::String(placeholder)) = expr else {
            return None;
        };
        let token = self.tokens.get(token_index(placeholder)?)?;
        Some(unquote(token.text(self.sql)).to_ascii_lowercase())
    }
}
