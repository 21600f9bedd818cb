//! The provider `dev`: a stand-in for trying payments out, inside the server and reached over HTTP like the real one.
//!
//! It exists only under `serve --dev` without a configured provider. It stores open checkouts until they are paid.
//! Later events of a payment (refunds, renewals, its end) are derived from the ledger.

mod objects;
mod pages;
pub mod routes;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use url::Url;

use self::objects::{PaymentStep, SimulatedPurchase};
use super::event::{CheckoutOutcome, EventFact, EventReference, EventSubject};
use super::{amounts, ledger, signature};
use crate::config::{self, Config, WebhookSecrets};
use crate::control::ControlDatabase;
use crate::infra::Infra;
use crate::outbound::OutboundClient;
use svc_base::clock::Clock;
use svc_base::random::{Random, RandomSourceError};

/// Path of the simulated API.
const API_PATH: &str = "/_svc/dev/stripe";
/// Maximum number of open checkouts.
const MAX_OPEN_CHECKOUTS: usize = 1_000;
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The simulated payment provider.
#[derive(Debug)]
pub struct DevPaymentProvider {
    settings: config::StripeSettings,
    webhooks: String,
    /// URL that visitors use.
    base_url: String,
    outbound: OutboundClient,
    control: ControlDatabase,
    clock: Clock,
    random: Random,
    open: Mutex<HashMap<String, SimulatedPurchase>>,
}

/// Error of the simulated provider.
#[derive(Debug, thiserror::Error)]
pub enum DevProviderError {
    /// There is nothing to act on.
    #[error("{0}")]
    NothingToDo(&'static str),
    /// The server did not accept a webhook.
    #[error("the webhook `{kind}` was not taken in: {why}")]
    Webhook {
        kind: &'static str,
        /// Answer of the server.
        why: String,
    },
    /// The control database failed.
    #[error(transparent)]
    Store(#[from] crate::control::Error),
    /// No randomness is available.
    #[error(transparent)]
    Random(#[from] RandomSourceError),
}

/// Later event of a payment that can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedPaymentEvent {
    /// All the money is refunded; for a subscription, that of the latest month.
    Refund,
    /// The payer disputes the payment.
    Dispute,
    /// Another month of a subscription is paid.
    Renew,
    /// A subscription ends.
    Cancel,
}

impl SimulatedPaymentEvent {
    /// All actions with their names.
    pub const ALL: [(&str, Self); 4] = [
        ("refund", Self::Refund),
        ("dispute", Self::Dispute),
        ("renew", Self::Renew),
        ("cancel", Self::Cancel),
    ];
}

/// Returns the settings of the simulated provider, if it is to be used.
///
/// # Errors
/// No randomness is available.
pub fn dev_stripe_settings(
    config: &Config,
    random: &Random,
) -> anyhow::Result<Option<config::StripeSettings>> {
    if !config.dev || config.stripe.is_some() {
        return Ok(None);
    }
    let secret = |bytes: [u8; 24]| URL_SAFE_NO_PAD.encode(bytes);
    Ok(Some(config::StripeSettings {
        secret_key: format!("sk_dev_{}", secret(random.bytes()?)),
        webhook_secret: WebhookSecrets(vec![format!("whsec_dev_{}", secret(random.bytes()?))]),
        api_base: Url::parse(&format!("{}{API_PATH}", own_address(config.listen)))?,
        plan_price: Some("price_dev_pro".to_owned()),
    }))
}

/// Returns the address at which the server reaches itself.
fn own_address(listen: SocketAddr) -> String {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, listen.port()))
}

impl DevPaymentProvider {
    /// The stand-in of a server with these settings.
    pub fn new(infra: Infra, settings: config::StripeSettings, outbound: OutboundClient) -> Self {
        let Infra {
            control,
            clock,
            random,
            config,
        } = infra;
        Self {
            settings,
            webhooks: format!("{}/_svc/webhooks/stripe", own_address(config.listen)),
            base_url: config.base_url.clone(),
            outbound,
            control,
            clock,
            random,
            open: Mutex::default(),
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, SimulatedPurchase>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores an open checkout; returns its URL. A repeated idempotency key finds the same checkout.
    fn store_checkout(&self, bought: SimulatedPurchase) -> String {
        let url = format!("{}/_svc/dev/pay/{}", self.base_url, bought.id);
        let mut open = self.open();
        if open.len() >= MAX_OPEN_CHECKOUTS
            && let Some(oldest) = open
                .values()
                .min_by_key(|one| one.made_at)
                .map(|b| b.id.clone())
        {
            open.remove(&oldest);
        }
        open.entry(bought.id.clone()).or_insert(bought);
        url
    }

    /// Completes a checkout as the visitor chose, and sends the webhooks; returns the URL that the visitor goes to.
    async fn complete(
        &self,
        id: &str,
        choice: PaymentChoice,
        email: &str,
    ) -> Result<String, DevProviderError> {
        let bought = self.open().get(id).cloned();
        let bought = bought.ok_or(DevProviderError::NothingToDo(CHECKOUT_GONE_MESSAGE))?;
        let steps: &[PaymentStep] = match (choice, bought.recurring) {
            (PaymentChoice::Pay, false) => &[PaymentStep::Paid],
            (PaymentChoice::Pay, true) => &[
                PaymentStep::Subscribed,
                PaymentStep::Invoiced,
                PaymentStep::InvoicePaid,
                PaymentStep::Paid,
            ],
            (PaymentChoice::Fail, _) => &[PaymentStep::Pending, PaymentStep::Failed],
            (PaymentChoice::Cancel, _) => &[PaymentStep::Expired],
        };
        let bought = SimulatedPurchase {
            email: Some(email.to_owned()).filter(|text| !text.is_empty()),
            ..bought
        };
        for step in steps {
            self.send_webhook(&bought, *step).await?;
        }
        self.open().remove(id);
        Ok(match choice {
            PaymentChoice::Pay => bought.success_url,
            PaymentChoice::Fail | PaymentChoice::Cancel => bought.cancel_url,
        })
    }

    /// Simulates a later event of a session; returns the types of the webhooks that were sent.
    ///
    /// # Errors
    /// [`DevProviderError`].
    pub async fn simulate(
        &self,
        session: &str,
        action: SimulatedPaymentEvent,
    ) -> Result<Vec<&'static str>, DevProviderError> {
        let bought = self.load_purchase(session).await?;
        let steps: &[PaymentStep] = match (action, bought.recurring) {
            (SimulatedPaymentEvent::Refund, _) => &[PaymentStep::Refunded],
            (SimulatedPaymentEvent::Dispute, _) => &[PaymentStep::Disputed],
            (SimulatedPaymentEvent::Renew, true) => &[
                PaymentStep::Invoiced,
                PaymentStep::InvoicePaid,
                PaymentStep::Renewed,
            ],
            (SimulatedPaymentEvent::Cancel, true) => &[PaymentStep::Ended],
            (SimulatedPaymentEvent::Renew | SimulatedPaymentEvent::Cancel, false) => {
                return Err(DevProviderError::NothingToDo(
                    "the session is no subscription",
                ));
            }
        };
        let bought = match action {
            SimulatedPaymentEvent::Renew => SimulatedPurchase {
                month: bought.month + 1,
                ..bought
            },
            _ => bought,
        };
        let mut told = Vec::new();
        for step in steps {
            told.push(self.send_webhook(&bought, *step).await?);
        }
        Ok(told)
    }

    /// Restores the purchase of a session from the ledger.
    async fn load_purchase(&self, session: &str) -> Result<SimulatedPurchase, DevProviderError> {
        let name = EventReference::subject(&EventSubject::Session(session.to_owned()));
        let found = self
            .control
            .read(move |c| ledger::find_related(c, [name]))
            .await?;
        let mut months = std::collections::BTreeSet::new();
        let mut bought = None;
        for event in found.events() {
            match &event.fact {
                EventFact::Invoice(invoice) if invoice.paid => {
                    months.insert(invoice.id.clone());
                }
                EventFact::Checkout(one) if one.outcome == CheckoutOutcome::Paid => {
                    let currency = one.currency.clone().unwrap_or_default();
                    let amount = amounts::amount_to_provider(one.amount.unwrap_or(0), &currency);
                    bought = Some(SimulatedPurchase {
                        id: one.id.clone(),
                        subject: ("svc_session", session.to_owned()),
                        name: String::new(),
                        amount: amount.unwrap_or(0),
                        currency,
                        recurring: one.subscription.is_some(),
                        interval: None,
                        month: 1,
                        email: one.email.clone(),
                        success_url: String::new(),
                        cancel_url: String::new(),
                        made_at: event.at,
                    });
                }
                _ => {}
            }
        }
        let bought = bought.ok_or(DevProviderError::NothingToDo(
            "no such session is paid here",
        ))?;
        Ok(SimulatedPurchase {
            month: u32::try_from(months.len()).unwrap_or(1).max(1),
            ..bought
        })
    }

    /// Sends the webhook of a step, as the real provider does; returns its type.
    async fn send_webhook(
        &self,
        bought: &SimulatedPurchase,
        step: PaymentStep,
    ) -> Result<&'static str, DevProviderError> {
        let now = self.clock.now();
        let id = format!(
            "evt_dev_{}",
            URL_SAFE_NO_PAD.encode(self.random.bytes::<16>()?)
        );
        let (kind, event) = objects::webhook_event(bought, step, &id, now);
        let body = event.to_string();
        let secret = self.settings.webhook_secret.0.first();
        let secret = secret.map(String::as_str).unwrap_or_default();
        let signature = signature::sign(secret, body.as_bytes(), now);
        let call = self.outbound.call(CALL_TIMEOUT, |client| {
            client
                .post(&self.webhooks)
                .header("content-type", "application/json; charset=utf-8")
                .header("stripe-signature", signature)
                .body(body)
        });
        match call.await {
            Ok(answer) if answer.status.is_success() => Ok(kind),
            Ok(answer) => Err(DevProviderError::Webhook {
                kind,
                why: answer.status.to_string(),
            }),
            Err(error) => Err(DevProviderError::Webhook {
                kind,
                why: error.to_string(),
            }),
        }
    }
}

const CHECKOUT_GONE_MESSAGE: &str =
    "the checkout is over, or is not known any more: begin another one on the page";

/// Choice of a visitor on the payment page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum PaymentChoice {
    Pay,
    Fail,
    Cancel,
}
