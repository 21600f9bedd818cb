//! Schedule of faults: random, and the same for the same seed.

use std::time::Duration;

use svc_tests::SeededRng;
use svc_tests::bucket::BucketFault;
use svc_tests::relay::RelayMode;

/// Nodes of the cluster.
pub(super) const NODES: usize = 3;
/// Time that a fault lasts at least, and how many milliseconds more at most.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGER_MILLIS: u64 = 9_000;
/// Most milliseconds from one fault to the next.
const PAUSE_MILLIS: u64 = 6_000;

/// Behaviours of a network that is not well.
const CUTS: [RelayMode; 5] = [
    RelayMode::Refuse,
    RelayMode::Hang,
    RelayMode::HoldRequests,
    RelayMode::HoldAnswers,
    RelayMode::Delay,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A node is killed and its disk thrown away. Another one starts, of the same name or a new one.
    Kill { node: usize, is_renamed: bool },
    /// A node is stopped by a signal, and goes on later.
    Pause { node: usize },
    /// A network fails, between a node and all servers of PostgreSQL,
    CutLedger { node: usize, mode: RelayMode },
    /// between a node and the bucket,
    CutBucket { node: usize, mode: RelayMode },
    /// between a node and its clients,
    CutClients { node: usize, mode: RelayMode },
    /// or on the way of the other nodes to a node.
    CutPeers { node: usize, mode: RelayMode },
    /// The store of the bucket fails, for all.
    FailBucket { fault: BucketFault },
    /// PostgreSQL's primary is killed, and a standby promoted.
    FailOver,
    /// PostgreSQL's standbys are stopped.
    StopStandbys,
}

/// Part of the installation that has one fault at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultTarget {
    Process(usize),
    Ledger(usize),
    Bucket(usize),
    Clients(usize),
    Peers(usize),
    Store,
    Servers,
}

impl Event {
    pub(super) fn target(self) -> FaultTarget {
        match self {
            Self::Kill { node, .. } | Self::Pause { node } => FaultTarget::Process(node),
            Self::CutLedger { node, .. } => FaultTarget::Ledger(node),
            Self::CutBucket { node, .. } => FaultTarget::Bucket(node),
            Self::CutClients { node, .. } => FaultTarget::Clients(node),
            Self::CutPeers { node, .. } => FaultTarget::Peers(node),
            Self::FailBucket { .. } => FaultTarget::Store,
            Self::FailOver | Self::StopStandbys => FaultTarget::Servers,
        }
    }
}

/// An event, and what follows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) event: Event,
    /// Time until it is mended, if it is not over at once.
    pub(super) lasts: Duration,
    /// Time until the next one.
    pub(super) pause: Duration,
}

#[derive(Debug)]
pub(super) struct Schedule(SeededRng);

impl Schedule {
    pub(super) fn new(seed: u64) -> Self {
        Self(SeededRng::new(seed))
    }

    pub(super) fn draw(&mut self) -> Fault {
        let event = self.draw_event();
        Fault {
            event,
            lasts: SHORTEST + Duration::from_millis(self.below(LONGER_MILLIS)),
            pause: Duration::from_millis(self.below(PAUSE_MILLIS)),
        }
    }

    fn draw_event(&mut self) -> Event {
        let node = self.one_of(std::array::from_fn::<usize, NODES, _>(|at| at));
        match self.below(15) {
            0..=1 => Event::Kill {
                node,
                is_renamed: self.below(2) == 0,
            },
            2..=4 => Event::Pause { node },
            5..=6 => Event::CutLedger {
                node,
                mode: self.one_of(CUTS),
            },
            7 => Event::CutBucket {
                node,
                mode: self.one_of(CUTS),
            },
            8 => Event::CutClients {
                node,
                mode: self.one_of(CUTS),
            },
            9..=11 => Event::CutPeers {
                node,
                mode: self.one_of(CUTS),
            },
            12 => Event::FailBucket {
                fault: self.one_of([BucketFault::EveryOtherFails, BucketFault::Unavailable]),
            },
            13 => Event::FailOver,
            _ => Event::StopStandbys,
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0.draw() % end
    }

    fn one_of<T: Copy, const COUNT: usize>(&mut self, all: [T; COUNT]) -> T {
        let at = usize::try_from(self.below(COUNT as u64)).unwrap();
        all[at]
    }
}

#[test]
fn a_seed_gives_one_schedule() {
    let drawn = |seed| -> Vec<Event> {
        let mut schedule = Schedule::new(seed);
        (0..100).map(|_| schedule.draw().event).collect()
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}
