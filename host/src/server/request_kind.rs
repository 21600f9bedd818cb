//! Kinds of requests, by how they reach their handlers.

use crate::telemetry;

/// Route of requests that another node answers, in metrics and in the access log.
const PROXIED_ROUTE: &str = "proxied";

/// Kind of a request, for its metrics.
#[derive(Clone, Copy)]
pub(super) enum RequestKind {
    View,
    File,
    Call,
    Download,
    Routed,
    /// Answered by another node, which knows the route.
    Proxied,
}

impl RequestKind {
    /// Returns the route, if it is known without the router.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::View => Some(telemetry::PAGE_ROUTE),
            Self::File => Some(telemetry::FILE_ROUTE),
            Self::Call => Some(telemetry::CALL_ROUTE),
            Self::Download => Some(telemetry::DOWNLOAD_ROUTE),
            Self::Routed => None,
            Self::Proxied => Some(PROXIED_ROUTE),
        }
    }
}
