//! What a connection knows of the costs of its statements.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cost::Cost;

/// How many costs a connection remembers.
const KNOWN: usize = 512;

/// What a connection knows of its statements' costs, for as long as the schema stays as it is.
///
/// A statement that begins just before a schema changes may run with the cost of before: once, and new parts of a schema
/// are no reason to run an older statement again.
#[derive(Debug)]
pub(super) struct Costs {
    hasher: RandomState,
    /// By the hash of a statement, whose key nobody knows.
    known: RefCell<HashMap<u64, Cost>>,
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

    /// The cost of a statement, if it is known.
    pub(super) fn known(&self, sql: &str) -> Option<Cost> {
        let schema = self.schema.load(Ordering::Acquire);
        if self.of.replace(schema) != schema {
            self.known.borrow_mut().clear();
        }
        self.known.borrow().get(&self.hasher.hash_one(sql)).copied()
    }

    /// Remembers a cost.
    pub(super) fn learn(&self, sql: &str, cost: Cost) {
        let mut known = self.known.borrow_mut();
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(self.hasher.hash_one(sql), cost);
    }
}
