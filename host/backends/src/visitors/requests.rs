//! Requests of owners about visitors, and their checks: for REST and for tools alike.

use serde::Deserialize;

use crate::http::extract::invalid_request;
use crate::http::problem::Problem;
use svc_base::numbers::optional_whole_number;

/// Default page size.
const DEFAULT_LIMIT: u32 = 50;
/// Largest page size.
const MAX_LIMIT: u64 = 200;

/// Which visitors to list.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListVisitors {
    /// How many: 50, if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<u64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl ListVisitors {
    /// Returns the cursor before which the page begins, and the page size.
    ///
    /// # Errors
    /// `invalid_request`.
    pub(super) fn checked(self) -> Result<(Option<i64>, u32), Problem> {
        let most = match self.limit {
            None => DEFAULT_LIMIT,
            Some(limit) if (1..=MAX_LIMIT).contains(&limit) => {
                u32::try_from(limit).unwrap_or(DEFAULT_LIMIT)
            }
            Some(_) => {
                return Err(invalid_request(format!(
                    "`limit` must be from 1 to {MAX_LIMIT}."
                )));
            }
        };
        let before = match self.cursor.as_deref() {
            None => None,
            Some(cursor) => Some(cursor.parse().map_err(|_| {
                invalid_request(
                    "`cursor` is not valid: send `next_cursor` of the previous page, or leave it out.",
                )
            })?),
        };
        Ok((before, most))
    }
}
