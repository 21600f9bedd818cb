//! Audit: who changed what and when, written in the transaction of the change.
//!
//! The actor is a task-local, as the tracing span is: an entry point sets it once ([`with_actor`]), and every transaction under it
//! takes it along, so that nothing between the entry point and the row can drop or forge it. The transaction records its changes
//! ([`Tx::record_audit`]): its rows and the entry are committed or rolled back together. A change without a request, such as the end of a project's
//! lifetime, has no actor and leaves no entry. A change in another database is recorded ahead of it (`audit/ahead.rs`).

mod ahead;
mod retention;

use std::fmt::Display;
use std::sync::Arc;

use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

use super::{ControlDatabase, Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

pub use ahead::{AuditWithdrawal, UncommittedAuditEntry};
pub use retention::forget_old;

/// Time for which entries are kept, in seconds.
pub const RETENTION_SECONDS: i64 = 90 * 24 * 3600;
/// Principal of operators' commands.
const OPERATOR_PRINCIPAL: &str = "operator";

/// Actor of a change, and the request in which it acts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditActor {
    principal: Arc<str>,
    request_id: Arc<str>,
}

impl AuditActor {
    /// Makes the actor of a request with a credential.
    pub fn new(principal: &str, request_id: &Arc<str>) -> Self {
        Self {
            principal: principal.into(),
            request_id: Arc::clone(request_id),
        }
    }

    /// Makes the actor of an operator's command.
    pub fn operator(request_id: &str) -> Self {
        Self {
            principal: OPERATOR_PRINCIPAL.into(),
            request_id: request_id.into(),
        }
    }

    /// Writes the actor as a text that [`AuditActor::decode`] reads.
    pub fn encode(&self) -> String {
        format!("{} {}", self.principal, self.request_id)
    }

    /// Reads an actor from such a text.
    pub fn decode(text: &str) -> Option<Self> {
        let (principal, request_id) = text.split_once(' ')?;
        Some(Self {
            principal: principal.into(),
            request_id: request_id.into(),
        })
    }
}

tokio::task_local! {
    static ACTOR: AuditActor;
}

/// Runs a future on behalf of an actor.
pub async fn with_actor<T>(actor: AuditActor, work: impl Future<Output = T>) -> T {
    ACTOR.scope(actor, work).await
}

/// Returns the actor of this task, if there is one.
pub fn current_actor() -> Option<AuditActor> {
    ACTOR.try_with(Clone::clone).ok()
}

/// Runs a future of another task on behalf of this task's actor.
pub async fn with_optional_actor<T>(actor: Option<AuditActor>, work: impl Future<Output = T>) -> T {
    match actor {
        Some(actor) => with_actor(actor, work).await,
        None => work.await,
    }
}

macro_rules! audit_actions {
    ($($name:ident $text:literal $about:literal,)+) => {
        /// Actions that the audit records: `<domain>.<verb>`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum AuditAction {
            $(#[doc = $about] $name,)+
        }

        impl AuditAction {
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// Whether it is about permissions or the plan: the actions of editors never push out such an entry.
            pub fn is_about_access(self) -> bool {
                let (domain, _) = self.as_str().split_once('.').unwrap_or_default();
                ["workspace", "member", "key"].contains(&domain)
            }

            /// Describes the action and its target.
            pub fn about(self) -> &'static str {
                match self { $(Self::$name => $about,)+ }
            }
        }
    };
}

audit_actions! {
    WorkspaceCreate "workspace.create" "A workspace was made; its id.",
    WorkspaceUpdate "workspace.update" "Its display name or plan was changed; its id.",
    WorkspaceDelete "workspace.delete" "Its end was begun, with all that it owns; its id.",
    MemberAdd "member.add" "A user was added, or given a role; the user's id.",
    MemberUpdate "member.update" "A member was given another role; the user's id.",
    MemberRemove "member.remove" "A member was removed; the user's id.",
    KeyCreate "key.create" "A key was made; its id.",
    KeyRevoke "key.revoke" "A key was revoked; its id.",
    ProjectCreate "project.create" "A project was made; its id.",
    ProjectUpdate "project.update" "A project's name, description, home or providers were changed; its id.",
    ProjectDelete "project.delete" "A project's end was begun, with all that is in it; its id.",
    ReleasePublish "release.publish" "A release changed a project's pages, actions, schema or home together; the project's id.",
    DomainCreate "domain.create" "A domain was added; its name.",
    DomainUpdate "domain.update" "A domain's redirect was changed; its name.",
    DomainVerify "domain.verify" "A domain was proven, and is served from then on; its name.",
    DomainDelete "domain.delete" "A domain was removed; its name.",
    DomainDisable "domain.disable" "The operator took a domain down; its name.",
    DomainEnable "domain.enable" "The operator put a domain back; its name.",
    FrontendCreate "frontend.create" "A page was published; the frontend's id.",
    FrontendClaim "frontend.claim" "A quick share became a page of a project; the frontend's id.",
    FrontendPublish "frontend.publish" "New content was published at once; the frontend's id.",
    FrontendDelete "frontend.delete" "A page was removed; the frontend's id.",
    RevisionCreate "revision.create" "A draft was made; the revision's id.",
    RevisionPromote "revision.promote" "A revision was made live; its id.",
    RevisionRollback "revision.rollback" "An earlier revision was put back; its id.",
    RevisionDelete "revision.delete" "A revision that was not live was deleted; its id.",
    BackendCreate "backend.create" "A backend was made; its id.",
    BackendMigrate "backend.migrate" "A migration was recorded; the backend's id.",
    BackendUpdate "backend.update" "Realtime, or the tools of agents, was switched; the backend's id.",
    BackendDefine "backend.define" "Actions were defined; the backend's id.",
    ActionRollback "action.rollback" "An earlier version of an action was put back; the backend's id, a slash and the action's name.",
    ActionDelete "action.delete" "An action was ended with its versions; the backend's id, a slash and the action's name.",
    BackendQuery "backend.query" "A query that writes rows was run; the backend's id.",
    BackendCall "backend.call" "Actions that write rows were called by a member or a key; the backend's id.",
    FileDelete "file.delete" "A visitor's file was deleted by its owner; the backend's id, a slash and the file's id.",
    BackendRestore "backend.restore" "The database was put back to a moment of its history; the backend's id.",
    BackendDelete "backend.delete" "A backend was removed with its rows; its id.",
    PriceCreate "price.create" "A price was put into a catalog; its id.",
    PriceDeactivate "price.deactivate" "A price was taken off a catalog; its id.",
    PaymentsRebuild "payments.rebuild" "The operator derived a project's payments anew; the project's id.",
    VisitorForget "visitor.forget" "What is known of a visitor was erased; the visitor's id.",
    DeploymentDisable "deployment.disable" "The operator took a page down; the deployment's id.",
    DeploymentEnable "deployment.enable" "The operator put a page back; the deployment's id.",
    ContentBlock "content.block" "The operator blocked content everywhere; its SHA-256.",
    ContentUnblock "content.unblock" "The operator allowed blocked content again; its SHA-256.",
    ReportClose "report.close" "The operator closed a report; its id.",
    GuestSwitch "guest.switch" "The operator installed a guest, or put another back; the guest's name.",
}

impl Tx<'_> {
    /// Adds the audit entry of a change that this transaction makes, if it has an actor.
    pub fn record_audit(
        &self,
        act: AuditAction,
        workspace: Option<&WorkspaceId>,
        target: &dyn Display,
        now: Timestamp,
    ) -> Result<(), Error> {
        match self.actor() {
            Some(actor) => self.record_audit_as(actor, act, workspace, target, now),
            None => Ok(()),
        }
    }

    /// Adds the audit entry of an earlier actor's change, where a crash came between the change and its record.
    pub fn record_audit_as(
        &self,
        actor: &AuditActor,
        act: AuditAction,
        workspace: Option<&WorkspaceId>,
        target: &dyn Display,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.insert_entry(actor, act, workspace, target, now)
            .map(drop)
    }

    /// Adds an entry; returns its number.
    fn insert_entry(
        &self,
        actor: &AuditActor,
        act: AuditAction,
        workspace: Option<&WorkspaceId>,
        target: &dyn Display,
        now: Timestamp,
    ) -> Result<i64, Error> {
        let mut insert = self.prepare_cached(
            "INSERT INTO audit (workspace_id, number, at, principal, action, target, request_id, is_lasting)
             VALUES (?1, coalesce((SELECT max(number) FROM audit WHERE workspace_id = ?1), 0) + 1, ?2, ?3, ?4, ?5, ?6, ?7)
             RETURNING number",
        )?;
        let entry = params![
            workspace_column(workspace),
            now,
            &*actor.principal,
            act.as_str(),
            target.to_string(),
            &*actor.request_id,
            act.is_about_access() || &*actor.principal == OPERATOR_PRINCIPAL,
        ];
        Ok(insert.query_row(entry, |row| row.get(0))?)
    }
}

/// An audit entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Entry {
    /// When it was done.
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
    /// Principal who did it: the id of a user or of a key, or `operator`.
    #[schema(example = "usr_7k2m9xq4w8t3z5b6c2d9fg")]
    pub principal: String,
    /// Act that was done, as `<domain>.<verb>`.
    #[schema(example = "revision.promote")]
    pub action: String,
    /// The id of what it was done to.
    pub target: String,
    /// The request that it was done in, as its answer named it in `X-Request-Id`.
    pub request_id: String,
}

/// A page of entries, newest first.
#[derive(Clone, Debug)]
pub struct AuditEntryPage {
    pub entries: Vec<Entry>,
    /// Number before which the next page begins, if there is one.
    pub next: Option<u64>,
}

/// Reads the entries of a workspace, or those without one, before a number: newest first.
pub async fn list_entries(
    control: &ControlDatabase,
    workspace: Option<WorkspaceId>,
    before: Option<u64>,
    limit: u32,
    now: Timestamp,
) -> Result<AuditEntryPage, Error> {
    let workspace = workspace_column(workspace.as_ref());
    let before = before.map_or(i64::MAX, |n| i64::try_from(n).unwrap_or(i64::MAX));
    let since = now.plus_seconds(-RETENTION_SECONDS);
    let mut rows = control
        .read(move |c| {
            c.prepare_cached(
                "SELECT number, at, principal, action, target, request_id FROM audit
                 WHERE workspace_id = ?1 AND number < ?2 AND at > ?3 ORDER BY number DESC LIMIT ?4",
            )?
            .query_map(params![workspace, before, since, limit + 1], entry_from_row)?
            .collect::<rusqlite::Result<Vec<_>>>()
        })
        .await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next = rows.last().filter(|_| more).map(|(number, _)| *number);
    Ok(AuditEntryPage {
        entries: rows.into_iter().map(|(_, entry)| entry).collect(),
        next,
    })
}

fn entry_from_row(row: &Row<'_>) -> rusqlite::Result<(u64, Entry)> {
    let number: i64 = row.get(0)?;
    let entry = Entry {
        at: row.get(1)?,
        principal: row.get(2)?,
        action: row.get(3)?,
        target: row.get(4)?,
        request_id: row.get(5)?,
    };
    Ok((number.unsigned_abs(), entry))
}

/// Value of the column `workspace_id`: empty for an entry without a workspace.
fn workspace_column(workspace: Option<&WorkspaceId>) -> String {
    workspace.map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::retention::{AuditRetention, forget};
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_176_000_000);

    fn record_audit(tx: &Tx<'_>, target: &str, now: Timestamp) -> Result<(), Error> {
        tx.record_audit(AuditAction::KeyCreate, None, &target, now)
    }

    async fn targets(control: &ControlDatabase) -> Vec<String> {
        let found = list_entries(control, None, None, 100, NOW).await.unwrap();
        found.entries.into_iter().map(|e| e.target).collect()
    }

    #[tokio::test]
    async fn an_entry_is_kept_with_its_change_and_names_who_did_it() {
        let directory = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(directory.path()).unwrap();
        let request_id: Arc<str> = "r-1".into();
        let actor = AuditActor::new("usr_1", &request_id);
        let write = async |target: &'static str, result: Result<(), Error>| {
            let write = control.write(move |tx| {
                record_audit(tx, target, NOW)?;
                result
            });
            write.await
        };
        with_actor(actor.clone(), async {
            write("kept", Ok(())).await.unwrap();
            write("undone", Err(Error::Busy)).await.unwrap_err();
            // A spawned task has no actor, unless it carries this one along.
            let alone = control.clone();
            let alone = async move { alone.write(|tx| record_audit(tx, "alone", NOW)).await };
            tokio::spawn(alone).await.unwrap().unwrap();
            let along = control.clone();
            let along = async move { along.write(|tx| record_audit(tx, "along", NOW)).await };
            tokio::spawn(with_optional_actor(super::current_actor(), along))
                .await
                .unwrap()
                .unwrap();
        })
        .await;
        write("nobody", Ok(())).await.unwrap();
        assert_eq!(targets(&control).await, ["along", "kept"]);
        let entry = &list_entries(&control, None, None, 1, NOW)
            .await
            .unwrap()
            .entries[0];
        assert_eq!((&*entry.principal, &*entry.request_id), ("usr_1", "r-1"));
        let again = AuditActor::decode(&actor.encode()).unwrap();
        assert_eq!(again.encode(), actor.encode());
    }

    #[tokio::test]
    async fn the_oldest_are_forgotten_first() {
        let directory = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(directory.path()).unwrap();
        with_actor(AuditActor::operator("r-1"), async {
            for number in 0..10 {
                let at = NOW.plus_seconds(number);
                let write = control.write(move |tx| record_audit(tx, &number.to_string(), at));
                write.await.unwrap();
            }
        })
        .await;
        let most = |of_workspace| AuditRetention {
            of_workspace,
            of_principal: 100,
        };
        forget(&control, NOW.plus_seconds(3), most(100))
            .await
            .unwrap();
        assert_eq!(targets(&control).await, ["9", "8", "7", "6", "5", "4"]);
        forget(&control, NOW, most(2)).await.unwrap();
        assert_eq!(targets(&control).await, ["9", "8"]);
        forget(&control, NOW.plus_seconds(90), most(2))
            .await
            .unwrap();
        assert_eq!(targets(&control).await, [""; 0]);
    }

    #[tokio::test]
    async fn an_editor_displaces_neither_access_nor_more_than_a_part_of_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(directory.path()).unwrap();
        let request_id: Arc<str> = "r-1".into();
        let acts = async |principal: &str, act: AuditAction, times: u32| {
            with_actor(AuditActor::new(principal, &request_id), async {
                for _ in 0..times {
                    let target = format!("{principal}:{}", act.as_str());
                    let write = control.write(move |tx| tx.record_audit(act, None, &target, NOW));
                    write.await.unwrap();
                }
            })
            .await;
        };
        acts("admin", AuditAction::KeyCreate, 1).await;
        acts("admin", AuditAction::MemberAdd, 1).await;
        acts("owner", AuditAction::WorkspaceUpdate, 1).await;
        acts("colleague", AuditAction::FrontendPublish, 2).await;
        acts("editor", AuditAction::RevisionCreate, 20).await;
        acts("editor", AuditAction::PriceCreate, 20).await;
        let most = AuditRetention {
            of_workspace: 6,
            of_principal: 4,
        };
        forget(&control, NOW.plus_seconds(-1), most).await.unwrap();
        let mut left = targets(&control).await;
        left.reverse();
        let editor = "editor:price.create";
        assert_eq!(
            left,
            [
                "admin:key.create",
                "admin:member.add",
                "owner:workspace.update",
                "colleague:frontend.publish",
                "colleague:frontend.publish",
                editor,
                editor,
                editor,
                editor,
            ]
        );
    }
}
