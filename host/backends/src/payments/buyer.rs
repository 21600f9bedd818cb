//! Identifies the buyer of a request, for checkouts and for the list of payments.

use http::header::InvalidHeaderValue;
use http::{HeaderMap, HeaderValue};
use ring::digest::{SHA256, digest};

use super::model::COOKIE_SECONDS;
use crate::control;
use crate::deployments::serving::PageMounts;
use crate::deployments::serving::pages::ServedPage;
use crate::http::cookies::{has_several, host_token, host_tokens};
use crate::http::hosts::HostKind;
use crate::visitors::{ActionCallerIdentity, Visitors};
use svc_base::ids::DeploymentId;

/// Number of former cookies that are looked up.
const MAX_FORMER_TOKENS: usize = 8;

/// Visitor of a page that sells, as far as the request identifies one.
#[derive(Clone, Debug, Default)]
pub struct Buyer {
    /// The signed-in visitor, if any.
    pub user: Option<ActionCallerIdentity>,
    /// Value of the checkout cookie; not looked up yet.
    pub token: Option<String>,
    /// Values of the cookies under their name without a prefix, on an https server. Browsers got such cookies before names had
    /// prefixes. A sibling origin could set one, so they only show purchases that were made with them, and one more hides none.
    pub former_tokens: Vec<String>,
    /// Whether the browser sent several checkout cookies, so that none counts and none is replaced.
    pub ambiguous: bool,
    /// Whether visitors use https, so that no other origin can have set `token`.
    pub secure: bool,
}

impl Buyer {
    /// Identifies the buyer of a request to a page.
    pub async fn identify(
        visitors: &Visitors,
        host: &HostKind,
        page: &ServedPage,
        headers: &HeaderMap,
    ) -> Result<Self, control::Error> {
        let session = visitors.caller_session(host, page, headers).await?;
        let (name, secure) = (cookie_name(&page.id), visitors.uses_https());
        let mut former = Vec::new();
        if secure {
            former = host_tokens(headers, &name, false);
            former.truncate(MAX_FORMER_TOKENS);
        }
        Ok(Self {
            user: session.map(|session| session.identity()),
            token: host_token(headers, &name, secure).map(str::to_owned),
            former_tokens: former.into_iter().map(str::to_owned).collect(),
            ambiguous: has_several(headers, &name, secure),
            secure,
        })
    }
}

impl Buyer {
    /// Whether nothing identifies the buyer.
    pub fn is_unknown(&self) -> bool {
        self.user.is_none() && self.token.is_none() && self.former_tokens.is_empty()
    }
}

/// Returns the `Set-Cookie` headers of a frontend's checkout.
pub(super) fn checkout_cookies(
    page: &DeploymentId,
    mounts: &PageMounts,
    (token, secure): (&str, bool),
) -> Result<Vec<HeaderValue>, InvalidHeaderValue> {
    mounts.cookie_headers(&cookie_name(page), secure, (token, COOKIE_SECONDS))
}

fn cookie_name(page: &DeploymentId) -> String {
    format!("svc_checkout_{page}")
}

/// Hashes a cookie's value, as the database stores it.
pub(super) fn hash_token(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}
