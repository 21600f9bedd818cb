//! A visitor's visit of the account that their passkeys belong to: passkeys are added and removed there.
//!
//! It begins on the frontend. A ticket leads to a page of the server's own, because the frontend's owner must neither see nor change an
//! account that visitors of other projects have, too: scripts are refused both steps, and the page is bound to the browser. Who has a
//! domain can have its cookies, so that a visit from a domain shows a passkey of the account first.

mod pages;
pub mod routes;

use serde::{Deserialize, Serialize};

use super::model::{ListedPasskey, Passkey, PasskeyAccount, PasskeyRemoval};
use super::{PasskeyAnswer, PasskeyError, PasskeyPrompt, passkey_provider, store};
use crate::config::ProviderKind;
use crate::control;
use crate::visitors::Visitors;
use crate::visitors::model::{SignInError, SignInFailure, VisitorError, VisitorSession};
use crate::visitors::own_pages::{OwnPageEnd, OwnPageSignIn, form_url};
use crate::visitors::sign_in_page::FrontendWithSignIn;
use crate::visitors::state::{PendingSignIn, SignInStateSealer, sha256_base64url};

/// Purpose that tickets are sealed for.
const TICKET_PURPOSE: &[u8] = b"svc passkeys ticket 1";
/// Purpose that visits are sealed for.
const VISIT_PURPOSE: &[u8] = b"svc passkeys visit 1";
/// Lifetime of a ticket, in milliseconds.
const TICKET_LIFETIME_MS: i64 = 60_000;

/// Visit, as it is sealed in a ticket, and in the address of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PasskeyVisit {
    /// Frontend that it began on, and when; its browser is empty in a ticket.
    #[serde(rename = "f")]
    from: PendingSignIn,
    /// Handle of the account.
    #[serde(rename = "a")]
    account: String,
    /// Whether the visitor may see and change the account: a session alone is not enough on a domain.
    #[serde(rename = "c")]
    is_confirmed: bool,
}

/// Account that is open on a page.
#[derive(Debug)]
struct OpenAccount {
    at: OwnPageSignIn,
    account: PasskeyAccount,
    passkeys: Vec<ListedPasskey>,
    is_confirmed: bool,
}

/// Result of a form of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccountChanged {
    /// The account is as the visitor wants it.
    Done,
    /// The passkey is the last one, and stays.
    Last,
    /// There is no room for another passkey, or the passkey is known.
    Refused,
}

fn invalid(error: SignInError, cause: &str) -> SignInFailure {
    SignInFailure::new(error, cause)
}

impl Visitors {
    /// Begins a visit of the account of a visitor; returns where the browser goes. `None` if they have signed in without a passkey.
    async fn begin_passkey_visit(
        &self,
        page: &FrontendWithSignIn,
        session: &VisitorSession,
    ) -> Result<Option<String>, VisitorError> {
        let provider = self.providers.find_by_name(&session.provider);
        if provider.is_none_or(|one| one.settings.kind != ProviderKind::Passkey) {
            return Ok(None);
        }
        let visitor = session.visitor.clone();
        let read = self
            .infra
            .control
            .read(move |c| store::account_of_visitor(c, visitor.as_str()));
        let Some(account) = read.await? else {
            return Ok(None);
        };
        let visit = PasskeyVisit {
            from: PendingSignIn {
                id: self.infra.random.slug(26)?,
                slug: page.mounts.slug().to_owned(),
                deployment: page.frontend.id,
                provider: session.provider.clone(),
                return_to: page.mounts.home(),
                domain: page.domain_authority(),
                browser: String::new(),
                at: self.infra.clock.now().0,
            },
            account: account.handle,
            is_confirmed: page.domain.is_none(),
        };
        let ticket = self
            .states
            .seal_for(TICKET_PURPOSE, &visit, &self.infra.random)?;
        let sites = &self.infra.config.sites_url;
        Ok(Some(format!("{sites}{}?ticket={ticket}", pages::PATH)))
    }

    /// Uses a ticket up, for a browser with this token; returns the address of the page.
    async fn redeem_passkey_ticket(
        &self,
        ticket: &str,
        browser: &str,
    ) -> Result<String, OwnPageEnd> {
        let opened: Option<PasskeyVisit> = self.states.open_for(TICKET_PURPOSE, ticket);
        let Some(visit) = opened else {
            return Err(VisitorError::UnknownSignIn.into());
        };
        let mut from = visit.from.clone();
        let page = self.sign_in_page_of(&from).await?;
        let now = self.infra.clock.now();
        let in_time = (0..TICKET_LIFETIME_MS).contains(&(now.0 - from.at));
        if !in_time || !self.states.mark_used(&from, now) {
            let failure = invalid(SignInError::TicketInvalid, "the ticket is used, or too old");
            return Err(self.return_from_own_page(&page, &from, &failure));
        }
        from.browser = sha256_base64url(browser);
        let path = self.visit_path(&PasskeyVisit { from, ..visit })?;
        Ok(format!("{}{path}", self.infra.config.sites_url))
    }

    /// Seals a visit; returns the path of its page.
    fn visit_path(&self, visit: &PasskeyVisit) -> Result<String, VisitorError> {
        let state = self
            .states
            .seal_for(VISIT_PURPOSE, visit, &self.infra.random)?;
        Ok(form_url(pages::PATH, &state))
    }

    /// Confirms a visit by a passkey of its account; returns the path of the page that is open then.
    async fn confirm_passkey_visit(
        &self,
        open: &OpenAccount,
        answer: &PasskeyAnswer,
    ) -> Result<String, PasskeyError> {
        let visitor = self.verify_passkey(&open.at, answer).await?;
        if visitor.subject != open.account.handle {
            let cause = "the passkey is another account's";
            return Err(invalid(SignInError::TokenInvalid, cause).into());
        }
        let visit = PasskeyVisit {
            from: open.at.sign_in.clone(),
            account: visitor.subject,
            is_confirmed: true,
        };
        Ok(self.visit_path(&visit)?)
    }

    /// Opens the account of a visit, in the browser that has it.
    async fn open_passkey_account(
        &self,
        state: Option<String>,
        browser: Option<&str>,
    ) -> Result<OpenAccount, OwnPageEnd> {
        let unknown = || OwnPageEnd::Refused(VisitorError::UnknownSignIn);
        let state = state.ok_or_else(unknown)?;
        let opened = self.states.open_for(VISIT_PURPOSE, &state);
        let visit: PasskeyVisit = opened.ok_or_else(unknown)?;
        let PasskeyVisit {
            from,
            account: handle,
            is_confirmed,
        } = visit;
        let page = self.sign_in_page_of(&from).await?;
        let ended = |failure: &SignInFailure| self.return_from_own_page(&page, &from, failure);
        let refused = |cause: &str| ended(&invalid(SignInError::StateInvalid, cause));
        if SignInStateSealer::is_expired(&from, self.infra.clock.now()) {
            return Err(refused("the visit took too long"));
        }
        if browser.map(sha256_base64url).as_deref() != Some(from.browser.as_str()) {
            return Err(refused("the visit is another browser's"));
        }
        let provider = match self.find_offered_provider(&page, &from) {
            Ok(provider) => provider,
            Err(failure) => return Err(ended(&failure)),
        };
        let read = self
            .infra
            .control
            .read(move |c| store::passkeys_of(c, &handle));
        let Some((account, passkeys)) = read.await.map_err(VisitorError::from)? else {
            return Err(refused("the account is gone"));
        };
        Ok(OpenAccount {
            at: OwnPageSignIn {
                state,
                sign_in: from,
                page,
                provider,
            },
            account,
            passkeys,
            is_confirmed,
        })
    }

    /// Returns the prompt for another passkey of an account.
    fn another_passkey_prompt(&self, open: &OpenAccount) -> Result<PasskeyPrompt, PasskeyError> {
        let existing = open.passkeys.iter().map(|one| one.passkey.clone());
        let existing: Vec<Passkey> = existing.collect();
        self.creation_prompt(&open.at, &open.account, &existing)
    }

    /// Adds a passkey to an account.
    async fn add_passkey(
        &self,
        open: &OpenAccount,
        answer: &PasskeyAnswer,
    ) -> Result<AccountChanged, PasskeyError> {
        let provider = passkey_provider(&open.at)?;
        let challenge = self.take_challenge(&answer.challenge, &open.at.sign_in.id)?;
        let handle = open.account.handle.clone();
        if challenge.handle.as_ref() != Some(&handle) {
            let cause = "its challenge is of another account";
            return Err(invalid(SignInError::StateInvalid, cause).into());
        }
        let made = provider.verify_creation(&answer.credential, &challenge.bytes, &handle)?;
        let now = self.infra.clock.now();
        let write = self
            .infra
            .control
            .write(move |tx| store::add(tx, &handle, &made, now));
        let added: Result<bool, control::Error> = write.await;
        Ok(match added? {
            true => AccountChanged::Done,
            false => AccountChanged::Refused,
        })
    }

    /// Removes a passkey of an account.
    async fn remove_passkey(
        &self,
        open: &OpenAccount,
        credential_id: Vec<u8>,
    ) -> Result<AccountChanged, PasskeyError> {
        let handle = open.account.handle.clone();
        let write = self
            .infra
            .control
            .write(move |tx| store::remove(tx, &handle, &credential_id));
        let removed: Result<PasskeyRemoval, control::Error> = write.await;
        Ok(match removed? {
            PasskeyRemoval::Gone => AccountChanged::Done,
            PasskeyRemoval::Last => AccountChanged::Last,
        })
    }
}
