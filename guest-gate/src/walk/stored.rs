//! Expressions that a table or an index stores: CHECKs, generated columns, and indexed expressions.
//!
//! SQLite accepts a date function that reads the clock in them, and then refuses every row: the table could never be written, and
//! no statement drops a table.

use sqlite3_parser::ast::{Expr, Literal};

use super::{SyntaxTreeWalk, WalkTask};
use crate::parse::token_index;
use crate::position::quote_excerpt;
use crate::token::unquote;

/// Functions that read the clock if a time is absent or says so.
const DATE_FUNCTIONS: &[&str] = &[
    "date",
    "datetime",
    "julianday",
    "strftime",
    "time",
    "timediff",
    "unixepoch",
];

impl<'b> SyntaxTreeWalk<'_, 'b> {
    /// Walks through a stored expression.
    pub(super) fn walk_stored(&mut self, expr: &'b Expr<'b>, depth: usize) {
        // The last task that is pushed is done first.
        self.tasks.push(WalkTask::SetStored(false));
        self.push_expression(expr, depth);
        self.tasks.push(WalkTask::SetStored(true));
    }

    /// Refuses a call whose result depends on the clock.
    pub(super) fn check_stored_call(&mut self, name: &str, args: &[Expr<'b>]) {
        let function = self.resolve_name(name);
        if !DATE_FUNCTIONS.contains(&function.name.as_str()) {
            return;
        }
        // The format comes before the time.
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

    /// Returns a text literal of the SQL, in lower case.
    fn literal_text(&self, expr: &Expr<'b>) -> Option<String> {
        let Expr::Literal(Literal::String(placeholder)) = expr else {
            return None;
        };
        let token = self.tokens.get(token_index(placeholder)?)?;
        Some(unquote(token.text(self.sql)).to_ascii_lowercase())
    }
}
