//! Model of visitors, their sessions, and sign-in failures.

use std::fmt;
use std::sync::Arc;

use super::passkey::PasskeyOfSignIn;
use crate::control;
use crate::deployments::serving::PageLookupError;
use crate::http::hosts::HostKind;
use crate::projects::ProjectError;
use crate::workspaces::credential;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId};
use svc_base::random::{Random, RandomSourceError};

/// Lifetime of a session, in seconds: 30 days, which activity does not extend.
pub const SESSION_SECONDS: i64 = 30 * 24 * 3600;

/// Identifier of a visitor in a project: `usr_` and 22 random letters and digits. A visitor has another one in each
/// project.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VisitorId(Arc<str>);

impl VisitorId {
    /// Generates an id.
    ///
    /// # Errors
    /// No randomness is available.
    pub fn new(random: &Random) -> Result<Self, RandomSourceError> {
        let secret = credential::random_secret(random)?;
        // The last 22 characters hold 131 bits.
        Ok(Self(format!("usr_{}", &secret[secret.len() - 22..]).into()))
    }

    /// Wraps an id from the database.
    pub(super) fn from_stored(text: String) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VisitorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Profile of a visitor, as the provider stated it at the last sign-in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisitorProfile {
    /// E-mail address, if the provider has verified it.
    pub email: Option<String>,
    pub name: Option<String>,
    /// URL of the visitor's picture.
    pub picture: Option<String>,
    /// Language tag of the visitor.
    pub locale: Option<String>,
}

impl VisitorProfile {
    /// Removes fields that do not have the right form: providers are not trusted.
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
                // Some providers send a locale such as `de_DE`; a language tag has hyphens.
                .map(|text| text.replace('_', "-")),
        }
    }
}

/// Visitor whose identity a provider has verified.
#[derive(Clone, Debug)]
pub struct VerifiedVisitor {
    /// Issuer of the identity.
    pub issuer: String,
    /// Identifier of the visitor at the issuer.
    pub subject: String,
    pub profile: VisitorProfile,
    /// Passkey that the visitor has signed in with.
    pub passkey: Option<PasskeyOfSignIn>,
}

/// SHA-256 of a session token; the token itself is not stored.
pub type SessionTokenHash = [u8; 32];

/// Session of a visitor on a frontend.
#[derive(Clone, Debug)]
pub struct VisitorSession {
    /// Hash of the session token.
    pub key: SessionTokenHash,
    pub visitor: VisitorId,
    /// Frontend of the session.
    pub deployment: DeploymentId,
    /// Domain of the project that the session counts on; `None` for the project's own origin.
    pub host: Option<Box<str>>,
    pub project: ProjectId,
    pub profile: VisitorProfile,
    /// Name of the provider that the visitor signed in with.
    pub provider: String,
    pub expires_at: Timestamp,
    /// When the visitor was last recorded as seen.
    pub seen_at: Timestamp,
}

impl VisitorSession {
    /// Whether the session counts on a frontend of a host. Cookies go with their host: who has a domain later gets those of its former
    /// visitors, and can send them to any other host.
    pub fn counts_on(&self, host: &HostKind, page: &DeploymentId) -> bool {
        let domain = host.domain().map(|on| on.domain.name.as_str());
        self.deployment == *page && self.host.as_deref() == domain
    }

    /// Returns the identity of the visitor, as actions get it.
    pub fn identity(&self) -> ActionCallerIdentity {
        ActionCallerIdentity {
            user_id: self.visitor.as_str().to_owned(),
            email: self.profile.email.clone(),
            name: self.profile.name.clone(),
        }
    }
}

/// Identity of a caller of an action, bound to the action's reserved parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCallerIdentity {
    /// Value of `:svc_user_id`.
    pub user_id: String,
    /// Value of `:svc_user_email`.
    pub email: Option<String>,
    /// Value of `:svc_user_name`.
    pub name: Option<String>,
}

/// Visitor, as shown to the project's owner.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// Number of the visitor, in the order of first sign-ins.
    pub number: i64,
    pub id: VisitorId,
    /// Name of the provider of the last sign-in.
    pub provider: String,
    pub profile: VisitorProfile,
    pub created_at: Timestamp,
    /// When the visitor was last recorded as seen.
    pub last_seen_at: Timestamp,
}

macro_rules! auth_errors {
    ($($(#[$doc:meta])* $name:ident $code:literal;)+) => {
        /// Reason of a failed sign-in, as the page gets it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SignInError {
            $($(#[$doc])* $name,)+
        }

        impl SignInError {
            /// Returns the error of a code.
            pub fn find_by_code(code: &str) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)+
                    _ => None,
                }
            }

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
    /// The visitor or the provider denied access.
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

/// Failed sign-in: an error for the page, and a cause for the log.
#[derive(Clone, Debug)]
pub struct SignInFailure {
    /// Error for the page.
    pub error: SignInError,
    /// Cause for the log alone; it contains no code, no token and no visitor.
    pub cause: String,
}

impl SignInFailure {
    pub fn new(error: SignInError, cause: impl Into<String>) -> Self {
        Self {
            error,
            cause: cause.into(),
        }
    }
}

/// Error of an operation on visitors.
#[derive(Debug, thiserror::Error)]
pub enum VisitorError {
    /// The page is a quick share, which has no sign-in.
    #[error("the page has no sign-in")]
    NoSignIn,
    /// The project offers no configured provider.
    #[error("no provider is configured")]
    Unconfigured,
    /// `return_to` is outside of the page with this slug.
    #[error("`return_to` is no path of `{0}`")]
    ReturnTo(String),
    /// The provider's answer belongs to no known sign-in.
    #[error("the sign-in was not begun here")]
    UnknownSignIn,
    /// The frontend that the sign-in began on no longer exists.
    #[error("the frontend is gone")]
    Gone,
    /// The page does not exist, or is disabled.
    #[error(transparent)]
    Page(#[from] PageLookupError),
    /// The project cannot be looked up.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The control database failed.
    #[error(transparent)]
    Store(#[from] control::Error),
    /// No secret could be generated.
    #[error(transparent)]
    Random(#[from] RandomSourceError),
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
            let found = VisitorProfile {
                email,
                ..VisitorProfile::default()
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
            let found = VisitorProfile {
                picture,
                ..VisitorProfile::default()
            }
            .checked();
            assert_eq!(found.picture.is_some(), kept, "{given}");
        }
        for (given, kept) in [("de_AT", Some("de-AT")), ("en", Some("en")), ("<x>", None)] {
            let locale = said(given);
            let found = VisitorProfile {
                locale,
                ..VisitorProfile::default()
            }
            .checked();
            assert_eq!(found.locale.as_deref(), kept);
        }
        let name = said(&"x".repeat(801));
        assert_eq!(
            VisitorProfile {
                name,
                ..VisitorProfile::default()
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
