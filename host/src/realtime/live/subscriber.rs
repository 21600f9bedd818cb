//! A subscription as its query knows it: to be given answers, and an end.

use std::sync::Arc;

use super::listener::{LateState, Listener, State};
use super::query::Answer;
use crate::http::problem::Problem;

/// A subscription as its query knows it.
#[derive(Clone, Debug)]
pub(super) struct Subscriber {
    pub(super) listener: Arc<Listener>,
    pub(super) id: Arc<str>,
    pub(super) number: u64,
}

impl Subscriber {
    fn with_state<T>(&self, work: impl FnOnce(&mut State) -> T) -> Option<T> {
        let mut state = self.listener.state();
        let found = state.subscriptions.get(&self.id);
        found
            .is_some_and(|one| one.number == self.number)
            .then(|| work(&mut state))
    }

    pub(super) fn query(&self) -> Option<u64> {
        let query = |state: &mut State| state.subscriptions.get(&self.id)?.query;
        self.with_state(query).flatten()
    }

    /// Notes the query that it listens to; returns whether it is there still.
    pub(super) fn set_query(&self, query: u64, is_own: bool) -> bool {
        let join = |state: &mut State| {
            if let Some(one) = state.subscriptions.get_mut(&self.id) {
                (one.query, one.is_own) = (Some(query), is_own);
            }
        };
        self.with_state(join).is_some()
    }

    /// Whether it has yet to get its first result.
    pub(super) fn is_new(&self) -> bool {
        let is_new = |state: &mut State| {
            state
                .subscriptions
                .get(&self.id)
                .is_none_or(|one| one.seq == 0)
        };
        self.with_state(is_new).unwrap_or(true)
    }

    /// Gives it an answer: sent at once if it is another than the last one and there is room.
    pub(super) fn offer(&self, answer: &Answer) {
        let offered = self.with_state(|state| {
            let one = state.subscriptions.get_mut(&self.id)?;
            let was_behind = match one.late {
                LateState::Ended(_) => return None,
                LateState::Behind => true,
                LateState::No => false,
            };
            one.late = LateState::No;
            let seq = one.seq + 1;
            if one.last != Some(answer.digest) {
                let budget = self.listener.board.budget();
                let sent = state.send((&self.id, seq), answer, budget);
                let one = state.subscriptions.get_mut(&self.id)?;
                if sent {
                    (one.seq, one.last) = (seq, Some(answer.digest));
                } else {
                    one.late = LateState::Behind;
                    if !was_behind {
                        state.late.push_back((Arc::clone(&self.id), self.number));
                    }
                    return Some(false);
                }
            }
            Some(was_behind)
        });
        if offered.flatten() == Some(true) {
            let mut state = self.listener.state();
            self.listener.send_late(&mut state);
        }
    }

    /// Ends it with a problem, which it is told behind what is on its way.
    pub(super) fn fail(&self, problem: Arc<Problem>) {
        let failed = self.with_state(|state| {
            let Some(one) = state.subscriptions.get_mut(&self.id) else {
                return;
            };
            one.query = None;
            let late = std::mem::replace(&mut one.late, LateState::Ended(problem));
            if matches!(late, LateState::No) {
                state.late.push_back((Arc::clone(&self.id), self.number));
            }
        });
        if failed.is_some() {
            let mut state = self.listener.state();
            self.listener.send_late(&mut state);
        }
    }

    /// Whether it is this one.
    pub(super) fn is_subscription(&self, listener: &Listener, number: u64) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.listener), listener) && self.number == number
    }
}
