//! The page that a socket was opened from, which the socket ends with.

use std::sync::Arc;

use crate::deployments::serving::pages::ServedPage;
use crate::http::hosts::{DomainHost, HostKind};
use svc_base::ids::DeploymentId;

/// Page that a socket was opened from.
#[derive(Clone, Debug)]
pub(super) struct SocketPage {
    pub(super) slug: Arc<str>,
    pub(super) id: DeploymentId,
    /// Domain of the project that the page was on.
    pub(super) domain: Option<DomainHost>,
}

impl SocketPage {
    /// Returns the page at a slug, as a visitor of a host has it.
    pub(super) fn on_host(host: &HostKind, slug: &str, page: &ServedPage) -> Self {
        Self {
            slug: slug.into(),
            id: page.id,
            domain: host.domain().cloned(),
        }
    }
}
