//! The service of domains: adds, changes and removes them, and keeps memory in step.

use std::collections::HashSet;
use std::sync::Arc;

use ring::hmac;

use super::dns::DnsClient;
use super::limit::CheckLimit;
use super::model::{Domain, DomainError, DomainState};
use super::name::{NameFault, OwnHosts, normalize, without_port};
use super::proof::ProofMaker;
use super::turns::CheckTurns;
use super::{schedule, store};
use crate::config::{CertificateSettings, Config};
use crate::control::audit::AuditAction;
use crate::control::{ControlChange, Error, Tx};
use crate::http::hosts::ServerHostNames;
use crate::infra::Infra;
use crate::projects::Project;
use crate::projects::store::{is_live, record_audit};
use crate::tls::{DomainCertificate, ServedDomain, ServedDomains};
use crate::workspaces::{Principal, Workspaces};
use svc_base::clock::Timestamp;

/// Domains of all projects.
#[derive(Clone, Debug)]
pub struct Domains {
    pub(super) infra: Infra,
    workspaces: Workspaces,
    hosts: Arc<ServerHostNames>,
    own_hosts: Arc<OwnHosts>,
    /// `None` where projects have no origins.
    pub(super) proofs: Option<ProofMaker>,
    pub(super) dns: Arc<DnsClient>,
    pub(super) limit: Arc<CheckLimit>,
    pub(super) turns: Arc<CheckTurns>,
}

impl Domains {
    /// Creates the service, and has memory follow the rows from now on. Blocks.
    ///
    /// # Errors
    /// The control database's.
    pub fn open(infra: Infra, workspaces: Workspaces, secret: hmac::Key) -> Result<Self, Error> {
        let served = Arc::new(ServedDomains::default());
        let followed = Arc::clone(&served);
        infra.control.on_change(move |change| match change {
            ControlChange::DomainServed {
                name,
                host_label,
                redirect_to,
            } => followed.serve(ServedDomain {
                name: name.clone(),
                host_label: host_label.clone(),
                redirect_to: redirect_to.clone(),
            }),
            ControlChange::DomainEnded(name) => followed.end(name),
            ControlChange::Slug(_)
            | ControlChange::Origin(_)
            | ControlChange::BackendCreated(..)
            | ControlChange::BackendEnded(_)
            | ControlChange::RealtimeOff(_)
            | ControlChange::ActionsDefined(_)
            | ControlChange::ActionJudged(_)
            | ControlChange::SessionEnded(_)
            | ControlChange::SessionsEnded(_)
            | ControlChange::ContentBlocked(_)
            | ControlChange::ContentAllowed(_) => {}
        });
        let config = &infra.config;
        if config.sites_domain.is_some() {
            // A change that comes meanwhile waits, and is applied to what was read.
            served.replace(|| infra.control.read_blocking(store::list_served))?;
        }
        let sites = config.sites_domain.as_deref().map(without_port);
        Ok(Self {
            own_hosts: Arc::new(OwnHosts::new(config)),
            proofs: sites.map(|sites| ProofMaker::new(secret, sites.to_owned())),
            dns: Arc::new(DnsClient::new(config.domains.as_ref())),
            limit: Arc::default(),
            turns: Arc::default(),
            hosts: Arc::new(ServerHostNames::new(config, served)),
            workspaces,
            infra,
        })
    }

    /// Returns the hosts of the server, the domains among them.
    pub fn hosts(&self) -> &Arc<ServerHostNames> {
        &self.hosts
    }

    /// Returns the domains that are served.
    pub fn served(&self) -> &Arc<ServedDomains> {
        self.hosts.domains()
    }

    pub(super) fn config(&self) -> &Arc<Config> {
        &self.infra.config
    }

    /// Returns the maker of proofs.
    ///
    /// # Errors
    /// [`DomainError::Unconfigured`].
    pub(super) fn proofs(&self) -> Result<&ProofMaker, DomainError> {
        self.proofs.as_ref().ok_or(DomainError::Unconfigured)
    }

    /// Returns the state of a domain's certificate.
    pub(super) fn certificate(&self, domain: &Domain) -> DomainCertificate {
        let asks = matches!(
            self.config().certificates,
            Some(CertificateSettings::Acme(_))
        );
        match domain.state.is_served() {
            true => {
                let now = self.infra.clock.now();
                self.served().certificate(&domain.name, asks, now)
            }
            false => DomainCertificate::None,
        }
    }

    /// Returns the principal that owns the project that a name is active for. One that only fails is served, but is not active.
    ///
    /// # Errors
    /// The control database's.
    pub async fn owner_of_active(&self, name: String) -> Result<Option<Principal>, Error> {
        let owner = self.infra.control.read(move |c| {
            let workspace = store::workspace_of_active(c, &name)?;
            let owner = workspace.map(|workspace| Principal::of_workspace(c, &workspace));
            owner.transpose()
        });
        owner.await
    }

    /// Lists the names whose stored certificates a start keeps: those of all domains but lost ones, because one that is pending after a
    /// restore is served again soon.
    ///
    /// # Errors
    /// The control database's.
    pub async fn list_kept(&self) -> Result<HashSet<String>, Error> {
        self.infra.control.read(store::list_kept).await
    }

    /// Adds a domain to a project. One that it has already is answered as it is, with the redirect that is asked for; it is pending again
    /// if it was lost.
    pub(super) async fn create(
        &self,
        project: &Project,
        name: &str,
        redirect_to: Option<String>,
    ) -> Result<Domain, DomainError> {
        self.proofs()?;
        let fault = |fault: NameFault| DomainError::Name(name.chars().take(100).collect(), fault);
        let name = normalize(name).map_err(fault)?;
        self.own_hosts
            .check(&name)
            .map_err(|fault| DomainError::Name(name.clone(), fault))?;
        let owner = self.workspaces.find_by_id(project.workspace.id).await?;
        let most = owner.map_or(0, |owner| owner.plan.max_domains(&self.config().limits));
        let (config, now) = (Arc::clone(self.config()), self.infra.clock.now());
        let project = project.clone();
        let added = self.infra.control.write(move |tx| {
            if !is_live(tx, &project.id, now)? {
                return Err(DomainError::NotFound(name));
            }
            if store::is_disabled(tx, &name).map_err(Error::from)? {
                return Err(DomainError::Disabled);
            }
            let redirect_to = check_redirect(tx, &config, &project, &name, redirect_to)?;
            let added = add(tx, (&project, name), redirect_to.clone(), (most, now))?;
            match redirect_to {
                None => Ok(added),
                redirect_to => change_redirect(tx, &config, added, redirect_to, now),
            }
        });
        added.await
    }

    /// Lists the domains of a project, oldest first.
    pub(super) async fn list(&self, project: &Project) -> Result<Vec<Domain>, DomainError> {
        self.proofs()?;
        let project = project.id;
        let read = self.infra.control.read(move |c| store::list(c, &project));
        Ok(read.await?)
    }

    /// Finds a domain of a project by its name in any form.
    ///
    /// # Errors
    /// [`DomainError::NotFound`].
    pub(super) async fn find(&self, project: &Project, name: &str) -> Result<Domain, DomainError> {
        self.proofs()?;
        let missing = || DomainError::NotFound(name.chars().take(100).collect());
        let (project, normal) = (project.id, normalize(name).map_err(|_| missing())?);
        let read = self
            .infra
            .control
            .read(move |c| store::find(c, &project, &normal));
        read.await?.ok_or_else(missing)
    }

    /// Changes where a domain's requests are sent; `None` has it answer itself.
    pub(super) async fn set_redirect(
        &self,
        project: &Project,
        name: &str,
        redirect_to: Option<String>,
    ) -> Result<Domain, DomainError> {
        let found = self.find(project, name).await?;
        let (config, now) = (Arc::clone(self.config()), self.infra.clock.now());
        let project = project.clone();
        let changed = self.infra.control.write(move |tx| {
            let found = store::find(tx, &project.id, &found.name).map_err(Error::from)?;
            let domain = found.ok_or_else(|| DomainError::NotFound(String::new()))?;
            let redirect_to = check_redirect(tx, &config, &project, &domain.name, redirect_to)?;
            change_redirect(tx, &config, domain, redirect_to, now)
        });
        changed.await
    }

    /// Removes a domain of a project: it is served no more when this returns. An unknown one is no error.
    pub(super) async fn remove(&self, project: &Project, name: &str) -> Result<(), DomainError> {
        self.proofs()?;
        let Ok(name) = normalize(name) else {
            return Ok(());
        };
        let (config, now) = (Arc::clone(self.config()), self.infra.clock.now());
        let project = project.id;
        let removed = self.infra.control.write(move |tx| {
            if store::remove(tx, &config, (&project, &name), now)? {
                record_audit(tx, &project, AuditAction::DomainDelete, &name, now)?;
            }
            Ok::<_, Error>(())
        });
        Ok(removed.await?)
    }
}

/// Stores where a domain's requests are sent, if that is a change.
fn change_redirect(
    tx: &Tx<'_>,
    config: &Config,
    mut domain: Domain,
    redirect_to: Option<String>,
    now: Timestamp,
) -> Result<Domain, DomainError> {
    if domain.redirect_to == redirect_to {
        return Ok(domain);
    }
    domain.redirect_to = redirect_to;
    store::put(tx, &domain)?;
    if domain.state.is_served() {
        store::announce_served(tx, config, &domain, now)?;
    }
    let act = AuditAction::DomainUpdate;
    record_audit(tx, &domain.project, act, &domain.name, now)?;
    Ok(domain)
}

/// Adds a domain in a transaction, or finds it.
fn add(
    tx: &Tx<'_>,
    (project, name): (&Project, String),
    redirect_to: Option<String>,
    (most, now): (u64, Timestamp),
) -> Result<Domain, DomainError> {
    let known = store::find(tx, &project.id, &name).map_err(Error::from)?;
    let added = match known {
        Some(known) if known.state != DomainState::Lost => return Ok(known),
        Some(lost) => Domain {
            check_at: schedule::next_of_pending(now, now),
            ..pending_again(&lost, now)
        },
        None => {
            if store::count(tx, &project.id).map_err(Error::from)? >= most {
                return Err(DomainError::PlanLimit(most));
            }
            record_audit(tx, &project.id, AuditAction::DomainCreate, &name, now)?;
            Domain {
                project: project.id,
                name,
                state: DomainState::Pending,
                redirect_to,
                created_at: now,
                verified_at: None,
                checked_at: None,
                pending_since: Some(now),
                failing_since: None,
                check_at: schedule::next_of_pending(now, now),
            }
        }
    };
    store::put(tx, &added)?;
    Ok(added)
}

/// Checks a redirect in the transaction that stores it; returns the host without a port. The target may not redirect itself when it is
/// named, so that requests never go in circles.
fn check_redirect(
    tx: &Tx<'_>,
    config: &Config,
    project: &Project,
    name: &str,
    redirect_to: Option<String>,
) -> Result<Option<String>, DomainError> {
    let Some(wanted) = redirect_to.filter(|wanted| !wanted.is_empty()) else {
        return Ok(None);
    };
    let bare = without_port(&wanted).to_ascii_lowercase();
    let bare = bare.strip_suffix('.').unwrap_or(&bare);
    let origin = config.project_origin(&project.host_label);
    let origin = without_port(crate::edge::host_of(&origin));
    if bare == origin {
        return Ok(Some(bare.to_owned()));
    }
    let unknown = "must be another active domain of this project, or the host of its origin: add and verify it first";
    let target = normalize(bare).map_err(|_| DomainError::Redirect(unknown))?;
    if target == name {
        return Err(DomainError::Redirect(
            "is the domain itself: name another one",
        ));
    }
    let found = store::find(tx, &project.id, &target).map_err(Error::from)?;
    match found.filter(|found| found.state.is_served()) {
        Some(found) if found.redirect_to.is_some() => Err(DomainError::Redirect(
            "is a domain that redirects itself: name the one that it leads to",
        )),
        Some(_) => Ok(Some(target)),
        None => Err(DomainError::Redirect(unknown)),
    }
}

/// Returns a copy of a domain that waits to be proven.
pub(super) fn pending_again(domain: &Domain, now: Timestamp) -> Domain {
    Domain {
        state: DomainState::Pending,
        pending_since: Some(now),
        failing_since: None,
        check_at: Some(now),
        ..domain.clone()
    }
}
