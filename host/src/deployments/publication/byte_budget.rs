//! Bound on the bytes of sources and pages that are in memory while they are worked on, shared by callers as other caps are.
//!
//! A lane's queue bounds the number of its jobs, and a job may hold megabytes. Copies and encodings of what is counted are not counted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::config::DividedCap;
use svc_sandbox::{CallerClass, CallerFlow, LaneBusy};

/// Budget of bytes, with its parts.
#[derive(Debug)]
pub(super) struct ByteBudget {
    cap: DividedCap,
    held: Mutex<HeldBytes>,
}

#[derive(Debug, Default)]
struct HeldBytes {
    all: u64,
    /// Bytes of clients without a credential.
    strangers: u64,
    /// Bytes of previews.
    previews: u64,
    by_flow: HashMap<CallerFlow, u64>,
}

/// Bytes that count against a budget until this is dropped.
#[derive(Debug)]
pub(in crate::deployments) struct BytePermit {
    budget: Arc<ByteBudget>,
    flow: CallerFlow,
    bytes: u64,
}

impl ByteBudget {
    /// Makes the budget of a cap.
    pub(super) fn new(cap: DividedCap) -> Arc<Self> {
        Arc::new(Self {
            cap,
            held: Mutex::default(),
        })
    }

    fn held(&self) -> MutexGuard<'_, HeldBytes> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts bytes of a flow.
    ///
    /// # Errors
    /// [`LaneBusy`]; nothing is counted then.
    pub(super) fn take(
        self: &Arc<Self>,
        flow: CallerFlow,
        bytes: usize,
    ) -> Result<BytePermit, LaneBusy> {
        let mut permit = BytePermit {
            budget: Arc::clone(self),
            flow,
            bytes: 0,
        };
        permit.resize(bytes)?;
        Ok(permit)
    }
}

impl HeldBytes {
    fn of(&self, flow: &CallerFlow) -> u64 {
        self.by_flow.get(flow).copied().unwrap_or(0)
    }

    /// Whether a flow may hold so many bytes more. A flow that holds nothing may have one page of any size, which would
    /// never fit otherwise.
    fn has_room(&self, cap: &DividedCap, flow: &CallerFlow, bytes: u64) -> bool {
        let fits = |held: u64, most: u64| held == 0 || held.saturating_add(bytes) <= most;
        let own = self.of(flow);
        let of_class = match flow.class() {
            CallerClass::Owner | CallerClass::Server => fits(own, cap.per_owner),
            CallerClass::Stranger => {
                fits(own, cap.per_client) && fits(self.strangers, cap.strangers)
            }
            // Clients that read their previews slowly leave the other half to those that publish.
            CallerClass::Preview => {
                fits(own, cap.per_client)
                    && fits(self.previews, cap.strangers / 2)
                    && fits(self.strangers, cap.strangers)
            }
        };
        of_class && fits(self.all, cap.whole)
    }

    fn add(&mut self, flow: &CallerFlow, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.all += bytes;
        match flow.class() {
            CallerClass::Owner | CallerClass::Server => {}
            CallerClass::Stranger => self.strangers += bytes,
            CallerClass::Preview => {
                self.strangers += bytes;
                self.previews += bytes;
            }
        }
        *self.by_flow.entry(flow.clone()).or_default() += bytes;
    }

    fn remove(&mut self, flow: &CallerFlow, bytes: u64) {
        self.all -= bytes;
        match flow.class() {
            CallerClass::Owner | CallerClass::Server => {}
            CallerClass::Stranger => self.strangers -= bytes,
            CallerClass::Preview => {
                self.strangers -= bytes;
                self.previews -= bytes;
            }
        }
        if let Some(own) = self.by_flow.get_mut(flow) {
            *own -= bytes;
            if *own == 0 {
                self.by_flow.remove(flow);
            }
        }
    }
}

impl BytePermit {
    /// Counts another number of bytes instead.
    ///
    /// # Errors
    /// [`LaneBusy`]; as many are counted as before.
    pub(super) fn resize(&mut self, bytes: usize) -> Result<(), LaneBusy> {
        let bytes = bytes as u64;
        let mut held = self.budget.held();
        held.remove(&self.flow, self.bytes);
        let has_room = held.has_room(&self.budget.cap, &self.flow, bytes);
        if has_room {
            self.bytes = bytes;
        }
        held.add(&self.flow, self.bytes);
        match has_room {
            true => Ok(()),
            false => Err(LaneBusy),
        }
    }

    /// Holds the permit for as long as any part of these bytes is in memory.
    pub(super) fn attach(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(CountedBytes {
            bytes,
            _permit: self,
        })
    }
}

impl Drop for BytePermit {
    fn drop(&mut self) {
        self.budget.held().remove(&self.flow, self.bytes);
    }
}

/// Bytes that return their permit when they are dropped.
struct CountedBytes {
    bytes: Bytes,
    _permit: BytePermit,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;

    /// A budget of 1,000 bytes: 800 for strangers, 400 of them for previews, 100 for a client, 500 for an owner.
    fn budget() -> Arc<ByteBudget> {
        ByteBudget::new(Limits::default().divide_cap("k", 1_000))
    }

    fn stranger(number: u8) -> CallerFlow {
        CallerFlow::stranger([192, 0, 2, number].into())
    }

    fn owner(name: &str) -> CallerFlow {
        CallerFlow::Owner(name.into())
    }

    #[test]
    fn a_client_and_an_owner_have_a_part_each() {
        let budget = budget();
        for (flow, part) in [(stranger(1), 100), (owner("a"), 500)] {
            let half = budget.take(flow.clone(), part / 2).unwrap();
            assert!(budget.take(flow.clone(), part / 2 + 1).is_err());
            let rest = budget.take(flow.clone(), part / 2).unwrap();
            assert!(budget.take(flow.clone(), 1).is_err());
            drop((half, rest));
            drop(budget.take(flow, part).unwrap());
        }
        let held = budget.held();
        assert_eq!((held.all, held.strangers, held.by_flow.len()), (0, 0, 0));
    }

    #[test]
    fn strangers_keep_no_owner_out_and_previews_no_publication() {
        let budget = budget();
        let previews: Vec<_> = (0..4)
            .map(|client| budget.take(stranger(client).preview(), 100).unwrap())
            .collect();
        assert!(budget.take(stranger(4).preview(), 1).is_err());
        let pages: Vec<_> = (10..14)
            .map(|client| budget.take(stranger(client), 100).unwrap())
            .collect();
        assert!(budget.take(stranger(14), 1).is_err());
        let owned = budget.take(owner("a"), 200).unwrap();
        assert!(budget.take(owner("b"), 1).is_err(), "the whole is in use");
        drop((previews, pages, owned));
        drop(budget.take(owner("b"), 500).unwrap());
    }

    #[test]
    fn one_page_fits_whatever_its_size() {
        let budget = budget();
        let mut page = budget.take(stranger(1), 90).unwrap();
        page.resize(150).unwrap();
        assert!(budget.take(stranger(1), 1).is_err());
        let other = budget.take(stranger(2), 650).unwrap();
        assert_eq!(page.resize(151), Err(LaneBusy));
        assert_eq!(budget.held().of(&stranger(1)), 150, "as before");
        drop(other);
        page.resize(2_000).unwrap();
    }

    #[test]
    fn bytes_count_until_their_last_part_is_dropped() {
        let budget = budget();
        let permit = budget.take(stranger(1), 4).unwrap();
        let bytes = permit.attach(Bytes::from_static(b"page"));
        let rest = bytes.slice(1..);
        drop(bytes);
        assert_eq!((budget.held().all, &*rest), (4, &b"age"[..]));
        drop(rest);
        assert_eq!(budget.held().all, 0);
    }
}
