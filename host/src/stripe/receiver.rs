//! Takes webhooks in: verified, appended to the ledger, and told to whom they concern, in one transaction.

use std::sync::Arc;

use ring::hmac;

use super::event::Event;
use super::parse::{self, InvalidEvent};
use super::signature::{self, SignatureError};
use super::{RelatedEvents, ledger};
use crate::config;
use crate::control::{self, Control, Tx};
use crate::infra::Infra;
use svc_base::clock::{Clock, Timestamp};
use svc_base::fault;

/// Somebody whom events may concern.
pub trait EventConsumer: std::fmt::Debug + Send + Sync {
    /// Acts on a new event, in the transaction that appends it. `found` is everything that the ledger has about the same objects,
    /// the event included; what has nothing to do with this consumer, it leaves alone. Returns whether the event is about
    /// something of its own.
    ///
    /// # Errors
    /// The database's: nothing is kept then, and the provider sends the event again.
    fn consume(
        &self,
        tx: &Tx<'_>,
        found: &RelatedEvents,
        now: Timestamp,
    ) -> Result<bool, control::Error>;
}

/// Why a webhook was not taken in.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// It is not the provider's, or not of now.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// It is the provider's, and no event.
    #[error(transparent)]
    InvalidEvent(#[from] InvalidEvent),
    /// The database's.
    #[error(transparent)]
    Store(#[from] control::Error),
}

/// The receiver of webhooks.
#[derive(Debug)]
pub struct WebhookReceiver {
    control: Control,
    clock: Clock,
    keys: Vec<hmac::Key>,
    /// Whether the provider moves real money here.
    live: bool,
    consumers: Vec<Arc<dyn EventConsumer>>,
}

impl WebhookReceiver {
    /// The receiver for a configured provider.
    pub fn new(
        infra: Infra,
        settings: &config::Stripe,
        consumers: Vec<Arc<dyn EventConsumer>>,
    ) -> Self {
        let secrets = settings.webhook_secret.0.iter();
        Self {
            control: infra.control,
            clock: infra.clock,
            keys: secrets.map(|secret| signature::hmac_key(secret)).collect(),
            live: settings.is_live(),
            consumers,
        }
    }

    /// Takes a webhook in. One that came before, of a type that nothing depends on, or of a trial where real money moves, changes
    /// nothing.
    ///
    /// # Errors
    /// [`ReceiveError`].
    pub async fn receive(&self, signature: Option<&str>, body: &[u8]) -> Result<(), ReceiveError> {
        let now = self.clock.now();
        signature::verify(&self.keys, signature, body, now)?;
        let Some(event) = parse::parse_event(body)? else {
            return Ok(());
        };
        if self.live && parse::is_test_mode(body) {
            tracing::warn!(
                event = event.id,
                "a webhook of the provider's test mode counts for nothing beside a live key: take the secret of its endpoint out of `webhook_secret`"
            );
            return Ok(());
        }
        let consumers = self.consumers.clone();
        fault::point("webhook.verified");
        self.control
            .write(move |tx| append(tx, &event, &consumers, now))
            .await?;
        fault::point("webhook.committed");
        Ok(())
    }
}

fn append(
    tx: &Tx<'_>,
    event: &Event,
    consumers: &[Arc<dyn EventConsumer>],
    now: Timestamp,
) -> Result<(), control::Error> {
    if !ledger::append(tx, event, now)? {
        return Ok(());
    }
    fault::point("webhook.appended");
    let found = ledger::find_related(tx, event.references()).map_err(control::Error::from)?;
    let mut claimed = false;
    for consumer in consumers {
        claimed |= consumer.consume(tx, &found, now)?;
    }
    if claimed {
        ledger::claim(tx, &found)?;
    }
    fault::point("webhook.applied");
    Ok(())
}
