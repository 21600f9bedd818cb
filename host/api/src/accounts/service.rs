//! Service of workspaces with all that they own, and their deletion.

use std::sync::Arc;

use super::PlanBilling;
use super::plans::BillingError;
use crate::config::Config;
use crate::envelope::ProjectLifecycle;
use crate::projects;
use crate::workspaces::{Caller, WorkspaceError, Workspaces};
use svc_base::fault;
use svc_base::ids::WorkspaceId;

/// Workspaces, with their billing and the deletion of their projects.
#[derive(Clone, Debug)]
pub struct Accounts {
    workspaces: Workspaces,
    envelope: ProjectLifecycle,
    billing: PlanBilling,
    config: Arc<Config>,
}

/// Error of an operation on a workspace and its contents.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// Error of the workspace.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Error of the plan.
    #[error(transparent)]
    Billing(#[from] BillingError),
    /// The workspace has a subscription, and no provider is configured that could end it.
    #[error("the workspace has a subscription, and there is no payment provider to end it")]
    NoProvider,
    /// Any other error, for the log.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}

impl Accounts {
    pub fn new(
        workspaces: Workspaces,
        envelope: ProjectLifecycle,
        billing: PlanBilling,
        config: Arc<Config>,
    ) -> Self {
        Self {
            workspaces,
            envelope,
            billing,
            config,
        }
    }

    pub fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the URL where the plan `pro` is bought.
    ///
    /// # Errors
    /// [`BillingError`], or the database's.
    pub async fn checkout(&self, workspace: WorkspaceId) -> Result<String, AccountError> {
        let known = self.workspaces.subscriptions(workspace).await?;
        Ok(self.billing.checkout(workspace, &known).await?)
    }

    /// Returns the URL where the subscription is managed.
    ///
    /// # Errors
    /// [`BillingError`], or the database's.
    pub async fn portal(&self, workspace: WorkspaceId) -> Result<String, AccountError> {
        let known = self.workspaces.subscriptions(workspace).await?;
        Ok(self.billing.portal(&known).await?)
    }

    /// Ends subscriptions that were paid for after their workspace was deleted, because a checkout was still open.
    ///
    /// # Errors
    /// Errors of the database or of the provider; calling again continues.
    pub async fn cancel_orphaned_subscriptions(&self) -> anyhow::Result<()> {
        for orphan in self.workspaces.orphaned_subscriptions().await? {
            self.billing.cancel_at_period_end(&orphan).await?;
            self.workspaces.record_end_sent(orphan).await?;
        }
        Ok(())
    }

    /// Deletes a workspace with all that it owns. First its subscription ends at the provider. Then one transaction ends all access
    /// to it. Then the pages of its projects stop resolving, before this function returns; the rest follows in the background. Each
    /// step begins by looking at what is left, so that a crash loses nothing: before the transaction the workspace is whole, and
    /// after it the next start continues.
    ///
    /// # Errors
    /// When the caller may not delete it, or the subscription cannot be ended; then nothing is deleted.
    pub async fn delete(&self, workspace: WorkspaceId, by: Caller) -> Result<(), AccountError> {
        let mut told = Vec::new();
        let known = self.workspaces.subscriptions(workspace).await?;
        for one in known.iter().filter(|one| one.is_active()) {
            self.billing
                .cancel_at_period_end(&one.id)
                .await
                .map_err(cancel_problem)?;
            told.push(one.id.clone());
        }
        fault::point("workspace.told");
        let ended =
            self.workspaces
                .begin_deletion_as_owner(workspace, by, told, projects::begin_deletions);
        ended.await?;
        fault::point("workspace.ended");
        self.envelope.make_all_unreachable().await?;
        fault::point("workspace.unreachable");
        let envelope = self.envelope.clone();
        tokio::spawn(async move {
            if let Err(error) = envelope.run().await {
                // The background task will continue.
                tracing::warn!(
                    error = format!("{error:#}"),
                    "the end of a workspace was interrupted"
                );
            }
        });
        Ok(())
    }
}

/// Returns the error of a subscription that cannot be ended.
fn cancel_problem(error: BillingError) -> AccountError {
    match error {
        BillingError::Unconfigured => AccountError::NoProvider,
        error => error.into(),
    }
}
