//! The ledger in PostgreSQL, which orders, locks and remembers. Each change is one call of a function in `schema.sql`.
//!
//! The server answers a commit when its standbys have it. There are three ways in which it answers without, and each is refused:
//! the settings do not say so (`svc.check_synced`, before and after a change), the wait is cut by an operator (a warning, upon
//! which the connection is ended), or the server's end of the connection goes away (then the answer is unknown anyway).
//!
//! A request waits for its answer as long as it takes, but for two cases. Another server takes writes, so this one hangs or was
//! replaced: then the answer is unknown. Or another request keeps what this one needs to itself, as that of a paused process does:
//! then it is refused before it has done anything, and the requests behind it go on.

mod address;
mod append;
mod connect;
#[cfg(test)]
mod fake_server;
mod nodes;
mod places;
mod schema;
mod tls;
mod visits;

use std::error::Error as _;
use std::sync::Arc;

use svc_base::ids::DeploymentId;
use svc_base::positions::{CommitPosition, Entry};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};
use uuid::Uuid;

use self::connect::{LedgerClient, Parameter, Servers};
use crate::types::{
    Base, BeatCount, ClaimOutcome, DatabaseEntry, DatabaseName, FoundEntry, KeptBases, Ledger,
    LedgerError, Node, NodeState, Place, RunId,
};

/// Error of a URL that names no ledger. Its text does not contain the URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ledger's URL: {0}")]
pub struct InvalidLedgerUrl(String);

/// A ledger in PostgreSQL. It connects when it is asked the first time, and anew whenever the connection has ended.
pub struct PostgresLedger {
    /// Connection for what is done in the name of a run: one request after the other, as the row of the run would have them wait anyway.
    writes: LedgerClient,
    /// Connection for what only looks, which does not wait for what is done.
    reads: LedgerClient,
    /// Number of standbys that must have a commit before it is acknowledged.
    synced_standbys: i32,
}

impl PostgresLedger {
    /// Creates the client of the ledger that `url` names. Nothing is connected.
    ///
    /// # Errors
    /// The URL is not one of PostgreSQL, or its certificates cannot be read.
    pub fn new(url: &str, synced_standbys: u16) -> Result<Self, InvalidLedgerUrl> {
        let servers = Arc::new(Servers::new(url).map_err(InvalidLedgerUrl)?);
        Ok(Self {
            writes: LedgerClient::new(&servers),
            reads: LedgerClient::new(&servers),
            synced_standbys: i32::from(synced_standbys),
        })
    }

    /// Calls a function in the name of a run. The first two parameters are the run and the number of standbys.
    async fn call(
        &self,
        statement: &str,
        run: RunId,
        more: &[Parameter<'_>],
    ) -> Result<Vec<Row>, LedgerError> {
        let run = Uuid::from(run);
        let standbys = self.synced_standbys;
        let first: [Parameter<'_>; 2] = [(&run, Type::UUID), (&standbys, Type::INT4)];
        let parameters = [first.as_slice(), more].concat();
        self.writes.write(standbys, statement, &parameters).await
    }

    /// Calls a function that only looks: in the name of a run, if there is one.
    async fn look(
        &self,
        statement: &str,
        reader: Option<RunId>,
        more: &[Parameter<'_>],
    ) -> Result<Vec<Row>, LedgerError> {
        if let Some(run) = reader {
            return self.call(statement, run, more).await;
        }
        let nobody: Option<Uuid> = None;
        let standbys = self.synced_standbys;
        let first: [Parameter<'_>; 2] = [(&nobody, Type::UUID), (&standbys, Type::INT4)];
        let parameters = [first.as_slice(), more].concat();
        self.reads.read(statement, &parameters).await
    }
}

impl Ledger for PostgresLedger {
    async fn found(&self, installation: Uuid) -> Result<bool, LedgerError> {
        self.make_tables(installation).await
    }

    async fn installation(&self) -> Result<Option<Uuid>, LedgerError> {
        self.installation_id().await
    }

    async fn join(&self, node: &Node) -> Result<(), LedgerError> {
        self.add_run(node).await
    }

    async fn beat(&self, run: RunId) -> Result<Vec<NodeState>, LedgerError> {
        self.count_beat(run).await
    }

    async fn append(&self, run: RunId, entries: &[DatabaseEntry]) -> Result<(), LedgerError> {
        self.append_entries(run, entries).await
    }

    async fn find(
        &self,
        run: RunId,
        at: &[(DatabaseName, CommitPosition)],
    ) -> Result<Vec<Option<FoundEntry>>, LedgerError> {
        self.find_entries(run, at).await
    }

    async fn bury(
        &self,
        run: RunId,
        dead: RunId,
        seen: Option<BeatCount>,
    ) -> Result<bool, LedgerError> {
        self.bury_run(run, dead, seen).await
    }

    async fn note_serving(&self, run: RunId) -> Result<(), LedgerError> {
        self.note_run_serves(run).await
    }

    async fn remove_node(&self, run: RunId, name: &str) -> Result<bool, LedgerError> {
        self.remove_runs(run, name).await
    }

    async fn claim(&self, run: RunId, database: DatabaseName) -> Result<ClaimOutcome, LedgerError> {
        self.claim_place(run, database).await
    }

    async fn release(&self, place: Place) -> Result<(), LedgerError> {
        self.release_place(place).await
    }

    async fn places(&self) -> Result<Vec<Place>, LedgerError> {
        self.all_places().await
    }

    async fn tail(
        &self,
        reader: Option<RunId>,
        database: DatabaseName,
        after: CommitPosition,
        max_bytes: usize,
    ) -> Result<Vec<Entry>, LedgerError> {
        self.entries_after(reader, database, after, max_bytes).await
    }

    async fn bases(
        &self,
        reader: Option<RunId>,
        database: DatabaseName,
    ) -> Result<Vec<Base>, LedgerError> {
        self.bases_of(reader, database).await
    }

    async fn add_base(&self, run: RunId, base: &Base) -> Result<(), LedgerError> {
        self.name_base(run, base).await
    }

    async fn trim(
        &self,
        run: RunId,
        database: DatabaseName,
        kept: KeptBases,
    ) -> Result<u64, LedgerError> {
        self.trim_commits(run, database, kept).await
    }

    async fn forget(&self, run: RunId, database: DatabaseName) -> Result<(), LedgerError> {
        self.forget_database(run, database).await
    }

    async fn add_visits(
        &self,
        run: RunId,
        flush: Uuid,
        counts: &[(DeploymentId, u64)],
    ) -> Result<Vec<(DeploymentId, u64)>, LedgerError> {
        self.add_counts(run, flush, counts).await
    }

    async fn visits(
        &self,
        reader: Option<RunId>,
        after: Option<DeploymentId>,
        most: usize,
    ) -> Result<Vec<(DeploymentId, u64)>, LedgerError> {
        self.counts_after(reader, after, most).await
    }

    async fn forget_visits(&self, run: RunId, gone: &[DeploymentId]) -> Result<(), LedgerError> {
        self.forget_counts(run, gone).await
    }
}

/// Reads a column of a row.
fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, LedgerError> {
    row.try_get(at)
        .map_err(|error| LedgerError::Unreadable(text(&error)))
}

/// Reads the name of a database.
fn database(row: &Row, at: usize) -> Result<DatabaseName, LedgerError> {
    let name: &str = column(row, at)?;
    name.parse::<DatabaseName>()
        .map_err(|_| LedgerError::Unreadable(format!("a database named {name:?}")))
}

/// Reads the id of a run.
fn run(row: &Row, at: usize) -> Result<RunId, LedgerError> {
    column::<Uuid>(row, at).map(RunId::from)
}

/// Reads a number that is never negative. A checksum fills all 64 bits, and is kept with a sign.
fn number(row: &Row, at: usize) -> Result<u64, LedgerError> {
    column::<i64>(row, at).map(i64::cast_unsigned)
}

/// Returns the one row of an answer.
fn only(rows: &[Row]) -> Result<&Row, LedgerError> {
    rows.first()
        .ok_or_else(|| LedgerError::Unreadable("an answer without a row".to_owned()))
}

/// Says an error with its cause, which its own text leaves out.
fn text(error: &tokio_postgres::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
