//! Sign-in by passkeys, which visitors' devices keep (WebAuthn). Its pages are the server's own (`visitors/passkey`).

use std::fmt;

use anyhow::Context as _;
use passki::{
    AuthenticationCredential, AuthenticationOptions, Passki, PasskiError, RegistrationCredential,
    RegistrationOptions, ResidentKeyRequirement, StoredPasskey, UserVerificationRequirement,
};
use serde::Serialize;
use url::Url;

use crate::config::{Config, relying_party_id};
use crate::visitors::model::{SignInError, SignInFailure, VerifiedVisitor, VisitorProfile};
use crate::visitors::passkey::model::{
    CHALLENGE_LIFETIME_MS, Passkey, PasskeyAccount, PasskeyOfSignIn,
};

/// Algorithms of keys, as COSE numbers them: EdDSA, ES256 and RS256.
const ALGORITHMS: [i32; 3] = [-8, -7, -257];
/// Maximum length of a credential's id, in bytes (WebAuthn, section 7.1).
const MAX_CREDENTIAL_ID: usize = 1023;
/// Maximum length of a public key, in bytes: that of an RSA key of 8,192 bits, and some.
const MAX_PUBLIC_KEY: usize = 1_200;
/// Name of the server in the prompts of old browsers; newer ones show its host.
const SERVER_NAME: &str = "svc";
/// Challenge that a device signs.
type Challenge = [u8; 32];

/// Provider of passkeys.
pub(in crate::visitors) struct PasskeyProvider {
    /// URL of the page that asks for a passkey.
    page: String,
    issuer: String,
    library: Passki,
}

impl fmt::Debug for PasskeyProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasskeyProvider")
            .field("page", &self.page)
            .finish_non_exhaustive()
    }
}

/// Assertion of a device that it has a passkey, not verified yet.
pub(in crate::visitors) struct PasskeyAssertion(AuthenticationCredential);

impl PasskeyProvider {
    /// Creates the provider for the sites host of the settings.
    ///
    /// # Errors
    /// A sites host without passkeys; the checks of the settings refuse it before.
    pub(super) fn new(config: &Config, issuer: &str) -> anyhow::Result<Self> {
        let sites = Url::parse(&config.sites_url)?;
        let id = relying_party_id(&sites).context("the sites host has no passkeys")?;
        Ok(Self {
            page: format!("{}/_svc/auth/passkey", config.sites_url),
            issuer: issuer.to_owned(),
            library: Passki::new(id, &[sites.origin().ascii_serialization()], SERVER_NAME),
        })
    }

    /// Returns the URL of the page that asks for a passkey.
    pub(super) fn authorization_url(&self, state: &str) -> Result<Url, SignInFailure> {
        let page = Url::parse_with_params(&self.page, [("state", state)]);
        page.map_err(|error| SignInFailure::new(SignInError::ProviderError, error.to_string()))
    }

    /// Returns the options that a browser asks for a passkey with, as JSON. Any passkey of the sites host will do.
    ///
    /// # Errors
    /// Never: the options are the server's own.
    pub(in crate::visitors) fn request_options(
        &self,
        challenge: &Challenge,
    ) -> Result<String, SignInFailure> {
        let options = request_options();
        let started = self.library.start_passkey_authentication(&[], options);
        let (mut request, _) = started.map_err(|error| failure(&error))?;
        request.challenge = Passki::base64_encode(challenge);
        to_json(&request)
    }

    /// Returns the options that a browser makes a passkey with, as JSON. No device that has one of the account's makes another.
    ///
    /// # Errors
    /// A handle that is none.
    pub(in crate::visitors) fn creation_options(
        &self,
        challenge: &Challenge,
        account: &PasskeyAccount,
        existing: &[Passkey],
    ) -> Result<String, SignInFailure> {
        let existing: Vec<_> = existing.iter().map(stored).collect();
        let mut options = creation_options();
        options.exclude_credentials = Some(&existing);
        let handle = handle_bytes(&account.handle)?;
        let name = &account.name;
        let started = self
            .library
            .start_passkey_registration(&handle, name, name, options);
        let (mut request, _) = started.map_err(|error| failure(&error))?;
        request.challenge = Passki::base64_encode(challenge);
        request
            .pub_key_cred_params
            .retain(|one| ALGORITHMS.contains(&one.alg));
        to_json(&request)
    }

    /// Verifies a new passkey that a device has made for an account.
    ///
    /// # Errors
    /// `StateInvalid` for another challenge, `TokenInvalid` for anything else.
    pub(in crate::visitors) fn verify_creation(
        &self,
        credential: &str,
        challenge: &Challenge,
        handle: &str,
    ) -> Result<Passkey, SignInFailure> {
        let credential: RegistrationCredential =
            serde_json::from_str(credential).map_err(|_| unreadable())?;
        // The library begins with a challenge of its own; the one that counts takes its place.
        let handle = handle_bytes(handle)?;
        let begun = self
            .library
            .start_passkey_registration(&handle, "-", "-", creation_options());
        let (_, mut state) = begun.map_err(|error| failure(&error))?;
        state.challenge = challenge.to_vec();
        let made = self
            .library
            .finish_passkey_registration(&credential, &state)
            .map_err(|error| failure(&error))?;
        if !ALGORITHMS.contains(&made.algorithm) {
            return Err(invalid("its algorithm was not asked for"));
        }
        let is_short = (1..=MAX_CREDENTIAL_ID).contains(&made.credential_id.len())
            && made.public_key.len() <= MAX_PUBLIC_KEY;
        if !is_short {
            return Err(unreadable());
        }
        Ok(Passkey {
            credential_id: made.credential_id,
            public_key: made.public_key,
            algorithm: made.algorithm,
            counter: made.counter,
        })
    }

    /// Verifies that a device has signed a challenge with a passkey; returns the passkey's new counter.
    ///
    /// # Errors
    /// Like [`PasskeyProvider::verify_creation`].
    pub(in crate::visitors) fn verify_assertion(
        &self,
        assertion: &PasskeyAssertion,
        challenge: &Challenge,
        (account, passkey): (&PasskeyAccount, &Passkey),
    ) -> Result<u32, SignInFailure> {
        let options = request_options();
        let begun = self.library.start_passkey_authentication(&[], options);
        let (_, mut state) = begun.map_err(|error| failure(&error))?;
        state.challenge = challenge.to_vec();
        let signed = self
            .library
            .finish_passkey_authentication(&assertion.0, &state, &stored(passkey))
            .map_err(|error| failure(&error))?;
        // The account is the passkey's, whatever the device says; one that says another is broken, or lies.
        if signed.user_handle != Some(handle_bytes(&account.handle)?) {
            return Err(invalid("it names another account"));
        }
        Ok(signed.counter)
    }

    /// Returns the visitor who has an account.
    pub(in crate::visitors) fn visitor(
        &self,
        account: PasskeyAccount,
        passkey: PasskeyOfSignIn,
    ) -> VerifiedVisitor {
        VerifiedVisitor {
            issuer: self.issuer.clone(),
            subject: account.handle,
            profile: VisitorProfile {
                name: Some(account.name),
                ..VisitorProfile::default()
            },
            passkey: Some(passkey),
        }
    }
}

impl PasskeyAssertion {
    /// Reads what a browser has sent.
    ///
    /// # Errors
    /// `TokenInvalid`.
    pub(in crate::visitors) fn parse(credential: &str) -> Result<Self, SignInFailure> {
        let credential = serde_json::from_str(credential).map_err(|_| unreadable())?;
        Ok(Self(credential))
    }

    /// Returns the id of the passkey.
    ///
    /// # Errors
    /// `TokenInvalid`.
    pub(in crate::visitors) fn credential_id(&self) -> Result<Vec<u8>, SignInFailure> {
        Passki::base64_decode(&self.0.raw_id).map_err(|_| unreadable())
    }
}

/// Options of every request for a passkey: the device verifies its user.
fn request_options() -> AuthenticationOptions {
    let mut options = AuthenticationOptions::default();
    options.timeout = CHALLENGE_LIFETIME_MS.unsigned_abs();
    options.user_verification = UserVerificationRequirement::Required;
    options
}

/// Options of every new passkey: the device finds it without a name, and verifies its user.
fn creation_options<'a>() -> RegistrationOptions<'a> {
    let mut options = RegistrationOptions::default();
    options.timeout = CHALLENGE_LIFETIME_MS.unsigned_abs();
    options.resident_key = ResidentKeyRequirement::Required;
    options.user_verification = UserVerificationRequirement::Required;
    options
}

/// Returns a passkey in the library's form.
fn stored(passkey: &Passkey) -> StoredPasskey {
    let mut stored = StoredPasskey::default();
    stored.credential_id.clone_from(&passkey.credential_id);
    stored.public_key.clone_from(&passkey.public_key);
    stored.algorithm = passkey.algorithm;
    stored.counter = passkey.counter;
    stored
}

/// Returns the bytes of an account's handle, as devices keep it.
fn handle_bytes(handle: &str) -> Result<Vec<u8>, SignInFailure> {
    let bytes = Passki::base64_decode(handle);
    bytes.map_err(|_| SignInFailure::new(SignInError::ProviderError, "an account has no handle"))
}

fn to_json(options: &impl Serialize) -> Result<String, SignInFailure> {
    let json = serde_json::to_string(options);
    json.map_err(|error| SignInFailure::new(SignInError::ProviderError, error.to_string()))
}

fn invalid(cause: &'static str) -> SignInFailure {
    SignInFailure::new(SignInError::TokenInvalid, cause)
}

fn unreadable() -> SignInFailure {
    invalid("what the browser sent cannot be read")
}

/// Maps an error of the library, whose text may have something of the visitor's.
fn failure(error: &PasskiError) -> SignInFailure {
    invalid(match error {
        PasskiError::ChallengeMismatch => {
            let cause = "another challenge was signed";
            return SignInFailure::new(SignInError::StateInvalid, cause);
        }
        PasskiError::OriginMismatch { .. }
        | PasskiError::CrossOriginNotAllowed
        | PasskiError::TopOriginMismatch { .. } => "it was signed on a page of another origin",
        PasskiError::RpIdHashMismatch => "it is another host's",
        PasskiError::UserNotPresent | PasskiError::UserVerificationRequired => {
            "the device has not verified its user"
        }
        PasskiError::CounterRegression => "its counter went back",
        PasskiError::SignatureVerificationFailed => "its signature is wrong",
        PasskiError::UnsupportedAlgorithm(_) => "its algorithm was not asked for",
        PasskiError::ClientDataTypeMismatch { .. } => "it was signed for something else",
        _ => return unreadable(),
    })
}
