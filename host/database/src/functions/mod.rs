//! SQL functions of our own: replacements of SQLite's functions that take more than linear time, and functions that SQLite lacks.
//!
//! SQLite does not interrupt a function, so each one checks the deadline at every call, and now and then while it works. A
//! replacement returns the same bytes as SQLite's function for any input: indexes contain the results, and an exported database is
//! read with SQLite's own functions.

mod hex;
mod instr_replace;
mod json;
mod json_merge;
mod json_pretty;
mod json_reader;
mod like;
mod math;
mod percentile;
mod text;
mod trim;
mod uuid_function;

use rusqlite::functions::FunctionFlags;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Error, Result, ffi};

use super::meter::StatementDeadline;
use svc_base::clock::Clock;
use text::PlainSqliteConnection;

/// Registers all functions on a connection, whose statements have this deadline.
pub(super) fn register(
    connection: &Connection,
    deadline: &StatementDeadline,
    clock: &Clock,
) -> Result<()> {
    let sqlite = PlainSqliteConnection::default();
    trim::register(connection, deadline, &sqlite)?;
    hex::register(connection, deadline, &sqlite)?;
    instr_replace::register(connection, deadline, &sqlite)?;
    like::register(connection, deadline, &sqlite)?;
    json::register(connection, deadline, &sqlite)?;
    math::register(connection)?;
    percentile::register(connection, deadline)?;
    uuid_function::register(connection, clock)
}

/// Flags of a deterministic function that schemas may use.
const DETERMINISTIC_FLAGS: FunctionFlags = FunctionFlags::SQLITE_UTF8
    .union(FunctionFlags::SQLITE_DETERMINISTIC)
    .union(FunctionFlags::SQLITE_INNOCUOUS);

/// Time of an instruction or a call, in nanoseconds: fixed, and for each byte of the longest value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TimeCost {
    pub(super) fixed: f64,
    pub(super) byte: f64,
}

impl TimeCost {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            fixed: self.fixed + other.fixed,
            byte: self.byte + other.byte,
        }
    }

    pub(super) fn times(self, times: f64) -> Self {
        Self {
            fixed: self.fixed * times,
            byte: self.byte * times,
        }
    }
}

/// Nanoseconds for each byte of JSON that SQLite parses, or that a path or an edit moves.
pub(super) const JSON_NS_PER_BYTE: f64 = 7.0;

/// Functions that check the deadline themselves, so that only the time between two checks counts.
const DEADLINE_CHECKING_FUNCTIONS: &[&str] = &[
    "glob",
    "instr",
    "like",
    "ltrim",
    "median",
    "percentile",
    "percentile_cont",
    "percentile_disc",
    "replace",
    "rtrim",
    "trim",
    "unhex",
];

/// Weight of a call with arguments that are as slow as possible. A function that was not measured weighs as much as the slowest
/// linear one.
pub(super) fn function_cost(name: &str, arguments: f64) -> TimeCost {
    let name = name.to_ascii_lowercase();
    let (fixed, byte) = match name.as_str() {
        looking if DEADLINE_CHECKING_FUNCTIONS.contains(&looking) => (300.0, 0.2),
        "strftime" => (500.0, 18.0 + arguments),
        "printf" | "format" => (300.0, 6.0 + 0.5 * arguments),
        "concat" | "concat_ws" => (200.0, 1.0 + 0.5 * arguments),
        "min" | "max" => (200.0, 1.0 + arguments),
        "date" | "time" | "datetime" | "julianday" | "unixepoch" => (400.0, 1.0 + arguments),
        "->" | "->>" => (500.0, 2.0 * JSON_NS_PER_BYTE),
        "json_array" | "json_object" | "json_group_array" | "json_group_object" => {
            (500.0, 2.0 + 2.5 * arguments)
        }
        json if json.starts_with("json") => (500.0, JSON_NS_PER_BYTE * arguments.max(1.0)),
        "count" | "row_number" | "rank" | "dense_rank" | "random" | "pi" | "uuid" => (200.0, 0.0),
        _ => (200.0, 2.0 * arguments.max(1.0)),
    };
    TimeCost { fixed, byte }
}

/// Text of any bytes, as SQLite makes it of blobs.
struct ByteText(Vec<u8>);

impl ToSql for ByteText {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(&self.0)))
    }
}

/// Error with a message of SQLite.
fn sqlite_error(message: &str) -> Error {
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_ERROR), Some(message.to_owned()))
}

/// Error for a value above the length limit.
fn too_big() -> Error {
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_TOOBIG), None)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use rusqlite::types::Value;

    use super::*;
    use crate::meter::StatementMeter;
    use crate::watchdog::Watchdog;
    use svc_base::clock::Timestamp;

    /// Two connections, with and without our functions.
    struct FunctionComparison {
        ours: Connection,
        theirs: Connection,
        _meter: StatementMeter,
    }

    impl FunctionComparison {
        fn new() -> Self {
            let [mut ours, theirs] = [(); 2].map(|()| Connection::open_in_memory().unwrap());
            let meter = StatementMeter::install(&mut ours, &Watchdog::default()).unwrap();
            register(&ours, &meter.deadline(), &Clock::manual(Timestamp(0))).unwrap();
            Self {
                ours,
                theirs,
                _meter: meter,
            }
        }

        /// Evaluates an expression on both: its type and bytes, or the error.
        fn answers(&self, expression: &str, values: &[Value]) -> [String; 2] {
            let sql =
                format!("SELECT typeof({expression}) || ' ' || coalesce(hex({expression}), '')");
            [&self.ours, &self.theirs].map(|connection| {
                let answer = connection.prepare_cached(&sql).and_then(|mut statement| {
                    for index in 1..=statement.parameter_count() {
                        statement.raw_bind_parameter(index, &values[index - 1])?;
                    }
                    let mut rows = statement.raw_query();
                    rows.next()?.map_or(Ok(String::new()), |row| row.get(0))
                });
                answer.unwrap_or_else(|error| error.to_string())
            })
        }
    }

    thread_local! {
        static BOTH: FunctionComparison = FunctionComparison::new();
    }

    /// Fails if an expression has another result than with SQLite alone.
    pub(super) fn assert_like_sqlite(expressions: &[&str]) {
        BOTH.with(|both| {
            for expression in expressions {
                let [ours, theirs] = both.answers(expression, &[]);
                assert_eq!(ours, theirs, "{expression}");
            }
        });
    }

    /// Compares both connections on expressions of some values.
    pub(super) fn compare_with_sqlite(
        forms: &[&str],
        values: &[Value],
    ) -> Result<(), TestCaseError> {
        BOTH.with(|both| {
            for form in forms {
                let [ours, theirs] = both.answers(form, values);
                prop_assert_eq!(ours, theirs, "{}", form);
            }
            Ok(())
        })
    }

    /// Generates bytes of an alphabet.
    pub(super) fn text(alphabet: &'static [u8]) -> impl Strategy<Value = Value> {
        prop::collection::vec(prop::sample::select(alphabet), 0..10).prop_map(Value::Blob)
    }

    /// Evaluates a function that SQLite's build lacks.
    pub(super) fn answer(expression: &str) -> String {
        BOTH.with(|both| {
            let sql = format!("SELECT quote({expression})");
            let answer = both.ours.query_row(&sql, [], |row| row.get(0));
            answer.unwrap_or_else(|error| error.to_string())
        })
    }
}
