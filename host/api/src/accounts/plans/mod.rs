//! Plans that workspaces pay for, by a subscription at the payment provider. Only webhooks of the provider begin and end it.

pub mod routes;

use crate::control::{self, Tx};
use crate::infra::Infra;
use crate::stripe::{
    CheckoutOutcome, EventConsumer, EventConsumption, EventFact, NewPlanCheckout, RelatedEvents,
    StripeClient, StripeError, VerifiedEvent,
};
use crate::workspaces::subscriptions::{self, CombinedSubscription, SubscriptionEventFacts};
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;
use svc_base::random::{Random, RandomSourceError};

/// Sells the plan `pro` through the payment provider.
#[derive(Clone, Debug)]
pub struct PlanBilling {
    provider: Option<StripeClient>,
    /// The provider's id of the price of the plan `pro`.
    price: Option<String>,
    /// URL that the provider's pages lead back to.
    return_url: String,
    random: Random,
}

/// Error of a call about a subscription.
#[derive(Debug, thiserror::Error)]
pub enum BillingError {
    /// No provider or no price is configured.
    #[error("payments are not configured")]
    Unconfigured,
    /// The workspace has a subscription already.
    #[error("the workspace has a subscription already")]
    Subscribed,
    /// The workspace has never had a subscription.
    #[error("the workspace has never had a subscription")]
    NoSubscription,
    /// The provider failed or refused.
    #[error("the payment provider did not do it: {0}")]
    Provider(#[from] StripeError),
    /// No idempotency key could be generated.
    #[error(transparent)]
    Random(#[from] RandomSourceError),
}

impl PlanBilling {
    /// Creates the service. Without a provider or a price nothing is sold.
    pub fn new(provider: Option<StripeClient>, price: Option<String>, infra: Infra) -> Self {
        Self {
            provider,
            price,
            return_url: format!("{}/", infra.config.base_url),
            random: infra.random,
        }
    }

    /// Creates a hosted checkout of the plan `pro`; returns its URL.
    ///
    /// # Errors
    /// [`BillingError`].
    pub async fn checkout(
        &self,
        workspace: WorkspaceId,
        known: &[CombinedSubscription],
    ) -> Result<String, BillingError> {
        let (Some(provider), Some(price)) = (&self.provider, &self.price) else {
            return Err(BillingError::Unconfigured);
        };
        if known.iter().any(CombinedSubscription::is_active) {
            return Err(BillingError::Subscribed);
        }
        let new = NewPlanCheckout {
            workspace: &workspace.to_string(),
            price,
            customer: customer(known),
            return_url: &self.return_url,
        };
        Ok(provider
            .create_plan_checkout(new, &self.idempotency_key("plan")?)
            .await?)
    }

    /// Opens the provider's page for managing the subscription; returns its URL.
    ///
    /// # Errors
    /// [`BillingError`].
    pub async fn portal(&self, known: &[CombinedSubscription]) -> Result<String, BillingError> {
        let provider = self.provider.as_ref().ok_or(BillingError::Unconfigured)?;
        let customer = customer(known).ok_or(BillingError::NoSubscription)?;
        let key = self.idempotency_key("portal")?;
        Ok(provider.portal(customer, &self.return_url, &key).await?)
    }

    /// Tells the provider to end a subscription at the end of the paid period.
    ///
    /// # Errors
    /// [`BillingError`].
    pub async fn cancel_at_period_end(&self, subscription: &str) -> Result<(), BillingError> {
        let provider = self.provider.as_ref().ok_or(BillingError::Unconfigured)?;
        Ok(provider
            .cancel_at_period_end(subscription, &self.idempotency_key("end")?)
            .await?)
    }

    /// Generates an idempotency key for a call, so that the provider does it only once.
    fn idempotency_key(&self, what: &str) -> Result<String, RandomSourceError> {
        Ok(format!("svc-{what}-{}", self.random.slug(22)?))
    }
}

/// Returns the provider's customer that pays or paid for a workspace.
fn customer(known: &[CombinedSubscription]) -> Option<&str> {
    let living = known.iter().filter(|one| one.is_active());
    let mut all = living.chain(known);
    all.find_map(|one| one.customer.as_deref())
}

/// Updates the subscriptions of workspaces from the events of the provider.
#[derive(Clone, Copy, Debug)]
pub struct SubscriptionEventConsumer;

impl EventConsumer for SubscriptionEventConsumer {
    fn consume(
        &self,
        tx: &Tx<'_>,
        found: &RelatedEvents,
        _: Timestamp,
    ) -> Result<EventConsumption, control::Error> {
        // A checkout also names its workspace as its client reference.
        let named = found.references.iter();
        let named = named.filter_map(|name| name.as_workspace().or_else(|| name.as_session()));
        for workspace in named.filter_map(|id| id.parse::<WorkspaceId>().ok()) {
            if subscriptions::is_known_workspace(tx, &workspace)? {
                for told in found
                    .events()
                    .filter_map(|event| subscription_facts(event, workspace))
                {
                    subscriptions::apply_event(tx, told)?;
                }
                return Ok(EventConsumption {
                    claimed: true,
                    ..EventConsumption::default()
                });
            }
        }
        Ok(EventConsumption::default())
    }
}

/// Statuses of a subscription that is paid for, or need not be.
const STARTED_STATUSES: [&str; 2] = ["active", "trialing"];

/// Returns the facts that an event states about a workspace's subscription, if any.
fn subscription_facts(
    event: &VerifiedEvent,
    workspace: WorkspaceId,
) -> Option<SubscriptionEventFacts> {
    let workspace = Some(workspace);
    match &event.fact {
        EventFact::Checkout(checkout) => Some(SubscriptionEventFacts {
            subscription: checkout.subscription.clone()?,
            workspace,
            customer: checkout.customer.clone(),
            started: checkout.outcome == CheckoutOutcome::Paid,
            ..SubscriptionEventFacts::default()
        }),
        EventFact::Subscription(subscription) => Some(SubscriptionEventFacts {
            subscription: subscription.id.clone(),
            workspace,
            customer: subscription.customer.clone(),
            // A trial begins without a payment.
            started: STARTED_STATUSES.contains(&subscription.status.as_str()),
            deleted: subscription.deleted,
            status: Some((subscription.status.clone(), event.at)),
        }),
        _ => None,
    }
}
