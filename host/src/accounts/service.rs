//! Workspaces with all that they own, and their end.

use std::sync::Arc;

use super::Billing;
use super::plans::BillingError;
use crate::config::Config;
use crate::envelope::Teardown;
use crate::projects;
use crate::workspaces::{Caller, WorkspaceError, Workspaces};
use svc_base::fault;
use svc_base::ids::WorkspaceId;

/// Workspaces, and what they own.
#[derive(Clone, Debug)]
pub struct Accounts {
    workspaces: Workspaces,
    envelope: Teardown,
    billing: Billing,
    config: Arc<Config>,
}

/// Why nothing was done to a workspace and what it owns.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The workspace's.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The plan's.
    #[error(transparent)]
    Billing(#[from] BillingError),
    /// No provider is there that could end the subscription of the workspace.
    #[error("the workspace has a subscription, and there is no payment provider to end it")]
    NoProvider,
    /// Everything else, for the log.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}

impl Accounts {
    /// Of these services.
    pub fn new(
        workspaces: Workspaces,
        envelope: Teardown,
        billing: Billing,
        config: Arc<Config>,
    ) -> Self {
        Self {
            workspaces,
            envelope,
            billing,
            config,
        }
    }

    /// The workspaces.
    pub fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The address where the plan `pro` is bought.
    ///
    /// # Errors
    /// [`BillingError`], or the database's.
    pub async fn checkout(&self, workspace: WorkspaceId) -> Result<String, AccountError> {
        let known = self.workspaces.subscriptions(workspace).await?;
        Ok(self.billing.checkout(workspace, &known).await?)
    }

    /// The address where the subscription is looked at, changed and ended.
    ///
    /// # Errors
    /// [`BillingError`], or the database's.
    pub async fn portal(&self, workspace: WorkspaceId) -> Result<String, AccountError> {
        let known = self.workspaces.subscriptions(workspace).await?;
        Ok(self.billing.portal(&known).await?)
    }

    /// Has the subscriptions end that were paid for after their workspace was deleted: a checkout may have been open.
    ///
    /// # Errors
    /// The database's, or the provider's; calling again goes on.
    pub async fn end_orphans(&self) -> anyhow::Result<()> {
        for orphan in self.workspaces.orphaned_subscriptions().await? {
            self.billing.end(&orphan).await?;
            self.workspaces.told_of_end(orphan).await?;
        }
        Ok(())
    }

    /// Ends a workspace with all that it owns: its subscription at the provider first, then, in one transaction, everybody's
    /// access to it, then the pages of its projects, before this returns; the rest follows. Each step begins by looking at what
    /// is left, so that a crash between any two loses nothing: before the transaction the workspace is whole, and after it
    /// the next start goes on.
    ///
    /// # Errors
    /// The caller may not, or the subscription cannot be ended: nothing is destroyed then.
    pub async fn end(&self, workspace: WorkspaceId, by: Caller) -> Result<(), AccountError> {
        let mut told = Vec::new();
        let known = self.workspaces.subscriptions(workspace).await?;
        for one in known.iter().filter(|one| one.lives()) {
            self.billing.end(&one.id).await.map_err(untold)?;
            told.push(one.id.clone());
        }
        fault::point("workspace.told");
        let ended = self
            .workspaces
            .end(workspace, by, told, projects::begin_ends);
        ended.await?;
        fault::point("workspace.ended");
        self.envelope.begin_all().await?;
        fault::point("workspace.unreachable");
        let envelope = self.envelope.clone();
        tokio::spawn(async move {
            if let Err(error) = envelope.run().await {
                // The background task goes on with it.
                tracing::warn!(
                    error = format!("{error:#}"),
                    "the end of a workspace was interrupted"
                );
            }
        });
        Ok(())
    }
}

/// The error of a subscription whose end cannot be told.
fn untold(error: BillingError) -> AccountError {
    match error {
        BillingError::Unconfigured => AccountError::NoProvider,
        error => error.into(),
    }
}
