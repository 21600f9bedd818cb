//! Why nothing was published.

use crate::access::ClientDisconnected;
use crate::config::CapReached;
use crate::content;
use crate::control;
use crate::deployments::blocked::ContentBlocked;
use crate::deployments::problems::WORKERS_BUSY_MESSAGE;
use crate::http::byte_budget::ByteBudgetFull;
use svc_base::random::RandomSourceError;
use svc_sandbox::{
    BudgetKind, ContentType, LaneBusy, MalformedSource, RenderFailure, RuleFault, RulesFailure,
};

/// Why nothing was published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The source breaks the rules of its type.
    #[error("{0}")]
    Malformed(MalformedSource),
    /// The source needs more than a budget allows.
    #[error("the {} budget ran out", .0.as_str())]
    Budget(BudgetKind),
    /// No renderer of the server knows the type.
    #[error("no renderer knows {0}")]
    Unsupported(ContentType),
    /// A file of a site's rules has a fault.
    #[error("{}, line {}: {}", .0.file, .0.line, .0.reason)]
    Rules(RuleFault),
    /// The renderer of the server judges no rules of sites.
    #[error("no renderer judges rules of sites")]
    RulesUnsupported,
    /// The server has no room for it.
    #[error("{0}")]
    Capacity(&'static str),
    /// A cap is reached.
    #[error(transparent)]
    Cap(#[from] CapReached),
    /// The operator has blocked it.
    #[error(transparent)]
    Blocked(#[from] ContentBlocked),
    /// The client has hung up, and nothing was stored.
    #[error(transparent)]
    Abandoned(#[from] ClientDisconnected),
    /// Everything else, for the log.
    #[error(transparent)]
    Internal(anyhow::Error),
}

/// Refusal for want of room on the disk.
const DISK_FULL_MESSAGE: &str = "The server's disk is nearly full. Try again later.";
const PREPARING_MESSAGE: &str = "The server is still preparing its renderer, as it does after its first start. Try again in a minute.";
const DATABASE_BUSY_MESSAGE: &str = "The server is busy with maintenance. Try again in a minute.";

impl PublishError {
    /// Says that the disk is nearly full.
    pub(in crate::deployments) fn disk_full() -> Self {
        Self::Capacity(DISK_FULL_MESSAGE)
    }

    /// Whether rendering the same source with the same guest would fail again: it is not for want of room, and nobody hung up. Time
    /// runs out on a busy machine, too.
    pub(in crate::deployments) fn is_lasting(&self) -> bool {
        match self {
            Self::Budget(BudgetKind::Time) => false,
            Self::Malformed(_)
            | Self::Budget(_)
            | Self::Unsupported(_)
            | Self::Rules(_)
            | Self::RulesUnsupported
            | Self::Blocked(_)
            | Self::Internal(_) => true,
            Self::Capacity(_) | Self::Cap(_) | Self::Abandoned(_) => false,
        }
    }
}

impl From<RenderFailure> for PublishError {
    fn from(failure: RenderFailure) -> Self {
        match failure {
            RenderFailure::Malformed(malformed) => Self::Malformed(malformed),
            RenderFailure::Budget(budget) => Self::Budget(budget),
            RenderFailure::Unsupported(content_type) => Self::Unsupported(content_type),
            RenderFailure::Preparing => Self::Capacity(PREPARING_MESSAGE),
            RenderFailure::Busy => Self::Capacity(WORKERS_BUSY_MESSAGE),
            RenderFailure::Broken(error) => Self::Internal(error),
        }
    }
}

impl From<RulesFailure> for PublishError {
    fn from(failure: RulesFailure) -> Self {
        match failure {
            RulesFailure::Refused(fault) => Self::Rules(fault),
            RulesFailure::Budget(budget) => Self::Budget(budget),
            RulesFailure::Unsupported => Self::RulesUnsupported,
            RulesFailure::Preparing => Self::Capacity(PREPARING_MESSAGE),
            RulesFailure::Busy => Self::Capacity(WORKERS_BUSY_MESSAGE),
            RulesFailure::Broken(error) => Self::Internal(error),
        }
    }
}

impl From<LaneBusy> for PublishError {
    fn from(_: LaneBusy) -> Self {
        Self::Capacity(WORKERS_BUSY_MESSAGE)
    }
}

impl From<ByteBudgetFull> for PublishError {
    fn from(_: ByteBudgetFull) -> Self {
        Self::Capacity(WORKERS_BUSY_MESSAGE)
    }
}

impl From<content::Error> for PublishError {
    fn from(error: content::Error) -> Self {
        match error {
            content::Error::Full => Self::Capacity(DISK_FULL_MESSAGE),
            other => Self::Internal(other.into()),
        }
    }
}

impl From<control::Error> for PublishError {
    fn from(error: control::Error) -> Self {
        match error {
            control::Error::Full => Self::Capacity(DISK_FULL_MESSAGE),
            control::Error::Busy => Self::Capacity(DATABASE_BUSY_MESSAGE),
            other => Self::Internal(other.into()),
        }
    }
}

impl From<RandomSourceError> for PublishError {
    fn from(error: RandomSourceError) -> Self {
        Self::Internal(error.into())
    }
}

impl From<std::io::Error> for PublishError {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::StorageFull {
            return Self::Capacity(DISK_FULL_MESSAGE);
        }
        // A store that is out of reach for a while says so itself.
        match error.downcast::<content::Error>() {
            Ok(error) => error.into(),
            Err(error) => Self::Internal(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_the_machine_does_not_last() {
        for (error, is_lasting) in [
            (PublishError::Budget(BudgetKind::Fuel), true),
            (PublishError::Budget(BudgetKind::Time), false),
            (PublishError::disk_full(), false),
        ] {
            assert_eq!(error.is_lasting(), is_lasting, "{error}");
        }
    }
}
