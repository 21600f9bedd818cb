//! Runs: joined, beating, buried.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{PostgresLedger, column, number, only, run as run_of};
use crate::types::{BeatCount, LedgerError, Node, NodeState, RunId};

impl PostgresLedger {
    pub(super) async fn add_run(&self, node: &Node) -> Result<(), LedgerError> {
        let schema = i64::from(node.schema);
        let suspect_ms = i64::try_from(node.suspect_after.as_millis()).unwrap_or(i64::MAX);
        let statement = "SELECT svc.add_run($1, $2, $3, $4, $5, $6, $7, $8)";
        self.call(
            statement,
            node.run,
            &[
                (&node.name, Type::TEXT),
                (&suspect_ms, Type::INT8),
                (&node.peer_url, Type::TEXT),
                (&node.peer_key, Type::BYTEA),
                (&node.version, Type::TEXT),
                (&schema, Type::INT8),
            ],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn count_beat(&self, run: RunId) -> Result<Vec<NodeState>, LedgerError> {
        let statement = "SELECT run, name, live, beat, peer_url, peer_key, version, schema, leaving, suspect_ms, \
            serves, removed FROM svc.beat($1, $2)";
        let rows = self.call(statement, run, &[]).await?;
        rows.iter().map(node).collect()
    }

    pub(super) async fn bury_run(
        &self,
        run: RunId,
        dead: RunId,
        seen: Option<BeatCount>,
    ) -> Result<bool, LedgerError> {
        let dead = Uuid::from(dead);
        let seen = seen.map(|beat| beat.0.cast_signed());
        let statement = "SELECT svc.bury($1, $2, $3, $4)";
        let rows = self
            .call(statement, run, &[(&dead, Type::UUID), (&seen, Type::INT8)])
            .await?;
        column(only(&rows)?, 0)
    }

    pub(super) async fn note_run_serves(&self, run: RunId) -> Result<(), LedgerError> {
        let statement = "SELECT svc.note_serving($1, $2)";
        self.call(statement, run, &[]).await?;
        Ok(())
    }

    pub(super) async fn remove_runs(&self, run: RunId, name: &str) -> Result<bool, LedgerError> {
        let statement = "SELECT svc.remove_node($1, $2, $3)";
        let rows = self.call(statement, run, &[(&name, Type::TEXT)]).await?;
        column(only(&rows)?, 0)
    }
}

fn node(row: &Row) -> Result<NodeState, LedgerError> {
    let schema = u32::try_from(column::<i64>(row, 7)?);
    let schema = schema.map_err(|error| LedgerError::Unreadable(error.to_string()))?;
    Ok(NodeState {
        node: Node {
            run: run_of(row, 0)?,
            name: column(row, 1)?,
            suspect_after: Duration::from_millis(number(row, 9)?),
            peer_url: column(row, 4)?,
            peer_key: column(row, 5)?,
            version: column(row, 6)?,
            schema,
        },
        live: column(row, 2)?,
        beat: BeatCount(number(row, 3)?),
        leaving: column(row, 8)?,
        serves: column(row, 10)?,
        removed: column(row, 11)?,
    })
}
