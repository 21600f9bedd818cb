//! Certificates of domains: ordered once a domain is served, and deleted when it ends.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use super::{CertificateIssuance, NameStanding};
use svc_base::clock::Timestamp;

/// Seconds until domains that could not be ordered are looked at again: the budget refills, and a failing domain may be active again.
const WALK_INTERVAL: i64 = 60;

/// Walk over the domains without a certificate.
#[derive(Clone, Copy, Debug)]
pub(super) struct DomainWalk {
    /// Change of the domains that was seen.
    generation: u64,
    /// Time of the next walk, if no domain changes before.
    again_at: Timestamp,
}

impl CertificateIssuance {
    /// Serves the stored certificates of domains, and deletes those of names that no project has: a domain may have ended while nobody
    /// looked. One that is not served yet, as after a restore, keeps its file. Blocks.
    pub(super) fn open_domains(&self, kept: &HashSet<String>) -> io::Result<()> {
        let mut served = Vec::new();
        for name in self.domain_store.names()? {
            if self.is_domain(&name) {
                served.push(name);
            } else if !kept.contains(&name) {
                self.domain_store.remove(&name)?;
            }
        }
        let mut pairs = HashMap::new();
        for name in served {
            if let Some(pair) = self.domain_store.pair(&name)? {
                self.domains.record_issued(&name, pair.validity.ends);
                pairs.insert(name, pair);
            }
        }
        self.served.serve_all(&pairs);
        let state = self.state();
        for name in pairs.keys() {
            if let Some(reason) = state.budget.reason(name) {
                self.domains.record_refusal(name, reason);
            }
        }
        Ok(())
    }

    /// Whether a name is a domain that is served, and no host of the installation.
    fn is_domain(&self, name: &str) -> bool {
        self.names.classify(name).is_none() && self.domains.contains(name)
    }

    /// Stops serving the certificate of a domain that has ended, and has it deleted by the next refresh.
    pub(in crate::tls) fn end_domain(&self, name: &str) {
        if self.names.classify(name).is_none() {
            self.served.remove(name);
            self.state().ended.push(name.to_owned());
        }
    }

    /// Deletes the certificates of domains that have ended. One that is served again meanwhile keeps it.
    pub(super) async fn remove_ended_domains(&self) {
        let ended = std::mem::take(&mut self.state().ended);
        for name in ended {
            if !self.domains.contains(&name) {
                self.remove_certificate(&name).await;
            }
        }
    }

    /// Orders the certificates of domains that have none. All are looked at after a change, when an order has ended, and when one of them
    /// may be ordered again.
    pub(super) async fn order_for_domains(self: &Arc<Self>) {
        let (generation, now) = (self.domains.generation(), self.clock.now());
        let is_walked = |walk: DomainWalk| walk.generation == generation && now < walk.again_at;
        if self.state().walk.is_some_and(is_walked) {
            return;
        }
        // An order that ends meanwhile takes this away, so that the next refresh walks anew.
        self.state().walk = Some(DomainWalk {
            generation,
            again_at: now,
        });
        let missing = self.domains.list(|name| !self.served.has(name));
        let missing = self.serve_stored(missing).await;
        let mut again_at = Timestamp(i64::MAX);
        for name in missing {
            again_at = again_at.min(self.order_for_domain(&name, now).await);
        }
        if let Some(walk) = &mut self.state().walk {
            walk.again_at = again_at;
        }
    }

    /// Serves the certificates of domains that are there, as after a restore; returns the other domains.
    async fn serve_stored(&self, missing: Vec<String>) -> Vec<String> {
        if missing.is_empty() {
            return missing;
        }
        let (store, now) = (self.domain_store.clone(), self.clock.now());
        let read = tokio::task::spawn_blocking(move || {
            let (mut found, mut others) = (HashMap::new(), Vec::new());
            for name in missing {
                match store.pair(&name) {
                    Ok(Some(pair)) if now < pair.validity.ends => {
                        found.insert(name, pair);
                    }
                    _ => others.push(name),
                }
            }
            (found, others)
        });
        // A read that does not end well is repeated by the next walk.
        let Ok((found, others)) = read.await else {
            return Vec::new();
        };
        for (name, pair) in &found {
            self.domains.record_issued(name, pair.validity.ends);
        }
        self.served.serve_all(&found);
        others
    }

    /// Orders the certificate of a domain, if it may have one now; returns when to look again.
    async fn order_for_domain(self: &Arc<Self>, name: &str, now: Timestamp) -> Timestamp {
        let again_at = now.plus_seconds(WALK_INTERVAL);
        let (blocked, reason, has_order) = {
            let state = self.state();
            (
                state.budget.blocked_until(name, now),
                state.budget.reason(name),
                state.budget.has_domain_order(&self.per_hour, now),
            )
        };
        match blocked {
            Some(until) => {
                // The reason is not in memory after a restart, or after the domain was served anew.
                if let Some(reason) = reason {
                    self.domains.record_refusal(name, reason);
                }
                return until;
            }
            // No look-up is spent where there is no order.
            None if !has_order => return again_at,
            None => {}
        }
        if let NameStanding::Eligible(budget) = self.standing(name).await {
            self.start_order(name, budget);
        }
        again_at
    }
}
