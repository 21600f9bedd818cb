//! Actions that agents of visitors may call: those of a backend whose owner has allowed it, but for those that need an
//! identity.

use std::sync::Arc;

use super::actions::Definitions;
use super::model::{Action, BackendDetail, BackendError, requires_identity};
use super::service::Backends;
use super::store;
use crate::control;
use svc_base::ids::{BackendId, ProjectId};

impl Backends {
    /// Makes the actions of a project's backend tools for agents of visitors, or no longer.
    ///
    /// # Errors
    /// `NotFound` if it has none.
    pub async fn set_agents(
        &self,
        project: ProjectId,
        agents: bool,
    ) -> Result<BackendDetail, BackendError> {
        self.set_switch(project, move |tx, id| store::set_agents(tx, id, agents))
            .await
    }

    /// Whether agents of visitors may call a backend; one that is gone they may not.
    pub async fn allows_agents(&self, id: BackendId) -> Result<bool, control::Error> {
        let look = move |c: &_| store::allows_agents(c, &id);
        self.control.read(look).await
    }
}

impl Definitions {
    /// The actions that anybody may call, by name, after one of them.
    pub async fn public_actions(
        &self,
        id: BackendId,
        after: Option<&str>,
    ) -> Result<Vec<Arc<Action>>, BackendError> {
        let actions = self.actions_of(id).await?;
        let later = |name: &str| after.is_none_or(|after| name > after);
        let open = actions.values().filter(|action| {
            let row = &action.row;
            later(&row.name) && !requires_identity(&row.verdict)
        });
        let mut open: Vec<_> = open.cloned().collect();
        open.sort_unstable_by(|a, b| a.row.name.cmp(&b.row.name));
        Ok(open)
    }

    /// The action of a name, if anybody may call it.
    ///
    /// # Errors
    /// The database's, or what a newer gate says.
    pub async fn public_action(
        &self,
        id: BackendId,
        name: &str,
    ) -> Result<Option<Arc<Action>>, BackendError> {
        match self.action(id, name).await {
            Ok(action) => Ok(Some(action).filter(|a| !requires_identity(&a.row.verdict))),
            Err(BackendError::NoAction(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
