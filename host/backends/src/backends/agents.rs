//! Actions that visitors' agents may call as tools: those of a backend whose owner has allowed it, except actions that need
//! a signed-in visitor.

use std::sync::Arc;

use super::actions::ActionDefinitions;
use super::model::{BackendDetail, BackendError, CallableAction, requires_identity, takes_file};
use super::service::Backends;
use super::store;
use crate::control;
use svc_base::ids::{BackendId, ProjectId};
use svc_sandbox::AllowedStatement;

impl Backends {
    /// Allows or forbids visitors' agents to call the actions of a project's backend.
    ///
    /// # Errors
    /// `NotFound` if the project has no backend.
    pub async fn set_agents(
        &self,
        project: ProjectId,
        agents: bool,
    ) -> Result<BackendDetail, BackendError> {
        self.set_switch(project, move |tx, id| store::set_agents(tx, id, agents))
            .await
    }

    /// Whether visitors' agents may call a backend; false for a deleted one.
    pub async fn allows_agents(&self, id: BackendId) -> Result<bool, control::Error> {
        let look = move |c: &_| store::allows_agents(c, &id);
        self.infra.control.read(look).await
    }
}

impl ActionDefinitions {
    /// Lists the actions that need no sign-in, by name, after a given name.
    pub async fn public_actions(
        &self,
        id: BackendId,
        after: Option<&str>,
    ) -> Result<Vec<Arc<CallableAction>>, BackendError> {
        let actions = self.actions_of(id).await?;
        let later = |name: &str| after.is_none_or(|after| name > after);
        let open = actions.values().filter(|action| {
            let row = &action.row;
            later(&row.name) && is_tool(&row.verdict)
        });
        let mut open: Vec<_> = open.cloned().collect();
        open.sort_unstable_by(|a, b| a.row.name.cmp(&b.row.name));
        Ok(open)
    }

    /// Returns an action by name, if it needs no sign-in.
    ///
    /// # Errors
    /// Errors of the database, or the refusal of a newer gate.
    pub async fn public_action(
        &self,
        id: BackendId,
        name: &str,
    ) -> Result<Option<Arc<CallableAction>>, BackendError> {
        match self.action(id, name).await {
            Ok(action) => Ok(Some(action).filter(|a| is_tool(&a.row.verdict))),
            Err(BackendError::NoAction(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether visitors' agents may call a statement: it knows no visitor, and takes no file.
fn is_tool(statement: &AllowedStatement) -> bool {
    !requires_identity(statement) && !takes_file(statement)
}
