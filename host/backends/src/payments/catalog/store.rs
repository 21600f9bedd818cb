//! Queries of products and prices in the control database.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::control::{Error, NamedColumnReader, Tx};
use crate::payments::model::{MAX_PRICES, NewPrice, PaymentError, Price, Product};
use crate::stripe::BillingInterval;
use svc_base::clock::Timestamp;
use svc_base::ids::ProjectId;

const SELECT_PRICE: &str = "SELECT r.id, r.key, r.label, r.amount, r.currency, r.recurring, r.billing_interval, r.active, r.created_at, \
    p.id AS product_id, p.name AS product_name, p.description AS product_description \
    FROM payment_prices r JOIN payment_products p ON p.id = r.product_id";

fn price_from_row(row: &Row<'_>) -> rusqlite::Result<Price> {
    let row = NamedColumnReader::new(row);
    Ok(Price {
        id: row.get("id")?,
        key: row.get("key")?,
        label: row.get("label")?,
        amount: row.get("amount")?,
        currency: row.get("currency")?,
        interval: interval_from_row(&row)?,
        active: row.get("active")?,
        created_at: row.get("created_at")?,
        product: Product {
            id: row.get("product_id")?,
            name: row.get("product_name")?,
            description: row.get("product_description")?,
        },
    })
}

fn interval_from_row(row: &NamedColumnReader<'_, '_>) -> rusqlite::Result<Option<BillingInterval>> {
    let named: Option<BillingInterval> = row.get("billing_interval")?;
    let is_recurring: bool = row.get("recurring")?;
    Ok(is_recurring.then(|| named.unwrap_or_default()))
}

/// Lists the prices of a project, by product and age.
pub(super) fn catalog(c: &Connection, project: &ProjectId) -> rusqlite::Result<Vec<Price>> {
    c.prepare_cached(&format!(
        "{SELECT_PRICE} WHERE r.project_id = ?1 ORDER BY p.number, r.number"
    ))?
    .query_map([project], price_from_row)?
    .collect()
}

/// Lists the active prices of a project, by product and age.
pub(super) fn active_prices(c: &Connection, project: &ProjectId) -> rusqlite::Result<Vec<Price>> {
    c.prepare_cached(&format!(
        "{SELECT_PRICE} WHERE r.project_id = ?1 AND r.active ORDER BY p.number, r.number"
    ))?
    .query_map([project], price_from_row)?
    .collect()
}

/// Finds the price of a project that has a key: the active one, else the latest that had it.
pub(super) fn find_by_key(
    c: &Connection,
    project: &ProjectId,
    key: &str,
) -> rusqlite::Result<Option<Price>> {
    c.prepare_cached(&format!(
        "{SELECT_PRICE} WHERE r.project_id = ?1 AND r.key = ?2 ORDER BY r.active DESC, r.number DESC LIMIT 1"
    ))?
    .query_row(params![project, key], price_from_row)
    .optional()
}

/// Finds a price of a project by its id.
pub(super) fn find_price(
    c: &Connection,
    project: &ProjectId,
    id: &str,
) -> rusqlite::Result<Option<Price>> {
    c.prepare_cached(&format!(
        "{SELECT_PRICE} WHERE r.project_id = ?1 AND r.id = ?2"
    ))?
    .query_row(params![project, id], price_from_row)
    .optional()
}

/// Ids for a new price, and for its product if there is none of that name yet.
#[derive(Clone, Debug)]
pub(super) struct NewPriceIds {
    pub(super) price: String,
    pub(super) product: String,
}

/// Adds a price, and its product if that is new.
///
/// # Errors
/// `CatalogFull`, or `KeyTaken` if an active price has the key.
pub(super) fn insert_price(
    tx: &Tx<'_>,
    project: &ProjectId,
    new: &NewPrice,
    ids: &NewPriceIds,
    now: Timestamp,
) -> Result<Price, PaymentError> {
    if count_prices(tx, project).map_err(Error::from)? >= MAX_PRICES {
        return Err(PaymentError::CatalogFull);
    }
    if let Some(key) = &new.key {
        let holder = find_by_key(tx, project, key).map_err(Error::from)?;
        if holder.is_some_and(|price| price.active) {
            return Err(PaymentError::KeyTaken(key.clone()));
        }
    }
    let insert = || {
        let product = upsert_product(tx, project, new, ids, now)?;
        tx.prepare_cached(
            "INSERT INTO payment_prices
                (id, project_id, product_id, key, label, amount, currency, recurring, billing_interval, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            ids.price,
            project,
            product,
            new.key,
            new.label,
            new.amount,
            new.currency,
            new.interval.is_some(),
            new.interval,
            now,
        ])?;
        find_price(tx, project, &ids.price)
    };
    let made = insert().map_err(Error::from)?;
    made.ok_or(PaymentError::NoPrice)
}

/// Counts the prices of a project, inactive ones included.
fn count_prices(c: &Connection, project: &ProjectId) -> rusqlite::Result<u64> {
    c.prepare_cached("SELECT count(*) FROM payment_prices WHERE project_id = ?1")?
        .query_row([project], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
}

/// Returns the id of the product of a new price, which is made with the first one.
fn upsert_product(
    tx: &Tx<'_>,
    project: &ProjectId,
    new: &NewPrice,
    ids: &NewPriceIds,
    now: Timestamp,
) -> rusqlite::Result<String> {
    tx.prepare_cached(
        "INSERT INTO payment_products (id, project_id, name, description, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (project_id, name)
            DO UPDATE SET description = coalesce(excluded.description, description)
         RETURNING id",
    )?
    .query_row(
        params![ids.product, project, new.product_name, new.description, now],
        |row| row.get(0),
    )
}

/// Deactivates the price whose place another takes.
///
/// # Errors
/// `NoPrice` if the project has no such price, `PriceInactive` if it is off the catalog already.
pub(super) fn take_off(tx: &Tx<'_>, project: &ProjectId, id: &str) -> Result<(), PaymentError> {
    if deactivate(tx, project, id)? {
        return Ok(());
    }
    let found = find_price(tx, project, id).map_err(Error::from)?;
    Err(found.map_or(PaymentError::NoPrice, |_| PaymentError::PriceInactive))
}

/// Deactivates a price; returns whether it was active.
pub(super) fn deactivate(tx: &Tx<'_>, project: &ProjectId, id: &str) -> Result<bool, Error> {
    let sql = "UPDATE payment_prices SET active = 0 WHERE project_id = ?1 AND id = ?2 AND active";
    let changed = tx.prepare_cached(sql)?.execute(params![project, id])?;
    Ok(changed > 0)
}
