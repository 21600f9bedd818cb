//! Requests about a backend's history, and their checks: for REST and for tools alike.

use serde::Deserialize;
use utoipa::ToSchema;

use super::MomentsPageRequest;
use crate::http::extract::invalid_request;
use crate::http::problem::Problem;
use svc_base::clock::Timestamp;

/// Default number of moments.
const DEFAULT_LIMIT: u32 = 100;
/// Largest number of moments.
const MAX_LIMIT: u32 = 1000;

/// Which part of the history.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MomentsQuery {
    /// How many; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    /// Only moments before this one: `next_before` of the answer before, or any time.
    #[param(format = "date-time")]
    pub before: Option<String>,
}

/// A moment to go back to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreBackend {
    /// When: what was committed last at that time or before it is restored.
    #[schema(format = "date-time", example = "2026-11-20T12:00:00.000Z")]
    pub at: String,
}

impl MomentsQuery {
    /// Returns the requested page.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<MomentsPageRequest, Problem> {
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(invalid_request(format!(
                "`limit` must be from 1 to {MAX_LIMIT}."
            )));
        }
        let before = self.before.map(|before| parse_moment("before", &before));
        Ok(MomentsPageRequest {
            before: before.transpose()?,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        })
    }
}

impl RestoreBackend {
    /// Returns the requested moment.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<Timestamp, Problem> {
        parse_moment("at", &self.at)
    }
}

fn parse_moment(field: &str, text: &str) -> Result<Timestamp, Problem> {
    Timestamp::parse(text).ok_or_else(|| {
        invalid_request(format!(
            "`{field}` must be a time as in RFC 3339, such as 2026-11-20T12:00:00.000Z."
        ))
    })
}
