//! Pool of the connections that read a database.

use std::sync::Mutex;

use super::connection::{DatabaseOpenSettings, TenantConnection};
use super::error::StatementRunError;
use svc_base::sync::lock;

/// The most readers of a database that are kept.
const MAX_READERS: usize = 4;

/// Pool of readers of one database.
#[derive(Debug, Default)]
pub(super) struct ReaderPool(Mutex<PoolState>);

#[derive(Debug, Default)]
struct PoolState {
    idle: Vec<TenantConnection>,
    open: usize,
}

impl ReaderPool {
    /// Returns an idle reader, or opens one if the pool is not full.
    pub(super) fn try_acquire(
        &self,
        settings: &DatabaseOpenSettings,
    ) -> Result<Option<TenantConnection>, StatementRunError> {
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

    /// Returns a reader; opens one even if the pool is full, since the lanes have few threads.
    pub(super) fn acquire(
        &self,
        settings: &DatabaseOpenSettings,
    ) -> Result<TenantConnection, StatementRunError> {
        if let Some(reader) = self.try_acquire(settings)? {
            return Ok(reader);
        }
        let reader = TenantConnection::reader(settings)?;
        lock(&self.0).open += 1;
        Ok(reader)
    }

    /// Returns a reader to the pool, or closes it if the pool is full.
    pub(super) fn release(&self, reader: TenantConnection) {
        let mut readers = lock(&self.0);
        if readers.idle.len() < MAX_READERS {
            readers.idle.push(reader);
        } else {
            readers.open -= 1;
        }
    }

    /// Closes the idle readers but one.
    pub(super) fn close_surplus(&self) {
        let mut readers = lock(&self.0);
        let kept = readers.idle.len().min(1);
        let surplus = readers.idle.split_off(kept);
        readers.open -= surplus.len();
        drop(readers);
        drop(surplus);
    }

    /// Closes the idle readers.
    pub(super) fn close(&self) {
        *lock(&self.0) = PoolState::default();
    }
}
