//! Sign-ins on pages of the server itself, which no other server has a part in: whose page it is, and how it is left.

pub(super) mod routes;

use std::sync::Arc;

use super::Visitors;
use super::model::{SignInError, SignInFailure, VisitorError};
use super::providers::SignInProvider;
use super::return_to;
use super::sign_in_page::FrontendWithSignIn;
use super::state::{PendingSignIn, SignInStateSealer, sha256_base64url};
use crate::config::ProviderKind;

/// Sign-in that waits on a page of the server.
#[derive(Debug)]
pub(super) struct OwnPageSignIn {
    /// Sealed form of the sign-in, which its forms carry.
    pub state: String,
    pub sign_in: PendingSignIn,
    /// Frontend that it began on.
    pub page: FrontendWithSignIn,
    pub provider: Arc<SignInProvider>,
}

/// Reason why a page of the server is left.
#[derive(Debug)]
pub(super) enum OwnPageEnd {
    /// The browser goes back to an address of the frontend at a slug.
    Return { location: String, slug: String },
    /// The request is refused.
    Refused(VisitorError),
}

impl From<VisitorError> for OwnPageEnd {
    fn from(error: VisitorError) -> Self {
        Self::Refused(error)
    }
}

impl OwnPageSignIn {
    /// Returns where a visitor goes who does not want to sign in.
    pub(super) fn way_back(&self) -> String {
        let denied = SignInError::AccessDenied.code();
        return_to::url_with_error(&self.page.origin, &self.sign_in.return_to, denied)
    }

    /// Returns the address of the page at `path`, for its own forms.
    pub(super) fn form_url(&self, path: &str) -> String {
        form_url(path, &self.state)
    }
}

/// Returns the address of the page at `path` that a sealed state belongs to.
pub(super) fn form_url(path: &str, state: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("state", state);
    format!("{path}?{}", query.finish())
}

impl Visitors {
    /// Returns the sign-in of a state, which a page of this server has, by a provider of this kind.
    ///
    /// # Errors
    /// [`OwnPageEnd`].
    pub(super) async fn own_page_sign_in(
        &self,
        kind: ProviderKind,
        state: Option<String>,
        browser: Option<&str>,
    ) -> Result<OwnPageSignIn, OwnPageEnd> {
        let unknown = || OwnPageEnd::Refused(VisitorError::UnknownSignIn);
        let state = state.ok_or_else(unknown)?;
        let sign_in = self.states.open(&state).ok_or_else(unknown)?;
        let page = self.sign_in_page_of(&sign_in).await?;
        let ended = |failure: &SignInFailure| self.return_from_own_page(&page, &sign_in, failure);
        let invalid = |cause: &str| SignInFailure::new(SignInError::StateInvalid, cause);
        if self.states.is_used(&sign_in) {
            return Err(ended(&invalid("it came back before")));
        }
        // Where frontends have origins of their own, the browser that began is checked at the completion.
        let here = self.infra.config.sites_domain.is_none();
        if here && browser.map(sha256_base64url).as_deref() != Some(sign_in.browser.as_str()) {
            return Err(ended(&invalid("it came back to another browser")));
        }
        let provider = match self.find_offered_provider(&page, &sign_in) {
            Ok(provider) if provider.settings.kind == kind => provider,
            Ok(_) => return Err(ended(&invalid("it is another provider's"))),
            Err(failure) => return Err(ended(&failure)),
        };
        Ok(OwnPageSignIn {
            state,
            sign_in,
            page,
            provider,
        })
    }

    /// Does what [`Visitors::own_page_sign_in`] does, for a sign-in that may still go on.
    ///
    /// # Errors
    /// [`OwnPageEnd`], also because it took too long.
    pub(super) async fn current_own_page_sign_in(
        &self,
        kind: ProviderKind,
        state: Option<String>,
        browser: Option<&str>,
    ) -> Result<OwnPageSignIn, OwnPageEnd> {
        let at = self.own_page_sign_in(kind, state, browser).await?;
        self.check_own_page_time(&at)?;
        Ok(at)
    }

    /// Checks that a sign-in may still go on.
    ///
    /// # Errors
    /// It took too long.
    pub(super) fn check_own_page_time(&self, at: &OwnPageSignIn) -> Result<(), OwnPageEnd> {
        if !SignInStateSealer::is_expired(&at.sign_in, self.infra.clock.now()) {
            return Ok(());
        }
        let failure = SignInFailure::new(SignInError::StateInvalid, "it took too long");
        Err(self.end_own_page(at, &failure))
    }

    /// Uses a sign-in up.
    ///
    /// # Errors
    /// It was used before.
    pub(super) fn use_own_page(&self, at: &OwnPageSignIn) -> Result<(), OwnPageEnd> {
        if self.states.mark_used(&at.sign_in, self.infra.clock.now()) {
            return Ok(());
        }
        let failure = SignInFailure::new(SignInError::StateInvalid, "it came back before");
        Err(self.end_own_page(at, &failure))
    }

    /// Returns the end of a sign-in that has failed.
    pub(super) fn end_own_page(&self, at: &OwnPageSignIn, failure: &SignInFailure) -> OwnPageEnd {
        self.return_from_own_page(&at.page, &at.sign_in, failure)
    }

    /// Returns the way back to a frontend, which is told of the failure.
    pub(super) fn return_from_own_page(
        &self,
        page: &FrontendWithSignIn,
        sign_in: &PendingSignIn,
        failure: &SignInFailure,
    ) -> OwnPageEnd {
        OwnPageEnd::Return {
            location: self.fail_sign_in(&page.origin, sign_in, failure),
            slug: page.mounts.slug().to_owned(),
        }
    }
}
