//! Connections of a database that read, kept open between calls.

use std::sync::Mutex;

use super::connection::{OpenSettings, TenantConnection};
use super::error::RunError;
use svc_base::sync::lock;

/// How many connections of a database read at once.
const MAX_READERS: usize = 4;

/// The readers of a database.
#[derive(Debug, Default)]
pub(super) struct ReaderPool(Mutex<PoolState>);

#[derive(Debug, Default)]
struct PoolState {
    idle: Vec<TenantConnection>,
    open: usize,
}

impl ReaderPool {
    /// Returns a reader, if one is idle or may be opened.
    pub(super) fn try_acquire(
        &self,
        settings: &OpenSettings,
    ) -> Result<Option<TenantConnection>, RunError> {
        let mut readers = lock(&self.0);
        if let Some(reader) = readers.idle.pop() {
            return Ok(Some(reader));
        }
        if readers.open >= MAX_READERS {
            return Ok(None);
        }
        readers.open += 1;
        drop(readers);
        TenantConnection::reader(settings)
            .map(Some)
            .inspect_err(|_| lock(&self.0).open -= 1)
    }

    /// Returns a reader, past the bound if all are taken: the lanes have few threads.
    pub(super) fn acquire(&self, settings: &OpenSettings) -> Result<TenantConnection, RunError> {
        if let Some(reader) = self.try_acquire(settings)? {
            return Ok(reader);
        }
        let reader = TenantConnection::reader(settings)?;
        lock(&self.0).open += 1;
        Ok(reader)
    }

    /// Keeps a reader for the next call, if there are not enough.
    pub(super) fn release(&self, reader: TenantConnection) {
        let mut readers = lock(&self.0);
        if readers.idle.len() < MAX_READERS {
            readers.idle.push(reader);
        } else {
            readers.open -= 1;
        }
    }

    /// Closes the idle readers.
    pub(super) fn close(&self) {
        *lock(&self.0) = PoolState::default();
    }
}
