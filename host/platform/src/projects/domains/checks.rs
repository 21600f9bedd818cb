//! Checks of domains: by their owners, and by themselves in time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::timeout;

use super::dns::{DnsAnswer, DnsUnavailable};
use super::model::{CheckOutcome, Domain, DomainError, DomainState};
use super::proof::ProofMaker;
use super::service::Domains;
use super::{schedule, store};
use crate::config::Config;
use crate::control::audit::AuditAction;
use crate::control::{Error, Tx};
use crate::projects::Project;
use crate::projects::store::record_audit;
use crate::tls::MAX_SERVED_DOMAINS;
use svc_base::clock::Timestamp;
use svc_base::ids::ProjectId;

/// Most look-ups for one check: others may have come to newer answers, of which an hour has ten.
const MAX_ATTEMPTS: usize = 10;
/// Most domains that are checked in one turn of the background, and at once.
const CHECKS_PER_TURN: u32 = 64;
const CHECKS_AT_ONCE: usize = 16;
/// Longest wait of an owner's check for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(8);
/// Time until a check without a usable answer is tried again; and of a domain that waits for it alone, after a restore.
const RETRY_MS: i64 = 60 * 60 * 1_000;
const RETRY_OF_RESTORED_MS: i64 = 60 * 1_000;

/// Look-up of a domain: when it began, and what it found.
struct Observation {
    at: Timestamp,
    found: DnsAnswer,
}

impl Domains {
    /// Checks a domain for its owner.
    ///
    /// # Errors
    /// `Unproven` and `Taken`, `TooManyChecks`, `Disabled`, `Dns`.
    pub(super) async fn verify(
        &self,
        project: &Project,
        name: &str,
    ) -> Result<Domain, DomainError> {
        let domain = self.find(project, name).await?;
        let now = self.infra.clock.now();
        self.limit
            .take(project.id, &domain.name, now)
            .map_err(|wait_seconds| DomainError::TooManyChecks { wait_seconds })?;
        let turn = timeout(TURN_TIMEOUT, self.turns.take(project.workspace.id)).await;
        let _turn = turn.map_err(|_| DnsUnavailable::because("too many checks run at once"))?;
        match self.check(project.id, domain.name).await? {
            CheckOutcome::Proven(domain) => Ok(domain),
            CheckOutcome::Unproven { wanted, seen } => Err(DomainError::Unproven { wanted, seen }),
            CheckOutcome::Taken { wanted, seen } => Err(DomainError::Taken { wanted, seen }),
        }
    }

    /// Checks all domains that are due.
    ///
    /// # Errors
    /// The control database's.
    pub async fn check_due(&self) -> anyhow::Result<()> {
        if self.proofs.is_none() {
            return Ok(());
        }
        let now = self.infra.clock.now();
        let due = self
            .infra
            .control
            .read(move |c| store::list_due(c, now, CHECKS_PER_TURN));
        let checks = stream::iter(due.await?).for_each_concurrent(
            CHECKS_AT_ONCE,
            |(project, name)| async move {
                if let Err(error) = self.check_by_itself(project, name.clone()).await {
                    tracing::warn!(name, %error, "a domain was not checked");
                }
            },
        );
        checks.await;
        Ok(())
    }

    async fn check_by_itself(&self, project: ProjectId, name: String) -> Result<(), DomainError> {
        match self.check(project, name.clone()).await {
            Ok(_) | Err(DomainError::NotFound(_)) => Ok(()),
            Err(error) => {
                self.postpone(project, name).await?;
                match error {
                    DomainError::Dns(why) => {
                        tracing::debug!(%why, "DNS has no usable answer");
                        Ok(())
                    }
                    error => Err(error),
                }
            }
        }
    }

    /// Has a domain checked again later, whose check led to nothing.
    async fn postpone(&self, project: ProjectId, name: String) -> Result<(), Error> {
        let (config, now) = (Arc::clone(self.config()), self.infra.clock.now());
        let postponed = self.infra.control.write(move |tx| {
            let Some(mut domain) = store::find(tx, &project, &name)? else {
                return Ok(());
            };
            let is_restored =
                domain.state == DomainState::Pending && domain.pending_since.is_none();
            let wait = match is_restored {
                true => RETRY_OF_RESTORED_MS,
                false => RETRY_MS,
            };
            let retry = Timestamp(now.0.saturating_add(wait));
            domain.check_at = Some(retry);
            let pending = domain.state == DomainState::Pending;
            if let Some(since) = domain.pending_since.filter(|_| pending) {
                let Some(next) = schedule::next_of_pending(since, now) else {
                    // It ends by the clock, whether or not DNS answers.
                    let at = (&project, name.as_str());
                    return store::remove(tx, &config, at, now).map(|_| ());
                };
                domain.check_at = Some(next.min(retry));
            }
            store::put(tx, &domain)
        });
        postponed.await
    }

    /// Looks a domain up, and stores what follows from it.
    async fn check(&self, project: ProjectId, name: String) -> Result<CheckOutcome, DomainError> {
        let proofs = self.proofs()?;
        for _ in 0..MAX_ATTEMPTS {
            let at = self.infra.clock.now();
            let is_last = |host: &str| proofs.is_ours(host);
            let found = self.dns.look_up(&name, is_last).await?;
            let (config, proofs) = (Arc::clone(self.config()), proofs.clone());
            let (name, now) = (name.clone(), self.infra.clock.now());
            let settled = self.infra.control.write(move |tx| {
                let check = CheckTransaction {
                    tx,
                    config: &config,
                    proofs: &proofs,
                    now,
                };
                check.settle(&project, &name, Observation { at, found })
            });
            if let Some(outcome) = settled.await? {
                return Ok(outcome);
            }
        }
        let overtaken = "other checks of the name overtook this one";
        Err(DnsUnavailable::because(overtaken).into())
    }
}

/// A check in the transaction that stores its outcome.
struct CheckTransaction<'a, 'tx> {
    tx: &'a Tx<'tx>,
    config: &'a Config,
    proofs: &'a ProofMaker,
    now: Timestamp,
}

impl CheckTransaction<'_, '_> {
    /// Stores what follows from an observation; `None` if there is a newer one, of the domain or of the project that serves the name.
    fn settle(
        &self,
        project: &ProjectId,
        name: &str,
        Observation { at, found }: Observation,
    ) -> Result<Option<CheckOutcome>, DomainError> {
        let known = store::find(self.tx, project, name).map_err(Error::from)?;
        let mut domain = known.ok_or_else(|| DomainError::NotFound(name.to_owned()))?;
        if store::is_disabled(self.tx, name).map_err(Error::from)? {
            return Err(DomainError::Disabled);
        }
        let holder = store::find_served(self.tx, name).map_err(Error::from)?;
        let holder = holder.filter(|holder| holder.project != *project);
        // One of the future was stored before the clock was set back.
        let is_newer = |known: &Domain| {
            let seen = known.checked_at.filter(|seen| *seen <= self.now);
            seen > Some(at)
        };
        if is_newer(&domain) || holder.as_ref().is_some_and(is_newer) {
            return Ok(None);
        }
        let proof = self.proofs.of(project, name);
        let (seen, missing) = (found.records, found.missing);
        let is_ours = proof.is_in(&seen);
        let is_theirs = |other: &Domain| self.proofs.of(&other.project, name).is_in(&seen);
        if let Some(why) = missing.filter(|_| !is_ours || holder.is_some()) {
            // The records that are missing may prove it, or another's.
            return Err(why.into());
        }
        domain.checked_at = Some(at);
        if holder.as_ref().is_some_and(is_theirs) {
            self.miss(domain)?;
            let wanted = proof.wanted(name);
            return Ok(Some(CheckOutcome::Taken { wanted, seen }));
        }
        if is_ours {
            return Ok(Some(CheckOutcome::Proven(self.serve(domain, holder)?)));
        }
        let all = store::list_of_name(self.tx, name).map_err(Error::from)?;
        match all.into_iter().find(is_theirs) {
            Some(heir) if domain.state.is_served() => drop(self.serve(heir, Some(domain))?),
            _ => self.miss(domain)?,
        }
        let wanted = proof.wanted(name);
        Ok(Some(CheckOutcome::Unproven { wanted, seen }))
    }

    /// Serves a domain that is proven; the project that was before it loses the name.
    fn serve(&self, mut domain: Domain, holder: Option<Domain>) -> Result<Domain, DomainError> {
        let is_new = !domain.state.is_served();
        let served = store::count_served(self.tx).map_err(Error::from)?;
        if is_new && holder.is_none() && served >= MAX_SERVED_DOMAINS as u64 {
            return Err(DomainError::Full);
        }
        if let Some(mut former) = holder {
            former.state = DomainState::Lost;
            former.checked_at = Some(self.now);
            (former.failing_since, former.check_at) = (None, None);
            // The name itself goes on: its certificate stays, and memory has it for the other project.
            store::put(self.tx, &former)?;
        }
        domain.state = DomainState::Active;
        domain.verified_at = Some(self.now);
        (domain.failing_since, domain.pending_since) = (None, None);
        domain.check_at = Some(schedule::next_of_active(self.now));
        store::put(self.tx, &domain)?;
        if is_new {
            store::announce_served(self.tx, self.config, &domain, self.now)?;
            let act = AuditAction::DomainVerify;
            record_audit(self.tx, &domain.project, act, &domain.name, self.now)?;
        }
        Ok(domain)
    }

    /// Stores that a domain is not proven now.
    fn miss(&self, mut domain: Domain) -> Result<(), Error> {
        let now = self.now;
        match domain.state {
            DomainState::Pending => {
                let since = *domain.pending_since.get_or_insert(now);
                domain.check_at = schedule::next_of_pending(since, now);
                if domain.check_at.is_none() {
                    let at = (&domain.project, domain.name.as_str());
                    return store::remove(self.tx, self.config, at, now).map(|_| ());
                }
            }
            DomainState::Active => {
                domain.state = DomainState::Failing;
                domain.failing_since = Some(now);
                domain.check_at = Some(schedule::next_of_failing(now, now));
            }
            DomainState::Failing => {
                let since = *domain.failing_since.get_or_insert(now);
                domain.check_at = Some(schedule::next_of_failing(since, now));
                if schedule::is_lost(since, now) {
                    domain.state = DomainState::Lost;
                    (domain.failing_since, domain.check_at) = (None, None);
                    store::announce_end(self.tx, self.config, &domain.name, now)?;
                }
            }
            DomainState::Lost => {}
        }
        store::put(self.tx, &domain)
    }
}
