//! Steps of a sign-in by e-mail, on pages of the server's own: an address is asked for, and the code that is sent to it.

mod pages;
pub mod routes;

use std::net::IpAddr;
use std::sync::Arc;

use super::Visitors;
use super::kinds::email::{
    CodeRefusal, CodeRequest, CodeVerdict, DevMailbox, EmailProvider, MailLimitReached,
};
use super::model::{SignInError, SignInFailure, VisitorError};
use super::providers::SignInProvider;
use super::return_to;
use super::sign_in_page::FrontendWithSignIn;
use super::state::{PendingSignIn, SignInStateSealer, sha256_base64url};
use crate::outbound::mail::MailAddress;
use crate::workspaces::credential;

/// Sign-in that waits for an address or a code.
#[derive(Debug)]
struct EmailSignIn {
    /// Sealed form of the sign-in, which its forms carry.
    state: String,
    sign_in: PendingSignIn,
    page: FrontendWithSignIn,
    provider: Arc<SignInProvider>,
}

/// Reason why a sign-in does not go on here.
#[derive(Debug)]
enum EmailSignInEnd {
    /// The browser goes back to this address.
    Return(String),
    /// The request is refused.
    Refused(VisitorError),
}

impl From<VisitorError> for EmailSignInEnd {
    fn from(error: VisitorError) -> Self {
        Self::Refused(error)
    }
}

/// Result of a request for a code.
#[derive(Debug)]
enum CodeSent {
    /// The code is on its way, for the browser with this token.
    Sent { browser: String },
    /// Too many codes were sent.
    TooMany(MailLimitReached),
}

/// Result of a code.
#[derive(Debug)]
enum CodeEntered {
    /// The visitor is signed in: the browser goes on to this address.
    Right(String),
    /// The code is wrong; contains the address that the right one was sent to, and how many attempts are left.
    Wrong(MailAddress, u8),
    /// There is no code, or none any more.
    Unknown,
}

impl EmailSignIn {
    /// Returns the provider.
    fn email(&self) -> Result<&EmailProvider, EmailSignInEnd> {
        let email = self.provider.kind.email();
        email.ok_or(EmailSignInEnd::Refused(VisitorError::UnknownSignIn))
    }

    /// Returns where a visitor goes who does not want to sign in.
    fn way_back(&self) -> String {
        let denied = SignInError::AccessDenied.code();
        return_to::url_with_error(&self.page.origin, &self.sign_in.return_to, denied)
    }
}

impl Visitors {
    /// Returns the sign-in of a state, which a page of this server has.
    async fn email_sign_in(
        &self,
        state: Option<String>,
        browser: Option<&str>,
    ) -> Result<EmailSignIn, EmailSignInEnd> {
        let unknown = || EmailSignInEnd::Refused(VisitorError::UnknownSignIn);
        let state = state.ok_or_else(unknown)?;
        let sign_in = self.states.open(&state).ok_or_else(unknown)?;
        let page = self.sign_in_page_of(&sign_in).await?;
        let ended = |failure: &SignInFailure| {
            EmailSignInEnd::Return(self.fail_sign_in(&page.origin, &sign_in, failure))
        };
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
            Ok(provider) if provider.kind.email().is_some() => provider,
            Ok(_) => return Err(ended(&invalid("it is another provider's"))),
            Err(failure) => return Err(ended(&failure)),
        };
        Ok(EmailSignIn {
            state,
            sign_in,
            page,
            provider,
        })
    }

    /// Checks that a sign-in may still begin.
    fn check_email_sign_in_time(&self, at: &EmailSignIn) -> Result<(), EmailSignInEnd> {
        if !SignInStateSealer::is_expired(&at.sign_in, self.infra.clock.now()) {
            return Ok(());
        }
        let failure = SignInFailure::new(SignInError::StateInvalid, "it took too long");
        Err(self.end_email_sign_in(at, &failure))
    }

    fn end_email_sign_in(&self, at: &EmailSignIn, failure: &SignInFailure) -> EmailSignInEnd {
        EmailSignInEnd::Return(self.fail_sign_in(&at.page.origin, &at.sign_in, failure))
    }

    /// Sends a code to an address, for a browser, which gets a token if it has none.
    async fn send_code(
        &self,
        at: &EmailSignIn,
        address: MailAddress,
        client: IpAddr,
        browser: Option<&str>,
    ) -> Result<CodeSent, EmailSignInEnd> {
        let browser = match browser {
            Some(known) => known.to_owned(),
            None => credential::random_secret(&self.infra.random).map_err(VisitorError::from)?,
        };
        let place = format!("{}{}", at.page.origin, at.page.mounts.home());
        let request = CodeRequest {
            sign_in: &at.sign_in.id,
            browser: &sha256_base64url(&browser),
            address,
            client,
            project: &at.page.project,
            place: &place,
        };
        match at.email()?.send_code(request).await {
            Ok(()) => Ok(CodeSent::Sent { browser }),
            Err(CodeRefusal::TooMany(reached)) => Ok(CodeSent::TooMany(reached)),
            Err(CodeRefusal::Failed(failure)) => Err(self.end_email_sign_in(at, &failure)),
        }
    }

    /// Compares a code with the one that was sent; the right one ends the sign-in.
    fn enter_code(
        &self,
        at: &EmailSignIn,
        code: &str,
        browser: Option<&str>,
    ) -> Result<CodeEntered, EmailSignInEnd> {
        let email = at.email()?;
        let browser = browser.map(sha256_base64url);
        let verdict = email.check_code(&at.sign_in.id, browser.as_deref(), code);
        let address = match verdict {
            CodeVerdict::Right(address) => address,
            CodeVerdict::Wrong(address, left) => return Ok(CodeEntered::Wrong(address, left)),
            CodeVerdict::Unknown => return Ok(CodeEntered::Unknown),
        };
        if !self.states.mark_used(&at.sign_in, self.infra.clock.now()) {
            let failure = SignInFailure::new(SignInError::StateInvalid, "it came back before");
            return Err(self.end_email_sign_in(at, &failure));
        }
        let visitor = email.visitor(&address);
        let location = self.issue_ticket(&at.page, at.sign_in.clone(), visitor)?;
        Ok(CodeEntered::Right(location))
    }

    /// Returns the mails that are shown instead of sent, if they are.
    fn mailbox(&self) -> Option<&DevMailbox> {
        self.providers.email().and_then(EmailProvider::mailbox)
    }
}
