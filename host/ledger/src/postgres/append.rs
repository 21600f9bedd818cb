//! Commits: appended, looked for, and read in their order.

use std::sync::Arc;

use svc_base::clock::Timestamp;
use svc_base::positions::{Checksum, CommitPosition, Entry};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{PostgresLedger, column, number};
use crate::types::{DatabaseEntry, DatabaseName, FoundEntry, LedgerError, RunId};

impl PostgresLedger {
    pub(super) async fn append_entries(
        &self,
        run: RunId,
        entries: &[DatabaseEntry],
    ) -> Result<(), LedgerError> {
        let columns = Columns::of(entries);
        let statement = "SELECT svc.append($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        self.call(
            statement,
            run,
            &[
                (&columns.names, Type::TEXT_ARRAY),
                (&columns.numbers, Type::INT8_ARRAY),
                (&columns.ats, Type::INT8_ARRAY),
                (&columns.befores, Type::INT8_ARRAY),
                (&columns.afters, Type::INT8_ARRAY),
                (&columns.bodies, Type::BYTEA_ARRAY),
                (&columns.changes, Type::BYTEA_ARRAY),
            ],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn find_entries(
        &self,
        run: RunId,
        at: &[(DatabaseName, CommitPosition)],
    ) -> Result<Vec<Option<FoundEntry>>, LedgerError> {
        let names: Vec<String> = at.iter().map(|(name, _)| name.to_string()).collect();
        let numbers: Vec<i64> = at.iter().map(|(_, at)| at.0.cast_signed()).collect();
        let statement = "SELECT writer, state FROM svc.find($1, $2, $3, $4)";
        let rows = self
            .call(
                statement,
                run,
                &[(&names, Type::TEXT_ARRAY), (&numbers, Type::INT8_ARRAY)],
            )
            .await?;
        rows.iter().map(found).collect()
    }

    pub(super) async fn entries_after(
        &self,
        reader: Option<RunId>,
        database: DatabaseName,
        after: CommitPosition,
        max_bytes: usize,
    ) -> Result<Vec<Entry>, LedgerError> {
        let name = database.to_string();
        let past = after.0.cast_signed();
        let max_bytes = i64::try_from(max_bytes).unwrap_or(i64::MAX);
        let statement =
            "SELECT commit, at, before, after, body, changes FROM svc.tail($1, $2, $3, $4, $5)";
        let rows = self
            .look(
                statement,
                reader,
                &[
                    (&name, Type::TEXT),
                    (&past, Type::INT8),
                    (&max_bytes, Type::INT8),
                ],
            )
            .await?;
        rows.iter().map(entry).collect()
    }
}

/// Commits, turned into an array for each column.
struct Columns<'a> {
    names: Vec<String>,
    numbers: Vec<i64>,
    ats: Vec<i64>,
    befores: Vec<i64>,
    afters: Vec<i64>,
    bodies: Vec<&'a [u8]>,
    changes: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    fn of(entries: &'a [DatabaseEntry]) -> Self {
        let commits = || entries.iter().map(|entry| &entry.entry);
        Self {
            names: entries.iter().map(|e| e.database.to_string()).collect(),
            numbers: commits().map(|e| e.position.0.cast_signed()).collect(),
            ats: commits().map(|e| e.at.0).collect(),
            befores: commits().map(|e| e.before.0.cast_signed()).collect(),
            afters: commits().map(|e| e.after.0.cast_signed()).collect(),
            bodies: commits().map(|e| &*e.body).collect(),
            changes: commits().map(|e| &*e.changes).collect(),
        }
    }
}

fn found(row: &Row) -> Result<Option<FoundEntry>, LedgerError> {
    let Some(run) = column::<Option<Uuid>>(row, 0)? else {
        return Ok(None);
    };
    Ok(Some(FoundEntry {
        run: run.into(),
        after: Checksum(number(row, 1)?),
    }))
}

fn entry(row: &Row) -> Result<Entry, LedgerError> {
    Ok(Entry {
        position: CommitPosition(number(row, 0)?),
        at: Timestamp(column(row, 1)?),
        before: Checksum(number(row, 2)?),
        after: Checksum(number(row, 3)?),
        body: Arc::from(column::<&[u8]>(row, 4)?),
        changes: Arc::from(column::<&[u8]>(row, 5)?),
    })
}
