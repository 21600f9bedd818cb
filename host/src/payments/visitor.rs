//! Visitor of a request, for checkouts and for the list of payments.

use http::HeaderMap;
use ring::digest::{SHA256, digest};

use crate::control;
use crate::deployments::pages::Page;
use crate::http::hosts::Host;
use crate::visitors::{Identity, Visitors, token_of};
use svc_base::ids::DeploymentId;

/// Visitor, as far as is known.
#[derive(Clone, Debug, Default)]
pub struct Visitor {
    /// Visitor who is signed in.
    pub user: Option<Identity>,
    /// The checkout cookie's value, which nobody has looked up yet.
    pub token: Option<String>,
}

impl Visitor {
    /// Finds the visitor of a request to a page.
    pub async fn of(
        visitors: &Visitors,
        host: &Host,
        page: &Page,
        headers: &HeaderMap,
    ) -> Result<Self, control::Error> {
        let session = visitors.caller(host, page, headers).await?;
        let token = token_of(headers, &cookie_name(&page.id));
        Ok(Self {
            user: session.map(|session| session.identity()),
            token: token.map(str::to_owned),
        })
    }
}

/// The name of a frontend's checkout cookie.
pub(super) fn cookie_name(page: &DeploymentId) -> String {
    format!("svc_checkout_{page}")
}

/// Hashes a cookie's value for the database.
pub(super) fn hash(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}
