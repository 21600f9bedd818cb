//! Random schedules of beats: three nodes that are paused, requests that take long, and outages of the ledger. In others every node is
//! well, and some beats come late all the same.

use std::collections::BTreeMap;
use std::time::Duration;

use super::process::node;
use super::seeded_random::SeededRandom;
use crate::failure_detector::{BEAT_EVERY, FailureDetector};
use crate::memory::requests::{self, Rules};
use crate::memory::store::{Key, Refusal, Row, Store, View};
use crate::types::{BeatCount, ClaimOutcome, DatabaseName, LedgerError, Node, NodeState, RunId};

const NODES: usize = 3;
const TICK: u64 = 100;
const TICKS: u64 = 300;
/// Shortest time between two outages of a ledger whose nodes are well.
const CALM: u64 = 5_000;

/// A protocol, right by default.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BeatProtocol {
    pub(super) rules: Rules,
    /// A run counts its time from the answer to a beat, not from its sending.
    pub(super) counts_from_answer: bool,
    pub(super) troubles: Troubles,
}

/// Events that keep beats from coming in time, beside outages of the ledger. Times are in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Troubles {
    /// Whether nodes are paused, and some requests take seconds. Without, all nodes are well, and none may be buried.
    pub(super) has_pauses: bool,
    /// Time after which a run is suspected.
    pub(super) suspect: u64,
    /// Longest time of an append, during which beats wait behind it.
    pub(super) append: u64,
    /// Longest time after an outage until a node has found the server that goes on.
    pub(super) reconnect: u64,
}

impl Default for Troubles {
    fn default() -> Self {
        Self {
            has_pauses: true,
            suspect: 5_000,
            append: 0,
            reconnect: 0,
        }
    }
}

/// Fault that the checks find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A run was buried that had beaten a moment ago, or that is well.
    HealthyBuried,
    /// A run could answer although another one had its place.
    TwoAnswer,
}

/// Sum of schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) buried: usize,
    pub(super) claimed: usize,
    pub(super) fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug)]
enum Request {
    Beat,
    Bury(RunId, BeatCount),
    Claim,
}

#[derive(Debug)]
enum Response {
    Nodes(Vec<NodeState>),
    Buried(bool),
    Claimed(bool),
}

/// A request under way. Times are in milliseconds.
#[derive(Debug)]
struct PendingRequest {
    request: Request,
    sent: u64,
    arrives: u64,
    /// Answer, with the time at which it is back.
    answer: Option<(u64, Result<Response, LedgerError>)>,
}

#[derive(Debug)]
struct Process {
    run: RunId,
    detector: FailureDetector,
    beat: Option<PendingRequest>,
    other: Option<PendingRequest>,
    next_beat: u64,
    paused_until: u64,
    /// Time at which its connection has done the appends that were sent.
    appends_until: u64,
    /// Time at which it has found the ledger again.
    away_until: u64,
    owns: bool,
}

struct Schedule {
    random: SeededRandom,
    protocol: BeatProtocol,
    now: u64,
    store: Store,
    outage_until: u64,
    processes: Vec<Process>,
    /// Times at which the ledger has counted the newest beats.
    counted: BTreeMap<RunId, u64>,
    runs: u128,
    outcome: Outcome,
}

/// Runs the schedule of a seed.
pub(super) fn run(seed: u64, protocol: BeatProtocol) -> Outcome {
    let mut schedule = Schedule {
        random: SeededRandom::new(seed),
        protocol,
        now: 0,
        store: Store::default(),
        outage_until: 0,
        processes: Vec::new(),
        counted: BTreeMap::new(),
        runs: 0,
        outcome: Outcome::default(),
    };
    for _ in 0..NODES {
        let process = schedule.start();
        schedule.processes.push(process);
    }
    for _ in 0..TICKS {
        schedule.now += TICK;
        schedule.tick();
    }
    schedule.outcome
}

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Schedule {
    /// Starts a process, whose run has joined.
    fn start(&mut self) -> Process {
        self.runs += 1;
        let run: RunId = uuid::Uuid::from_u128(self.runs).into();
        let joining = Node {
            suspect_after: at(self.protocol.troubles.suspect),
            ..node(run)
        };
        let joined = self.perform(|view| requests::join(view, &joining));
        assert_eq!(joined, Ok(()));
        self.counted.insert(run, self.now);
        Process {
            run,
            detector: FailureDetector::new(run, at(self.protocol.troubles.suspect)),
            beat: None,
            other: None,
            next_beat: self.now,
            paused_until: 0,
            appends_until: 0,
            away_until: self.outage_until,
            owns: false,
        }
    }

    /// Runs a request, which the standby has at once.
    fn perform<T>(
        &mut self,
        request: impl FnOnce(&mut View<'_>) -> Result<T, Refusal>,
    ) -> Result<T, LedgerError> {
        match self.store.transact(request) {
            Ok((response, number)) => {
                self.store.replicate(1);
                assert!(number.is_none_or(|number| self.store.acknowledge(number)));
                Ok(response)
            }
            Err(Refusal::Error(error)) => Err(error),
            Err(Refusal::Locked) => panic!("nothing waits"),
        }
    }

    fn tick(&mut self) {
        let may_fail = self.protocol.troubles.has_pauses || self.now >= self.outage_until + CALM;
        if self.random.below(1000) < 3 && may_fail {
            self.outage_until = self.now + self.random.below(15_000);
            for at in 0..NODES {
                let later = self.up_to(self.protocol.troubles.reconnect);
                self.processes[at].away_until = self.outage_until + later;
            }
        }
        for at in 0..NODES {
            if self.now >= self.processes[at].away_until {
                self.arrive(at);
            }
            if self.now >= self.processes[at].paused_until {
                self.look(at);
                self.act(at);
                self.look(at);
            }
        }
    }

    fn delay(&mut self) -> u64 {
        match self.protocol.troubles.has_pauses && self.random.percent(4) {
            true => self.random.below(8_000),
            false => self.random.below(TICK),
        }
    }

    fn up_to(&mut self, most: u64) -> u64 {
        match most {
            0 => 0,
            most => self.random.below(most),
        }
    }

    /// Sends a request, behind the appends of the process.
    fn send(&mut self, index: usize, request: Request) -> Option<PendingRequest> {
        let after = self.processes[index].appends_until.max(self.now);
        let arrives = after + self.delay();
        Some(PendingRequest {
            request,
            sent: self.now,
            arrives,
            answer: None,
        })
    }

    /// Has the server do the requests of a process that have arrived.
    fn arrive(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let run = process.run;
        for pending in [process.beat.take(), process.other.take()] {
            let Some(mut pending) = pending else { continue };
            if pending.answer.is_none() && pending.arrives <= self.now {
                let answer = self.answer(run, pending.request);
                pending.answer = Some((self.now + self.delay(), answer));
            }
            let process = &mut self.processes[at];
            match pending.request {
                Request::Beat => process.beat = Some(pending),
                Request::Bury(..) | Request::Claim => process.other = Some(pending),
            }
        }
    }

    fn answer(&mut self, run: RunId, request: Request) -> Result<Response, LedgerError> {
        let rules = self.protocol.rules;
        let response = match request {
            Request::Beat => Response::Nodes(self.perform(|view| requests::beat(view, run))?),
            Request::Bury(dead, seen) => {
                let lived = self.lives(dead);
                let seen = Some(seen);
                let buried = self.perform(|view| requests::bury(rules, view, run, dead, seen))?;
                if lived && buried {
                    self.outcome.buried += 1;
                    let troubles = self.protocol.troubles;
                    let stood_still = self.now - self.counted[&dead];
                    if !troubles.has_pauses || stood_still < troubles.suspect {
                        self.outcome.fault.get_or_insert(Fault::HealthyBuried);
                    }
                }
                Response::Buried(buried)
            }
            Request::Claim => {
                let claim =
                    self.perform(|view| requests::claim(rules, view, run, DatabaseName::Control))?;
                Response::Claimed(matches!(claim, ClaimOutcome::Claimed(_)))
            }
        };
        self.counted.insert(run, self.now);
        Ok(response)
    }

    fn lives(&self, run: RunId) -> bool {
        matches!(self.store.get(&Key::Node(run)), Some(Row::Node(state)) if state.live)
    }

    fn holder(&self) -> Option<RunId> {
        match self.store.get(&Key::Place(DatabaseName::Control)) {
            Some(Row::Place(place)) => Some(place.run),
            _ => None,
        }
    }

    /// Compares what a process may do with what the ledger says.
    fn look(&mut self, index: usize) {
        let process = &self.processes[index];
        let answers = process.owns && at(self.now) < process.detector.answers_until();
        if answers && self.holder() != Some(process.run) {
            self.outcome.fault.get_or_insert(Fault::TwoAnswer);
        }
    }

    fn act(&mut self, index: usize) {
        let now = self.now;
        let is_back = |pending: &mut PendingRequest| {
            let answer = pending.answer.as_ref();
            answer.is_some_and(|(back, _)| *back <= now)
        };
        let process = &mut self.processes[index];
        let run = process.run;
        for pending in [
            process.beat.take_if(is_back),
            process.other.take_if(is_back),
        ] {
            // The answer to a process that has ended reaches nobody.
            if self.processes[index].run == run
                && let Some(PendingRequest { sent, answer, .. }) = pending
                && let Some((_, answer)) = answer
            {
                self.take(index, sent, answer);
            }
        }
        let process = &self.processes[index];
        if process.beat.is_none() && now >= process.next_beat {
            let pending = self.send(index, Request::Beat);
            let process = &mut self.processes[index];
            process.beat = pending;
            process.next_beat = now + u64::try_from(BEAT_EVERY.as_millis()).unwrap();
        }
        let troubles = self.protocol.troubles;
        let appends = troubles.append > 0 && self.processes[index].appends_until <= now;
        if appends && self.random.percent(2) {
            self.processes[index].appends_until = now + self.up_to(troubles.append);
        }
        if troubles.has_pauses && self.random.below(1000) < 5 {
            let until = now + 1_000 + self.random.below(19_000);
            self.processes[index].paused_until = until;
        }
    }

    /// Has a process take an answer.
    fn take(&mut self, index: usize, sent: u64, answer: Result<Response, LedgerError>) {
        let now = at(self.now);
        let counted = match self.protocol.counts_from_answer {
            true => now,
            false => at(sent),
        };
        match answer {
            // A process that was buried ends, and another takes its place.
            Err(_) => self.processes[index] = self.start(),
            Ok(Response::Nodes(nodes)) => {
                let process = &mut self.processes[index];
                process.detector.beat_answered(counted, now, &nodes);
                self.decide(index, &nodes);
            }
            Ok(Response::Buried(buried)) => {
                self.processes[index].detector.acknowledged(counted);
                if buried {
                    self.processes[index].other = self.send(index, Request::Claim);
                }
            }
            Ok(Response::Claimed(claimed)) => {
                let process = &mut self.processes[index];
                process.detector.acknowledged(counted);
                process.owns |= claimed;
                self.outcome.claimed += usize::from(claimed);
            }
        }
    }

    /// Buries who stands still, and claims a place that nobody has.
    fn decide(&mut self, index: usize, nodes: &[NodeState]) {
        let process = &self.processes[index];
        if process.owns || process.other.is_some() {
            return;
        }
        let suspect = process.detector.suspects().next();
        let holder = self.holder();
        let mut live = nodes.iter().filter(|state| state.live);
        let is_held = live.any(|state| Some(state.node.run) == holder);
        let request = match suspect {
            Some((run, beat)) => Request::Bury(run, beat),
            None if !is_held => Request::Claim,
            None => return,
        };
        self.processes[index].other = self.send(index, request);
    }
}
