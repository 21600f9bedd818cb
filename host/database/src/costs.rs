//! Knowledge of a connection about its statements: their cost, and the tables that they are about.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cost::Cost;
use super::touched::Tables;

/// How many costs a connection remembers.
const KNOWN: usize = 512;

/// Knowledge about one statement.
#[derive(Debug)]
pub(super) struct Known {
    /// Cost of the statement.
    pub(super) cost: Cost,
    /// Tables that the statement reads and writes.
    pub(super) tables: Arc<Tables>,
}

/// Costs of a connection's statements, valid for as long as the schema stays as it is.
///
/// A statement that begins just before a schema changes may run with the cost of before: once, and new parts of a schema
/// are no reason to run an older statement again.
#[derive(Debug)]
pub(super) struct Costs {
    hasher: RandomState,
    /// By the hash of a statement, whose key nobody knows.
    known: RefCell<HashMap<u64, Known>>,
    schema: Arc<AtomicU64>,
    /// The state of the schema that they are of.
    of: Cell<u64>,
}

impl Costs {
    /// Those of a database whose schema has changed so many times.
    pub(super) fn new(schema: Arc<AtomicU64>) -> Self {
        Self {
            hasher: RandomState::new(),
            known: RefCell::default(),
            of: Cell::new(schema.load(Ordering::Acquire)),
            schema,
        }
    }

    /// Returns what `take` takes of the knowledge about a statement, if it was looked into.
    pub(super) fn known<T>(&self, sql: &str, take: impl FnOnce(&Known) -> T) -> Option<T> {
        let schema = self.schema.load(Ordering::Acquire);
        if self.of.replace(schema) != schema {
            self.known.borrow_mut().clear();
        }
        let known = self.known.borrow();
        known.get(&self.hasher.hash_one(sql)).map(take)
    }

    /// Remembers what a look into a statement has shown.
    pub(super) fn learn(&self, sql: &str, look: Known) {
        let mut known = self.known.borrow_mut();
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(self.hasher.hash_one(sql), look);
    }
}
