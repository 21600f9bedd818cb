//! Model of visitors, their sessions, and the failures of a sign-in.

use std::fmt;
use std::sync::Arc;

use crate::control;
use crate::deployments::serving::LookupError;
use crate::projects::ProjectError;
use crate::workspaces::credential;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId};
use svc_base::random::{NoRandomness, Random};

/// How long a session lives, in seconds: 30 days, whatever its visitor does.
pub const SESSION_SECONDS: i64 = 30 * 24 * 3600;

/// Identifier of a visitor in a project: `usr_` and 22 letters and digits, drawn by lot, so that it identifies nobody in
/// another project.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VisitorId(Arc<str>);

impl VisitorId {
    /// A new one.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn new(random: &Random) -> Result<Self, NoRandomness> {
        let secret = credential::random_secret(random)?;
        // 131 bits.
        Ok(Self(format!("usr_{}", &secret[secret.len() - 22..]).into()))
    }

    /// An id that is stored.
    pub(super) fn from_stored(text: String) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VisitorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Profile of a visitor, from the provider at their last sign-in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// E-mail address, if the provider has verified it.
    pub email: Option<String>,
    /// Name of the visitor.
    pub name: Option<String>,
    /// The address of a picture of them.
    pub picture: Option<String>,
    /// Language of the visitor.
    pub locale: Option<String>,
}

impl Profile {
    /// Leaves out what has not the form that it should have: a provider is not trusted with it.
    #[must_use]
    pub fn checked(self) -> Self {
        let short = |most: usize| {
            move |text: &String| {
                !text.trim().is_empty() && text.len() <= most && !text.contains(char::is_control)
            }
        };
        let is_email = |text: &String| text.contains('@') && !text.contains(char::is_whitespace);
        let is_language = |text: &String| {
            text.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        Self {
            email: self.email.filter(short(320)).filter(is_email),
            name: self.name.filter(short(800)),
            picture: self.picture.filter(short(2048)).filter(|text| {
                url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "https" | "http"))
            }),
            locale: self
                .locale
                .filter(short(35))
                .filter(is_language)
                // Some write locales as systems do; a language tag has hyphens.
                .map(|text| text.replace('_', "-")),
        }
    }
}

/// Visitor who has signed in, by the provider's word.
#[derive(Clone, Debug)]
pub struct VerifiedVisitor {
    /// Which issuer knows them.
    pub issuer: String,
    /// By which name.
    pub subject: String,
    /// Profile from the provider.
    pub profile: Profile,
}

/// The SHA-256 of a session's token, which is all that is kept of it.
pub type SessionKey = [u8; 32];

/// A visitor who is signed in on a frontend.
#[derive(Clone, Debug)]
pub struct Session {
    /// Key of the session in the database; not the token.
    pub key: SessionKey,
    /// Visitor of the session.
    pub visitor: VisitorId,
    /// Page of the session.
    pub deployment: DeploymentId,
    /// In which project.
    pub project: ProjectId,
    /// Profile of the visitor.
    pub profile: Profile,
    /// Which provider they signed in with.
    pub provider: String,
    /// When it ends.
    pub expires_at: Timestamp,
    /// When its visitor was last noted as seen.
    pub seen_at: Timestamp,
}

impl Session {
    /// The visitor as an action is given them.
    pub fn identity(&self) -> Identity {
        Identity {
            user_id: self.visitor.as_str().to_owned(),
            email: self.profile.email.clone(),
        }
    }
}

/// Identity of a caller of an action, which its reserved binds are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The value of `:svc_user_id`.
    pub user_id: String,
    /// The value of `:svc_user_email`.
    pub email: Option<String>,
}

/// A visitor as their project's owner sees them.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// Number of the visitor, in the order in which they came.
    pub number: i64,
    /// Identifier of the visitor.
    pub id: VisitorId,
    /// Which provider they signed in with last.
    pub provider: String,
    /// Profile from the provider.
    pub profile: Profile,
    /// When they first signed in.
    pub created_at: Timestamp,
    /// When they were last there.
    pub last_seen_at: Timestamp,
}

macro_rules! auth_errors {
    ($($(#[$doc:meta])* $name:ident $code:literal;)+) => {
        /// Why a sign-in failed, as the page is told.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum AuthError {
            $($(#[$doc])* $name,)+
        }

        impl AuthError {
            /// Returns the code.
            pub fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)+
                }
            }
        }
    };
}

auth_errors! {
    /// The visitor or the provider said no.
    AccessDenied "access_denied";
    /// The state is unknown, used, too old, or another browser's.
    StateInvalid "state_invalid";
    /// The provider's answer cannot be used.
    ProviderError "provider_error";
    /// The provider did not answer in time.
    ProviderUnavailable "provider_unavailable";
    /// The ID token fails a check.
    TokenInvalid "token_invalid";
    /// The project does not offer the provider.
    ProviderNotAllowed "provider_not_allowed";
    /// The ticket is unknown, used, too old, or another browser's.
    TicketInvalid "ticket_invalid";
}

/// A sign-in that failed: what the page is told, and what the log is.
#[derive(Clone, Debug)]
pub struct SignInFailure {
    /// Error for the page.
    pub error: AuthError,
    /// Why, for the log alone; it names no code, no token and no visitor.
    pub cause: String,
}

impl SignInFailure {
    /// A failure with its cause.
    pub fn new(error: AuthError, cause: impl Into<String>) -> Self {
        Self {
            error,
            cause: cause.into(),
        }
    }
}

/// Why something about visitors could not be done.
#[derive(Debug, thiserror::Error)]
pub enum VisitorError {
    /// A quick share has no sign-in.
    #[error("the page has no sign-in")]
    NoSignIn,
    /// No provider is configured that the project offers.
    #[error("no provider is configured")]
    Unconfigured,
    /// A sign-in of the page with this slug asks to lead back elsewhere.
    #[error("`return_to` is no path of `{0}`")]
    ReturnTo(String),
    /// Nothing tells which sign-in a provider's answer belongs to.
    #[error("the sign-in was not begun here")]
    UnknownSignIn,
    /// The frontend that a sign-in began on is gone.
    #[error("the frontend is gone")]
    Gone,
    /// The page is not there, or disabled.
    #[error(transparent)]
    Page(#[from] LookupError),
    /// The project cannot be looked up.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The database's.
    #[error(transparent)]
    Store(#[from] control::Error),
    /// No secret could be made.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_keeps_what_is_what_it_should_be() {
        let said = |text: &str| Some(text.to_owned());
        for (given, kept) in [
            ("ada@example.com", true),
            ("ada", false),
            ("ada @example.com", false),
            ("ada@example.com\r\nX: y", false),
            ("", false),
        ] {
            let email = said(given);
            let found = Profile {
                email,
                ..Profile::default()
            }
            .checked();
            assert_eq!(found.email.is_some(), kept, "{given}");
        }
        for (given, kept) in [
            ("https://a.example/p.png", true),
            ("javascript:alert(1)", false),
            ("data:text/html,x", false),
            ("/p.png", false),
        ] {
            let picture = said(given);
            let found = Profile {
                picture,
                ..Profile::default()
            }
            .checked();
            assert_eq!(found.picture.is_some(), kept, "{given}");
        }
        for (given, kept) in [("de_AT", Some("de-AT")), ("en", Some("en")), ("<x>", None)] {
            let locale = said(given);
            let found = Profile {
                locale,
                ..Profile::default()
            }
            .checked();
            assert_eq!(found.locale.as_deref(), kept);
        }
        let name = said(&"x".repeat(801));
        assert_eq!(
            Profile {
                name,
                ..Profile::default()
            }
            .checked()
            .name,
            None
        );
    }

    #[test]
    fn an_id_tells_nothing() {
        let id = VisitorId::new(&Random::system()).unwrap();
        let rest = id.as_str().strip_prefix("usr_").unwrap();
        assert!(rest.len() == 22 && rest.bytes().all(|b| b.is_ascii_alphanumeric()));
    }
}
