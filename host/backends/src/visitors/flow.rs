//! Steps of a sign-in: it starts on the frontend, continues at the callback, and is completed on the frontend.

use std::sync::Arc;
use std::time::Duration;

use super::failures::{failure_url, not_offered};
use super::kinds::{CallbackQuery, SignInExchange};
use super::model::{SessionTokenHash, SignInError, SignInFailure, VerifiedVisitor, VisitorError};
use super::providers::SignInProvider;
use super::sign_in_page::FrontendWithSignIn;
use super::state::{PendingSignIn, SignInStateSealer, sha256_base64url};
use super::tickets::{SignInTicket, TicketRedemption};
use super::{Visitors, return_to};
use crate::workspaces::credential;

/// Time for which a sign-in waits for a permit to call a provider.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Request of a page to start a sign-in.
#[derive(Clone, Debug, Default)]
pub(super) struct SignInRequest {
    /// Name of the provider; absent, the visitor chooses if there are several.
    pub provider: Option<String>,
    /// Path to lead back to.
    pub return_to: Option<String>,
}

/// First step of a sign-in.
#[derive(Debug)]
pub(super) enum SignInStart {
    /// The visitor chooses a provider.
    Choose {
        /// Providers to choose from.
        offered: Vec<Arc<SignInProvider>>,
        /// Path to lead back to.
        return_to: String,
    },
    /// The browser goes to the provider.
    Redirect {
        /// Address of the provider's sign-in page.
        location: String,
        /// Token that identifies the browser until it comes back.
        browser: String,
    },
    /// The sign-in has failed, and the browser goes back to this address.
    Return(String),
}

impl Visitors {
    /// Starts a sign-in from `browser`, which may have another sign-in pending.
    ///
    /// # Errors
    /// `Unconfigured`; `ReturnTo` for a path outside of the frontend.
    pub(super) async fn start(
        &self,
        page: &FrontendWithSignIn,
        request: SignInRequest,
        browser: Option<&str>,
    ) -> Result<SignInStart, VisitorError> {
        let (offered, return_to) = self.check_request(page, &request)?;
        let provider = match request.provider {
            None if offered.len() > 1 => return Ok(SignInStart::Choose { offered, return_to }),
            None => Arc::clone(&offered[0]),
            Some(name) => match self.find_allowed_provider(&page.project, &name) {
                Some(provider) => provider,
                None => {
                    // An unknown name is a visitor's text, so it is not logged.
                    let known = self.providers.find_by_name(&name);
                    let name = known.map_or("-", |one| one.settings.name.as_str());
                    let location = failure_url(&page.origin, &return_to, name, &not_offered());
                    return Ok(SignInStart::Return(location));
                }
            },
        };
        let browser = match browser {
            Some(known) => known.to_owned(),
            None => credential::random_secret(&self.infra.random)?,
        };
        let sign_in = PendingSignIn {
            id: self.infra.random.slug(26)?,
            slug: page.mounts.slug().to_owned(),
            deployment: page.frontend.id,
            provider: provider.settings.name.clone(),
            return_to,
            domain: page.domain_authority(),
            browser: sha256_base64url(&browser),
            at: self.infra.clock.now().0,
        };
        Ok(match self.authorization_url(&provider, &sign_in).await {
            Ok(location) => SignInStart::Redirect { location, browser },
            Err(failure) => {
                SignInStart::Return(self.fail_sign_in(&page.origin, &sign_in, &failure))
            }
        })
    }

    /// Checks a request for a sign-in; returns the providers that it may start with, and the path to lead back to.
    ///
    /// # Errors
    /// `Unconfigured`; `ReturnTo` for a path outside of the frontend.
    pub(super) fn check_request(
        &self,
        page: &FrontendWithSignIn,
        request: &SignInRequest,
    ) -> Result<(Vec<Arc<SignInProvider>>, String), VisitorError> {
        let offered = self.offered_providers(&page.project);
        if offered.is_empty() {
            return Err(VisitorError::Unconfigured);
        }
        let return_to = match request.return_to.as_deref() {
            None | Some("") => page.mounts.home(),
            Some(path) => return_to::validated_path(&page.origin, &page.mounts, path)
                .ok_or_else(|| VisitorError::ReturnTo(page.mounts.slug().to_owned()))?,
        };
        Ok((offered, return_to))
    }

    /// Returns the address at which a visitor signs in.
    async fn authorization_url(
        &self,
        provider: &SignInProvider,
        sign_in: &PendingSignIn,
    ) -> Result<String, SignInFailure> {
        let state = self.states.seal(sign_in, &self.infra.random);
        let state = state
            .map_err(|error| SignInFailure::new(SignInError::ProviderError, error.to_string()))?;
        let exchange = self.exchange(provider, sign_in);
        let address = provider.kind.authorization_url(&exchange, &state).await?;
        Ok(address.to_string())
    }

    fn exchange(&self, provider: &SignInProvider, sign_in: &PendingSignIn) -> SignInExchange {
        SignInExchange {
            redirect_uri: self.redirect_uri(provider),
            nonce: self.states.nonce(sign_in),
            verifier: self.states.verifier(sign_in),
        }
    }

    /// Returns the redirect URI that a provider is registered with.
    pub fn redirect_uri(&self, provider: &SignInProvider) -> String {
        format!(
            "{}/_svc/auth/callback/{}",
            self.infra.config.sites_url, provider.settings.name
        )
    }

    /// Handles a provider's answer; returns the URL for the browser, which is the completion of the sign-in or its page with an error,
    /// and the slug of the page.
    ///
    /// # Errors
    /// `UnknownSignIn`; `Gone` and other errors of the frontend that the sign-in began on.
    pub(super) async fn handle_callback(
        &self,
        provider: &str,
        answer: CallbackQuery,
        browser: Option<&str>,
    ) -> Result<(String, String), VisitorError> {
        let state = answer.state.as_deref();
        let sign_in = state
            .and_then(|state| self.states.open(state))
            .ok_or(VisitorError::UnknownSignIn)?;
        let page = self.sign_in_page_of(&sign_in).await?;
        let verified = self.verify_callback(&page, &sign_in, provider, &answer, browser);
        let location = match verified.await {
            Ok(visitor) => self.issue_ticket(&page, sign_in, visitor)?,
            Err(failure) => self.fail_sign_in(&page.origin, &sign_in, &failure),
        };
        Ok((location, page.mounts.slug().to_owned()))
    }

    /// Verifies that an answer belongs to a sign-in, and returns the visitor that the provider has identified.
    async fn verify_callback(
        &self,
        page: &FrontendWithSignIn,
        sign_in: &PendingSignIn,
        provider: &str,
        answer: &CallbackQuery,
        browser: Option<&str>,
    ) -> Result<VerifiedVisitor, SignInFailure> {
        let now = self.infra.clock.now();
        let refused = |cause: &str| Err(SignInFailure::new(SignInError::StateInvalid, cause));
        if sign_in.provider != provider {
            return refused("it came back from another provider than it went to");
        }
        if SignInStateSealer::is_expired(sign_in, now) {
            return refused("it took too long");
        }
        // Where frontends have origins of their own, the browser is checked at the completion.
        let here = self.infra.config.sites_domain.is_none();
        if here && browser.map(sha256_base64url).as_deref() != Some(sign_in.browser.as_str()) {
            return refused("it came back to another browser");
        }
        if !self.states.mark_used(sign_in, now) {
            return refused("it came back before");
        }
        let provider = self.find_offered_provider(page, sign_in)?;
        let permit = tokio::time::timeout(PERMIT_TIMEOUT, provider.permits.acquire()).await;
        let Ok(Ok(_permit)) = permit else {
            let cause = "too many sign-ins wait for it";
            return Err(SignInFailure::new(SignInError::ProviderUnavailable, cause));
        };
        let exchange = self.exchange(&provider, sign_in);
        provider.kind.verify_sign_in(answer, &exchange).await
    }

    pub(super) fn find_offered_provider(
        &self,
        page: &FrontendWithSignIn,
        sign_in: &PendingSignIn,
    ) -> Result<Arc<SignInProvider>, SignInFailure> {
        let allowed = self.find_allowed_provider(&page.project, &sign_in.provider);
        allowed.ok_or_else(not_offered)
    }

    pub(super) fn issue_ticket(
        &self,
        page: &FrontendWithSignIn,
        sign_in: PendingSignIn,
        visitor: VerifiedVisitor,
    ) -> Result<String, VisitorError> {
        let text = credential::random_secret(&self.infra.random)?;
        let (return_to, provider) = (sign_in.return_to.clone(), sign_in.provider.clone());
        let ticket = SignInTicket { sign_in, visitor };
        if !self.tickets.issue(&text, ticket, self.infra.clock.now()) {
            let failure = SignInFailure::new(
                SignInError::ProviderUnavailable,
                "too many sign-ins at once",
            );
            return Ok(failure_url(&page.origin, &return_to, &provider, &failure));
        }
        Ok(format!(
            "{}/{}/auth/complete?ticket={text}",
            page.origin,
            page.mounts.slug()
        ))
    }

    /// Completes a sign-in; returns the token of the session, if one began, and the URL for the browser.
    pub(super) async fn complete(
        &self,
        page: &FrontendWithSignIn,
        ticket: Option<&str>,
        browser: Option<&str>,
        before: Option<SessionTokenHash>,
    ) -> Result<(Option<String>, String), VisitorError> {
        let refused = |back: &str, cause: &str| {
            let failure = SignInFailure::new(SignInError::TicketInvalid, cause);
            Ok((None, failure_url(&page.origin, back, "-", &failure)))
        };
        let home = page.mounts.home();
        let ticket = match ticket.map(|ticket| self.tickets.redeem(ticket, self.infra.clock.now()))
        {
            Some(TicketRedemption::Valid(ticket)) => *ticket,
            Some(TicketRedemption::Spent(back))
                if return_to::validated_path(&page.origin, &page.mounts, &back).is_some() =>
            {
                return refused(&back, "the ticket is used, or too old");
            }
            _ => return refused(&home, "there is no such ticket"),
        };
        let SignInTicket { sign_in, visitor } = ticket;
        if sign_in.deployment != page.frontend.id {
            return refused(&home, "the ticket is of another page");
        }
        if sign_in.domain != page.domain_authority() {
            return refused(&home, "the ticket is of another host");
        }
        if browser.map(sha256_base64url).as_deref() != Some(sign_in.browser.as_str()) {
            return refused(&sign_in.return_to, "the ticket is another browser's");
        }
        if let Err(failure) = self.find_offered_provider(page, &sign_in) {
            return Ok((None, self.fail_sign_in(&page.origin, &sign_in, &failure)));
        }
        let begun = self.begin_session(page, &sign_in.provider, visitor, before);
        match begun.await? {
            Ok(token) => Ok((Some(token), format!("{}{}", page.origin, sign_in.return_to))),
            Err(failure) => Ok((None, self.fail_sign_in(&page.origin, &sign_in, &failure))),
        }
    }

    pub(super) fn fail_sign_in(
        &self,
        origin: &str,
        sign_in: &PendingSignIn,
        failure: &SignInFailure,
    ) -> String {
        failure_url(origin, &sign_in.return_to, &sign_in.provider, failure)
    }
}

/// Returns the URL of the same request on the frontend's own origin.
pub(super) fn login_url(origin: &str, slug: &str, query: Option<&str>) -> String {
    let mut address = format!("{origin}/{slug}/auth/login");
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        address.push('?');
        address.push_str(query);
    }
    address
}
