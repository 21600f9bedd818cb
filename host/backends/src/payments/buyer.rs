//! Identifies the buyer of a request, for checkouts and for the list of payments.

use std::sync::Arc;

use http::header::InvalidHeaderValue;
use http::{HeaderMap, HeaderValue};
use ring::digest::{Context, SHA256};

use super::model::COOKIE_SECONDS;
use crate::control;
use crate::deployments::serving::PageMounts;
use crate::deployments::serving::pages::ServedPage;
use crate::http::cookies::{has_several, host_token, host_tokens};
use crate::http::hosts::HostKind;
use crate::tls::ServedDomain;
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
    /// Host that the cookies are of.
    pub(super) host: CookieHost,
}

/// Host of checkout cookies: a domain of the project, or else its own origin.
///
/// A browser sends the cookies of a domain to whoever has the domain later. On another host they are unknown, because the host is a part of
/// what is hashed. Purchases stay, so that a domain that comes back to its project shows them again.
#[derive(Clone, Debug, Default)]
pub(super) struct CookieHost(Option<Arc<ServedDomain>>);

impl CookieHost {
    /// Hashes a cookie's value, as the database stores it.
    pub(super) fn hash_token(&self, token: &str) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        context.update(token.as_bytes());
        if let Some(domain) = &self.0 {
            // No value of a cookie and no name has this byte.
            context.update(&[0]);
            context.update(domain.name.as_bytes());
        }
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.finish().as_ref());
        bytes
    }
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
            host: CookieHost(host.domain().map(|on| Arc::clone(&on.domain))),
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

#[cfg(test)]
mod tests {
    use ring::digest::digest;

    use super::*;

    fn domain(name: &str) -> CookieHost {
        CookieHost(Some(Arc::new(ServedDomain {
            name: name.to_owned(),
            host_label: "shop-dev".to_owned(),
            redirect_to: None,
        })))
    }

    #[test]
    fn a_cookie_is_another_one_on_another_host() {
        let own = CookieHost::default().hash_token("secret");
        assert_eq!(own.as_slice(), digest(&SHA256, b"secret").as_ref());
        let (a, b) = (domain("a.com"), domain("b.com"));
        assert_eq!(a.hash_token("secret"), domain("a.com").hash_token("secret"));
        assert_ne!(a.hash_token("secret"), own);
        assert_ne!(a.hash_token("secret"), b.hash_token("secret"));
        assert_ne!(a.hash_token("other"), a.hash_token("secret"));
    }
}
