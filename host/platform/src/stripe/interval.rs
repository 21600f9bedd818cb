//! How often a recurring price is paid.

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

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}
