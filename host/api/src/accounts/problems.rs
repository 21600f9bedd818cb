//! Errors of workspaces with what they own, and of their plans, as problems.

use super::AccountError;
use super::plans::BillingError;
use crate::http::problem::{Problem, ProblemCode};

impl From<AccountError> for Problem {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Workspace(error) => error.into(),
            AccountError::Billing(error) => error.into(),
            AccountError::NoProvider => Self::new(
                ProblemCode::ProviderUnavailable,
                "The workspace has a subscription, and this server has no payment provider to end it. Nothing was deleted: ask the operator.",
            ),
            AccountError::Internal(error) => Self::internal(&format!("{error:#}")),
        }
    }
}

impl From<BillingError> for Problem {
    fn from(error: BillingError) -> Self {
        match error {
            BillingError::Unconfigured => Self::new(
                ProblemCode::PaymentsUnconfigured,
                "The operator of this service sells no plans.",
            ),
            BillingError::Subscribed => Self::new(
                ProblemCode::PlanLimit,
                "The workspace has a subscription already: POST /api/v1/workspaces/{id}/billing/portal answers where it is changed.",
            ),
            BillingError::NoSubscription => Self::new(
                ProblemCode::NoSubscription,
                "The workspace has never had a subscription: POST /api/v1/workspaces/{id}/billing/checkout answers where it is bought.",
            ),
            BillingError::Provider(error) => {
                tracing::warn!(%error, "the payment provider did not do what it should");
                Self::new(
                    ProblemCode::ProviderUnavailable,
                    "The payment provider did not do its part, and nothing was changed. Try again in a minute.",
                )
            }
            BillingError::Random(error) => Self::internal(&error),
        }
    }
}
