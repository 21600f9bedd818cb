//! Reads of a statement: the tables, the number of references, and the size. SQLite expands a common table expression at every
//! reference, so that a few hundred bytes in which each refers to the previous one twice would cost gigabytes.

use std::collections::BTreeMap;

use crate::statement::NamedTable;

/// Maximum number of table references, with common table expressions expanded.
const MAX_TABLES: u64 = 100;
/// Maximum number of expressions, selects and table references, with common table expressions expanded.
const MAX_EXPANDED_PARTS: u64 = 100_000;

/// The statement itself, or one of its common table expressions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct StatementOrCte(usize);

/// Reads so far, for each body.
#[derive(Debug, Default)]
pub(super) struct TableReadsByBody {
    within: StatementOrCte,
    /// Reads of the statement itself, and of each common table expression.
    bodies: Vec<BodyTableReads>,
    /// Number of common table expressions.
    commons: usize,
}

#[derive(Clone, Debug, Default)]
struct BodyTableReads {
    /// Tables, each with the index of its token.
    tables: Vec<(usize, String)>,
    functions: u64,
    commons: Vec<StatementOrCte>,
    /// Number of expressions and selects.
    parts: u64,
}

impl TableReadsByBody {
    /// Adds a body for another common table expression.
    pub(super) fn add_body(&mut self) -> StatementOrCte {
        self.commons += 1;
        StatementOrCte(self.commons)
    }

    /// Returns the body that reads are added to.
    pub(super) fn current_body(&self) -> StatementOrCte {
        self.within
    }

    /// Enters `body`: the following reads are added to it.
    pub(super) fn enter(&mut self, body: StatementOrCte) {
        self.within = body;
    }

    /// Adds a reference to a table or view.
    pub(super) fn add_table(&mut self, token: usize, name: String) {
        self.current_reads().tables.push((token, name));
    }

    /// Adds a reference to a table-valued function.
    pub(super) fn add_function(&mut self) {
        self.current_reads().functions += 1;
    }

    /// Adds an expression or a select.
    pub(super) fn count_part(&mut self) {
        self.current_reads().parts += 1;
    }

    /// Adds a reference to a common table expression.
    pub(super) fn add_cte(&mut self, body: StatementOrCte) {
        self.current_reads().commons.push(body);
    }

    fn current_reads(&mut self) -> &mut BodyTableReads {
        let StatementOrCte(index) = self.within;
        if self.bodies.len() <= index {
            self.bodies.resize(index + 1, BodyTableReads::default());
        }
        &mut self.bodies[index]
    }

    /// Returns the tables in order of first appearance, and the size of the statement; or the reason why it is too large.
    pub(super) fn finish(mut self) -> Result<(Vec<NamedTable>, u32), String> {
        self.bodies
            .resize(self.commons + 1, BodyTableReads::default());
        let (mut read, mut parts) = (0_u64, 0_u64);
        let mut tables: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
        for (body, times) in self.bodies.iter().zip(self.expansion_counts()) {
            let named = body.tables.len() + body.commons.len();
            let once = u64::try_from(named).unwrap_or(u64::MAX) + body.functions;
            read = read.saturating_add(once.saturating_mul(times));
            parts = parts.saturating_add(once.saturating_add(body.parts).saturating_mul(times));
            for (token, name) in &body.tables {
                let (first, count) = tables.entry(name).or_insert((*token, 0));
                *first = (*first).min(*token);
                *count = count.saturating_add(times);
            }
        }
        if read > MAX_TABLES {
            return Err(format!(
                "This statement reads more than {MAX_TABLES} tables, each common table expression counted wherever it is named: split it."
            ));
        }
        if parts > MAX_EXPANDED_PARTS {
            return Err(format!(
                "This statement is of more than {MAX_EXPANDED_PARTS} parts, each common table expression counted wherever it is named: make it shorter."
            ));
        }
        let mut tables: Vec<_> = tables.into_iter().collect();
        tables.sort_by_key(|(_, (first, _))| *first);
        let tables = tables.into_iter().map(|(name, (_, times))| NamedTable {
            name: name.to_owned(),
            times: u32::try_from(times).unwrap_or(u32::MAX),
        });
        Ok((tables.collect(), u32::try_from(parts).unwrap_or(u32::MAX)))
    }

    /// Returns how often each body is expanded; at least once, because its text is parsed.
    fn expansion_counts(&self) -> Vec<u64> {
        let finished = self.dependency_order();
        let mut place = vec![0; self.bodies.len()];
        for (index, body) in finished.iter().enumerate() {
            place[*body] = index;
        }
        let mut times = vec![0_u64; self.bodies.len()];
        for body in finished.into_iter().rev() {
            let mine = times[body].max(1);
            times[body] = mine;
            for StatementOrCte(named) in &self.bodies[body].commons {
                // A recursive reference is not expanded again.
                if place[*named] < place[body] {
                    times[*named] = times[*named].saturating_add(mine);
                }
            }
        }
        times
    }

    /// Returns the bodies in an order in which each comes after those that it refers to.
    fn dependency_order(&self) -> Vec<usize> {
        let mut begun = vec![false; self.bodies.len()];
        let mut finished = Vec::with_capacity(self.bodies.len());
        for first in (0..self.bodies.len()).rev() {
            let mut path = vec![(first, 0)];
            if std::mem::replace(&mut begun[first], true) {
                continue;
            }
            while let Some((body, next)) = path.pop() {
                match self.bodies[body].commons.get(next) {
                    Some(StatementOrCte(named)) => {
                        path.push((body, next + 1));
                        if !std::mem::replace(&mut begun[*named], true) {
                            path.push((*named, 0));
                        }
                    }
                    None => finished.push(body),
                }
            }
        }
        finished
    }
}

#[cfg(test)]
mod tests {
    use crate::statement::{SqlPurpose, check};

    #[test]
    fn common_table_expressions_count_wherever_they_are_named() {
        for (sql, times) in [
            ("SELECT * FROM t, t AS u, v", vec![("t", 2), ("v", 1)]),
            (
                "WITH a AS (SELECT * FROM t), b AS (SELECT * FROM a, a) SELECT * FROM b, b, t",
                vec![("t", 5)],
            ),
            (
                "WITH b AS (SELECT * FROM a, a), a AS (SELECT * FROM t) SELECT * FROM b",
                vec![("t", 2)],
            ),
            (
                "WITH RECURSIVE a AS (SELECT x FROM t UNION ALL SELECT x + 1 FROM a, u) SELECT * FROM a",
                vec![("t", 1), ("u", 1)],
            ),
            (
                "WITH a AS (SELECT * FROM t) SELECT (WITH a AS (SELECT * FROM u, u) SELECT 1 FROM a, a), 1 FROM a",
                vec![("t", 1), ("u", 4)],
            ),
            ("WITH a AS (SELECT * FROM t) SELECT 1", vec![("t", 1)]),
            (
                "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a, t) SELECT * FROM a",
                vec![("t", 1)],
            ),
        ] {
            let found = check(sql, SqlPurpose::Query).unwrap();
            let mut found: Vec<_> = found[0]
                .tables
                .iter()
                .map(|table| (table.name.as_str(), table.times))
                .collect();
            found.sort_unstable();
            assert_eq!(found, times, "{sql}");
        }
    }

    #[test]
    fn a_statement_reads_a_hundred_tables_and_no_more() {
        let plain = |tables: usize| format!("SELECT 1 FROM t{}", ", t".repeat(tables - 1));
        assert!(check(&plain(100), SqlPurpose::Query).is_ok());
        assert!(check(&plain(101), SqlPurpose::Query).is_err());
        let doubled = |levels: usize| {
            let mut sql = String::from("WITH c0 AS (SELECT * FROM t)");
            for level in 1..=levels {
                let before = level - 1;
                sql += &format!(
                    ", c{level} AS (SELECT * FROM c{before} UNION ALL SELECT * FROM c{before})"
                );
            }
            format!("{sql} SELECT * FROM c{levels}")
        };
        assert!(check(&doubled(4), SqlPurpose::Query).is_ok());
        // A few names of much text are much, too.
        let wide = |times: usize| {
            let list = vec!["1"; 5_000].join(",");
            let arms = vec!["SELECT x FROM c"; times].join(" UNION ALL ");
            format!("WITH c (x) AS (SELECT 1 IN ({list})) {arms}")
        };
        assert!(check(&wide(10), SqlPurpose::Query).is_ok());
        let refusal = check(&wide(30), SqlPurpose::Query).unwrap_err();
        assert!(refusal.reason.contains("parts"), "{}", refusal.reason);
        for levels in [6, 20, 500] {
            let refusal = check(&doubled(levels), SqlPurpose::Query).unwrap_err();
            assert!(refusal.reason.contains("100 tables"), "{}", refusal.reason);
        }
    }
}
