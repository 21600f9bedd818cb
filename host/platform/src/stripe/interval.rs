//! How often a recurring price is paid.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{ToSql, types};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Time between two payments of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BillingInterval {
    #[default]
    Month,
    Year,
}

impl BillingInterval {
    const ALL: [Self; 2] = [Self::Month, Self::Year];

    /// Name of the interval: the wire's, the provider's and the database's.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Month => "month",
            Self::Year => "year",
        }
    }
}

impl FromSql for BillingInterval {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        let known = Self::ALL.into_iter().find(|one| one.as_str() == text);
        known.ok_or_else(|| FromSqlError::Other(format!("there is no interval {text}").into()))
    }
}

impl ToSql for BillingInterval {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(types::ValueRef::Text(
            self.as_str().as_bytes(),
        )))
    }
}
