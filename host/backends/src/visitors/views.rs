//! Views of visitors.

use serde::Serialize;
use utoipa::ToSchema;

use super::model::{Visitor, VisitorSession};
use crate::config::ProviderSettings;
use svc_base::clock::Timestamp;

/// Sign-in of a visitor.
#[derive(Debug, Serialize, ToSchema)]
pub struct Status {
    /// The visitor; null if nobody is signed in.
    user: Option<User>,
}

/// A visitor, as the page sees them.
#[derive(Debug, Serialize, ToSchema)]
pub struct User {
    /// Identifier of the visitor; the value of `:svc_user_id`.
    #[schema(example = "usr_7Jp2mQ0aZc91LxTvBnRk4s")]
    id: String,
    /// E-mail address, if the provider has verified it.
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    /// Name of the visitor.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The address of a picture of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uri")]
    picture: Option<String>,
    /// Which provider they signed in with.
    provider: String,
    /// Language of the visitor.
    #[serde(skip_serializing_if = "Option::is_none")]
    locale: Option<String>,
    /// When the session ends, whatever they do.
    #[schema(value_type = String, format = "date-time")]
    expires_at: Timestamp,
}

impl Status {
    /// Returns the status of a session.
    pub fn of(session: Option<&VisitorSession>) -> Self {
        let user = session.map(|session| {
            let profile = session.profile.clone();
            User {
                id: session.visitor.to_string(),
                email: profile.email,
                name: profile.name,
                picture: profile.picture,
                provider: session.provider.clone(),
                locale: profile.locale,
                expires_at: session.expires_at,
            }
        });
        Self { user }
    }
}

/// Sign-in providers.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProviderList {
    /// In the operator's order.
    pub providers: Vec<Offered>,
}

/// A sign-in provider.
#[derive(Debug, Serialize, ToSchema)]
pub struct Offered {
    /// Name in addresses.
    #[schema(example = "google")]
    name: String,
    /// Name for people.
    #[schema(example = "Google")]
    display_name: String,
}

impl Offered {
    /// Returns the view of a provider.
    pub fn new(provider: &ProviderSettings) -> Self {
        Self {
            name: provider.name.clone(),
            display_name: provider.display_name.clone(),
        }
    }
}

/// Visitors of a project.
#[derive(Debug, Serialize, ToSchema)]
pub struct VisitorList {
    /// Newest first.
    pub visitors: Vec<VisitorView>,
    /// Value to send as `cursor` for the visitors before; null where there are none.
    pub next_cursor: Option<String>,
}

/// A visitor, as the owner sees them.
#[derive(Debug, Serialize, ToSchema)]
pub struct VisitorView {
    /// Identifier of the visitor; the value of `:svc_user_id`.
    #[schema(example = "usr_7Jp2mQ0aZc91LxTvBnRk4s")]
    pub id: String,
    /// E-mail address, if the provider has verified it.
    pub email: Option<String>,
    /// Name of the visitor, as of the last sign-in.
    pub name: Option<String>,
    /// Which provider they signed in with last.
    pub provider: String,
    /// When they first signed in.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When they were last there; an hour may be missing.
    #[schema(value_type = String, format = "date-time")]
    pub last_seen_at: Timestamp,
}

impl From<Visitor> for VisitorView {
    fn from(visitor: Visitor) -> Self {
        Self {
            id: visitor.id.to_string(),
            email: visitor.profile.email,
            name: visitor.profile.name,
            provider: visitor.provider,
            created_at: visitor.created_at,
            last_seen_at: visitor.last_seen_at,
        }
    }
}
