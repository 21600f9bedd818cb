//! The service of payments: sessions, identified buyers, and the effects of the ledger.

use super::buyer::Buyer;
use super::checkout::CheckoutLocks;
use super::model::{COOKIE_SECONDS, CheckoutSession, PaymentError, Status};
use super::verdict::verdict;
use super::views::MatchedBy;
use super::{cancellations, cookie_links, store};
use crate::control::audit::AuditAction;
use crate::control::{self, ControlDatabase, Tx};
use crate::deployments::serving::pages::{PageKind, ServedPage};
use crate::infra::Infra;
use crate::projects::{self, ProjectError, Projects};
use crate::stripe::{
    EventConsumer, EventConsumption, EventReference, EventSubject, RelatedEvents, StripeClient,
    ledger,
};
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId, SessionId};

/// Time for which an event without a session is kept, in seconds. The provider itself forgets events after 30 days.
const UNCLAIMED_EVENT_SECONDS: i64 = 90 * 24 * 3600;
/// Number of old events that one transaction deletes.
const EVENT_BATCH: u32 = 100;
/// Number of sessions that one transaction processes.
const SESSION_BATCH: u32 = 100;
/// Number of links between cookies that one transaction deletes.
const LINK_BATCH: u32 = 100;

/// Service of payments.
#[derive(Debug)]
pub struct Payments {
    pub(super) infra: Infra,
    pub(super) projects: Projects,
    pub(super) stripe: Option<StripeClient>,
    pub(super) locks: CheckoutLocks,
}

impl Payments {
    /// The payments in a control database, with a provider if one is configured.
    pub fn new(infra: Infra, projects: Projects, stripe: Option<StripeClient>) -> Self {
        Self {
            infra,
            projects,
            stripe,
            locks: CheckoutLocks::default(),
        }
    }

    /// Lists the latest sessions of a project, newest first.
    pub async fn sessions(
        &self,
        project: ProjectId,
        most: u64,
    ) -> Result<Vec<CheckoutSession>, PaymentError> {
        let read = self
            .infra
            .control
            .read(move |c| store::sessions(c, &project, most));
        Ok(read.await?)
    }

    /// Lists the paid sessions of a page's visitor, found by identity, e-mail address or cookie.
    pub async fn paid_sessions(
        &self,
        page: &ServedPage,
        buyer: Buyer,
    ) -> Result<Vec<(CheckoutSession, MatchedBy)>, PaymentError> {
        if buyer.is_unknown() {
            return Ok(Vec::new());
        }
        let deployment = page.id;
        let project = self.project_of(page).await?;
        self.follow_fresh_cookie(deployment, &buyer).await?;
        let since = self.infra.clock.now().plus_seconds(-COOKIE_SECONDS);
        let read = self
            .infra
            .control
            .read(move |c| store::find_paid_sessions(c, &project, &deployment, &buyer, since));
        Ok(read.await?)
    }

    /// Moves earlier purchases to a fresh cookie that the browser sends for the first time.
    async fn follow_fresh_cookie(
        &self,
        deployment: DeploymentId,
        buyer: &Buyer,
    ) -> Result<(), control::Error> {
        let Some(token) = buyer.token.as_deref() else {
            return Ok(());
        };
        let cookie = buyer.host.hash_token(token);
        let (host_cookie, now) = (buyer.secure, self.infra.clock.now());
        let read = self
            .infra
            .control
            .read(move |c| cookie_links::is_pending(c, &deployment, &cookie));
        if read.await? {
            let write = self.infra.control.write(move |tx| {
                cookie_links::follow(tx, &deployment, (&cookie, host_cookie), now)
            });
            write.await?;
        }
        Ok(())
    }

    /// Marks sessions whose checkout was interrupted by a crash, so that the mirror shows them. Runs before any checkout begins.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn mark_interrupted_checkouts(&self) -> Result<(), control::Error> {
        let write = self.infra.control.write(|tx| {
            for session in store::interrupted_sessions(tx)? {
                store::mark_outcome_unknown(tx, &session, false)?;
            }
            Ok(())
        });
        write.await
    }

    /// Returns the live project that a page belongs to.
    ///
    /// # Errors
    /// `NoProject` for a quick share, or if the project has just ended.
    pub(super) async fn project_of(&self, page: &ServedPage) -> Result<ProjectId, PaymentError> {
        let PageKind::Frontend { host_label } = &page.kind else {
            return Err(PaymentError::NoProject);
        };
        let found = self.projects.find_by_label(host_label).await;
        let project = found.map_err(|error| match error {
            ProjectError::Store(error) => error.into(),
            _ => PaymentError::NoProject,
        })?;
        project.map(|one| one.id).ok_or(PaymentError::NoProject)
    }

    /// Derives the verdicts of a project's sessions from the ledger again, and rebuilds the mirror. Returns the number of sessions,
    /// and how many of them have changed.
    pub async fn rebuild(
        control: &ControlDatabase,
        project: ProjectId,
        now: Timestamp,
    ) -> Result<(usize, usize), control::Error> {
        let sessions = control
            .read(move |c| store::session_ids(c, &project))
            .await?;
        let all = sessions.len();
        let mut changed = 0;
        for some in sessions.chunks(SESSION_BATCH as usize) {
            let some = some.to_vec();
            let write = control.write(move |tx| {
                let mut changed = 0;
                for id in some {
                    changed += usize::from(apply_verdict(tx, &id, now)?);
                }
                Ok::<_, control::Error>(changed)
            });
            changed += write.await?;
        }
        control
            .write(move |tx| {
                store::request_rebuild(tx, &project)?;
                projects::record_audit(tx, &project, AuditAction::PaymentsRebuild, &project, now)
            })
            .await?;
        Ok((all, changed))
    }

    /// Lists the ledger's events about a project's sessions, by arrival.
    pub async fn events(
        control: &ControlDatabase,
        project: ProjectId,
    ) -> Result<Vec<(SessionId, ledger::EventLedgerEntry)>, control::Error> {
        control
            .read(move |c| {
                let mut all = Vec::new();
                for id in store::session_ids(c, &project)? {
                    if let Some(session) = store::find_by_id(c, &id)? {
                        let found = ledger::find_related(c, event_references(&session))?;
                        all.extend(found.entries.into_iter().map(|entry| (id, entry)));
                    }
                }
                all.sort_by_key(|(_, entry)| entry.number);
                Ok(all)
            })
            .await
    }

    /// Removes the catalog, the sessions and the events of a deleted project. Subscriptions and open checkouts are queued
    /// for cancellation.
    ///
    /// # Errors
    /// Errors of the database; calling again continues.
    pub async fn remove(&self, project: ProjectId) -> Result<(), control::Error> {
        let now = self.infra.clock.now();
        loop {
            let write = self.infra.control.write(move |tx| {
                let removed = store::remove_batch(tx, &project, SESSION_BATCH)?;
                for session in &removed {
                    let found = ledger::find_related(tx, event_references(session))?;
                    cancellations::enqueue(tx, session, &found, now)?;
                    ledger::remove(tx, &found)?;
                }
                let links = cookie_links::remove_batch(tx, &project, LINK_BATCH)?;
                Ok::<_, control::Error>(links || !removed.is_empty())
            });
            if !write.await? {
                return Ok(());
            }
        }
    }

    /// Deletes events that belong to no session and are old, finished cancellations of the same age, and links of expired cookies.
    pub async fn delete_old_events(&self) -> Result<(), control::Error> {
        let before = self
            .infra
            .clock
            .now()
            .plus_seconds(-UNCLAIMED_EVENT_SECONDS);
        let forgotten = self.infra.clock.now().plus_seconds(-COOKIE_SECONDS);
        self.infra
            .control
            .write(move |tx| cancellations::delete_finished(tx, before))
            .await?;
        loop {
            let write = self
                .infra
                .control
                .write(move |tx| cookie_links::delete_old_batch(tx, forgotten, LINK_BATCH));
            if !write.await? {
                break;
            }
        }
        loop {
            let write = self.infra.control.write(move |tx| {
                let entries = ledger::list_unclaimed(tx, before, EVENT_BATCH)?;
                let some = !entries.is_empty();
                let found = RelatedEvents {
                    entries,
                    ..RelatedEvents::default()
                };
                ledger::remove(tx, &found)?;
                Ok::<_, control::Error>(some)
            });
            if !write.await? {
                return Ok(());
            }
        }
    }
}

/// Returns the references by which events of a session are found.
fn event_references(session: &CheckoutSession) -> Vec<EventReference> {
    let own = EventReference::subject(&EventSubject::Session(session.id.to_string()));
    let hosted = session.provider_id.as_deref().map(EventReference::object);
    std::iter::once(own).chain(hosted).collect()
}

/// Updates a session to the verdict of the ledger; returns whether it changed.
pub(super) fn apply_verdict(
    tx: &Tx<'_>,
    id: &SessionId,
    now: Timestamp,
) -> Result<bool, control::Error> {
    let Some(session) = store::find_by_id(tx, id)? else {
        return Ok(false);
    };
    let found = ledger::find_related(tx, event_references(&session))?;
    ledger::mark_claimed(tx, &found)?;
    let said = verdict(&session.terms(), found.events());
    store::set_verdict(tx, &session, &said, now)
}

impl EventConsumer for Payments {
    fn consume(
        &self,
        tx: &Tx<'_>,
        found: &RelatedEvents,
        now: Timestamp,
    ) -> Result<EventConsumption, control::Error> {
        let mut sessions: Vec<CheckoutSession> = Vec::new();
        for reference in &found.references {
            let session = match (reference.as_session(), reference.as_object()) {
                (Some(id), _) => match id.parse() {
                    Ok(id) => store::find_by_id(tx, &id)?,
                    Err(_) => None,
                },
                (None, Some(id)) => store::find_by_provider_id(tx, id)?,
                (None, None) => None,
            };
            // An event names its session twice: by its own id and by the provider's.
            let session = session.filter(|found| sessions.iter().all(|one| one.id != found.id));
            sessions.extend(session);
        }
        if sessions.is_empty() {
            cancellations::consume(tx, found, now)?;
        }
        let mut paid = Vec::new();
        for session in &sessions {
            let said = verdict(&session.terms(), found.events());
            store::set_verdict(tx, session, &said, now)?;
            if said.status == Status::Paid && session.status != Status::Paid {
                paid.push(session.project);
            }
        }
        Ok(EventConsumption {
            claimed: !sessions.is_empty(),
            paid,
        })
    }
}
