//! Subscriptions of workspaces, as the payment provider's events describe them. Only they begin and end the plan `pro`.

mod store;

use super::error::WorkspaceError;
use super::model::Plan;
use super::service::Workspaces;
use super::store as workspaces;
use crate::control::{Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

/// Statuses of a subscription that has ended.
const ENDED_STATUSES: [&str; 3] = ["canceled", "unpaid", "incomplete_expired"];

/// Facts that one event states about a subscription.
#[derive(Clone, Debug, Default)]
pub struct SubscriptionEventFacts {
    /// The provider's id of the subscription.
    pub subscription: String,
    /// Workspace, if the event names it.
    pub workspace: Option<WorkspaceId>,
    /// Paying customer, if the event names one.
    pub customer: Option<String>,
    /// Whether the checkout was completed and paid.
    pub started: bool,
    /// Whether the subscription was deleted.
    pub deleted: bool,
    /// Status, and when the subscription reached it.
    pub status: Option<(String, Timestamp)>,
}

/// Subscription, as combined from all events so far.
#[derive(Clone, Debug, Default)]
pub struct CombinedSubscription {
    /// The provider's id of the subscription.
    pub id: String,
    pub workspace: Option<WorkspaceId>,
    /// Customer who pays.
    pub customer: Option<String>,
    started: bool,
    deleted: bool,
    /// Latest status, and when it was reached.
    status: Option<(String, Timestamp)>,
    /// Whether the provider was told to end the subscription because its workspace is deleted.
    end_sent: bool,
}

impl CombinedSubscription {
    /// Whether the subscription is paid for and has not ended.
    pub fn is_active(&self) -> bool {
        let over = self
            .status
            .as_ref()
            .is_some_and(|(status, _)| is_ended(status));
        self.started && !self.deleted && !over
    }

    /// Merges the facts of an event. The result does not depend on the order of events.
    fn merge(&mut self, told: SubscriptionEventFacts) {
        self.workspace = self.workspace.or(told.workspace);
        self.customer = self.customer.take().or(told.customer);
        self.started |= told.started;
        self.deleted |= told.deleted;
        // Of two statuses in one second an ending one wins; of two ending ones always the same.
        let rank = |told: &Option<(String, Timestamp)>| {
            let told = told.as_ref();
            told.map(|(status, at)| (at.0, is_ended(status), status.clone()))
        };
        if rank(&self.status) < rank(&told.status) {
            self.status = told.status;
        }
    }
}

fn is_ended(status: &str) -> bool {
    ENDED_STATUSES.contains(&status)
}

/// Whether a workspace exists here or did: the provider may also send events of another installation's.
pub fn is_known_workspace(tx: &Tx<'_>, workspace: &WorkspaceId) -> Result<bool, Error> {
    Ok(store::is_known_workspace(tx, workspace)?)
}

/// Applies an event: stores what it states, and sets the plan of the workspace when a subscription begins or ends.
pub fn apply_event(tx: &Tx<'_>, told: SubscriptionEventFacts) -> Result<(), Error> {
    let mut subscription = store::find_by_id(tx, &told.subscription)?.unwrap_or_default();
    subscription.id.clone_from(&told.subscription);
    let lived = subscription.workspace.is_some() && subscription.is_active();
    subscription.merge(told);
    store::upsert(tx, &subscription)?;
    let Some(workspace) = subscription.workspace else {
        return Ok(());
    };
    match (lived, subscription.is_active()) {
        (false, true) => workspaces::set_plan(tx, &workspace, Plan::Pro),
        (true, false) if active_subscriptions(tx, &workspace)?.is_empty() => {
            workspaces::set_plan(tx, &workspace, Plan::Free)
        }
        _ => Ok(()),
    }
}

/// Lists the active subscriptions of a workspace.
pub(super) fn active_subscriptions(
    tx: &Tx<'_>,
    workspace: &WorkspaceId,
) -> Result<Vec<CombinedSubscription>, Error> {
    let all = store::list_by_workspace(tx, workspace)?.into_iter();
    Ok(all.filter(CombinedSubscription::is_active).collect())
}

/// Records that the provider was told to end these subscriptions, because their workspace is being deleted.
pub(super) fn mark_ends_sent(tx: &Tx<'_>, ids: &[String]) -> Result<(), Error> {
    ids.iter().try_for_each(|id| store::set_end_sent(tx, id))
}

impl Workspaces {
    /// Lists the subscriptions of a workspace, the most recently changed first.
    pub async fn subscriptions(
        &self,
        workspace: WorkspaceId,
    ) -> Result<Vec<CombinedSubscription>, WorkspaceError> {
        let found = self
            .control
            .read(move |c| store::list_by_workspace(c, &workspace))
            .await?;
        Ok(found)
    }

    /// Returns the ids of active subscriptions whose workspace is deleted.
    pub async fn orphaned_subscriptions(&self) -> Result<Vec<String>, Error> {
        let found = self.control.read(store::list_orphans).await?.into_iter();
        let living = found.filter(CombinedSubscription::is_active);
        Ok(living.map(|one| one.id).collect())
    }

    /// Records that the provider was told to end a subscription.
    pub async fn record_end_sent(&self, id: String) -> Result<(), Error> {
        self.control
            .write(move |tx| store::set_end_sent(tx, &id))
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: &str, at: i64) -> SubscriptionEventFacts {
        SubscriptionEventFacts {
            status: Some((status.to_owned(), Timestamp(at))),
            ..SubscriptionEventFacts::default()
        }
    }

    fn paid() -> SubscriptionEventFacts {
        SubscriptionEventFacts {
            started: true,
            ..SubscriptionEventFacts::default()
        }
    }

    fn gone() -> SubscriptionEventFacts {
        SubscriptionEventFacts {
            deleted: true,
            ..SubscriptionEventFacts::default()
        }
    }

    /// Returns all orders of some events.
    fn orders(events: &[SubscriptionEventFacts]) -> Vec<Vec<SubscriptionEventFacts>> {
        if events.is_empty() {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for first in 0..events.len() {
            let mut rest = events.to_vec();
            let event = rest.remove(first);
            for mut order in orders(&rest) {
                order.push(event.clone());
                all.push(order);
            }
        }
        all
    }

    #[test]
    fn the_order_of_events_does_not_matter() {
        for (events, lives) in [
            (vec![paid()], true),
            (vec![told("active", 1)], false),
            (vec![paid(), told("active", 1), told("past_due", 2)], true),
            (vec![paid(), told("active", 1), told("canceled", 2)], false),
            (vec![paid(), told("unpaid", 1), told("active", 2)], true),
            // Within one second the ending status wins.
            (vec![paid(), told("active", 2), told("unpaid", 2)], false),
            (vec![paid(), told("active", 5), gone()], false),
            (
                vec![paid(), told("incomplete", 1), told("incomplete_expired", 2)],
                false,
            ),
        ] {
            for order in orders(&events) {
                let mut subscription = CombinedSubscription::default();
                for event in order.iter().chain(&order[..1]) {
                    subscription.merge(event.clone());
                }
                assert_eq!(subscription.is_active(), lives, "{order:?}");
            }
        }
    }
}
