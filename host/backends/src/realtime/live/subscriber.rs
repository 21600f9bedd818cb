//! Handle of a subscription, by which its query delivers answers and its end.

use std::sync::Arc;

use super::error::LiveError;
use super::listener::{LiveConnection, LiveConnectionState, PendingDelivery};
use super::opening::LiveQueryOpening;
use super::query::LiveQueryAnswer;

#[derive(Clone, Debug)]
pub(super) struct QuerySubscriber {
    pub(super) listener: Arc<LiveConnection>,
    pub(super) id: Arc<str>,
    pub(super) number: u64,
}

impl QuerySubscriber {
    fn with_state<T>(&self, work: impl FnOnce(&mut LiveConnectionState) -> T) -> Option<T> {
        let mut state = self.listener.state();
        let found = state.subscriptions.get(&self.id);
        found
            .is_some_and(|one| one.number == self.number)
            .then(|| work(&mut state))
    }

    pub(super) fn query(&self) -> Option<u64> {
        let query = |state: &mut LiveConnectionState| state.subscriptions.get(&self.id)?.query;
        self.with_state(query).flatten()
    }

    /// Stores the query of the subscription; returns whether the subscription still exists.
    pub(super) fn set_query(&self, query: u64, is_own: bool) -> bool {
        let join = |state: &mut LiveConnectionState| {
            if let Some(one) = state.subscriptions.get_mut(&self.id) {
                (one.query, one.is_own) = (Some(query), is_own);
            }
        };
        self.with_state(join).is_some()
    }

    /// Stores the beginning of the subscription, until it is answered.
    pub(super) fn set_opening(&self, opening: LiveQueryOpening) {
        let store = |state: &mut LiveConnectionState| {
            if let Some(one) = state.subscriptions.get_mut(&self.id) {
                one.opening = Some(opening);
            }
        };
        self.with_state(store);
    }

    /// Counts the subscription and writes it into the log, if this is its first answer.
    fn record(&self, opening: Option<LiveQueryOpening>, answer: Result<u64, &LiveError>) {
        if let Some(opening) = opening {
            self.listener.opened().record(opening, answer);
        }
    }

    /// Whether the subscription has not got its first result.
    pub(super) fn is_new(&self) -> bool {
        let is_new = |state: &mut LiveConnectionState| {
            state
                .subscriptions
                .get(&self.id)
                .is_none_or(|one| one.seq == 0)
        };
        self.with_state(is_new).unwrap_or(true)
    }

    /// Offers an answer: it is sent at once if it differs from the latest one and there is room.
    pub(super) fn offer_answer(&self, answer: &LiveQueryAnswer) {
        let mut opening = None;
        let offered = self.with_state(|state| {
            let one = state.subscriptions.get_mut(&self.id)?;
            let was_behind = match one.late {
                PendingDelivery::Ended(_) => return None,
                PendingDelivery::Behind => true,
                PendingDelivery::No => false,
            };
            one.late = PendingDelivery::No;
            let seq = one.seq + 1;
            if one.last != Some(answer.digest) {
                let budget = self.listener.board.budget();
                let sent = state.send((&self.id, seq), answer, budget);
                let one = state.subscriptions.get_mut(&self.id)?;
                if sent {
                    (one.seq, one.last) = (seq, Some(answer.digest));
                    opening = one.opening.take();
                } else {
                    one.late = PendingDelivery::Behind;
                    if !was_behind {
                        state.late.push_back((Arc::clone(&self.id), self.number));
                    }
                    return Some(false);
                }
            }
            Some(was_behind)
        });
        self.record(opening, Ok(answer.rows));
        if offered.flatten() == Some(true) {
            let mut state = self.listener.state();
            self.listener.send_pending(&mut state);
        }
    }

    /// Ends the subscription with an error, which is sent after the results in flight.
    pub(super) fn fail(&self, error: Arc<LiveError>) {
        let (mut opening, failure) = (None, Arc::clone(&error));
        let failed = self.with_state(|state| {
            let Some(one) = state.subscriptions.get_mut(&self.id) else {
                return;
            };
            opening = one.opening.take();
            one.query = None;
            let late = std::mem::replace(&mut one.late, PendingDelivery::Ended(error));
            if matches!(late, PendingDelivery::No) {
                state.late.push_back((Arc::clone(&self.id), self.number));
            }
        });
        self.record(opening, Err(&*failure));
        if failed.is_some() {
            let mut state = self.listener.state();
            self.listener.send_pending(&mut state);
        }
    }

    /// Whether this is the subscription with a number of a listener.
    pub(super) fn is_subscription(&self, listener: &LiveConnection, number: u64) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.listener), listener) && self.number == number
    }
}
