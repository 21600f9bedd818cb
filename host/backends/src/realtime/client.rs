//! Client of a room, as the other members see it: its id, and its signed-in visitor.

use std::ops::Deref;

use serde::Serialize;

use crate::visitors::VisitorSession;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct RoomClient {
    /// Random identifier, safe to insert into JSON.
    id: Box<str>,
    /// Visitor as a JSON member that follows another one, for each detail: `,"user":{…}`, or empty.
    user: [Box<str>; 3],
}

/// Detail in which a visitor is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VisitorDetail {
    /// Id, name and picture.
    Full,
    /// Id and name.
    WithoutPicture,
    /// Id alone.
    IdAlone,
}

impl VisitorDetail {
    /// All details, the fullest first.
    pub(super) const ALL: [Self; 3] = [Self::Full, Self::WithoutPicture, Self::IdAlone];
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
            user: Default::default(),
        }
    }

    /// Sets the visitor of the client from a session.
    #[must_use]
    pub(super) fn with_visitor(self, session: Option<&VisitorSession>) -> Self {
        let Some(session) = session else { return self };
        let (name, picture) = (&session.profile.name, &session.profile.picture);
        let user = VisitorDetail::ALL.map(|detail| {
            let user = VisitorMember {
                id: session.visitor.as_str(),
                name: name.as_deref().filter(|_| detail != VisitorDetail::IdAlone),
                picture: picture.as_deref().filter(|_| detail == VisitorDetail::Full),
            };
            // The conversion of texts to JSON cannot fail.
            let user = serde_json::to_string(&user).unwrap_or_default();
            format!(",\"user\":{user}").into()
        });
        Self { user, ..self }
    }

    /// Returns the visitor as a JSON member that follows another one.
    pub(super) fn user(&self, detail: VisitorDetail) -> &str {
        let [full, without_picture, id_alone] = &self.user;
        match detail {
            VisitorDetail::Full => full,
            VisitorDetail::WithoutPicture => without_picture,
            VisitorDetail::IdAlone => id_alone,
        }
    }
}

impl Deref for RoomClient {
    type Target = str;
    fn deref(&self) -> &str {
        &self.id
    }
}
