//! Bound on bytes that are in memory while they arrive, are worked on, or are sent, shared by callers as other caps are.
//!
//! A lane's queue bounds the number of its jobs, and a job may hold megabytes. Copies and encodings of what is counted are not counted.
//! Where there is no room, one request of a flow may wait for it for a while; what waits is bounded, too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::config::DividedCap;
use svc_base::flow::{CallerClass, CallerFlow};

/// Longest wait for room.
const ROOM_TIMEOUT: Duration = Duration::from_secs(2);
/// Clients that fill the part of previews: few should not be able to keep all others from it.
const FULL_PREVIEW_CLIENTS: u64 = 8;

/// Error of bytes for which there was no room in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many bytes are in memory already")]
pub struct ByteBudgetFull;

/// Budget of bytes, with its parts.
#[derive(Debug)]
pub struct ByteBudget {
    cap: DividedCap,
    /// Bytes in use up to which a flow may have more than its part.
    idle: u64,
    held: Mutex<HeldBytes>,
    /// Wakes who waits for room when bytes are returned.
    released: Notify,
}

#[derive(Debug, Default)]
struct HeldBytes {
    all: u64,
    /// Bytes of clients without a credential.
    strangers: u64,
    /// Bytes of previews.
    previews: u64,
    by_flow: HashMap<CallerFlow, u64>,
    /// Bytes for which a request of a flow waits; they are in memory and not counted above.
    waiting: HashMap<CallerFlow, u64>,
}

/// Bytes that count against a budget until this is dropped.
#[derive(Debug)]
pub struct BytePermit {
    budget: Arc<ByteBudget>,
    flow: CallerFlow,
    bytes: u64,
}

impl ByteBudget {
    /// Makes the budget of a cap. An owner has half of what it may have of other caps, so that two leave room for others.
    pub fn new(cap: DividedCap) -> Arc<Self> {
        let idle = cap.whole / 2;
        Self::with_idle_bytes(cap, idle)
    }

    /// Makes the budget of a cap beside a cache of `cached` bytes, which are part of its whole. They count for the flows that were the
    /// first to read them, so that few flows may fill the cache, and all of it may be strangers'.
    pub fn beside_cache(cap: DividedCap, cached: u64) -> Arc<Self> {
        let work = cap.whole.saturating_sub(cached);
        let kept = cap.whole.saturating_sub(cap.strangers);
        let kept = u128::from(kept) * u128::from(work) / u128::from(cap.whole.max(1));
        let kept = u64::try_from(kept).unwrap_or(u64::MAX);
        let cap = DividedCap {
            strangers: cap.whole.saturating_sub(kept),
            ..cap
        };
        Self::with_idle_bytes(cap, cached.saturating_add(work / 2))
    }

    fn with_idle_bytes(cap: DividedCap, idle: u64) -> Arc<Self> {
        Arc::new(Self {
            cap: DividedCap {
                per_owner: cap.per_owner / 2,
                ..cap
            },
            idle,
            held: Mutex::default(),
            released: Notify::new(),
        })
    }

    fn held(&self) -> MutexGuard<'_, HeldBytes> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts bytes of a flow, at once or never.
    ///
    /// # Errors
    /// [`ByteBudgetFull`]; nothing is counted then.
    pub fn try_take(
        self: &Arc<Self>,
        flow: CallerFlow,
        bytes: usize,
    ) -> Result<BytePermit, ByteBudgetFull> {
        let mut permit = self.empty_permit(flow);
        permit.resize(bytes)?;
        Ok(permit)
    }

    /// Counts bytes of a flow, after a wait for room if there is none.
    ///
    /// # Errors
    /// Like [`ByteBudget::try_take`].
    pub async fn take(
        self: &Arc<Self>,
        flow: CallerFlow,
        bytes: usize,
    ) -> Result<BytePermit, ByteBudgetFull> {
        let mut permit = self.empty_permit(flow);
        permit.resize_or_wait(bytes).await?;
        Ok(permit)
    }

    /// Counts bytes of a flow even where there is no room, for what is in memory already and cannot be refused any more.
    pub fn take_beyond(self: &Arc<Self>, flow: CallerFlow, bytes: usize) -> BytePermit {
        let mut permit = self.empty_permit(flow);
        permit.bytes = bytes as u64;
        self.held().add(&permit.flow, permit.bytes);
        permit
    }

    /// Whether a flow holds all that it may: its part, while half or more of the whole is in use.
    pub fn is_full_for(&self, flow: &CallerFlow) -> bool {
        let part = match flow.class() {
            CallerClass::Owner | CallerClass::Server => self.cap.per_owner,
            CallerClass::Stranger | CallerClass::Preview => self.cap.per_client,
        };
        let held = self.held();
        held.all >= self.idle && held.of(flow) >= part
    }

    fn empty_permit(self: &Arc<Self>, flow: CallerFlow) -> BytePermit {
        BytePermit {
            budget: Arc::clone(self),
            flow,
            bytes: 0,
        }
    }

    /// Lets a request wait for room, if no other of its flow does and little waits in all.
    fn begin_wait(
        self: &Arc<Self>,
        flow: &CallerFlow,
        bytes: u64,
    ) -> Result<WaitingRequest, ByteBudgetFull> {
        let mut held = self.held();
        let waiting: u64 = held.waiting.values().sum();
        let is_little = waiting == 0 || waiting.saturating_add(bytes) <= self.cap.whole / 4;
        if !is_little || held.waiting.contains_key(flow) {
            return Err(ByteBudgetFull);
        }
        held.waiting.insert(flow.clone(), bytes);
        Ok(WaitingRequest {
            budget: Arc::clone(self),
            flow: flow.clone(),
        })
    }
}

/// A request that waits for room, until this is dropped.
struct WaitingRequest {
    budget: Arc<ByteBudget>,
    flow: CallerFlow,
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        self.budget.held().waiting.remove(&self.flow);
    }
}

impl HeldBytes {
    fn of(&self, flow: &CallerFlow) -> u64 {
        self.by_flow.get(flow).copied().unwrap_or(0)
    }

    /// Whether a flow may hold so many bytes more. A flow that holds nothing may have one page of any size, which would
    /// never fit otherwise. While less than half is in use, a flow may have more than its part.
    fn has_room(&self, budget: &ByteBudget, flow: &CallerFlow, bytes: u64) -> bool {
        let cap = &budget.cap;
        let fits = |held: u64, most: u64| held == 0 || held.saturating_add(bytes) <= most;
        let own = self.of(flow);
        let is_idle = self.all.saturating_add(bytes) <= budget.idle;
        let of_class = match flow.class() {
            CallerClass::Owner | CallerClass::Server => is_idle || fits(own, cap.per_owner),
            CallerClass::Stranger => {
                (is_idle || fits(own, cap.per_client)) && fits(self.strangers, cap.strangers)
            }
            // Clients that read their previews slowly leave the other half to those that publish, and are held to their part
            // even while much is free: they may hold it for long.
            CallerClass::Preview => {
                let previews = cap.strangers / 2;
                fits(own, cap.per_client.min(previews / FULL_PREVIEW_CLIENTS))
                    && fits(self.previews, previews)
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
    /// [`ByteBudgetFull`]; as many are counted as before.
    pub fn resize(&mut self, bytes: usize) -> Result<(), ByteBudgetFull> {
        let (bytes, before) = (bytes as u64, self.bytes);
        let mut held = self.budget.held();
        held.remove(&self.flow, before);
        let has_room = held.has_room(&self.budget, &self.flow, bytes);
        if has_room {
            self.bytes = bytes;
        }
        held.add(&self.flow, self.bytes);
        drop(held);
        if self.bytes < before {
            self.budget.released.notify_waiters();
        }
        match has_room {
            true => Ok(()),
            false => Err(ByteBudgetFull),
        }
    }

    /// Counts another number of bytes instead, after a wait for room if there is none.
    ///
    /// # Errors
    /// Like [`BytePermit::resize`].
    pub async fn resize_or_wait(&mut self, bytes: usize) -> Result<(), ByteBudgetFull> {
        if self.resize(bytes).is_ok() {
            return Ok(());
        }
        let budget = Arc::clone(&self.budget);
        let more = (bytes as u64).saturating_sub(self.bytes);
        let _waiting = budget.begin_wait(&self.flow, more)?;
        let resizing = async {
            loop {
                // Made before the look, so that no release between the two is missed.
                let released = budget.released.notified();
                if self.resize(bytes).is_ok() {
                    return;
                }
                released.await;
            }
        };
        let resized = tokio::time::timeout(ROOM_TIMEOUT, resizing).await;
        resized.map_err(|_| ByteBudgetFull)
    }

    /// Holds the permit for as long as any part of these bytes is in memory.
    pub fn attach(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(CountedBytes {
            bytes,
            _permit: self,
        })
    }
}

impl Drop for BytePermit {
    fn drop(&mut self) {
        self.budget.held().remove(&self.flow, self.bytes);
        self.budget.released.notify_waiters();
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
    use futures_util::FutureExt as _;

    use super::*;
    use crate::config::Limits;

    /// A budget of 1,000 bytes: 800 for strangers, 400 of them for previews, 100 for a client, 50 for its previews, 250 for an owner.
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
    fn a_client_and_an_owner_have_a_part_each_of_what_is_in_use() {
        let budget = budget();
        let in_use = budget.try_take(owner("z"), 500).unwrap();
        for (flow, part) in [(stranger(1), 100), (owner("a"), 250)] {
            let half = budget.try_take(flow.clone(), part / 2).unwrap();
            assert!(budget.try_take(flow.clone(), part / 2 + 1).is_err());
            let rest = budget.try_take(flow.clone(), part / 2).unwrap();
            assert!(budget.try_take(flow.clone(), 1).is_err());
            drop((half, rest));
            drop(budget.try_take(flow, part).unwrap());
        }
        drop(in_use);
        let held = budget.held();
        assert_eq!((held.all, held.strangers, held.by_flow.len()), (0, 0, 0));
    }

    #[test]
    fn a_flow_may_have_more_than_its_part_while_half_is_free() {
        for flow in [stranger(1), owner("a")] {
            let budget = budget();
            let _most = [300, 200].map(|bytes| budget.try_take(flow.clone(), bytes).unwrap());
            assert!(budget.try_take(flow, 1).is_err());
            drop(budget.try_take(stranger(2), 100).unwrap());
        }
        let budget = budget();
        let preview = stranger(1).preview();
        let _one = budget.try_take(preview.clone(), 50).unwrap();
        assert!(budget.try_take(preview, 1).is_err(), "it may be held long");
    }

    #[test]
    fn a_stranger_may_fill_the_cache() {
        let limits = Limits::default();
        let (work, cached) = (1_000, 9_000);
        let budget = ByteBudget::beside_cache(limits.divide_cap("k", work + cached), cached);
        let _cache: Vec<_> = (0..9)
            .map(|_| budget.try_take(stranger(1), 1_000).unwrap())
            .collect();
        let _half = budget.try_take(stranger(1), 500).unwrap();
        assert!(budget.try_take(stranger(1), 1).is_err());
        let _more = budget.try_take(stranger(2), 300).unwrap();
        assert!(budget.try_take(stranger(3), 1).is_err(), "kept for owners");
        drop(budget.try_take(owner("a"), 200).unwrap());
    }

    #[test]
    fn strangers_keep_no_owner_out_and_previews_no_publication() {
        let budget = budget();
        let previews: Vec<_> = (0..8)
            .map(|client| budget.try_take(stranger(client).preview(), 50).unwrap())
            .collect();
        assert!(budget.try_take(stranger(8).preview(), 1).is_err());
        let pages: Vec<_> = (10..14)
            .map(|client| budget.try_take(stranger(client), 100).unwrap())
            .collect();
        assert!(budget.try_take(stranger(14), 1).is_err());
        let owned = budget.try_take(owner("a"), 200).unwrap();
        assert!(
            budget.try_take(owner("b"), 1).is_err(),
            "the whole is in use"
        );
        drop((previews, pages, owned));
        drop(budget.try_take(owner("b"), 500).unwrap());
    }

    #[test]
    fn two_owners_leave_room_for_others() {
        let budget = budget();
        let _first = budget.try_take(owner("a"), 500).unwrap();
        let _second = budget.try_take(owner("b"), 250).unwrap();
        for name in ["a", "b"] {
            assert!(budget.try_take(owner(name), 1).is_err());
        }
        drop(budget.try_take(owner("c"), 250).unwrap());
        drop(budget.try_take(stranger(1), 250).unwrap());
    }

    #[test]
    fn one_page_fits_whatever_its_size() {
        let budget = budget();
        let in_use = budget.try_take(owner("z"), 200).unwrap();
        let mut page = budget.try_take(stranger(1), 90).unwrap();
        page.resize(310).unwrap();
        assert!(budget.try_take(stranger(1), 1).is_err());
        let other = budget.try_take(stranger(2), 490).unwrap();
        assert_eq!(page.resize(311), Err(ByteBudgetFull));
        assert_eq!(budget.held().of(&stranger(1)), 310, "as before");
        drop((in_use, other));
        page.resize(2_000).unwrap();
    }

    #[tokio::test]
    async fn a_request_waits_for_room_and_others_of_its_flow_do_not() {
        let budget = budget();
        let held = budget.try_take(owner("z"), 950).unwrap();
        let mut first = Box::pin(budget.take(stranger(1), 100));
        assert!(first.as_mut().now_or_never().is_none());
        let second = budget.take(stranger(1), 100).now_or_never();
        assert!(second.unwrap().is_err(), "one waits already");
        let large = budget.take(stranger(2), 151).now_or_never();
        assert!(large.unwrap().is_err(), "too much would wait");
        let mut other = Box::pin(budget.take(stranger(2), 150));
        assert!(other.as_mut().now_or_never().is_none());
        drop(held);
        let first = first.now_or_never().unwrap().unwrap();
        drop(other.now_or_never().unwrap().unwrap());
        assert!(budget.held().waiting.is_empty());
        drop(first);
        assert_eq!(budget.held().all, 0);
    }

    #[tokio::test]
    async fn who_stops_waiting_leaves_nothing() {
        let budget = budget();
        let _held = budget.try_take(owner("z"), 950).unwrap();
        let mut waiting = Box::pin(budget.take(stranger(1), 100));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(waiting);
        let held = budget.held();
        assert_eq!((held.all, held.waiting.len()), (950, 0));
    }

    #[test]
    fn what_is_in_memory_anyway_fills_the_part_of_its_flow() {
        let budget = budget();
        let (own, other) = (stranger(1), stranger(2));
        assert!(!budget.is_full_for(&own));
        let most = budget.take_beyond(own.clone(), 499);
        assert!(!budget.is_full_for(&own), "half is free");
        let more = budget.take_beyond(own.clone(), 1_001);
        assert!(budget.is_full_for(&own) && !budget.is_full_for(&other));
        drop((most, more));
        assert!(!budget.is_full_for(&own));
        assert_eq!(budget.held().all, 0);
    }

    #[test]
    fn bytes_count_until_their_last_part_is_dropped() {
        let budget = budget();
        let permit = budget.try_take(stranger(1), 4).unwrap();
        let bytes = permit.attach(Bytes::from_static(b"page"));
        let rest = bytes.slice(1..);
        drop(bytes);
        assert_eq!((budget.held().all, &*rest), (4, &b"age"[..]));
        drop(rest);
        assert_eq!(budget.held().all, 0);
    }
}
