//! The mirror of payments: brings the table `svc_payments` to the state of the payment ledger.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use super::connection::TenantConnection;
use super::databases::Databases;
use super::error::StatementRunError;
use super::transaction::{begin, commit, roll_back};
use svc_base::clock::Timestamp;
use svc_base::ids::BackendId;

/// A row of `svc_payments`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentMirrorRow {
    /// Id of the payment session.
    pub session_id: String,
    /// Price that was paid.
    pub price_id: String,
    /// Label of the price.
    pub price_label: String,
    /// Amount in minor units.
    pub amount: i64,
    /// Currency code in lower case.
    pub currency: String,
    /// Id of the visitor, if signed in.
    pub user_id: Option<String>,
    /// E-mail address that the checkout collected.
    pub email: Option<String>,
    /// Status of the payment.
    pub status: String,
    /// Time when the payment began.
    pub created_at: Timestamp,
}

impl Databases {
    /// Upserts rows by session; with `replace_all` also deletes all others. It is one transaction, durable on return, and writes
    /// only rows that differ.
    ///
    /// # Errors
    /// [`StatementRunError`]; nothing is changed then.
    pub async fn mirror_payments(
        &self,
        id: BackendId,
        rows: Vec<PaymentMirrorRow>,
        replace_all: bool,
    ) -> Result<(), StatementRunError> {
        let written = self
            .load(id)
            .await?
            .with_writer(move |writer| Ok(write_rows(&writer.handle, &rows, replace_all)))
            .await?;
        written.map_err(|error| self.settings(&id).distinguish_full_disk(error))
    }
}

fn write_rows(
    handle: &TenantConnection,
    rows: &[PaymentMirrorRow],
    replace_all: bool,
) -> Result<(), StatementRunError> {
    begin(handle)?;
    let written = upsert_rows(&handle.connection, rows, replace_all)
        .map_err(|error| StatementRunError::from_sqlite(error, None))
        .and_then(|()| commit(handle));
    written.inspect_err(|_| roll_back(handle))
}

fn upsert_rows(
    connection: &Connection,
    rows: &[PaymentMirrorRow],
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
