//! Keeps passkeys of the sites host from the pages of projects. Browsers let pages on hosts below it ask for them, and each answer names
//! the account: two projects could tell that two visitors are one person.

use axum::extract::Request;
use axum::response::Response;
use http::{HeaderName, HeaderValue};

use crate::config::Config;
use crate::http::hosts::HostKind;

const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");
const NO_PASSKEYS: HeaderValue =
    HeaderValue::from_static("publickey-credentials-create=(), publickey-credentials-get=()");

/// Whether pages of projects on a host could ask for passkeys.
pub(super) fn is_reached(config: &Config, host: &HostKind) -> bool {
    config.pages_reach_passkeys
        && match host {
            HostKind::Project(_) | HostKind::Preview(_) => true,
            // Where projects have origins of their own, their pages are sandboxed elsewhere, and have no passkeys.
            HostKind::Api | HostKind::Sites => config.sites_domain.is_none(),
            HostKind::Domain(_) | HostKind::Landing | HostKind::Console => false,
        }
}

/// Whether the answer to a request could be such a page. The server's own are not.
pub(super) fn reaches_passkeys(config: &Config, host: &HostKind, request: &Request) -> bool {
    is_reached(config, host) && !request.uri().path().starts_with("/_svc/")
}

/// Refuses passkeys to a page. The last of several policies counts, so that a page's own one changes nothing.
pub(super) fn refuse_passkeys(is_reached: bool, mut answer: Response) -> Response {
    if is_reached {
        answer.headers_mut().append(PERMISSIONS_POLICY, NO_PASSKEYS);
    }
    answer
}
