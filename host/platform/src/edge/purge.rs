//! Sends the queued purges to a Cloudflare-compatible API.

use std::time::Duration;

use serde_json::json;

use super::store::{self, QueuedPurge};
use crate::config::EdgeCacheSettings;
use crate::control::{ControlDatabase, Error};
use crate::infra::Infra;
use crate::outbound::OutboundClient;
use svc_base::clock::Clock;

/// Most prefixes in one call of the API.
const MAX_PREFIXES_PER_CALL: u32 = 30;
/// Pause between a purge and its repetition, in seconds.
const REPEAT_AFTER_SECONDS: i64 = 10;
/// Longest backoff between two attempts, in seconds.
const MAX_BACKOFF_SECONDS: i64 = 300;
/// Attempts after which a purge is dropped: the edge's own expiry then removes the answer.
const MAX_ATTEMPTS: u32 = 20;
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends the queued purges.
#[derive(Debug)]
pub struct EdgePurger {
    control: ControlDatabase,
    clock: Clock,
    outbound: OutboundClient,
    url: String,
    token: String,
}

/// Outcome of a call.
enum PurgeCallOutcome {
    Purged,
    /// A transient failure: the purge is retried.
    Busy(String),
    /// A permanent failure: the purge is dropped.
    Refused(String),
}

impl EdgePurger {
    /// A sender for the configured zone.
    pub fn new(infra: Infra, outbound: OutboundClient, edge: &EdgeCacheSettings) -> Self {
        let base = edge.api_base.as_str().trim_end_matches('/');
        let url = format!("{base}/zones/{}/purge_cache", edge.zone_id);
        Self {
            control: infra.control,
            clock: infra.clock,
            outbound,
            url,
            token: edge.api_token.clone(),
        }
    }

    /// Sends the due purges in batches; failed ones are retried later. Of a batch that is refused each is sent alone: the zone may lack
    /// one of the hosts, such as a domain that a project has brought.
    pub async fn send_due(&self) -> anyhow::Result<()> {
        loop {
            let now = self.clock.now();
            let due = self
                .control
                .read(move |c| store::list_due(c, now, MAX_PREFIXES_PER_CALL))
                .await?;
            if due.is_empty() {
                return Ok(());
            }
            let outcome = self.send(&due).await;
            let is_refused = matches!(outcome, PurgeCallOutcome::Refused(_));
            if is_refused && due.len() > 1 {
                for purge in due {
                    let alone = vec![purge];
                    let outcome = self.send(&alone).await;
                    self.record_outcome(alone, &outcome).await?;
                }
                continue;
            }
            self.record_outcome(due, &outcome).await?;
            if matches!(outcome, PurgeCallOutcome::Busy(_)) {
                return Ok(());
            }
        }
    }

    async fn send(&self, due: &[QueuedPurge]) -> PurgeCallOutcome {
        let prefixes: Vec<&str> = due.iter().map(|purge| purge.prefix.as_str()).collect();
        let call = self.outbound.call(CALL_TIMEOUT, |client| {
            let call = client.post(&self.url).bearer_auth(&self.token);
            call.json(&json!({ "prefixes": prefixes }))
        });
        match call.await {
            Ok(answer) if answer.status.is_success() => PurgeCallOutcome::Purged,
            Ok(answer) => {
                let status = answer.status;
                if status.as_u16() == 429 || status.is_server_error() {
                    PurgeCallOutcome::Busy(format!("the edge answered {status}"))
                } else {
                    PurgeCallOutcome::Refused(format!("the edge answered {status}"))
                }
            }
            Err(error) => PurgeCallOutcome::Busy(error.to_string()),
        }
    }

    async fn record_outcome(
        &self,
        due: Vec<QueuedPurge>,
        outcome: &PurgeCallOutcome,
    ) -> Result<(), Error> {
        match outcome {
            PurgeCallOutcome::Purged => {}
            PurgeCallOutcome::Busy(error) => {
                tracing::warn!(error, "a purge failed and comes again");
            }
            PurgeCallOutcome::Refused(error) => tracing::error!(error, "a purge was refused"),
        }
        let now = self.clock.now();
        let (purged, busy) = (
            matches!(outcome, PurgeCallOutcome::Purged),
            matches!(outcome, PurgeCallOutcome::Busy(_)),
        );
        self.control
            .write(move |tx| {
                for purge in &due {
                    if purged && purge.repeats > 0 {
                        let again = now.plus_seconds(REPEAT_AFTER_SECONDS);
                        store::reschedule(tx, purge, again, 0, purge.repeats - 1)?;
                    } else if busy && purge.attempts < MAX_ATTEMPTS {
                        let wait = 2_i64
                            .saturating_pow(purge.attempts)
                            .min(MAX_BACKOFF_SECONDS);
                        let (again, attempts) = (now.plus_seconds(wait), purge.attempts + 1);
                        store::reschedule(tx, purge, again, attempts, purge.repeats)?;
                    } else {
                        store::delete(tx, purge)?;
                    }
                }
                Ok(())
            })
            .await
    }
}
