//! Whether this run may answer: only while nobody can have buried it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use svc_base::clock::Clock;
use svc_base::sync::lock;
use svc_ledger::{AppendQueue, BEAT_EVERY, BeatCount, FailureDetector, NodeState, RunId};

/// Time after which a caller whose commit is made is not kept waiting for the ledger.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Time between two ticks.
pub(super) const TICK_EVERY: Duration = Duration::from_millis(250);
/// Longest time between two ticks of a process that was not paused.
const MAX_TICK_GAP: Duration = Duration::from_secs(2);

/// Gate of a run's answers.
#[derive(Debug)]
pub struct AnswerGate {
    clock: Clock,
    queue: Arc<AppendQueue>,
    /// Time after which others take this run for dead,
    suspect_after: Duration,
    /// and for which open pages are served without an acknowledged beat.
    stale_pages: Duration,
    /// Time in nanoseconds until which the run may answer. It is beside the state, because every request looks.
    answers_until: AtomicU64,
    state: Mutex<GateState>,
}

#[derive(Debug)]
struct GateState {
    detector: FailureDetector,
    /// Time of the last tick, by which a pause of the process is noticed.
    ticked: Duration,
    /// Time at which a pause ended, until a later beat is acknowledged.
    paused_until: Option<Duration>,
    /// Time of the tick that found first that the run may not answer, until one finds that it may.
    silent_since: Option<Duration>,
}

impl AnswerGate {
    /// Pause between two looks at what waits.
    pub const LOOK_EVERY: Duration = Duration::from_millis(50);

    /// Creates the gate of a run, which is closed until its first beat is acknowledged.
    pub(super) fn new(
        run: RunId,
        queue: Arc<AppendQueue>,
        clock: Clock,
        suspect_after: Duration,
        stale_pages: Duration,
    ) -> Self {
        let ticked = clock.elapsed();
        Self {
            clock,
            queue,
            suspect_after,
            stale_pages,
            answers_until: AtomicU64::new(0),
            state: Mutex::new(GateState {
                detector: FailureDetector::new(run, suspect_after),
                ticked,
                paused_until: None,
                silent_since: None,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        lock(&self.state)
    }

    /// Takes the acknowledgement of a request that counts as a beat and was sent at `sent`.
    pub(super) fn acknowledged(&self, sent: Duration) {
        let mut state = self.state();
        state.detector.acknowledged(sent);
        self.note_beat(&mut state, sent);
    }

    fn note_beat(&self, state: &mut GateState, sent: Duration) {
        state.paused_until = state.paused_until.filter(|end| *end > sent);
        let until = state.detector.answers_until().as_nanos();
        let until = u64::try_from(until).unwrap_or(u64::MAX);
        self.answers_until.store(until, Ordering::Relaxed);
    }

    /// Takes the answer to a beat that was sent at `sent`. Returns the runs that may be buried.
    pub(super) fn beat_answered(
        &self,
        sent: Duration,
        nodes: &[NodeState],
    ) -> Vec<(RunId, BeatCount)> {
        let now = self.clock.elapsed();
        let mut state = self.state();
        state.detector.beat_answered(sent, now, nodes);
        self.note_beat(&mut state, sent);
        state.detector.suspects().collect()
    }

    /// Time at which the next beat is due, of which the last one was sent at `sent`: earlier than by its interval if another run can be
    /// suspected by then.
    pub(super) fn next_beat(&self, sent: Duration) -> Duration {
        let regular = sent + BEAT_EVERY;
        let suspicion = self.state().detector.next_suspicion();
        suspicion.map_or(regular, |due| regular.min(due))
    }

    /// Notes that the process runs. One that was paused may have been buried meanwhile.
    pub(super) fn tick(&self) {
        let now = self.clock.elapsed();
        let mut state = self.state();
        if now.saturating_sub(state.ticked) > MAX_TICK_GAP {
            state.paused_until = Some(now);
        }
        state.ticked = now;
        state.silent_since = match self.may_answer_at(now) {
            true => None,
            false => state.silent_since.or(Some(now)),
        };
    }

    /// Whether this run may not answer for so long that another node serves by now, unless the ledger answers nobody.
    pub fn is_given_up(&self) -> bool {
        let now = self.clock.elapsed();
        let state = self.state();
        let silent = state.silent_since.filter(|_| !self.may_answer_at(now));
        silent.is_some_and(|since| now.saturating_sub(since) >= self.suspect_after)
    }

    /// Whether another run lives and is not suspected, by the newest beat.
    pub fn is_trusted(&self, run: RunId) -> bool {
        self.state().detector.is_trusted(run)
    }

    /// Whether this run may answer from its databases.
    pub fn may_answer(&self) -> bool {
        self.may_answer_at(self.clock.elapsed())
    }

    fn may_answer_at(&self, now: Duration) -> bool {
        now.as_nanos() < u128::from(self.answers_until.load(Ordering::Relaxed))
    }

    /// Whether pages that are in memory may be shown: also for a while in which the ledger does not answer, but not after a pause.
    pub fn may_show_pages(&self) -> bool {
        let now = self.clock.elapsed();
        if self.may_answer_at(now) {
            return true;
        }
        let state = self.state();
        let is_running =
            state.paused_until.is_none() && now.saturating_sub(state.ticked) <= MAX_TICK_GAP;
        let is_known = state
            .detector
            .last_beat()
            .is_some_and(|sent| now.saturating_sub(sent) < self.stale_pages);
        is_running && is_known
    }

    /// Time for which open pages are shown that may be old.
    pub(super) fn stale_pages(&self) -> Duration {
        self.stale_pages
    }

    /// Whether a new write may begin.
    pub fn has_room(&self) -> bool {
        self.queue.has_room() && self.may_answer()
    }

    /// Bytes of commits that the ledger has not acknowledged.
    pub fn waiting_bytes(&self) -> usize {
        self.queue.unanswered_bytes()
    }

    /// Whether requests under way must be given up: the run may not answer any more, or the ledger keeps commits waiting.
    pub fn is_interrupted(&self) -> bool {
        !self.may_answer() || self.queue.unanswered_age() >= MAX_WAIT
    }

    /// Waits until what is under way must be given up.
    pub async fn wait_until_interrupted(&self) {
        loop {
            // A refusal that says why comes first.
            tokio::time::sleep(Self::LOOK_EVERY).await;
            if self.is_interrupted() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::Timestamp;

    fn gate(clock: &Clock) -> AnswerGate {
        let run = uuid::Uuid::from_u128(1).into();
        let queue = Arc::new(AppendQueue::new(run, clock.clone()));
        let (suspect, stale) = (Duration::from_secs(5), Duration::from_secs(600));
        AnswerGate::new(run, queue, clock.clone(), suspect, stale)
    }

    #[test]
    fn a_run_answers_while_its_beat_is_valid() {
        let clock = Clock::manual(Timestamp(0));
        let gate = gate(&clock);
        assert!(!gate.may_answer() && !gate.may_show_pages() && !gate.has_room());
        gate.acknowledged(clock.elapsed());
        clock.advance(Duration::from_millis(3499));
        assert!(gate.may_answer() && gate.has_room());
        clock.advance(Duration::from_millis(1));
        assert!(!gate.may_answer() && !gate.has_room());
    }

    #[test]
    fn a_run_is_given_up_by_its_clients_once_another_may_serve() {
        let clock = Clock::manual(Timestamp(0));
        let gate = gate(&clock);
        gate.acknowledged(clock.elapsed());
        // It answers for 3.5 seconds, and others need no more than 5 beyond that.
        for given_up in [false, false, false, false, false, false, false, false, true] {
            clock.advance(Duration::from_secs(1));
            gate.tick();
            assert_eq!(gate.is_given_up(), given_up);
        }
        gate.acknowledged(clock.elapsed());
        assert!(!gate.is_given_up());
        gate.tick();
        // A pause is no outage: what it has missed, the next beats tell.
        clock.advance(Duration::from_secs(60));
        gate.tick();
        assert!(!gate.is_given_up());
    }

    #[test]
    fn pages_are_shown_over_an_outage_of_the_ledger_and_not_after_a_pause() {
        let clock = Clock::manual(Timestamp(0));
        let gate = gate(&clock);
        gate.acknowledged(clock.elapsed());
        for _ in 0..10 {
            clock.advance(Duration::from_secs(1));
            gate.tick();
        }
        assert!(!gate.may_answer() && gate.may_show_pages());
        clock.advance(Duration::from_secs(9));
        assert!(!gate.may_show_pages());
        let before = clock.elapsed();
        gate.tick();
        assert!(!gate.may_show_pages());
        // A beat of before the pause says nothing.
        gate.acknowledged(before.saturating_sub(Duration::from_secs(1)));
        assert!(gate.state().paused_until.is_some());
        gate.acknowledged(clock.elapsed());
        assert!(gate.may_show_pages());
    }
}
