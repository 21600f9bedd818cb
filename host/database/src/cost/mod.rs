//! Cost of a compiled statement: the longest time between two checks of its deadline, and the value lengths that keep it short.
//!
//! SQLite checks the deadline at the ends of loops, at `Goto` and at `Gosub`. Between them a program runs straight on, for example
//! through a row with a thousand function calls. The SQL text does not show all of them, since views, constraints, generated
//! columns, indexes and cascades add code. So the program itself is read, as `EXPLAIN` lists it. No instruction takes more than
//! linear time: functions that would are replaced by ours, which check the deadline themselves. So each instruction has a weight,
//! in nanoseconds for each byte of the longest value, measured with arguments that are as slow as possible. The sum of all weights
//! bounds every path of the program. From it follows the longest value that keeps the path short, which becomes SQLite's length
//! limit while the program runs. An ordinary statement weighs so little that it has the full length; only one with dozens of
//! costly parts gets a lower limit.

use std::ops::RangeInclusive;

use rusqlite::{Connection, Result, Row};

use super::functions::{self, TimeCost};
use super::limits::VALUE_BYTES;
use super::meter::STEPS_PER_CHECK;

/// Longest time between two checks in a lane, in nanoseconds: by so much a statement may exceed its deadline.
const LANE_CHECK_NS: f64 = 50e6;
/// Longest time between two checks on the thread of a request, in nanoseconds.
const INLINE_CHECK_NS: f64 = 1.5e6;
/// Below this value limit, a statement does not run on the thread of a request.
const MIN_INLINE_VALUE_BYTES: i32 = 1024;
/// The shortest length limit that SQLite accepts.
const MIN_LENGTH_LIMIT: i32 = 30;
/// The deepest cascades of foreign keys. It counts where SQLite does not check the deadline at each deleted row.
pub(super) const MAX_CASCADE_DEPTH: i32 = 1000;
/// Cost of an instruction without a value, in nanoseconds.
const INSTRUCTION_NS: f64 = 20.0;
/// Cost of comparing a key down a tree, for each byte of the key.
const KEY_NS_PER_BYTE: f64 = 8.0;
/// Cost of converting text to a number, for each byte.
const NUMBER_NS_PER_BYTE: f64 = 1.3;
/// Cost of reading or copying a row, for each byte.
const READ_NS_PER_BYTE: f64 = 0.4;

/// Prefix with which SQLite lists a statement's program.
pub(super) const EXPLAIN_PREFIX: &str = "EXPLAIN ";

/// The cost of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StatementCost {
    /// The longest values in a lane, in bytes.
    pub(super) lane_value_limit: i32,
    /// The longest values on the thread of a request, in bytes; `None` if it may not run there.
    pub(super) inline_value_limit: Option<i32>,
}

impl StatementCost {
    /// Computes the cost of a statement, against the present schema.
    ///
    /// # Errors
    /// SQLite's error of preparing the statement.
    pub(super) fn of(connection: &Connection, sql: &str) -> Result<Self> {
        Ok(Self::with_roots(connection, sql)?.0)
    }

    /// Computes the cost, and lists the trees of the database that the statement opens.
    ///
    /// # Errors
    /// SQLite's error of preparing the statement.
    pub(super) fn with_roots(
        connection: &Connection,
        sql: &str,
    ) -> Result<(Self, Vec<OpenedBTree>)> {
        let mut listing = connection
            .prepare(&format!("{EXPLAIN_PREFIX}{sql}"))
            .map_err(|error| relocate_error(error, sql))?;
        let mut program = Vec::new();
        // No value is bound, because nothing runs.
        let mut rows = listing.raw_query();
        while let Some(row) = rows.next()? {
            program.push(ExplainInstruction::of(row)?);
        }
        let roots = program.iter().filter_map(ExplainInstruction::root);
        Ok((Self::of_program(&program), roots.collect()))
    }

    fn of_program(listing: &[ExplainInstruction]) -> Self {
        let written = WrittenRegisters::of_program(listing);
        let mut line = TimeCost::default();
        let mut steps = HeaviestInstructions::default();
        // Each program starts at address 0: first the statement's, then those of cascades.
        let programs = listing.chunk_by(|_, next| next.address != 0);
        for (number, program) in programs.enumerate() {
            let mut sum = TimeCost::default();
            for instruction in program {
                let weight = instruction.weight(&written);
                steps.add(weight);
                sum = sum.plus(weight);
            }
            let cascades_unchecked = number > 0
                && program.iter().any(|one| one.code == "Program")
                && !program.iter().any(ExplainInstruction::checks_deadline);
            line = line.plus(if cascades_unchecked {
                sum.times(f64::from(MAX_CASCADE_DEPTH))
            } else {
                sum
            });
        }
        let inline = value_limit(INLINE_CHECK_NS, line.plus(steps.heaviest_run()));
        Self {
            lane_value_limit: value_limit(LANE_CHECK_NS, line).max(MIN_LENGTH_LIMIT),
            inline_value_limit: (inline >= MIN_INLINE_VALUE_BYTES).then_some(inline),
        }
    }
}

/// Converts the position of an error in the `EXPLAIN` listing to one in the statement.
fn relocate_error(error: rusqlite::Error, sql: &str) -> rusqlite::Error {
    match error {
        rusqlite::Error::SqlInputError {
            error, msg, offset, ..
        } => rusqlite::Error::SqlInputError {
            error,
            msg,
            sql: sql.to_owned(),
            offset: offset - i32::try_from(EXPLAIN_PREFIX.len()).unwrap_or_default(),
        },
        other => other,
    }
}

/// A tree that a program opens: of a table or an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenedBTree {
    /// First page of the tree.
    pub(super) page: i32,
    /// Whether the tree is opened for writing.
    pub(super) writes: bool,
}

/// The longest values with which `weight` takes at most `most` nanoseconds.
fn value_limit(most: f64, weight: TimeCost) -> i32 {
    let left = (most - weight.fixed).max(0.0);
    let bytes = left / weight.byte.max(f64::MIN_POSITIVE);
    #[allow(clippy::cast_possible_truncation, reason = "it is bounded")]
    {
        bytes.min(f64::from(VALUE_BYTES)) as i32
    }
}

/// The heaviest instructions of a program.
#[derive(Default)]
struct HeaviestInstructions {
    bytes: Vec<f64>,
    fixed: f64,
}

impl HeaviestInstructions {
    fn add(&mut self, weight: TimeCost) {
        if weight.byte > 0.0 {
            self.bytes.push(weight.byte);
        }
        self.fixed = self.fixed.max(weight.fixed);
    }

    /// Weighs the heaviest run of instructions between two checks: a loop of the heaviest instructions, of any length, with one
    /// that ends it.
    fn heaviest_run(mut self) -> TimeCost {
        let steps = f64::from(STEPS_PER_CHECK);
        self.bytes.sort_unstable_by(|a, b| b.total_cmp(a));
        let (mut sum, mut most, mut length) = (0.0, 0.0_f64, 1.0);
        for byte in self.bytes {
            (sum, length) = (sum + byte, length + 1.0);
            most = most.max(sum * (steps / length).max(1.0));
        }
        TimeCost {
            byte: most,
            fixed: self.fixed * steps / 2.0,
        }
    }
}

/// Registers that a program writes, as ranges of neighbours. They bound the number of arguments of a call.
struct WrittenRegisters(Vec<RangeInclusive<i32>>);

/// The most arguments of a function.
pub(super) const MAX_ARGUMENTS: i32 = 1000;

impl WrittenRegisters {
    fn of_program(program: &[ExplainInstruction]) -> Self {
        let mut written = Vec::with_capacity(3 * program.len());
        for instruction in program {
            let ExplainInstruction { p1, p2, p3, .. } = *instruction;
            written.extend([p1, p3]);
            if !instruction.is_jump() {
                written.push(p2);
            }
            match instruction.code.as_str() {
                "Copy" | "Move" => {
                    written.extend(p2..p2.saturating_add(p3.clamp(0, MAX_ARGUMENTS)));
                }
                "Null" => written.extend(p2..p3.min(p2.saturating_add(MAX_ARGUMENTS))),
                _ => {}
            }
        }
        written.sort_unstable();
        written.dedup();
        let runs = written.chunk_by(|one, next| one.checked_add(1) == Some(*next));
        let runs = runs.filter_map(|run| Some(*run.first()?..=*run.last()?));
        Self(runs.collect())
    }

    /// The most arguments of a call that starts at register `first`.
    fn arguments(&self, first: i32) -> i32 {
        let run = self.0.partition_point(|run| *run.end() < first);
        let run = self.0.get(run).filter(|run| run.contains(&first));
        run.map_or(0, |run| (run.end() - first + 1).min(MAX_ARGUMENTS))
    }
}

/// An instruction of the listing.
struct ExplainInstruction {
    address: i32,
    code: String,
    p1: i32,
    p2: i32,
    p3: i32,
    p4: String,
}

impl ExplainInstruction {
    fn of(row: &Row<'_>) -> Result<Self> {
        let code: String = row.get(1)?;
        // The operand of other instructions may be as long as a value.
        let p4 = match code.as_str() {
            "Function" | "PureFunc" | "AggStep" | "AggStep1" | "AggInverse" | "AggValue"
            | "AggFinal" | "Affinity" | "MakeRecord" => {
                let p4 = row.get_ref(5)?.as_bytes_or_null()?.unwrap_or_default();
                String::from_utf8_lossy(p4).into_owned()
            }
            _ => String::new(),
        };
        Ok(Self {
            address: row.get(0)?,
            code,
            p1: row.get(2)?,
            p2: row.get(3)?,
            p3: row.get(4)?,
            p4,
        })
    }

    /// Whether the second operand is an address. For a jump that is missing here, a call seems to have more arguments.
    fn is_jump(&self) -> bool {
        matches!(
            self.code.as_str(),
            "Init"
                | "Goto"
                | "Gosub"
                | "Once"
                | "If"
                | "IfNot"
                | "IsNull"
                | "NotNull"
                | "Eq"
                | "Ne"
                | "Lt"
                | "Le"
                | "Gt"
                | "Ge"
                | "Jump"
                | "IfPos"
                | "IfNotZero"
                | "DecrJumpZero"
                | "Rewind"
                | "Last"
                | "Next"
                | "Prev"
                | "Sort"
                | "SorterSort"
                | "SorterNext"
                | "SeekRowid"
                | "NotExists"
                | "SeekGE"
                | "SeekGT"
                | "SeekLE"
                | "SeekLT"
                | "IdxGE"
                | "IdxGT"
                | "IdxLE"
                | "IdxLT"
                | "Found"
                | "NotFound"
                | "NoConflict"
                | "VFilter"
                | "VNext"
                | "Yield"
                | "InitCoroutine"
        )
    }

    /// Returns the tree that the instruction opens, if it is one of the database.
    fn root(&self) -> Option<OpenedBTree> {
        let (page, database, writes) = match self.code.as_str() {
            "OpenRead" | "ReopenIdx" => (self.p2, self.p3, false),
            "OpenWrite" => (self.p2, self.p3, true),
            "Clear" => (self.p1, self.p2, true),
            _ => return None,
        };
        (database == 0).then_some(OpenedBTree { page, writes })
    }

    /// Whether SQLite always checks its deadline at this instruction.
    fn checks_deadline(&self) -> bool {
        matches!(self.code.as_str(), "Next" | "Prev" | "Goto" | "Gosub")
    }

    fn weight(&self, written: &WrittenRegisters) -> TimeCost {
        let byte = match self.code.as_str() {
            "Function" | "PureFunc" => return self.function(|| written.arguments(self.p2)),
            "AggStep" | "AggStep1" | "AggInverse" => {
                return self.function(|| written.arguments(self.p2));
            }
            "AggFinal" | "AggValue" => return self.function(|| 1),
            "Add" | "Subtract" | "Multiply" | "Divide" | "Remainder" | "BitAnd" | "BitOr"
            | "ShiftLeft" | "ShiftRight" | "Eq" | "Ne" | "Lt" | "Le" | "Gt" | "Ge" => {
                2.0 * NUMBER_NS_PER_BYTE
            }
            "And" | "Or" | "BitNot" | "Not" | "If" | "IfNot" | "IsTrue" | "Cast" | "MustBeInt"
            | "RealAffinity" | "SeekRowid" | "NotExists" => NUMBER_NS_PER_BYTE,
            "Affinity" => NUMBER_NS_PER_BYTE * at_least_one(self.p2),
            "MakeRecord" if self.p4.is_empty() => READ_NS_PER_BYTE * at_least_one(self.p2),
            "MakeRecord" => (READ_NS_PER_BYTE + NUMBER_NS_PER_BYTE) * at_least_one(self.p2),
            "Concat" | "Column" | "Copy" | "RowData" | "SorterData" | "Insert" | "Blob"
            | "Variable" | "Delete" => READ_NS_PER_BYTE,
            "VColumn" | "VFilter" => functions::JSON_NS_PER_BYTE,
            "Compare" => NUMBER_NS_PER_BYTE * at_least_one(self.p3),
            "SeekGE" | "SeekGT" | "SeekLE" | "SeekLT" | "IdxInsert" | "IdxDelete" | "IdxGE"
            | "IdxGT" | "IdxLE" | "IdxLT" | "Found" | "NotFound" | "NoConflict" | "IfNoHope"
            | "SorterCompare" | "SorterNext" | "DeferredSeek" | "Filter" | "FilterAdd" => {
                KEY_NS_PER_BYTE
            }
            "SorterInsert" => 2.0 * READ_NS_PER_BYTE,
            _ => 0.0,
        };
        TimeCost {
            byte,
            fixed: INSTRUCTION_NS,
        }
    }

    /// Weighs a function call, which is listed with its name and number of arguments.
    fn function(&self, most: impl FnOnce() -> i32) -> TimeCost {
        let (name, number) = self.p4.split_once('(').unwrap_or((&self.p4, ""));
        let number = number.trim_end_matches(')').parse::<i32>().unwrap_or(-1);
        let arguments = if number < 0 { most() } else { number };
        functions::function_cost(name, at_least_one(arguments)).plus(TimeCost {
            byte: 0.0,
            fixed: INSTRUCTION_NS,
        })
    }
}

fn at_least_one(number: i32) -> f64 {
    f64::from(number.max(1))
}

#[cfg(test)]
mod tests;
