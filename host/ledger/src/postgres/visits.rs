//! Views of deployments: added, read, forgotten.

use svc_base::ids::DeploymentId;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{PostgresLedger, column, number};
use crate::types::{LedgerError, RunId};

impl PostgresLedger {
    pub(super) async fn add_counts(
        &self,
        run: RunId,
        flush: Uuid,
        counts: &[(DeploymentId, u64)],
    ) -> Result<Vec<(DeploymentId, u64)>, LedgerError> {
        let deployments: Vec<String> = counts.iter().map(|(id, _)| id.to_string()).collect();
        let counts: Vec<i64> = counts
            .iter()
            .map(|(_, count)| i64::try_from(*count).unwrap_or(i64::MAX))
            .collect();
        let statement = "SELECT deployment, count FROM svc.add_visits($1, $2, $3, $4, $5)";
        let rows = self
            .call(
                statement,
                run,
                &[
                    (&flush, Type::UUID),
                    (&deployments, Type::TEXT_ARRAY),
                    (&counts, Type::INT8_ARRAY),
                ],
            )
            .await?;
        rows.iter().map(count).collect()
    }

    pub(super) async fn counts_after(
        &self,
        reader: Option<RunId>,
        after: Option<DeploymentId>,
        most: usize,
    ) -> Result<Vec<(DeploymentId, u64)>, LedgerError> {
        // Every id comes after the empty text.
        let past = after.map(|id| id.to_string()).unwrap_or_default();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let statement = "SELECT deployment, count FROM svc.visits_after($1, $2, $3, $4)";
        let rows = self
            .look(
                statement,
                reader,
                &[(&past, Type::TEXT), (&most, Type::INT8)],
            )
            .await?;
        rows.iter().map(count).collect()
    }

    pub(super) async fn forget_counts(
        &self,
        run: RunId,
        gone: &[DeploymentId],
    ) -> Result<(), LedgerError> {
        let gone: Vec<String> = gone.iter().map(DeploymentId::to_string).collect();
        let statement = "SELECT svc.forget_visits($1, $2, $3)";
        self.call(statement, run, &[(&gone, Type::TEXT_ARRAY)])
            .await?;
        Ok(())
    }
}

fn count(row: &Row) -> Result<(DeploymentId, u64), LedgerError> {
    let id: &str = column(row, 0)?;
    let id = id
        .parse()
        .map_err(|_| LedgerError::Unreadable(format!("views of a deployment {id:?}")))?;
    Ok((id, number(row, 1)?))
}
