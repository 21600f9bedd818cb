//! Requests about domains, and their checks: for REST and for tools alike.

use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::http::problem::{Problem, ProblemCode};

/// A domain to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateDomain {
    /// Host name, such as `www.example.com`.
    #[schema(max_length = 253, example = "www.example.com")]
    pub name: String,
    /// Host that its requests are sent to: another active domain of the project, or its origin's host.
    #[schema(max_length = 253)]
    pub redirect_to: Option<String>,
}

/// Changes of a domain.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateDomain {
    /// Host that its requests are sent to; null has it answer itself.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, max_length = 253, required = true)]
    pub redirect_to: Option<Option<String>>,
}

/// A check of a domain, which says nothing more.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyDomain {}

/// Tells a null from a field that is absent.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(from).map(Some)
}

impl UpdateDomain {
    /// Returns the new redirect.
    ///
    /// # Errors
    /// `nothing_to_update`.
    pub(super) fn checked(self) -> Result<Option<String>, Problem> {
        self.redirect_to.ok_or_else(|| {
            Problem::new(
                ProblemCode::NothingToUpdate,
                "Nothing to update: send `redirect_to`, a host or null.",
            )
        })
    }
}
