//! Tests of the ledger: one suite over every engine, in memory and in PostgreSQL with two synced standbys, and the faults that only
//! PostgreSQL has.

mod fixture;
mod postgres_faults;
mod postgres_tls;
mod suite;
mod visits;

use std::sync::Arc;

use svc_ledger::MemoryLedger;
use svc_tests::postgres::Postgres;

use crate::fixture::ledger;

/// Clients, as so many processes have them. Each does one request at a time.
const CLIENTS: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_a_ledger() {
    let shared = MemoryLedger::default();
    let clients = (0..CLIENTS).map(|_| Arc::new(shared.clone()));
    suite::everything(&clients.collect::<Vec<_>>()).await;
    visits::everything(&shared).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_is_a_ledger() {
    let servers = Postgres::start().await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(ledger(&servers, 1).await);
    }
    suite::everything(&clients).await;
    visits::everything(clients[0].as_ref()).await;
}
