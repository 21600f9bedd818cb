//! Model of a domain.

use std::str::FromStr;

use super::dns::{DnsRecord, DnsUnavailable};
use super::name::NameFault;
use crate::control;
use svc_base::clock::Timestamp;
use svc_base::ids::ProjectId;

/// State of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DomainState {
    /// Not proven yet, and not served.
    Pending,
    /// Proven and served.
    Active,
    /// Served on, although the proof is gone.
    Failing,
    /// Served no more.
    Lost,
}

impl DomainState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Failing => "failing",
            Self::Lost => "lost",
        }
    }

    /// Whether the domain is served.
    pub fn is_served(self) -> bool {
        matches!(self, Self::Active | Self::Failing)
    }
}

impl FromStr for DomainState {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Pending, Self::Active, Self::Failing, Self::Lost];
        let found = all.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is no state of a domain"))
    }
}

/// A domain of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    pub project: ProjectId,
    pub name: String,
    pub state: DomainState,
    /// Host that its requests are sent to, if any.
    pub redirect_to: Option<String>,
    pub created_at: Timestamp,
    /// When DNS proved it for the last time.
    pub verified_at: Option<Timestamp>,
    /// When DNS answered for the last time.
    pub checked_at: Option<Timestamp>,
    /// Begin of the pending time; `None` after a restore.
    pub pending_since: Option<Timestamp>,
    /// When the proof was first missing.
    pub failing_since: Option<Timestamp>,
    /// When it is checked by itself; `None` for never.
    pub check_at: Option<Timestamp>,
}

/// Outcome of a check whose answer from DNS was usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CheckOutcome {
    /// DNS proves the domain, which is served.
    Proven(Domain),
    /// DNS does not prove it.
    Unproven {
        /// Records that are wanted.
        wanted: Vec<DnsRecord>,
        /// Records that are there.
        seen: Vec<DnsRecord>,
    },
    /// DNS proves another project's, which was first.
    Taken {
        /// Records that are wanted.
        wanted: Vec<DnsRecord>,
        /// Records that are there.
        seen: Vec<DnsRecord>,
    },
}

/// Error of an operation on domains.
#[derive(Debug, thiserror::Error)]
pub enum DomainError {
    /// Projects have no origins.
    #[error("no sites_domain is set")]
    Unconfigured,
    /// The name can be no domain.
    #[error("`{0}` {1}")]
    Name(String, NameFault),
    /// The project has no such domain.
    #[error("the project has no domain `{0}`")]
    NotFound(String),
    /// The redirect leads nowhere.
    #[error("`redirect_to` {0}")]
    Redirect(&'static str),
    /// The plan allows no more domains.
    #[error("the plan allows {}", svc_base::pluralize(.0, "domain"))]
    PlanLimit(u64),
    /// So many checks of the name were asked for.
    #[error("too many checks")]
    TooManyChecks {
        /// Time until the next one is allowed, in seconds.
        wait_seconds: i64,
    },
    /// DNS does not prove it.
    #[error("DNS does not prove it")]
    Unproven {
        wanted: Vec<DnsRecord>,
        seen: Vec<DnsRecord>,
    },
    /// Another project has proven it.
    #[error("another project has proven it")]
    Taken {
        wanted: Vec<DnsRecord>,
        seen: Vec<DnsRecord>,
    },
    /// The operator has taken the name down.
    #[error("the operator has taken the domain down")]
    Disabled,
    /// The installation serves as many as it may.
    #[error("the server has no room for another domain")]
    Full,
    /// DNS has no usable answer.
    #[error("DNS: {0}")]
    Dns(#[from] DnsUnavailable),
    /// The control database failed.
    #[error(transparent)]
    Store(#[from] control::Error),
}
