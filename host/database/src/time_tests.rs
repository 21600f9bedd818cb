//! No statement runs for much longer than it may, and none that runs on the thread of a request holds it for long: every
//! function and operator that the gate allows, with arguments that are made to be slow.
//!
//! The tests measure the processor time of the thread, so that a busy machine is no false alarm.

use std::path::PathBuf;
use std::time::Duration;

use guest_gate::functions::{ALLOWED_FUNCTIONS, IMPLICIT_FUNCTIONS};

use super::authorizer::AuthorizerRole;
use super::connection::{DatabaseOpenSettings, TenantConnection};
use super::run::{run, run_inline};
use super::slow_values::{OPERATORS, slow_values};
use super::timing::INLINE_BUDGET;
use super::values::Value;
use super::watchdog::Watchdog;
use super::*;
use svc_base::clock::Clock;

/// Time that a statement may take here; by default it is two seconds.
const BUDGET: Duration = Duration::from_millis(20);
/// How long it may be past that: a tenth of a second, as for 2.1 s beside two.
const PAST: Duration = Duration::from_millis(100);
/// How long a statement may hold the thread of a request.
const HELD: Duration = Duration::from_millis(5);
/// How often a call stands in a row.
const CHAIN: usize = 450;

/// Returns the time that the thread has been on its processor.
fn processor() -> Duration {
    // The kernel counts up to its last tick, unless the thread gives way.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// A database whose table `v` has the values by number.
struct Bench {
    handle: TenantConnection,
    values: i64,
    limits: ResultLimits,
    faults: Vec<String>,
}

/// Longest runs of one function, in the lane and on the thread of a request.
#[derive(Default)]
struct Longest {
    lane: (Duration, String),
    inline: (Duration, String),
}

impl Bench {
    fn new() -> Self {
        let watchdog = Watchdog::start().unwrap();
        let settings =
            DatabaseOpenSettings::new(PathBuf::new(), 256 << 20, Clock::system(), &watchdog);
        let handle = TenantConnection::in_memory(&settings, |_| Ok(())).unwrap();
        handle
            .execute_as_platform("CREATE TABLE v (i INTEGER PRIMARY KEY, a)")
            .unwrap();
        let values = slow_values();
        let insert = "INSERT INTO v (a) VALUES (?1)";
        for value in &values {
            handle.connection.execute(insert, [value]).unwrap();
        }
        Self {
            handle,
            values: i64::try_from(values.len()).unwrap(),
            limits: ResultLimits {
                rows: 1000,
                bytes: 4 << 20,
                time: BUDGET,
            },
            faults: Vec::new(),
        }
    }

    fn call(sql: &str, i: i64, j: i64) -> StatementCall {
        StatementCall {
            sql: sql.into(),
            writes: sql.starts_with("INSERT"),
            params: vec![
                ("i".to_owned(), Value::Integer(i)),
                ("j".to_owned(), Value::Integer(j)),
            ],
        }
    }

    fn is_taken(&self, sql: &str) -> bool {
        self.handle
            .run_as_tenant(AuthorizerRole::Read, BUDGET, |c| {
                Ok(c.prepare(sql).map(drop)?)
            })
            .is_ok()
    }

    /// Whether a statement can come to the thread of a request: it was quick there when it found no row. One that takes longer than that to
    /// prepare, and is too large to be kept, never is.
    fn is_quick_once(&self, sql: &str) -> bool {
        let call = Self::call(sql, 0, 0);
        (0..3).any(|_| {
            let before = processor();
            let _ = run(&self.handle, &call, &self.limits, BUDGET);
            processor() - before <= INLINE_BUDGET
        })
    }

    /// Runs a statement with values `i` and `j` in a lane, and then where it would run if it was known to be quick.
    fn measure(
        &mut self,
        what: &str,
        sql: &str,
        i: i64,
        j: i64,
        longest: &mut Longest,
    ) -> Duration {
        let call = Self::call(sql, i, j);
        let before = processor();
        let result = run(&self.handle, &call, &self.limits, BUDGET);
        let lane = processor() - before;
        let form = || format!("{what} of {i} and {j}");
        if let Err(StatementRunError::Internal(cause)) = &result {
            self.faults.push(format!("{}: {cause}: {sql:.200}", form()));
        }
        if lane > BUDGET + PAST {
            self.faults
                .push(format!("{} ran {lane:?}: {sql:.200}", form()));
        }
        if lane > longest.lane.0 {
            longest.lane = (lane, form());
        }
        if !call.writes
            && self.is_quick_once(sql)
            && let Some(cost) = self.handle.known_cost(sql)
        {
            let before = processor();
            let _ = run_inline(&self.handle, &call, cost, &self.limits, INLINE_BUDGET);
            let inline = processor() - before;
            if inline > HELD {
                self.faults.push(format!(
                    "{} held its thread for {inline:?}: {sql:.200}",
                    form()
                ));
            }
            if inline > longest.inline.0 {
                longest.inline = (inline, form());
            }
        }
        lane
    }

    /// Measures a call in all its forms; with all pairs of values, if that is wanted.
    fn try_all(&mut self, call: &str, all: bool) -> Longest {
        let mut longest = Longest::default();
        let alone = format!("SELECT {} AS r {PAIR}", of(call, "x.a", "y.a"));
        let mut worst = (Duration::ZERO, 1, 1);
        for i in 1..=self.values {
            for j in 1..=self.values {
                if all || (j + i * 5) % 9 == 0 {
                    let took = self.measure("one call", &alone, i, j, &mut longest);
                    worst = worst.max((took, i, j));
                }
            }
        }
        let (_, i, j) = worst;
        for (what, sql) in in_reads(call) {
            if self.is_taken(&sql) {
                self.measure(what, &sql, i, j, &mut longest);
            }
        }
        for (what, schema, sql) in in_schemas(call) {
            let made = self.handle.execute_as_platform(&schema);
            if made.is_ok() {
                self.measure(what, sql, i, j, &mut longest);
            }
            let kind = if what == "a view" { "VIEW" } else { "TABLE" };
            let gone = format!("DROP {kind} IF EXISTS hidden");
            self.handle.execute_as_platform(&gone).unwrap();
        }
        longest
    }

    /// The forms of a function that SQLite takes: with so many arguments, the first one value and the rest another.
    fn forms(&self, name: &str) -> Vec<String> {
        let mut forms = Vec::new();
        for arguments in [0, 1, 2, 3, 4, 40] {
            for rest in ["{B}", "'$[0]', {B}", "0.5"] {
                let list: Vec<&str> = std::iter::once("{A}")
                    .chain(std::iter::repeat(rest))
                    .take(arguments)
                    .collect();
                for over in ["", " OVER (ORDER BY x.i)"] {
                    let form = format!("{name}({}){over}", list.join(", "));
                    let sql = form.replace("{A}", "x.a").replace("{B}", "y.a");
                    if self.is_taken(&format!("SELECT {sql} FROM v AS x, v AS y")) {
                        forms.push(form);
                        break;
                    }
                }
            }
        }
        forms.dedup();
        forms
    }
}

const INSERT: &str =
    "INSERT INTO hidden (a, b) SELECT x.a, y.a FROM v AS x, v AS y WHERE x.i = :i AND y.i = :j";

/// Set to have every form of every function tried with all pairs of values, which takes minutes.
const ALL: &str = "SQL_TIME_ALL";

/// Rows with a pair of values.
const PAIR: &str = "FROM v AS x, v AS y WHERE x.i = :i AND y.i = :j";
/// Some rows of it.
const ROWS: &str = "FROM v AS x, v AS y, (SELECT value AS n FROM json_each('[1,2,3,4,5,6,7,8,9,10,11,12]')) WHERE x.i = :i AND y.i = :j";

/// Inserts two values into a call.
fn of(call: &str, a: &str, b: &str) -> String {
    call.replace("{A}", a).replace("{B}", b)
}

/// Repeats a call of two values in one row.
fn chain(call: &str, a: &str, b: &str) -> String {
    let one = format!("coalesce(length({}), 0)", of(call, a, b));
    vec![one; CHAIN].join(" + ")
}

/// Statements that read with a call.
fn in_reads(call: &str) -> [(&'static str, String); 7] {
    let (bare, chain) = (of(call, "x.a", "y.a"), chain(call, "x.a", "y.a"));
    let columns: Vec<String> = (0..8).map(|n| format!("{chain} AS r{n}")).collect();
    let window = "ORDER BY n ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING";
    [
        ("a chain", format!("SELECT {chain} AS r {PAIR}")),
        ("chains", format!("SELECT {} {PAIR}", columns.join(", "))),
        ("an aggregate", format!("SELECT max({chain}) AS r {ROWS}")),
        ("a window", format!("SELECT sum(length({bare})) OVER ({window}) AS r {ROWS}")),
        ("an order", format!("SELECT n {ROWS} ORDER BY {bare} COLLATE NOCASE, {chain}")),
        ("a group", format!("SELECT count(*) AS r {ROWS} GROUP BY {bare}")),
        (
            "a recursion",
            format!(
                "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 + 0 * ({chain})
                FROM c, v AS x, v AS y WHERE n < 1000000 AND x.i = :i AND y.i = :j) SELECT max(n) AS r FROM c"
            ),
        ),
    ]
}

/// Schemas that contain a call, with the statements that run it.
fn in_schemas(call: &str) -> [(&'static str, String, &'static str); 4] {
    let (read, own) = (chain(call, "x.a", "y.a"), chain(call, "a", "b"));
    let view =
        format!("CREATE VIEW hidden AS SELECT {read} AS r, x.i, y.i AS j FROM v AS x, v AS y");
    [
        (
            "a view",
            view,
            "SELECT r FROM hidden WHERE i = :i AND j = :j",
        ),
        (
            "a check",
            format!("CREATE TABLE hidden (a, b, CHECK ({own} >= 0))"),
            INSERT,
        ),
        (
            "a stored column",
            format!("CREATE TABLE hidden (a, b, c AS ({own}) STORED)"),
            INSERT,
        ),
        (
            "an index",
            format!("CREATE TABLE hidden (a, b); CREATE INDEX ix ON hidden ({own})"),
            INSERT,
        ),
    ]
}

fn check_all_times(all: bool) {
    let mut bench = Bench::new();
    let mut report = Vec::new();
    let calls = ALLOWED_FUNCTIONS
        .iter()
        .chain(IMPLICIT_FUNCTIONS)
        .flat_map(|name| {
            let mut forms = bench.forms(name);
            assert!(
                !forms.is_empty() || IMPLICIT_FUNCTIONS.contains(name),
                "{name} cannot be called"
            );
            if !all {
                // The form of two arguments, or else what there is.
                forms.truncate(2);
                forms.drain(..forms.len().saturating_sub(1));
            }
            forms
        });
    let operators = OPERATORS.iter().map(|form| (*form).to_owned());
    let calls: Vec<String> = calls.chain(operators).collect();
    for call in calls {
        let longest = bench.try_all(&call, all);
        report.push((longest, call));
    }
    report.sort_by_key(|(longest, _)| std::cmp::Reverse(longest.lane.0));
    println!("past a deadline of {BUDGET:?}, and on the thread of a request:");
    for (longest, call) in &report {
        let (lane, inline) = (&longest.lane, &longest.inline);
        println!(
            "{:>7.1} ms {:28} {:>7.2} ms {:28} {call:.60}",
            lane.0.as_secs_f64() * 1e3,
            lane.1,
            inline.0.as_secs_f64() * 1e3,
            inline.1
        );
    }
    assert!(bench.faults.is_empty(), "{}", bench.faults.join("\n"));
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "a test's own setting, and the server's is read elsewhere"
)]
fn no_function_runs_for_longer_than_a_statement_may() {
    check_all_times(std::env::var_os(ALL).is_some());
}
