//! Who the visitor of a request is, for checkouts and for what was paid.

use http::{HeaderMap, header};

use cookie::Cookie;
use ring::digest::{SHA256, digest};

use crate::deployments::pages::Page;
use crate::ids::DeploymentId;

/// What is known of a visitor.
#[derive(Clone, Debug, Default)]
pub struct Visitor {
    /// Who is signed in.
    pub user: Option<SignedIn>,
    /// SHA-256 of the checkout cookie, which nobody has looked up yet.
    pub cookie: Option<[u8; 32]>,
    /// The checkout cookie's value.
    pub token: Option<String>,
}

/// A visitor who is signed in.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The visitor's id.
    pub id: String,
    /// Their verified address.
    pub email: Option<String>,
}

/// The name of a frontend's checkout cookie.
pub(super) fn cookie_name(page: &DeploymentId) -> String {
    format!("svc_checkout_{page}")
}

/// Finds the visitor of a request to a page.
pub(super) fn visitor(page: &Page, headers: &HeaderMap) -> Visitor {
    let name = cookie_name(&page.id);
    let lines = headers.get_all(header::COOKIE).iter();
    let token = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(Cookie::split_parse)
        .filter_map(Result::ok)
        .find(|cookie| cookie.name() == name)
        .map(|cookie| cookie.value().to_owned())
        .filter(|value| !value.is_empty());
    Visitor {
        user: None,
        cookie: token.as_deref().map(hash),
        token,
    }
}

/// What is stored of a cookie's value.
pub(super) fn hash(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}
