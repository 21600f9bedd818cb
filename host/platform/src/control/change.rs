//! Changes that caches in memory follow: noted in the transaction, delivered once it is durable and before its caller is answered.
//!
//! A cache of rows follows them in no other way: it registers itself when it is made, and nothing else removes what it holds. So it is
//! as new on a machine that was told of a change as on the one that made it.

use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use svc_base::ids::{BackendId, ProjectId, WorkspaceId};

/// A change after which state in memory must be updated. Other machines get it as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlChange {
    /// The content of a slug changed, or the slug ended.
    Slug(String),
    /// The origin of a project, given by its label, may lead to another frontend.
    Origin(String),
    /// A backend was created. The work of its database counts for this workspace.
    BackendCreated(BackendId, WorkspaceId),
    /// A backend was deleted.
    BackendEnded(BackendId),
    /// Realtime was switched off for a backend: its rooms are closed.
    RealtimeOff(BackendId),
    /// Actions of a backend were defined.
    ActionsDefined(BackendId),
    /// An action of a backend has the verdict of another gate; what it does is the same.
    ActionJudged(BackendId),
    /// A visitor's session ended, given by the SHA-256 of its token.
    SessionEnded([u8; 32]),
    /// Some or all sessions of a project's visitors ended.
    SessionsEnded(ProjectId),
    /// The operator has blocked the content of this SHA-256.
    ContentBlocked([u8; 32]),
    /// The operator allows the content of this SHA-256 again.
    ContentAllowed([u8; 32]),
    /// A domain is served, or is served otherwise than before.
    DomainServed {
        /// Name of the domain.
        name: String,
        /// Label of its project's origin.
        host_label: String,
        /// Host that its requests are sent to, if any.
        redirect_to: Option<String>,
    },
    /// A domain is served no more, given by its name.
    DomainEnded(String),
}

impl ControlChange {
    /// Writes changes for other machines. None are no bytes.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn to_bytes(changes: &[Self]) -> serde_json::Result<Arc<[u8]>> {
        match changes {
            [] => Ok(Arc::default()),
            some => serde_json::to_vec(some).map(Arc::from),
        }
    }

    /// Reads changes of another machine.
    ///
    /// # Errors
    /// A kind that this program does not know: whoever skipped it would keep what is old.
    pub fn from_bytes(bytes: &[u8]) -> serde_json::Result<Vec<Self>> {
        match bytes {
            [] => Ok(Vec::new()),
            some => serde_json::from_slice(some),
        }
    }
}

type ChangeListener = Box<dyn Fn(&ControlChange) + Send + Sync>;

/// Listeners to changes, in the order of their registration.
#[derive(Default)]
pub(super) struct NotedChangeListeners(RwLock<Vec<ChangeListener>>);

impl NotedChangeListeners {
    pub(super) fn add(&self, listener: impl Fn(&ControlChange) + Send + Sync + 'static) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::new(listener));
    }

    pub(super) fn deliver(&self, changes: &[ControlChange]) {
        let listeners = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            listeners.iter().for_each(|follow| follow(change));
        }
    }
}

impl std::fmt::Debug for NotedChangeListeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NotedChangeListeners")
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use svc_base::clock::{Clock, Timestamp};
    use svc_base::random::Random;

    use super::*;

    #[test]
    fn every_kind_of_change_travels_as_json() {
        let (clock, random) = (Clock::manual(Timestamp(0)), Random::system());
        let backend = BackendId::new(&clock, &random).unwrap();
        let project = ProjectId::new(&clock, &random).unwrap();
        let workspace = WorkspaceId::new(&clock, &random).unwrap();
        let changes = vec![
            ControlChange::Slug("garden".to_owned()),
            ControlChange::Origin("garden-acme".to_owned()),
            ControlChange::BackendCreated(backend, workspace),
            ControlChange::BackendEnded(backend),
            ControlChange::RealtimeOff(backend),
            ControlChange::ActionsDefined(backend),
            ControlChange::ActionJudged(backend),
            ControlChange::SessionEnded([7; 32]),
            ControlChange::SessionsEnded(project),
            ControlChange::ContentBlocked([8; 32]),
            ControlChange::ContentAllowed([9; 32]),
            ControlChange::DomainServed {
                name: "www.shop.com".to_owned(),
                host_label: "shop-acme".to_owned(),
                redirect_to: None,
            },
            ControlChange::DomainEnded("www.shop.com".to_owned()),
        ];
        let sent = ControlChange::to_bytes(&changes).unwrap();
        assert!(sent.starts_with(br#"[{"slug":"garden"},{"origin":"garden-acme"},"#));
        assert_eq!(ControlChange::from_bytes(&sent).unwrap(), changes);
        let none = ControlChange::to_bytes(&[]).unwrap();
        assert!(none.is_empty() && ControlChange::from_bytes(&none).unwrap().is_empty());
        // A program that does not know a kind must not go on without following it.
        assert!(ControlChange::from_bytes(br#"[{"from_later":1}]"#).is_err());
    }
}
