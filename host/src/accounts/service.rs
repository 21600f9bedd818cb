//! Workspaces with all that they own, and their end.

use std::sync::Arc;

use super::Billing;
use super::plans::BillingError;
use crate::config::Config;
use crate::envelope::Teardown;
use crate::http::problem::{Code, Problem};
use crate::projects;
use crate::workspaces::{Caller, Workspaces};
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
    /// `payments_unconfigured`, `provider_unavailable`, `plan_limit` if the workspace has a subscription.
    pub async fn checkout(&self, workspace: WorkspaceId) -> Result<String, Problem> {
        let known = self.workspaces.subscriptions(workspace).await?;
        Ok(self.billing.checkout(workspace, &known).await?)
    }

    /// The address where the subscription is looked at, changed and ended.
    ///
    /// # Errors
    /// `payments_unconfigured`, `provider_unavailable`, `no_subscription`.
    pub async fn portal(&self, workspace: WorkspaceId) -> Result<String, Problem> {
        let known = self.workspaces.subscriptions(workspace).await?;
        Ok(self.billing.portal(&known).await?)
    }

    /// Has the subscriptions end that were paid for after their workspace was deleted: a checkout may have been open.
    ///
    /// # Errors
    /// The database's, or the provider's; calling again goes on.
    pub async fn cancel_orphaned_subscriptions(&self) -> anyhow::Result<()> {
        for orphan in self.workspaces.orphaned_subscriptions().await? {
            self.billing.cancel_at_period_end(&orphan).await?;
            self.workspaces.record_end_sent(orphan).await?;
        }
        Ok(())
    }

    /// Ends a workspace with all that it owns: its subscription at the provider first, then, in one transaction, everybody's
    /// access to it, then the pages of its projects, before this returns; the rest follows. Each step begins by looking at what
    /// is left, so that a crash between any two loses nothing: before the transaction the workspace is whole, and after it
    /// the next start goes on.
    ///
    /// # Errors
    /// `forbidden`, `provider_unavailable`: nothing is destroyed then.
    pub async fn delete(&self, workspace: WorkspaceId, by: Caller) -> Result<(), Problem> {
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
        let internal = |error: anyhow::Error| Problem::internal(&format!("{error:#}"));
        self.envelope
            .make_all_unreachable()
            .await
            .map_err(internal)?;
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

/// The 503 of a subscription whose end cannot be told.
fn cancel_problem(error: BillingError) -> Problem {
    match error {
        BillingError::Unconfigured => Problem::new(
            Code::ProviderUnavailable,
            "The workspace has a subscription, and this server has no payment provider to end it. Nothing was deleted: ask the operator.",
        ),
        error => error.into(),
    }
}
