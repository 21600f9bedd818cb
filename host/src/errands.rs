//! Errands of other nodes: the kinds that there are, and how the machine that writes the control database does one.

use serde::{Deserialize, Serialize};

use crate::activity::SharedHours;
use crate::backends::ActionVerdict;
use crate::backends::calls::AuditAhead;
use crate::backends::history::RestoreEntry;
use crate::control::audit::{AuditWithdrawal, with_optional_actor};
use crate::control::{ControlDatabase, ErrandMessage, ErrandWork, Error};
use crate::deployments::files::visitors::{
    UnnamedObjects, VisitorFileRelease, VisitorFileReservation, VisitorFileSweep,
};
use crate::deployments::rerender::RerenderWithout;
use crate::guests::shared::GuestFell;
use crate::payments::MirrorPosition;
use crate::visitors::VisitorSeen;
use crate::workspaces::{KeyUse, UserSeen};

macro_rules! errands {
    ($($(#[$doc:meta])* $kind:ident($work:ty),)+) => {
        /// An errand of any kind.
        #[derive(Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Errand {
            $($(#[$doc])* $kind($work),)+
        }

        impl Errand {
            /// Names of all kinds, as the work of each has them.
            pub const KINDS: &'static [&'static str] = &[$(<$work as ErrandWork>::KIND,)+];

            /// Does the errand; returns the answer for its sender, in JSON.
            ///
            /// # Errors
            /// Errors of the database; then nothing is done.
            pub async fn perform(self, control: &ControlDatabase) -> Result<String, Error> {
                match self {
                    $(Self::$kind(work) => control.perform_errand(work).await,)+
                }
            }
        }
    };
}

errands! {
    /// A key was used.
    KeyUse(KeyUse),
    /// A person was authenticated by the operator's issuer.
    UserSeen(UserSeen),
    /// A visitor was seen.
    VisitorSeen(VisitorSeen),
    /// Another gate has judged an action.
    ActionVerdict(ActionVerdict),
    /// An owner is about to write rows of a backend.
    AuditAhead(AuditAhead),
    /// That write failed.
    AuditWithdrawal(AuditWithdrawal),
    /// A restore is in the file of a backend.
    RestoreEntry(RestoreEntry),
    /// A mirror of payments has followed its project.
    MirrorPosition(MirrorPosition),
    /// A guest that rendered pages was rolled back.
    RerenderWithout(RerenderWithout),
    /// A file of a visitor is about to be committed.
    VisitorFileReservation(VisitorFileReservation),
    /// A file of a visitor was not committed.
    VisitorFileRelease(VisitorFileRelease),
    /// Files were stored, and no row will name them.
    UnnamedObjects(UnnamedObjects),
    /// A database was looked at for files.
    VisitorFileSweep(VisitorFileSweep),
    /// A guest was rolled back at a node.
    GuestFell(GuestFell),
    /// A node has counted what pages did.
    SharedHours(SharedHours),
}

/// Does an errand that a node has sent, on behalf of its actor; returns the answer for it.
///
/// # Errors
/// A message that this program cannot read, and errors of the database; then nothing is done.
pub async fn perform_message(control: &ControlDatabase, message: &str) -> Result<String, Error> {
    let message: ErrandMessage<Errand> =
        serde_json::from_str(message).map_err(Error::from_errand)?;
    with_optional_actor(message.actor, message.errand.perform(control)).await
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use futures_util::future::BoxFuture;
    use serde_json::{Value, json};

    use super::*;
    use crate::control::ErrandSender;
    use svc_base::clock::{Clock, Timestamp};
    use svc_base::ids::{BackendId, ProjectId};
    use svc_base::random::Random;
    use svc_sandbox::GuestDigest;

    /// Does errands in another database, as the machine that writes it would.
    #[derive(Debug)]
    struct Elsewhere(ControlDatabase);

    impl ErrandSender for Elsewhere {
        fn send(&self, message: String) -> BoxFuture<'_, Result<String, Error>> {
            Box::pin(async move { perform_message(&self.0, &message).await })
        }
    }

    /// An errand of each kind, as it is written.
    fn samples() -> Vec<Value> {
        let (clock, random) = (Clock::manual(Timestamp(0)), Random::system());
        let at = Timestamp(0);
        let backend = BackendId::new(&clock, &random).unwrap();
        let project = ProjectId::new(&clock, &random).unwrap();
        let verdict =
            json!({ "kind": "read", "binds": [], "returns_rows": true, "start": 0, "end": 8 });
        let entry =
            json!({ "version": 2, "checksum": "", "sql": "", "note": null, "applied_at": at });
        vec![
            json!({ "key_use": { "key_id": "k", "at": at } }),
            json!({ "user_seen": { "issuer": "https://id", "subject": "ann", "email": null, "fresh": "usr_1", "at": at } }),
            json!({ "visitor_seen": { "visitor": "usr_1", "at": at } }),
            json!({ "action_verdict": { "backend": backend, "name": "list", "version": 1, "verdict": verdict, "gate": vec![0; 32] } }),
            json!({ "audit_ahead": { "backend": backend, "act": "BackendCall", "at": at } }),
            json!({ "audit_withdrawal": { "workspace": "", "number": 1 } }),
            json!({ "restore_entry": { "backend": backend, "made_by": null, "entry": entry } }),
            json!({ "rerender_without": { "fallen": GuestDigest::of(b"guest"), "at": at } }),
            json!({ "guest_fell": { "world": "gate", "guest": GuestDigest::of(b"guest"), "installed_at": at, "why": "trap", "at": at } }),
            json!({ "visitor_file_reservation": {
                "project": project, "backend": backend, "file": "file_1", "sent": vec![0; 32], "room": [1, 1], "at": at,
                "forms": [{ "size": 0, "digest": vec![0; 32], "bytes": 1, "objects": null, "media_type": "text/plain" }],
            } }),
            json!({ "visitor_file_release": {
                "project": project, "file": "file_1", "at": at, "reserved": { "digests": [vec![0; 32]], "version": 1 },
            } }),
            json!({ "unnamed_objects": { "objects": [vec![0; 32]], "at": at } }),
            json!({ "visitor_file_sweep": {
                "project": project, "backend": backend, "at": at,
                "changes": { "kept": [], "ended": ["file_1"], "returned": [], "dropped": [] },
            } }),
            json!({ "shared_hours": { "flush": 1, "hours": [[project, 5, { "calls": 1 }]], "at": at } }),
            json!({ "mirror_position": { "project": project, "backend": backend, "position": 1, "asked": 0 } }),
        ]
    }

    #[tokio::test]
    async fn every_kind_is_read_and_done() {
        let directory = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(directory.path()).unwrap();
        let mut kinds = BTreeSet::new();
        for sample in samples() {
            kinds.insert(sample.as_object().unwrap().keys().next().unwrap().clone());
            let message = json!({ "actor": null, "errand": sample }).to_string();
            let answer = perform_message(&control, &message).await;
            assert!(answer.is_ok(), "{sample}: {answer:?}");
        }
        let known: BTreeSet<String> = Errand::KINDS.iter().map(ToString::to_string).collect();
        assert_eq!(known.len(), Errand::KINDS.len());
        assert_eq!(kinds, known);
        let later = r#"{"actor":null,"errand":{"from_later":{}}}"#;
        let refused = perform_message(&control, later).await;
        assert!(matches!(refused, Err(Error::Errand(_))));
    }

    #[tokio::test]
    async fn a_node_gets_the_answer_of_the_machine_that_wrote() {
        let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [node, owner] = directories
            .each_ref()
            .map(|directory| ControlDatabase::open(directory.path()).unwrap());
        node.set_errand_sender(Some(Arc::new(Elsewhere(owner.clone()))));
        let seen = |fresh: &str| UserSeen {
            issuer: "https://id".to_owned(),
            subject: "ann".to_owned(),
            email: None,
            fresh: fresh.parse().unwrap(),
            at: Timestamp(0),
        };
        let first = node.run_errand(seen("usr_1")).await.unwrap();
        let second = node.run_errand(seen("usr_2")).await.unwrap();
        assert_eq!((first.as_str(), second.as_str()), ("usr_1", "usr_1"));
        let count = "SELECT count(*) FROM users";
        for (control, users) in [(&node, 0), (&owner, 1)] {
            let found = control.read(move |c| c.query_row(count, [], |row| row.get::<_, i64>(0)));
            assert_eq!(found.await.unwrap(), users);
        }
    }
}
