//! Maps errors of domains to problems.

use super::DomainError;
use crate::http::extract::invalid_request;
use crate::http::problem::{Problem, ProblemCode};
use svc_base::pluralize;

impl From<DomainError> for Problem {
    fn from(error: DomainError) -> Self {
        match error {
            DomainError::Unconfigured => Self::new(
                ProblemCode::DomainsUnconfigured,
                "The operator of this server has not configured `sites_domain`, so projects cannot have domains.",
            ),
            DomainError::Name(name, fault) => {
                invalid_request(format!("In `name`: `{}` {fault}.", name.escape_debug()))
            }
            DomainError::Redirect(why) => invalid_request(format!("`redirect_to` {why}.")),
            DomainError::NotFound(_) => Self::new(
                ProblemCode::NotFound,
                "The project has no such domain: it was removed, was not proven for 7 days, or never was. Add it first.",
            ),
            DomainError::PlanLimit(most) => Self::new(
                ProblemCode::PlanLimit,
                format!(
                    "The plan of this workspace allows {} of a project. Remove one, or ask for a larger plan.",
                    pluralize(most, "domain")
                ),
            ),
            DomainError::TooManyChecks { wait_seconds } => Self::new(
                ProblemCode::RateLimited,
                format!(
                    "The domain was checked too often: 10 checks an hour are allowed. Wait {}; it is also checked by itself.",
                    pluralize(wait_seconds.unsigned_abs(), "second")
                ),
            ),
            DomainError::Unproven { wanted, seen } => Self::new(
                ProblemCode::DomainUnproven,
                "DNS does not show a record that proves the domain. Set one of `records` at the provider of your DNS, wait some minutes, then verify again; `seen` lists what is there.",
            )
            .with("records", serde_json::json!(wanted))
            .with("seen", serde_json::json!(seen)),
            DomainError::Taken { wanted, seen } => Self::new(
                ProblemCode::DomainTaken,
                "Another project has proven this domain, and its record is still there. Take that record away in DNS, set one of `records`, then verify again.",
            )
            .with("records", serde_json::json!(wanted))
            .with("seen", serde_json::json!(seen)),
            DomainError::Disabled => Self::new(
                ProblemCode::Disabled,
                "The operator of this server has taken this domain down. Ask the operator why.",
            ),
            DomainError::Full => Self::new(
                ProblemCode::CapacityReached,
                "The server serves as many domains as it may. Try again later, or tell its operator.",
            ),
            DomainError::Dns(why) => {
                tracing::debug!(%why, "DNS has no usable answer");
                Self::new(
                    ProblemCode::DnsUnavailable,
                    "DNS gave no usable answer in time, and nothing was changed. Try again in a minute; if it stays so, see whether the name servers of the domain answer.",
                )
            }
            DomainError::Store(error) => error.into(),
        }
    }
}
