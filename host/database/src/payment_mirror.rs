//! The table `svc_payments`, which the platform derives: brought to what the ledger of payments says.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use super::connection::TenantConnection;
use super::databases::Databases;
use super::error::RunError;
use super::transaction::{begin, commit, roll_back};
use svc_base::clock::Timestamp;
use svc_base::ids::BackendId;

/// A row of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentRow {
    /// The session.
    pub session_id: String,
    /// Price that was paid.
    pub price_id: String,
    /// The price's label.
    pub price_label: String,
    /// In minor units.
    pub amount: i64,
    /// In lower case.
    pub currency: String,
    /// The visitor, if signed in.
    pub user_id: Option<String>,
    /// The address that was collected.
    pub email: Option<String>,
    /// Status of the payment.
    pub status: String,
    /// When it was begun.
    pub created_at: Timestamp,
}

impl Databases {
    /// Writes rows, each once, whatever is there of them; with `replace_all` there is nothing else in the table afterwards. One
    /// transaction, durable when it returns; rows that say what is there already are not written.
    ///
    /// # Errors
    /// [`RunError`]; nothing is changed then.
    pub async fn mirror_payments(
        &self,
        id: BackendId,
        rows: Vec<PaymentRow>,
        replace_all: bool,
    ) -> Result<(), RunError> {
        let written = self
            .get(id)?
            .with_writer(move |writer| Ok(write_rows(&writer.handle, &rows, replace_all)))
            .await?;
        written.map_err(|error| self.settings(&id).distinguish_full_disk(error))
    }
}

fn write_rows(
    handle: &TenantConnection,
    rows: &[PaymentRow],
    replace_all: bool,
) -> Result<(), RunError> {
    begin(handle)?;
    let written = upsert_rows(&handle.connection, rows, replace_all)
        .map_err(|error| RunError::from_sqlite(error, None))
        .and_then(|()| commit(handle));
    written.inspect_err(|_| roll_back(handle))
}

fn upsert_rows(
    connection: &Connection,
    rows: &[PaymentRow],
    replace_all: bool,
) -> rusqlite::Result<()> {
    if replace_all {
        let kept: HashSet<&str> = rows.iter().map(|row| row.session_id.as_str()).collect();
        let mut ids = connection.prepare("SELECT session_id FROM svc_payments")?;
        let ids = ids.query_map([], |row| row.get::<_, String>(0))?;
        let gone = ids.filter(|id| !matches!(id, Ok(id) if kept.contains(id.as_str())));
        let gone: Vec<String> = gone.collect::<rusqlite::Result<_>>()?;
        let mut delete = connection.prepare("DELETE FROM svc_payments WHERE session_id = ?1")?;
        for id in gone {
            delete.execute([id])?;
        }
    }
    let mut upsert = connection.prepare(
        "INSERT INTO svc_payments
            (session_id, price_id, price_label, amount, currency, user_id, email, status, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT (session_id) DO UPDATE SET price_id = ?2, price_label = ?3, amount = ?4,
            currency = ?5, user_id = ?6, email = ?7, status = ?8, created_at = ?9
         WHERE (price_id, price_label, amount, currency, user_id, email, status, created_at)
            IS NOT (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for row in rows {
        upsert.execute(params![
            row.session_id,
            row.price_id,
            row.price_label,
            row.amount,
            row.currency,
            row.user_id,
            row.email,
            row.status,
            row.created_at.to_string(),
        ])?;
    }
    Ok(())
}
