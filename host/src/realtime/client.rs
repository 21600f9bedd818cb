//! A client of a room, as the others see it: its id, and who has signed in there.

use std::ops::Deref;

use serde::Serialize;

use crate::visitors::Session;

/// A client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Client {
    /// Identifier of the client, a name.
    id: Box<str>,
    /// Visitor as JSON that follows another member: `,"user":{…}`, or nothing.
    user: Box<str>,
}

/// Visitor as the other members see them.
#[derive(Serialize)]
struct User<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<&'a str>,
}

impl Client {
    /// A client of whom only the id is known.
    pub(super) fn anonymous(id: &str) -> Self {
        Self {
            id: id.into(),
            user: "".into(),
        }
    }

    /// Identifies the client as the visitor of a session.
    #[must_use]
    pub(super) fn with_visitor(self, session: Option<&Session>) -> Self {
        let user = session.map(|session| {
            let user = User {
                id: session.visitor.as_str(),
                name: session.profile.name.as_deref(),
                picture: session.profile.picture.as_deref(),
            };
            // Texts always have a JSON form.
            let user = serde_json::to_string(&user).unwrap_or_default();
            format!(",\"user\":{user}")
        });
        Self {
            user: user.unwrap_or_default().into(),
            ..self
        }
    }

    /// Returns the visitor as JSON that follows another member.
    pub(super) fn user(&self) -> &str {
        &self.user
    }
}

impl Deref for Client {
    type Target = str;
    fn deref(&self) -> &str {
        &self.id
    }
}
