//! Beats and suspicion: which runs stand still, and whether this run may still answer. No I/O, and the time is handed in.
//!
//! No clocks of two machines are compared. A run counts as stuck when its beat has stood still for a while of this machine's time,
//! during which the ledger has answered. An outage of the ledger, in which nobody can beat, makes nobody suspect: time for which the
//! ledger has kept this machine waiting is not held against the others, which may wait a little longer.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::types::{BeatCount, NodeState, RunId};

/// Time between two beats.
pub const BEAT_EVERY: Duration = Duration::from_secs(1);
/// Longest time between two answered beats in which others are watched.
const MAX_GAP: Duration = Duration::from_secs(2);
/// Time by which a run stops to answer before others may suspect it.
const MARGIN: Duration = Duration::from_millis(1500);

/// Beat of another run, as it was seen.
#[derive(Clone, Copy, Debug)]
struct ObservedBeat {
    beat: BeatCount,
    /// Time at which the answer with this beat had arrived for the first time, and as much later as the ledger kept this run waiting.
    since: Duration,
    /// Time for which it may stand still, as the run itself says, which answers for almost as long.
    suspect_after: Duration,
}

/// Returns the time for which a run answers after its last acknowledged beat, if others suspect it after `suspect_after`.
#[must_use]
pub fn answers_for(suspect_after: Duration) -> Duration {
    suspect_after.saturating_sub(MARGIN)
}

/// Failure detector of a run, over itself and the others. Times are of one clock that never runs backwards.
#[derive(Debug)]
pub struct FailureDetector {
    run: RunId,
    suspect_after: Duration,
    /// Time at which the newest beat that was acknowledged had been sent.
    sent: Option<Duration>,
    /// Times at which the newest beat with an answer about the others was sent, and answered.
    answered: Option<(Duration, Duration)>,
    /// Live runs but this one.
    others: BTreeMap<RunId, ObservedBeat>,
}

impl FailureDetector {
    /// Creates the detector of a run that tells the others to suspect it after `suspect_after`.
    #[must_use]
    pub fn new(run: RunId, suspect_after: Duration) -> Self {
        Self {
            run,
            suspect_after,
            sent: None,
            answered: None,
            others: BTreeMap::new(),
        }
    }

    /// Takes the answer to a request of this run that counts as a beat and was sent at `sent`.
    pub fn acknowledged(&mut self, sent: Duration) {
        self.sent = self.sent.max(Some(sent));
    }

    /// Returns the time at which the newest acknowledged request that counts as a beat was sent.
    #[must_use]
    pub fn last_beat(&self) -> Option<Duration> {
        self.sent
    }

    /// Takes the answer to a beat that was sent at `sent` and answered at `now`.
    pub fn beat_answered(&mut self, sent: Duration, now: Duration, nodes: &[NodeState]) {
        self.acknowledged(sent);
        let before = self.answered.replace((sent, now));
        let since_last = before.map(|(_, before)| now.saturating_sub(before));
        let gap = since_last.is_none_or(|time| time > MAX_GAP);
        let waited = since_last.unwrap_or_default().saturating_sub(BEAT_EVERY);
        let mut others = BTreeMap::new();
        for state in nodes {
            let run = state.node.run;
            if !state.live || run == self.run {
                continue;
            }
            let known = self.others.get(&run).copied();
            let known = known.filter(|known| !gap && known.beat == state.beat);
            let since = known.map_or(now, |known| known.since + waited);
            let observed = ObservedBeat {
                beat: state.beat,
                since,
                suspect_after: state.node.suspect_after,
            };
            others.insert(run, observed);
        }
        self.others = others;
    }

    /// Returns the runs that have stood still for too long, each with its beat: they may be buried if that is still their beat.
    pub fn suspects(&self) -> impl Iterator<Item = (RunId, BeatCount)> {
        let others = self.others.iter();
        let stuck = others.filter(|(_, other)| self.stood_still(other) >= other.suspect_after);
        stuck.map(|(run, other)| (*run, other.beat))
    }

    /// Returns the time at which a beat must be sent at the earliest for its answer to make another run suspect, unless that run beats
    /// until then.
    #[must_use]
    pub fn next_suspicion(&self) -> Option<Duration> {
        let (sent, _) = self.answered?;
        let due = self
            .others
            .values()
            .map(|other| other.since + other.suspect_after);
        // A run that the last answer has made suspect needs no beat before the next regular one.
        due.filter(|due| *due > sent).min()
    }

    /// Whether a run was live and not suspected when the last beat was answered.
    #[must_use]
    pub fn is_trusted(&self, run: RunId) -> bool {
        let other = self.others.get(&run);
        other.is_some_and(|other| self.stood_still(other) < other.suspect_after)
    }

    /// Time for which a beat has stood still at least: from the first answer that had it to the sending of the last request whose
    /// answer had it.
    fn stood_still(&self, other: &ObservedBeat) -> Duration {
        let (sent, _) = self.answered.unwrap_or_default();
        sent.saturating_sub(other.since)
    }

    /// Returns the time until which this run may answer from its databases: nobody can have buried it before. 0 if no beat was acknowledged.
    #[must_use]
    pub fn answers_until(&self) -> Duration {
        let valid = answers_for(self.suspect_after);
        self.sent.map_or(Duration::ZERO, |sent| sent + valid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Node;

    const SUSPECT: Duration = Duration::from_secs(5);

    fn run(number: u128) -> RunId {
        uuid::Uuid::from_u128(number).into()
    }

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn state(number: u128, beat: u64, live: bool) -> NodeState {
        NodeState {
            node: Node {
                run: run(number),
                name: String::new(),
                suspect_after: SUSPECT,
                peer_url: String::new(),
                peer_key: Vec::new(),
                version: String::new(),
                schema: 1,
            },
            live,
            beat: BeatCount(beat),
            leaving: false,
            serves: true,
            removed: false,
        }
    }

    /// Beats of run 1, answered after 10 ms, that show run 2 at `beat`.
    fn beats(detector: &mut FailureDetector, millis: impl Iterator<Item = u64>, beat: u64) {
        for sent in millis {
            let nodes = [state(1, sent, true), state(2, beat, true)];
            detector.beat_answered(at(sent), at(sent + 10), &nodes);
        }
    }

    fn suspects(detector: &FailureDetector) -> Vec<(RunId, BeatCount)> {
        detector.suspects().collect()
    }

    #[test]
    fn a_run_that_stands_still_is_suspected() {
        let mut detector = FailureDetector::new(run(1), SUSPECT);
        beats(&mut detector, (0..=5000).step_by(1000), 3);
        // The first sight arrived at 10 ms, the last request was sent at 5000 ms.
        assert!(suspects(&detector).is_empty());
        assert!(detector.is_trusted(run(2)));
        beats(&mut detector, std::iter::once(5010), 3);
        assert_eq!(suspects(&detector), [(run(2), BeatCount(3))]);
        assert!(!detector.is_trusted(run(2)));
        beats(&mut detector, std::iter::once(6000), 4);
        assert!(suspects(&detector).is_empty());
    }

    #[test]
    fn nobody_is_suspected_over_an_outage_of_the_ledger() {
        let mut detector = FailureDetector::new(run(1), SUSPECT);
        beats(&mut detector, (0..=3000).step_by(1000), 3);
        beats(&mut detector, std::iter::once(60_000), 3);
        assert!(suspects(&detector).is_empty());
        beats(&mut detector, (61_000..=65_000).step_by(1000), 3);
        assert!(suspects(&detector).is_empty());
        beats(&mut detector, std::iter::once(66_000), 3);
        assert_eq!(suspects(&detector), [(run(2), BeatCount(3))]);
    }

    #[test]
    fn time_in_which_the_ledger_does_not_answer_is_held_against_nobody() {
        let mut detector = FailureDetector::new(run(1), SUSPECT);
        // One beat of these is answered 900 ms late.
        let late = (0..=2000).step_by(1000).chain((3900..=5900).step_by(1000));
        beats(&mut detector, late, 3);
        assert!(suspects(&detector).is_empty());
        beats(&mut detector, std::iter::once(5909), 3);
        assert!(suspects(&detector).is_empty());
        beats(&mut detector, std::iter::once(5910), 3);
        assert_eq!(suspects(&detector), [(run(2), BeatCount(3))]);
    }

    #[test]
    fn neither_the_dead_nor_itself_is_suspected() {
        let mut detector = FailureDetector::new(run(1), SUSPECT);
        for sent in (0..=9000).step_by(1000) {
            let nodes = [state(1, 7, true), state(2, 3, false)];
            detector.beat_answered(at(sent), at(sent), &nodes);
        }
        assert!(suspects(&detector).is_empty());
        assert!(!detector.is_trusted(run(2)) && !detector.is_trusted(run(3)));
    }

    #[test]
    fn a_run_answers_for_a_while_from_sending_its_last_acknowledged_beat() {
        let mut detector = FailureDetector::new(run(1), SUSPECT);
        assert_eq!(detector.answers_until(), at(0));
        beats(&mut detector, std::iter::once(1000), 3);
        assert_eq!(detector.answers_until(), at(4500));
        detector.acknowledged(at(2000));
        // An answer that comes late moves nothing back.
        detector.acknowledged(at(500));
        assert_eq!(detector.answers_until(), at(5500));
    }
}
