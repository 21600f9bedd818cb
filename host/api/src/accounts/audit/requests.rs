//! Requests about the audit log, and their checks.

use serde::Deserialize;

use crate::http::extract::invalid_request;
use crate::http::problem::Problem;

/// Default page size.
const DEFAULT_LIMIT: u32 = 50;
/// Largest page size.
const MAX_LIMIT: u32 = 200;

/// Which entries.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// How many; 50 if absent.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl AuditQuery {
    /// Returns the cursor before which the page begins, and the page size.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<(Option<u64>, u32), Problem> {
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(invalid_request(format!(
                "`limit` must be from 1 to {MAX_LIMIT}."
            )));
        }
        let before = match self.cursor.as_deref().map(str::parse) {
            None => None,
            Some(Ok(before)) => Some(before),
            Some(Err(_)) => {
                return Err(invalid_request(
                    "`cursor` is not valid: send `next_cursor` of the previous page, or leave it out.",
                ));
            }
        };
        Ok((before, limit))
    }
}
