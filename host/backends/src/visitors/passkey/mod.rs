//! Steps of a sign-in by passkey, on a page of the server's own: a known passkey is asked for, or the first one of an account is made.

pub mod account;
pub(in crate::visitors) mod model;
mod pages;
pub mod routes;
pub(in crate::visitors) mod store;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub use self::model::PasskeyOfSignIn;

use self::model::{CHALLENGE_LIFETIME_MS, NewPasskey, Passkey, PasskeyAccount, PasskeyChallenge};
use super::Visitors;
use super::kinds::passkey::{PasskeyAssertion, PasskeyProvider};
use super::model::{SignInError, SignInFailure, VerifiedVisitor, VisitorError};
use super::own_pages::{OwnPageEnd, OwnPageSignIn};
use crate::control;
use svc_base::invisible::is_invisible;

/// Purpose that challenges are sealed for.
const CHALLENGE_PURPOSE: &[u8] = b"svc passkey challenge 1";
/// Maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 100;

/// Question to a browser, and the challenge that comes back with its answer.
#[derive(Clone, Debug)]
struct PasskeyPrompt {
    /// Options of the browser's call, as JSON.
    options: String,
    /// Sealed challenge.
    challenge: String,
}

/// Answer of a browser.
#[derive(Clone, Debug)]
struct PasskeyAnswer {
    /// Sealed challenge of the prompt.
    challenge: String,
    /// Credential, as JSON.
    credential: String,
}

/// Prompts of the sign-in page: for a known passkey, and for a new one.
#[derive(Clone, Debug)]
struct SignInPrompts {
    request: PasskeyPrompt,
    creation: PasskeyPrompt,
}

/// Failure of a passkey.
#[derive(Debug)]
enum PasskeyError {
    /// The sign-in or the visit ends.
    Failed(SignInFailure),
    /// The control database or the randomness failed.
    Internal(VisitorError),
}

impl From<SignInFailure> for PasskeyError {
    fn from(failure: SignInFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<VisitorError> for PasskeyError {
    fn from(error: VisitorError) -> Self {
        Self::Internal(error)
    }
}

impl From<control::Error> for PasskeyError {
    fn from(error: control::Error) -> Self {
        Self::Internal(error.into())
    }
}

/// Returns the provider of a sign-in.
fn passkey_provider(at: &OwnPageSignIn) -> Result<&PasskeyProvider, VisitorError> {
    let provider = at.provider.kind.passkey();
    provider.ok_or(VisitorError::UnknownSignIn)
}

/// Returns a name in the form in which it is kept; `None` if it is none.
fn checked_name(name: &str) -> Option<String> {
    let name = name.trim();
    let is_name =
        !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS && !name.contains(is_invisible);
    is_name.then(|| name.to_owned())
}

impl Visitors {
    /// Makes a challenge for the page of `owner`; returns its bytes, too.
    fn new_challenge(
        &self,
        owner: &str,
        handle: Option<String>,
    ) -> Result<(String, [u8; 32]), VisitorError> {
        let challenge = PasskeyChallenge {
            owner: owner.to_owned(),
            bytes: self.infra.random.bytes()?,
            handle,
            at: self.infra.clock.now().0,
            process: self.process,
        };
        let sealed = self
            .states
            .seal_for(CHALLENGE_PURPOSE, &challenge, &self.infra.random)?;
        Ok((sealed, challenge.bytes))
    }

    /// Uses a challenge of the page of `owner` up.
    fn take_challenge(&self, sealed: &str, owner: &str) -> Result<PasskeyChallenge, SignInFailure> {
        let invalid = |cause: &str| SignInFailure::new(SignInError::StateInvalid, cause);
        let opened = self.states.open_for(CHALLENGE_PURPOSE, sealed);
        let challenge: PasskeyChallenge =
            opened.ok_or_else(|| invalid("its challenge was not given out here"))?;
        if challenge.owner != owner {
            return Err(invalid("its challenge is of another sign-in"));
        }
        // It may have been used where nobody remembers it: before a start, or at the node that had control.
        if challenge.process != self.process {
            return Err(invalid("its challenge was given out by an earlier process"));
        }
        let now = self.infra.clock.now();
        if !(0..CHALLENGE_LIFETIME_MS).contains(&(now.0 - challenge.at)) {
            return Err(invalid("its challenge is too old"));
        }
        let id = URL_SAFE_NO_PAD.encode(challenge.bytes);
        if !self.used_challenges.mark(&id, challenge.at, now) {
            return Err(invalid("its challenge was used before"));
        }
        Ok(challenge)
    }

    /// Returns the prompts of the page of a sign-in.
    fn sign_in_prompts(&self, at: &OwnPageSignIn) -> Result<SignInPrompts, PasskeyError> {
        let handle = self
            .infra
            .random
            .bytes::<32>()
            .map_err(VisitorError::from)?;
        let account = PasskeyAccount {
            handle: URL_SAFE_NO_PAD.encode(handle),
            // The page's script fills in the name.
            name: String::new(),
        };
        Ok(SignInPrompts {
            request: self.request_prompt(at)?,
            creation: self.creation_prompt(at, &account, &[])?,
        })
    }

    /// Returns the prompt for a known passkey.
    fn request_prompt(&self, at: &OwnPageSignIn) -> Result<PasskeyPrompt, PasskeyError> {
        let (challenge, bytes) = self.new_challenge(&at.sign_in.id, None)?;
        let options = passkey_provider(at)?.request_options(&bytes)?;
        Ok(PasskeyPrompt { options, challenge })
    }

    /// Returns the prompt for a new passkey of an account.
    fn creation_prompt(
        &self,
        at: &OwnPageSignIn,
        account: &PasskeyAccount,
        existing: &[Passkey],
    ) -> Result<PasskeyPrompt, PasskeyError> {
        let handle = Some(account.handle.clone());
        let (challenge, bytes) = self.new_challenge(&at.sign_in.id, handle)?;
        let options = passkey_provider(at)?.creation_options(&bytes, account, existing)?;
        Ok(PasskeyPrompt { options, challenge })
    }

    /// Signs a visitor in with a known passkey; returns the address that the browser goes on to.
    async fn sign_in_with_passkey(
        &self,
        at: &OwnPageSignIn,
        answer: &PasskeyAnswer,
    ) -> Result<String, OwnPageEnd> {
        let visitor = self.verify_passkey(at, answer).await;
        self.end_with_passkey(at, visitor)
    }

    /// Signs a visitor in with a new passkey, under a name; returns the address that the browser goes on to.
    fn sign_in_with_new_passkey(
        &self,
        at: &OwnPageSignIn,
        name: String,
        answer: &PasskeyAnswer,
    ) -> Result<String, OwnPageEnd> {
        let visitor = self.verify_new_passkey(at, answer);
        let visitor = visitor.and_then(|(handle, passkey)| {
            let account = PasskeyAccount { handle, name };
            let passkey = PasskeyOfSignIn::New(NewPasskey(passkey));
            Ok(passkey_provider(at)?.visitor(account, passkey))
        });
        self.end_with_passkey(at, visitor)
    }

    fn end_with_passkey(
        &self,
        at: &OwnPageSignIn,
        visitor: Result<VerifiedVisitor, PasskeyError>,
    ) -> Result<String, OwnPageEnd> {
        let visitor = visitor.map_err(|error| self.end_passkey_page(at, error))?;
        self.use_own_page(at)?;
        Ok(self.issue_ticket(&at.page, at.sign_in.clone(), visitor)?)
    }

    fn end_passkey_page(&self, at: &OwnPageSignIn, error: PasskeyError) -> OwnPageEnd {
        match error {
            PasskeyError::Failed(failure) => self.end_own_page(at, &failure),
            PasskeyError::Internal(error) => OwnPageEnd::Refused(error),
        }
    }

    /// Verifies a known passkey; returns the visitor who has it.
    async fn verify_passkey(
        &self,
        at: &OwnPageSignIn,
        answer: &PasskeyAnswer,
    ) -> Result<VerifiedVisitor, PasskeyError> {
        let provider = passkey_provider(at)?;
        let assertion = PasskeyAssertion::parse(&answer.credential)?;
        let challenge = self.take_challenge(&answer.challenge, &at.sign_in.id)?;
        if challenge.handle.is_some() {
            let cause = "its challenge is for a new passkey";
            return Err(SignInFailure::new(SignInError::StateInvalid, cause).into());
        }
        let id = assertion.credential_id()?;
        let read = self.infra.control.read(move |c| store::find(c, &id));
        let Some((account, passkey)) = read.await? else {
            let failure = SignInFailure::new(SignInError::TokenInvalid, "the passkey is not known");
            return Err(failure.into());
        };
        let known = (&account, &passkey);
        let counter = provider.verify_assertion(&assertion, &challenge.bytes, known)?;
        // Most devices count nothing, and there is nothing to write.
        if counter > 0 {
            let id = passkey.credential_id.clone();
            let write = self
                .infra
                .control
                .write(move |tx| store::record_counter(tx, &id, counter));
            let recorded: Result<bool, control::Error> = write.await;
            if !recorded? {
                let failure =
                    SignInFailure::new(SignInError::TokenInvalid, "its counter went back");
                return Err(failure.into());
            }
        }
        let known = PasskeyOfSignIn::Known(passkey.credential_id);
        Ok(provider.visitor(account, known))
    }

    /// Verifies a new passkey; returns the handle of the account that it was made for, too.
    fn verify_new_passkey(
        &self,
        at: &OwnPageSignIn,
        answer: &PasskeyAnswer,
    ) -> Result<(String, Passkey), PasskeyError> {
        let provider = passkey_provider(at)?;
        let challenge = self.take_challenge(&answer.challenge, &at.sign_in.id)?;
        let Some(handle) = challenge.handle else {
            let cause = "its challenge is for a known passkey";
            return Err(SignInFailure::new(SignInError::StateInvalid, cause).into());
        };
        let passkey = provider.verify_creation(&answer.credential, &challenge.bytes, &handle)?;
        Ok((handle, passkey))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_line_of_text() {
        let long = "ä".repeat(MAX_NAME_CHARS);
        for (given, kept) in [
            ("Ada", Some("Ada")),
            ("  Ada Lovelace ", Some("Ada Lovelace")),
            (long.as_str(), Some(long.as_str())),
            ("", None),
            ("   ", None),
            ("Ada\r\nBcc: eve", None),
            ("\u{200b}", None),
            ("Ada\u{202e}eve", None),
            ("می\u{200c}خواهم", Some("می\u{200c}خواهم")),
            (format!("{long}ä").as_str(), None),
        ] {
            assert_eq!(checked_name(given).as_deref(), kept, "{given}");
        }
    }
}
