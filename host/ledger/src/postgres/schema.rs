//! Tables of the ledger, which are made once, when an installation is founded.

use uuid::Uuid;

use super::{PostgresLedger, column, only};
use crate::types::LedgerError;

/// Tables and functions.
const SCHEMA: &str = include_str!("schema.sql");
/// Number of their format, which a program compares before it does anything else: it refuses every other one.
///
/// No release has made these tables yet, so until one has, they change under this number. From then on each change of `schema.sql` is
/// a new number, and comes with statements that bring tables of the number before to it: in one transaction that also writes the
/// number, by the program that takes control, and while no run of an earlier program lives.
const FORMAT: i32 = 1;

impl PostgresLedger {
    pub(super) async fn make_tables(&self, installation: Uuid) -> Result<bool, LedgerError> {
        if self.installation_id().await?.is_some() {
            return Ok(false);
        }
        // What is sent at once is one transaction.
        let standbys = self.synced_standbys;
        let statements = format!(
            "{SCHEMA}
            INSERT INTO svc.meta VALUES ('format', '{FORMAT}'), ('installation', '{installation}');
            SELECT svc.check_synced({standbys});"
        );
        self.writes.write_all(standbys, &statements).await?;
        Ok(true)
    }

    pub(super) async fn installation_id(&self) -> Result<Option<Uuid>, LedgerError> {
        let is_there = "SELECT to_regclass('svc.meta') IS NOT NULL";
        let rows = self.reads.read(is_there, &[]).await?;
        if !column::<bool>(only(&rows)?, 0)? {
            return Ok(None);
        }
        let meta = "SELECT (SELECT value::int FROM svc.meta WHERE key = 'format'), \
            (SELECT value::uuid FROM svc.meta WHERE key = 'installation')";
        let rows = self.reads.read(meta, &[]).await?;
        let row = only(&rows)?;
        let format: i32 = column(row, 0)?;
        if format != FORMAT {
            let said = format!("its tables have format {format}, and this program knows {FORMAT}");
            return Err(LedgerError::Unreadable(said));
        }
        column(row, 1).map(Some)
    }
}
