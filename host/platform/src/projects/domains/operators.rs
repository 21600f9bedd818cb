//! Operations of operators on domains, with and without a running server.

use std::sync::Arc;

use super::model::{Domain, DomainState};
use super::name::normalize;
use super::service::pending_again;
use super::store;
use crate::config::Config;
use crate::control::audit::AuditAction;
use crate::control::events::{self, StartupEvent};
use crate::control::{ControlDatabase, Error};
use crate::projects::store::record_audit;
use svc_base::clock::Clock;

/// Lists all domains by name, each with whether the operator has taken it down.
///
/// # Errors
/// The control database's.
pub async fn list(control: &ControlDatabase) -> Result<Vec<(Domain, bool)>, Error> {
    let read = control.read(|c| {
        let disabled = store::list_disabled(c)?;
        let all = store::list_all(c)?.into_iter();
        let marked = all.map(|domain| {
            let is_disabled = disabled.contains(&domain.name);
            (domain, is_disabled)
        });
        Ok(marked.collect())
    });
    read.await
}

/// Takes a name down in all projects, or lets them prove it again. The server in this process, whose settings are `served`, follows at
/// once; without one the next start tells the edge. Returns the name in its one form; `None` if it can be no domain.
///
/// # Errors
/// The control database's.
pub async fn set_disabled(
    control: &ControlDatabase,
    clock: &Clock,
    name: &str,
    disabled: bool,
    served: Option<Arc<Config>>,
) -> Result<Option<String>, Error> {
    let Ok(name) = normalize(name) else {
        return Ok(None);
    };
    let now = clock.now();
    let switched = control.write(move |tx| {
        if !store::set_disabled(tx, &name, disabled, now)? {
            return Ok(Some(name));
        }
        let act = match disabled {
            true => AuditAction::DomainDisable,
            false => AuditAction::DomainEnable,
        };
        let domains = store::list_of_name(tx, &name)?;
        if domains.is_empty() {
            tx.record_audit(act, None, &name, now)?;
        }
        for domain in domains {
            record_audit(tx, &domain.project, act, &name, now)?;
            if domain.state.is_served() {
                match &served {
                    Some(config) => store::announce_end(tx, config, &name, now)?,
                    None => events::record(tx, &StartupEvent::DomainEnded(name.clone()), now)?,
                }
            }
            let changed = match disabled {
                true => Domain {
                    state: DomainState::Lost,
                    check_at: None,
                    failing_since: None,
                    ..domain
                },
                false => pending_again(&domain, now),
            };
            store::put(tx, &changed)?;
        }
        Ok::<_, Error>(Some(name))
    });
    switched.await
}

/// Has every domain of a copy checked before it is served.
///
/// # Errors
/// The control database's.
pub async fn require_checks(control: &ControlDatabase) -> Result<(), Error> {
    control.write(store::require_checks).await
}
