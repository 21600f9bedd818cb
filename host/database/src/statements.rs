//! Facts that a connection keeps about its statements: their cost, and the tables that they read and write.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use super::authorizer::Authorizer;
use super::changed_tables::StatementTables;
use super::cost::{StatementCost, TreeRoot};

/// How many statements a connection keeps facts about.
const MAX_FACTS: usize = 512;

/// Facts about one statement.
#[derive(Debug)]
pub(super) struct StatementFacts {
    /// Cost of the statement.
    pub(super) cost: StatementCost,
    /// Tables that the statement reads and writes.
    pub(super) tables: Arc<StatementTables>,
}

impl StatementFacts {
    /// Finds them out, on a connection that plays a tenant's role.
    ///
    /// # Errors
    /// SQLite's, as for preparing the statement.
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

/// Returns the table of each tree, and whether it is written; `None` for a tree that the schema does not have.
fn table_names(
    connection: &Connection,
    roots: &[TreeRoot],
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

/// Facts about a connection's statements, valid for as long as the schema stays as it is.
///
/// A statement that begins just before a schema changes may run with the cost of before: once, and new parts of a schema
/// are no reason to run an older statement again.
#[derive(Debug)]
pub(super) struct StatementFactsCache {
    hasher: RandomState,
    /// Facts by the hash of the statement, whose key nobody knows.
    facts: RefCell<HashMap<u64, StatementFacts>>,
    schema: Arc<AtomicU64>,
    /// Version of the schema that the facts are true for.
    version: Cell<u64>,
}

impl StatementFactsCache {
    /// Keeps none yet, of a database whose schema has this version.
    pub(super) fn new(schema: Arc<AtomicU64>) -> Self {
        Self {
            hasher: RandomState::new(),
            facts: RefCell::default(),
            version: Cell::new(schema.load(Ordering::Acquire)),
            schema,
        }
    }

    /// Returns what `take` takes of the facts about a statement, if they are known.
    pub(super) fn get<T>(&self, sql: &str, take: impl FnOnce(&StatementFacts) -> T) -> Option<T> {
        let schema = self.schema.load(Ordering::Acquire);
        if self.version.replace(schema) != schema {
            self.facts.borrow_mut().clear();
        }
        let facts = self.facts.borrow();
        facts.get(&self.hasher.hash_one(sql)).map(take)
    }

    /// Keeps the facts about a statement.
    pub(super) fn put(&self, sql: &str, facts: StatementFacts) {
        let mut kept = self.facts.borrow_mut();
        if kept.len() >= MAX_FACTS {
            kept.clear();
        }
        kept.insert(self.hasher.hash_one(sql), facts);
    }
}
