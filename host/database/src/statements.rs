//! Cache of facts about a connection's statements: their cost, and the tables that they read and write.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use super::authorizer::Authorizer;
use super::changed_tables::StatementTables;
use super::cost::{OpenedBTree, StatementCost};

/// The most statements with facts in the cache.
const MAX_CACHED_ANALYSES: usize = 512;

/// Facts about one statement.
#[derive(Debug)]
pub(super) struct StatementAnalysis {
    /// Cost of the statement.
    pub(super) cost: StatementCost,
    /// Tables that the statement reads and writes.
    pub(super) tables: Arc<StatementTables>,
}

impl StatementAnalysis {
    /// Computes the facts, on a connection in a tenant's role.
    ///
    /// # Errors
    /// SQLite's error of preparing the statement.
    pub(super) fn of(
        connection: &Connection,
        authorizer: &Authorizer,
        sql: &str,
    ) -> rusqlite::Result<Self> {
        let (listed, mut tables) =
            authorizer.record_tables(|| StatementCost::with_roots(connection, sql));
        let (cost, roots) = listed?;
        let named = authorizer.as_platform(|| table_names(connection, &roots));
        for (table, writes) in named? {
            match table {
                Some(table) if writes => tables.add_write(&table),
                Some(table) => tables.add_read(&table),
                None => tables.mark_unknown(),
            }
        }
        let tables = Arc::new(tables);
        Ok(Self { cost, tables })
    }
}

/// Returns the table of each tree, and whether it is written; `None` for a tree that is not in the schema.
fn table_names(
    connection: &Connection,
    roots: &[OpenedBTree],
) -> rusqlite::Result<Vec<(Option<String>, bool)>> {
    if roots.is_empty() {
        return Ok(Vec::new());
    }
    let mut tables =
        connection.prepare("SELECT tbl_name FROM sqlite_schema WHERE rootpage = ?1")?;
    let mut named = Vec::with_capacity(roots.len());
    for root in roots {
        let mut rows = tables.query([root.page])?;
        let table = rows.next()?.map(|row| row.get(0)).transpose()?;
        named.push((table, root.writes));
    }
    Ok(named)
}

/// Cache of facts about a connection's statements, valid for one version of the schema.
///
/// A statement that starts just before the schema changes may run once with its old cost, which does no harm.
#[derive(Debug)]
pub(super) struct StatementAnalysisCache {
    hasher: RandomState,
    /// Facts by the hash of the statement. The hash has a secret key.
    facts: RefCell<HashMap<u64, StatementAnalysis>>,
    schema: Arc<AtomicU64>,
    /// Version of the schema for which the facts are valid.
    version: Cell<u64>,
}

impl StatementAnalysisCache {
    /// Starts empty, for the present version of the schema.
    pub(super) fn new(schema: Arc<AtomicU64>) -> Self {
        Self {
            hasher: RandomState::new(),
            facts: RefCell::default(),
            version: Cell::new(schema.load(Ordering::Acquire)),
            schema,
        }
    }

    /// Returns what `take` reads from the facts about a statement, if they are cached.
    pub(super) fn get<T>(
        &self,
        sql: &str,
        take: impl FnOnce(&StatementAnalysis) -> T,
    ) -> Option<T> {
        let schema = self.schema.load(Ordering::Acquire);
        if self.version.replace(schema) != schema {
            self.facts.borrow_mut().clear();
        }
        let facts = self.facts.borrow();
        facts.get(&self.hasher.hash_one(sql)).map(take)
    }

    /// Adds the facts about a statement. A full cache is cleared first.
    pub(super) fn put(&self, sql: &str, facts: StatementAnalysis) {
        let mut kept = self.facts.borrow_mut();
        if kept.len() >= MAX_CACHED_ANALYSES {
            kept.clear();
        }
        kept.insert(self.hasher.hash_one(sql), facts);
    }
}
