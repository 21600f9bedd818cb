//! Steps of a sign-in by e-mail, on pages of the server's own: an address is asked for, and the code that is sent to it.

mod pages;
pub mod routes;

use std::net::IpAddr;

use super::Visitors;
use super::kinds::email::{
    CodeRefusal, CodeRequest, CodeVerdict, DevMailbox, EmailProvider, MailLimitReached,
};
use super::model::VisitorError;
use super::own_pages::{OwnPageEnd, OwnPageSignIn};
use super::state::sha256_base64url;
use crate::outbound::mail::MailAddress;
use crate::workspaces::credential;

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

/// Returns the provider of a sign-in.
fn email_provider(at: &OwnPageSignIn) -> Result<&EmailProvider, OwnPageEnd> {
    let email = at.provider.kind.email();
    email.ok_or(OwnPageEnd::Refused(VisitorError::UnknownSignIn))
}

impl Visitors {
    /// Sends a code to an address, for a browser, which gets a token if it has none.
    async fn send_code(
        &self,
        at: &OwnPageSignIn,
        address: MailAddress,
        client: IpAddr,
        browser: Option<&str>,
    ) -> Result<CodeSent, OwnPageEnd> {
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
        match email_provider(at)?.send_code(request).await {
            Ok(()) => Ok(CodeSent::Sent { browser }),
            Err(CodeRefusal::TooMany(reached)) => Ok(CodeSent::TooMany(reached)),
            Err(CodeRefusal::Failed(failure)) => Err(self.end_own_page(at, &failure)),
        }
    }

    /// Compares a code with the one that was sent; the right one ends the sign-in.
    fn enter_code(
        &self,
        at: &OwnPageSignIn,
        code: &str,
        browser: Option<&str>,
    ) -> Result<CodeEntered, OwnPageEnd> {
        let email = email_provider(at)?;
        let browser = browser.map(sha256_base64url);
        let verdict = email.check_code(&at.sign_in.id, browser.as_deref(), code);
        let address = match verdict {
            CodeVerdict::Right(address) => address,
            CodeVerdict::Wrong(address, left) => return Ok(CodeEntered::Wrong(address, left)),
            CodeVerdict::Unknown => return Ok(CodeEntered::Unknown),
        };
        self.use_own_page(at)?;
        let visitor = email.visitor(&address);
        let location = self.issue_ticket(&at.page, at.sign_in.clone(), visitor)?;
        Ok(CodeEntered::Right(location))
    }

    /// Returns the mails that are shown instead of sent, if they are.
    fn mailbox(&self) -> Option<&DevMailbox> {
        self.providers.email().and_then(EmailProvider::mailbox)
    }
}
