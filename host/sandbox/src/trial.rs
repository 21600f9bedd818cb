//! Trial of a new guest: for a time after an installation, the previous guest is called where the new one fails.
//!
//! If the previous guest handles the input, its answer goes to the caller, and the new guest is rolled back at once. An input on
//! which both fail counts against neither: input alone cannot bring a guest down. For the same reason an exhausted budget counts
//! against a guest only if the previous one needed far less: an input at the limit may be just over it for another build.
//!
//! The second call goes on with what the first has left of the budget. A page's has at least half of it, which suffices to tell whose
//! fault it is. The second call may still cost as much as the first. So only one runs at a time, and one that both guests fail is
//! followed by a pause in proportion to its duration: a flood of inputs on which every guest fails costs a tenth more, not twice.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::limits::CallBudgets;
use super::metrics::{CallUsage, WorldLabels};
use super::registry::GuestWorldBindings;
use super::slot::{LoadedGuest, ServingGuest};
use super::values::{BudgetKind, GuestDigest, World};
use super::{SharedSandboxState, engine::CallFailure};
use svc_base::Stopwatch;

/// Pause after a second call in vain: the minimum, and a multiple of the call's duration.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const PAUSE_FACTOR: u32 = 10;

/// End of an attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum AttemptOutcome {
    /// The guest answered; a message to the author counts, too.
    Answered,
    /// The guest trapped, or gave an impossible answer.
    Broken,
    /// The guest ran out of fuel, memory, time or stack.
    Exhausted(BudgetKind),
    /// The guest does not support the type of the source.
    Unsupported,
    /// The call was not made or not finished: no thread was free, or the caller went away.
    Busy,
}

impl From<&CallFailure> for AttemptOutcome {
    fn from(failure: &CallFailure) -> Self {
        match failure {
            CallFailure::Budget(budget) => Self::Exhausted(*budget),
            CallFailure::Broken(_) => Self::Broken,
            CallFailure::Abandoned => Self::Busy,
        }
    }
}

/// Result of one guest's attempt, over all the calls that it took.
#[derive(Debug)]
pub(super) struct GuestAttempt<T> {
    pub(super) outcome: T,
    pub(super) end: AttemptOutcome,
    pub(super) used: CallUsage,
}

impl<T, E> GuestAttempt<Result<T, E>> {
    /// Attempt that no worker was free for.
    pub(super) fn busy<B>(busy: B) -> Self
    where
        E: From<B>,
    {
        Self {
            outcome: Err(busy.into()),
            end: AttemptOutcome::Busy,
            used: CallUsage::default(),
        }
    }
}

/// A guest that was rolled back automatically.
#[derive(Clone, Debug)]
pub struct RolledBackGuest {
    /// World of the guest.
    pub world: World,
    /// Digest of the guest.
    pub guest: GuestDigest,
    /// Digest of the guest that serves instead.
    pub before: GuestDigest,
    /// Reason, without any content of the input.
    pub why: String,
}

/// Longest wait for a second call after a failure of the guest itself.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(5);

/// State of the second calls of both worlds, and the guests that were rolled back.
#[derive(Debug, Default)]
pub(super) struct SecondCallTrials {
    /// For each world one gate for traps, one for budgets and one for types. Inputs that are too large or of an unknown type are
    /// easy to make, and must not hide a trap.
    retry_gates: [[SecondCallGate; 3]; 2],
    fallen: Mutex<Vec<RolledBackGuest>>,
}

/// Admits one second call at a time, with pauses after those in vain.
#[derive(Debug, Default)]
struct SecondCallGate {
    permit: tokio::sync::Mutex<()>,
    pause: Mutex<Option<(Stopwatch, Duration)>>,
}

impl SecondCallGate {
    fn pause(&self) -> std::sync::MutexGuard<'_, Option<(Stopwatch, Duration)>> {
        self.pause.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SecondCallTrials {
    fn retry_gate(&self, world: World, end: AttemptOutcome) -> &SecondCallGate {
        let world = usize::from(world == World::Gate);
        let kind = match end {
            AttemptOutcome::Broken => 0,
            AttemptOutcome::Unsupported => 1,
            _ => 2,
        };
        &self.retry_gates[world][kind]
    }

    /// Acquires the right to make a second call; `None` if it must not be made now. Traps and unknown types wait: many may come
    /// before the first shows whose fault they are.
    async fn acquire_retry(
        &self,
        world: World,
        end: AttemptOutcome,
    ) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let retries = self.retry_gate(world, end);
        let permit = match end {
            AttemptOutcome::Broken | AttemptOutcome::Unsupported => {
                tokio::time::timeout(MAX_RETRY_WAIT, retries.permit.lock())
                    .await
                    .ok()?
            }
            _ => retries.permit.try_lock().ok()?,
        };
        let resting = retries
            .pause()
            .is_some_and(|(since, pause)| since.elapsed() < pause);
        (!resting).then_some(permit)
    }

    fn pause_retries(&self, world: World, end: AttemptOutcome, pause: Duration) {
        *self.retry_gate(world, end).pause() = Some((Stopwatch::start(), pause));
    }

    /// Takes the guests that were rolled back since the last call of this function.
    pub(super) fn take_rolled_back(&self) -> Vec<RolledBackGuest> {
        std::mem::take(&mut *self.fallen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the pause after a second call in vain, by the time that the guest ran: waiting for a thread costs nobody anything. A call
/// that was not made or not finished says nothing about the next, so it has no minimum.
fn pause_after(end: AttemptOutcome, used: &CallUsage) -> Duration {
    let pause = used.duration.saturating_mul(PAUSE_FACTOR);
    match end {
        AttemptOutcome::Busy => pause,
        _ => pause.max(MIN_PAUSE),
    }
}

/// Whether a failure is the guest's fault, by what the previous guest needed for the same input. Two builds of one source differ
/// a little in their usage, so that a tenant could find an input between the two: that counts against neither. The depth of a
/// stack is not measured; filling it takes fuel.
fn is_guests_fault(
    end: AttemptOutcome,
    used: &CallUsage,
    before: &CallUsage,
    limits: &CallBudgets,
) -> bool {
    match end {
        AttemptOutcome::Broken | AttemptOutcome::Unsupported => true,
        AttemptOutcome::Exhausted(BudgetKind::Fuel | BudgetKind::Time | BudgetKind::Stack) => {
            before.fuel.saturating_mul(2) <= used.fuel
        }
        AttemptOutcome::Exhausted(BudgetKind::Memory) => {
            before.memory.saturating_mul(2) <= limits.memory_bytes
        }
        _ => false,
    }
}

/// Returns the outcome of an attempt, or a better one of the standby guest. `again` makes the attempt with another guest.
pub(super) async fn resolve_attempt<W, T, F>(
    inner: &SharedSandboxState,
    serving: &Arc<ServingGuest<W>>,
    first: GuestAttempt<T>,
    again: impl FnOnce(Arc<LoadedGuest<W>>) -> F,
) -> T
where
    W: GuestWorldBindings,
    F: Future<Output = GuestAttempt<T>>,
{
    let before = match (first.end, &serving.standby) {
        (
            AttemptOutcome::Broken | AttemptOutcome::Exhausted(_) | AttemptOutcome::Unsupported,
            Some(before),
        ) => before,
        _ => return first.outcome,
    };
    let Some(_turn) = inner.trials.acquire_retry(W::WORLD, first.end).await else {
        return first.outcome;
    };
    let slot = W::slot(&inner.registry);
    let now = slot.current().filter(|now| !Arc::ptr_eq(now, serving));
    if let Some(now) = now {
        // The guest was rolled back meanwhile: the one that serves now is called, as for a new caller.
        return again(Arc::clone(&now.guest)).await.outcome;
    }
    let second = again(Arc::clone(before)).await;
    let limits = inner.engine.limits(W::WORLD);
    if second.end == AttemptOutcome::Answered
        && is_guests_fault(first.end, &first.used, &second.used, limits)
    {
        if slot.roll_back_to_standby(serving) {
            inner.report_rollback::<W>(serving.guest.digest, before.digest, first.end);
        }
        return second.outcome;
    }
    let pause = pause_after(second.end, &second.used);
    inner.trials.pause_retries(W::WORLD, first.end, pause);
    match second.end {
        AttemptOutcome::Answered => second.outcome,
        _ => first.outcome,
    }
}

impl SharedSandboxState {
    /// Logs and counts a rolled back guest.
    fn report_rollback<W: GuestWorldBindings>(
        &self,
        guest: GuestDigest,
        before: GuestDigest,
        end: AttemptOutcome,
    ) {
        let why = match end {
            AttemptOutcome::Exhausted(budget) => {
                format!("it ran out of its budget of {budget} on what the guest before it handles")
            }
            AttemptOutcome::Unsupported => {
                "it does not know a type of content, the rules of sites, or files, which the guest before it does"
                    .to_owned()
            }
            _ => "it trapped on what the guest before it handles".to_owned(),
        };
        tracing::error!(
            world = %W::WORLD,
            %guest,
            %before,
            why,
            "a guest is rolled back: it fails where the one before it does not"
        );
        let world = W::WORLD.as_str();
        self.metrics
            .rollbacks
            .get_or_create(&WorldLabels { world })
            .inc();
        let fallen = RolledBackGuest {
            world: W::WORLD,
            guest,
            before,
            why,
        };
        self.trials
            .fallen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(fallen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_at_the_edge_speaks_against_nobody() {
        let limits = CallBudgets::GATE;
        let used = |fuel, memory| CallUsage {
            fuel,
            memory,
            ..CallUsage::default()
        };
        let spent = used(limits.fuel, limits.memory_bytes);
        let (half, more) = (
            used(limits.fuel / 2, limits.memory_bytes / 2),
            used(limits.fuel / 2 + 1, limits.memory_bytes / 2 + 1),
        );
        for budget in [
            BudgetKind::Fuel,
            BudgetKind::Memory,
            BudgetKind::Time,
            BudgetKind::Stack,
        ] {
            let end = AttemptOutcome::Exhausted(budget);
            assert!(is_guests_fault(end, &spent, &half, &limits), "{budget}");
            assert!(!is_guests_fault(end, &spent, &more, &limits), "{budget}");
        }
        for end in [AttemptOutcome::Broken, AttemptOutcome::Unsupported] {
            assert!(is_guests_fault(end, &spent, &more, &limits));
        }
        for end in [
            AttemptOutcome::Answered,
            AttemptOutcome::Busy,
            AttemptOutcome::Exhausted(BudgetKind::PageBytes),
        ] {
            assert!(!is_guests_fault(end, &spent, &half, &limits));
        }
    }

    #[test]
    fn a_pause_is_as_long_as_what_the_guest_did() {
        let ran = |milliseconds| CallUsage {
            duration: Duration::from_millis(milliseconds),
            ..CallUsage::default()
        };
        let (busy, answered) = (AttemptOutcome::Busy, AttemptOutcome::Answered);
        for (end, milliseconds, expected) in [
            (answered, 0, 1_000),
            (answered, 5, 1_000),
            (answered, 500, 5_000),
            (busy, 0, 0),
            (busy, 500, 5_000),
        ] {
            let pause = pause_after(end, &ran(milliseconds));
            assert_eq!(pause, Duration::from_millis(expected), "{end:?}");
        }
    }

    #[tokio::test]
    async fn questions_in_vain_are_followed_by_a_pause_of_their_kind() {
        let trials = SecondCallTrials::default();
        let fuel = AttemptOutcome::Exhausted(BudgetKind::Fuel);
        let world = World::Render;
        let turn = trials.acquire_retry(world, fuel).await.unwrap();
        assert!(
            trials.acquire_retry(world, fuel).await.is_none(),
            "one at a time"
        );
        trials.pause_retries(world, fuel, MIN_PAUSE);
        drop(turn);
        let memory = AttemptOutcome::Exhausted(BudgetKind::Memory);
        assert!(trials.acquire_retry(world, memory).await.is_none());
        for end in [AttemptOutcome::Broken, AttemptOutcome::Unsupported] {
            assert!(trials.acquire_retry(world, end).await.is_some());
        }
        assert!(trials.acquire_retry(World::Gate, fuel).await.is_some());
    }
}
