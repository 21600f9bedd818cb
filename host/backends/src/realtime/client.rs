//! Client of a room, as the other members see it: its id, and its signed-in visitor.

use std::ops::Deref;

use serde::Serialize;

use crate::visitors::VisitorSession;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct RoomClient {
    /// Random identifier, safe to insert into JSON.
    id: Box<str>,
    /// Visitor as a JSON member that follows another one: `,"user":{…}`, or empty.
    user: Box<str>,
}

/// Visitor as the other members see it.
#[derive(Serialize)]
struct VisitorMember<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<&'a str>,
}

impl RoomClient {
    /// Creates a client without a visitor.
    pub(super) fn anonymous(id: &str) -> Self {
        Self {
            id: id.into(),
            user: "".into(),
        }
    }

    /// Sets the visitor of the client from a session.
    #[must_use]
    pub(super) fn with_visitor(self, session: Option<&VisitorSession>) -> Self {
        let user = session.map(|session| {
            let user = VisitorMember {
                id: session.visitor.as_str(),
                name: session.profile.name.as_deref(),
                picture: session.profile.picture.as_deref(),
            };
            // The conversion of texts to JSON cannot fail.
            let user = serde_json::to_string(&user).unwrap_or_default();
            format!(",\"user\":{user}")
        });
        Self {
            user: user.unwrap_or_default().into(),
            ..self
        }
    }

    /// Returns the visitor as a JSON member that follows another one.
    pub(super) fn user(&self) -> &str {
        &self.user
    }
}

impl Deref for RoomClient {
    type Target = str;
    fn deref(&self) -> &str {
        &self.id
    }
}
