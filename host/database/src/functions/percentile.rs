//! The percentile functions of SQLite's extension: `median`, `percentile`, `percentile_cont` and `percentile_disc`.
//!
//! The functions keep the numbers of a group in memory, with one bound for all groups of a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};

use super::sqlite_error;
use crate::meter::StatementDeadline;

/// The most numbers that a connection keeps.
const MAX_NUMBERS: usize = 1_000_000;

/// Registers the functions.
pub(super) fn register(connection: &Connection, deadline: &StatementDeadline) -> Result<()> {
    let kept = Arc::new(AtomicUsize::new(0));
    for (name, arguments, whole, is_discrete) in [
        ("median", 1, 1.0, false),
        ("percentile", 2, 100.0, false),
        ("percentile_cont", 2, 1.0, false),
        ("percentile_disc", 2, 1.0, true),
    ] {
        let percentile = PercentileAggregate {
            name,
            whole,
            is_discrete,
            deadline: deadline.clone(),
            kept: Arc::clone(&kept),
        };
        let flags = FunctionFlags::SQLITE_UTF8
            | FunctionFlags::SQLITE_DETERMINISTIC
            | FunctionFlags::SQLITE_INNOCUOUS;
        connection.create_aggregate_function(name, arguments, flags, percentile)?;
    }
    Ok(())
}

struct PercentileAggregate {
    name: &'static str,
    /// Fraction argument that stands for all rows: 1 or 100.
    whole: f64,
    /// Whether the result must be one of the numbers.
    is_discrete: bool,
    deadline: StatementDeadline,
    kept: Arc<AtomicUsize>,
}

/// The numbers of a group.
struct PercentileGroup {
    fraction: Option<f64>,
    numbers: Vec<f64>,
    kept: Arc<AtomicUsize>,
}

impl Drop for PercentileGroup {
    fn drop(&mut self) {
        self.kept.fetch_sub(self.numbers.len(), Ordering::Relaxed);
    }
}

impl PercentileAggregate {
    fn fraction(&self, context: &Context<'_>) -> Result<f64> {
        let fraction = match (context.len() > 1).then(|| context.get_raw(1)) {
            None => Some(0.5),
            #[allow(clippy::cast_precision_loss, reason = "as SQLite does")]
            Some(ValueRef::Integer(integer)) => Some(integer as f64 / self.whole),
            Some(ValueRef::Real(real)) => Some(real / self.whole),
            Some(_) => None,
        };
        fraction
            .filter(|fraction| (0.0..=1.0).contains(fraction))
            .ok_or_else(|| {
                sqlite_error(&format!(
                    "the fraction argument to {}() is not between 0.0 and {:.1}",
                    self.name, self.whole
                ))
            })
    }
}

impl Aggregate<PercentileGroup, Option<f64>> for PercentileAggregate {
    fn init(&self, _: &mut Context<'_>) -> Result<PercentileGroup> {
        Ok(PercentileGroup {
            fraction: None,
            numbers: Vec::new(),
            kept: Arc::clone(&self.kept),
        })
    }

    fn step(&self, context: &mut Context<'_>, group: &mut PercentileGroup) -> Result<()> {
        self.deadline.check()?;
        let name = self.name;
        let fraction = self.fraction(context)?;
        if (*group.fraction.get_or_insert(fraction) - fraction).abs() > 0.001 {
            return Err(sqlite_error(&format!(
                "the fraction argument to {name}() is not the same for all input rows"
            )));
        }
        let number = match context.get_raw(0) {
            ValueRef::Null => return Ok(()),
            #[allow(clippy::cast_precision_loss, reason = "as SQLite does")]
            ValueRef::Integer(integer) => integer as f64,
            ValueRef::Real(real) if real.is_infinite() => {
                return Err(sqlite_error(&format!("Inf input to {name}()")));
            }
            ValueRef::Real(real) => real,
            ValueRef::Text(_) | ValueRef::Blob(_) => {
                return Err(sqlite_error(&format!("input to {name}() is not numeric")));
            }
        };
        if self.kept.fetch_add(1, Ordering::Relaxed) >= MAX_NUMBERS {
            self.kept.fetch_sub(1, Ordering::Relaxed);
            return Err(sqlite_error(&format!(
                "{name}() takes no more than {MAX_NUMBERS} numbers in one statement"
            )));
        }
        group.numbers.push(number);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, group: Option<PercentileGroup>) -> Result<Option<f64>> {
        self.deadline.check()?;
        let Some(mut group) = group.filter(|group| !group.numbers.is_empty()) else {
            return Ok(None);
        };
        let last = group.numbers.len() - 1;
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place between none and the last"
        )]
        let (place, part) = {
            let place = group.fraction.unwrap_or(0.5) * last as f64;
            ((place as usize).min(last), place.fract())
        };
        let (_, low, above) = group.numbers.select_nth_unstable_by(place, f64::total_cmp);
        let low = *low;
        let next = above.iter().copied().min_by(f64::total_cmp);
        Ok(Some(match next {
            Some(next) if !self.is_discrete && part > 0.0 => low + (next - low) * part,
            _ => low,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::answer;

    #[test]
    fn they_answer_as_the_extension_does() {
        for (expression, expected) in [
            ("(SELECT median(value) FROM json_each('[3,1,2]'))", "2.0"),
            ("(SELECT median(value) FROM json_each('[4,1,2,3]'))", "2.5"),
            ("(SELECT median(value) FROM json_each('[null,7]'))", "7.0"),
            ("(SELECT median(value) FROM json_each('[]'))", "NULL"),
            (
                "(SELECT percentile(value, 25) FROM json_each('[1,2,3,4,5]'))",
                "2.0",
            ),
            (
                "(SELECT percentile(value, 90) FROM json_each('[1,2,3]'))",
                "2.8",
            ),
            (
                "(SELECT percentile_cont(value, 0.5) FROM json_each('[1,2]'))",
                "1.5",
            ),
            (
                "(SELECT percentile_disc(value, 0.5) FROM json_each('[1,2]'))",
                "1.0",
            ),
            (
                "(SELECT percentile_disc(value, 1) FROM json_each('[1,2]'))",
                "2.0",
            ),
            (
                "(SELECT median(value) FROM json_each('[\"a\"]'))",
                "input to median() is not numeric",
            ),
            (
                "(SELECT percentile(value, 101) FROM json_each('[1]'))",
                "the fraction argument to percentile() is not between 0.0 and 100.0",
            ),
            (
                "(SELECT percentile(value, value) FROM json_each('[1,2]'))",
                "the fraction argument to percentile() is not the same for all input rows",
            ),
            (
                "(SELECT max(m) FROM (SELECT median(value) AS m FROM json_each('[1,5,9]') GROUP BY value))",
                "9.0",
            ),
        ] {
            assert_eq!(answer(expression), expected, "{expression}");
        }
    }

    #[test]
    fn they_keep_so_many_numbers_and_no_more() {
        let numbers = |n: usize| {
            format!(
                "(WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < {n}) SELECT median(n) FROM c)"
            )
        };
        assert!(answer(&numbers(super::MAX_NUMBERS + 1)).contains("no more than"));
        assert_eq!(answer(&numbers(9)), "5.0");
    }
}
