//! Plans that workspaces pay for, by a subscription at the payment provider, whose webhooks alone begin and end it.

pub mod routes;

use crate::control::{self, Tx};
use crate::http::problem::{Code, Problem};
use crate::infra::Infra;
use crate::stripe::{
    CheckoutOutcome, Event, EventConsumer, Fact, PlanCheckout, RelatedEvents, Stripe, StripeError,
};
use crate::workspaces::subscriptions::{self, Subscription, SubscriptionFacts};
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;
use svc_base::random::{NoRandomness, Random};

/// The provider, and what is sold.
#[derive(Clone, Debug)]
pub struct Billing {
    provider: Option<Stripe>,
    /// The provider's price of the plan `pro`.
    price: Option<String>,
    /// Where somebody goes who leaves the provider's pages.
    return_url: String,
    random: Random,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum BillingError {
    /// There is no provider, or nothing to sell.
    #[error("payments are not configured")]
    Unconfigured,
    /// The workspace has what it asks for.
    #[error("the workspace has a subscription already")]
    Subscribed,
    /// There was never one.
    #[error("the workspace has never had a subscription")]
    NoSubscription,
    /// The provider did not do it.
    #[error("the payment provider did not do it: {0}")]
    Provider(#[from] StripeError),
    /// No name for the call could be made.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

impl Billing {
    /// With a provider and its price of the plan `pro`, or without one.
    pub fn new(provider: Option<Stripe>, price: Option<String>, infra: Infra) -> Self {
        Self {
            provider,
            price,
            return_url: format!("{}/", infra.config.base_url),
            random: infra.random,
        }
    }

    /// Makes a hosted checkout of the plan `pro`; returns its address.
    ///
    /// # Errors
    /// [`BillingError`].
    pub async fn checkout(
        &self,
        workspace: WorkspaceId,
        known: &[Subscription],
    ) -> Result<String, BillingError> {
        let (Some(provider), Some(price)) = (&self.provider, &self.price) else {
            return Err(BillingError::Unconfigured);
        };
        if known.iter().any(Subscription::is_active) {
            return Err(BillingError::Subscribed);
        }
        let new = PlanCheckout {
            workspace: &workspace.to_string(),
            price,
            customer: customer(known),
            return_url: &self.return_url,
        };
        Ok(provider
            .create_plan_checkout(new, &self.idempotency_key("plan")?)
            .await?)
    }

    /// Opens the provider's pages where a subscription is looked at, changed and ended; returns their address.
    ///
    /// # Errors
    /// [`BillingError`].
    pub async fn portal(&self, known: &[Subscription]) -> Result<String, BillingError> {
        let provider = self.provider.as_ref().ok_or(BillingError::Unconfigured)?;
        let customer = customer(known).ok_or(BillingError::NoSubscription)?;
        let key = self.idempotency_key("portal")?;
        Ok(provider.portal(customer, &self.return_url, &key).await?)
    }

    /// Has a subscription end at the close of the period that is paid for.
    ///
    /// # Errors
    /// [`BillingError`].
    pub async fn cancel_at_period_end(&self, subscription: &str) -> Result<(), BillingError> {
        let provider = self.provider.as_ref().ok_or(BillingError::Unconfigured)?;
        Ok(provider
            .cancel_at_period_end(subscription, &self.idempotency_key("end")?)
            .await?)
    }

    /// A name for a call, so that the provider does it once.
    fn idempotency_key(&self, what: &str) -> Result<String, NoRandomness> {
        Ok(format!("svc-{what}-{}", self.random.slug(22)?))
    }
}

/// Returns the provider's customer that pays for a workspace, or did.
fn customer(known: &[Subscription]) -> Option<&str> {
    let living = known.iter().filter(|one| one.is_active());
    let mut all = living.chain(known);
    all.find_map(|one| one.customer.as_deref())
}

impl From<BillingError> for Problem {
    fn from(error: BillingError) -> Self {
        match error {
            BillingError::Unconfigured => Self::new(
                Code::PaymentsUnconfigured,
                "The operator of this service sells no plans.",
            ),
            BillingError::Subscribed => Self::new(
                Code::PlanLimit,
                "The workspace has a subscription already: POST /api/v1/workspaces/{id}/billing/portal answers where it is changed.",
            ),
            BillingError::NoSubscription => Self::new(
                Code::NoSubscription,
                "The workspace has never had a subscription: POST /api/v1/workspaces/{id}/billing/checkout answers where it is bought.",
            ),
            BillingError::Provider(error) => {
                tracing::warn!(%error, "the payment provider did not do what it should");
                Self::new(
                    Code::ProviderUnavailable,
                    "The payment provider did not do its part, and nothing was changed. Try again in a minute.",
                )
            }
            BillingError::Random(error) => Self::internal(&error),
        }
    }
}

/// Follows what the provider says of the subscriptions of workspaces.
#[derive(Clone, Copy, Debug)]
pub struct SubscriptionConsumer;

impl EventConsumer for SubscriptionConsumer {
    fn consume(
        &self,
        tx: &Tx<'_>,
        found: &RelatedEvents,
        _: Timestamp,
    ) -> Result<bool, control::Error> {
        // A checkout names its workspace as its client's reference, too.
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
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Statuses that a subscription has once it is paid for, or need not be.
const STARTED_STATUSES: [&str; 2] = ["active", "trialing"];

/// Reads the state of a workspace's subscription from an event, if the event has one.
fn subscription_facts(event: &Event, workspace: WorkspaceId) -> Option<SubscriptionFacts> {
    let workspace = Some(workspace);
    match &event.fact {
        Fact::Checkout(checkout) => Some(SubscriptionFacts {
            subscription: checkout.subscription.clone()?,
            workspace,
            customer: checkout.customer.clone(),
            started: checkout.outcome == CheckoutOutcome::Paid,
            ..SubscriptionFacts::default()
        }),
        Fact::Subscription(subscription) => Some(SubscriptionFacts {
            subscription: subscription.id.clone(),
            workspace,
            customer: subscription.customer.clone(),
            // One may begin with nothing to pay.
            started: STARTED_STATUSES.contains(&subscription.status.as_str()),
            deleted: subscription.deleted,
            status: Some((subscription.status.clone(), event.at)),
        }),
        _ => None,
    }
}
