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

    /// Takes the idle readers but the one that was used last.
    pub(super) fn take_surplus(&self) -> Vec<TenantConnection> {
        let mut readers = lock(&self.0);
        let Some(last) = readers.idle.pop() else {
            return Vec::new();
        };
        let surplus = std::mem::replace(&mut readers.idle, vec![last]);
        readers.open -= surplus.len();
        surplus
    }

    /// Closes the idle readers.
    pub(super) fn close(&self) {
        *lock(&self.0) = PoolState::default();
    }
}
