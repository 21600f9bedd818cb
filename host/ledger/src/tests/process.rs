//! Processes of the schedules: requests on their way, databases that they have, and protocols that are broken on purpose.

use std::sync::Arc;
use std::time::Duration;

use svc_base::clock::Timestamp;
use svc_base::positions::{Checksum, CommitPosition, Entry};
use uuid::Uuid;

use crate::appender::{self, Appender};
use crate::memory::requests::Rules;
use crate::memory::store::TransactionNumber;
use crate::types::{
    Base, BeatCount, ClaimOutcome, DatabaseEntry, DatabaseName, FoundEntry, LedgerError, Node,
    NodeState, Place, RunId,
};

/// Connection of a process for what its appender sends.
pub(super) const APPENDS: usize = 0;
/// Connection of a process for everything else.
pub(super) const OTHERS: usize = 1;
pub(super) const CONNECTIONS: [usize; 2] = [APPENDS, OTHERS];

/// A protocol, right by default.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Protocol {
    pub(super) rules: Rules,
    /// A process trusts the file that the one before it has left.
    pub(super) trusts_file: bool,
    /// A look-up is confirmed by a beat of its own.
    pub(super) confirms_apart: bool,
    /// Callers are answered before the append.
    pub(super) answers_early: bool,
    /// A follower takes what it finds, whatever the feed has named.
    pub(super) reads_ahead: bool,
}

/// Fault that the checks find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Violation {
    /// An acknowledged commit is not in the ledger after the worst failover.
    Lost,
    /// A commit does not continue the one before it.
    Hole,
    /// An owner has another past than the ledger, and is acknowledged.
    OtherPast,
    /// The owner's database lacks an acknowledged commit.
    StaleRead,
    /// A follower has what is not in the ledger any more.
    TakenBack,
}

/// Sum of schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) acknowledged: usize,
    pub(super) loaded: usize,
    pub(super) followed: usize,
    pub(super) violation: Option<Violation>,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Join,
    Beat,
    Bury(RunId, Option<BeatCount>),
    Claim(usize),
    Load(usize),
    Release(Place),
    Append(appender::Request),
}

/// An answer.
#[derive(Debug)]
pub(super) enum Response {
    Done,
    Nodes(Vec<NodeState>),
    Claimed(ClaimOutcome),
    Entries(Vec<Entry>),
    Found(Vec<Option<FoundEntry>>),
}

/// A connection, with at most one request.
#[derive(Debug)]
pub(super) enum Connection {
    Free,
    /// On its way to the server, or before a lock there.
    Sent(Request),
    /// Done, and waiting for the standby.
    Waits(Request, Response, TransactionNumber),
    Answered(Request, Result<Response, LedgerError>),
}

/// Relation of a process to a database.
#[derive(Debug)]
pub(super) enum Ownership {
    Nothing,
    Claimed(Place),
    /// With the checksums of its states, the first commit's at 1.
    Owned(Place, Vec<Checksum>),
    Releasing(Place),
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) run: RunId,
    pub(super) joined: bool,
    pub(super) appender: Appender,
    pub(super) connections: [Connection; 2],
    pub(super) ownerships: Vec<Ownership>,
    /// Step at which it goes on, if it is paused.
    pub(super) paused_until: u64,
    /// Answer of the last beat.
    pub(super) seen: Vec<NodeState>,
    /// Files that the process before has left.
    pub(super) files: Vec<Option<Vec<Checksum>>>,
    /// Look-up that a beat is to confirm.
    pub(super) found: Vec<Option<FoundEntry>>,
}

impl Process {
    pub(super) fn new(run: u128) -> Self {
        let run = Uuid::from_u128(run).into();
        Self {
            run,
            joined: false,
            appender: Appender::new(run),
            connections: [Connection::Free, Connection::Free],
            ownerships: vec![Ownership::Nothing, Ownership::Nothing],
            paused_until: 0,
            seen: Vec::new(),
            files: vec![None, None],
            found: Vec::new(),
        }
    }
}

pub(super) fn lost() -> LedgerError {
    LedgerError::Unknown(String::new())
}

/// Description of a run of which only the id counts.
pub(crate) fn node(run: RunId) -> Node {
    Node {
        run,
        name: String::new(),
        suspect_after: Duration::from_secs(5),
        peer_url: String::new(),
        peer_key: Vec::new(),
        version: String::new(),
        schema: 1,
    }
}

/// Base that a database begins with.
pub(super) fn first_base(database: DatabaseName) -> Base {
    Base {
        database,
        position: CommitPosition(0),
        state: Checksum(0),
        object: String::new(),
        bytes: 0,
        at: Timestamp(0),
    }
}

/// Commit from one state to another.
pub(super) fn commit(
    database: DatabaseName,
    position: CommitPosition,
    (before, after): (Checksum, Checksum),
) -> DatabaseEntry {
    let entry = Entry {
        position,
        at: Timestamp(0),
        before,
        after,
        body: Arc::from([0]),
        changes: Arc::default(),
    };
    DatabaseEntry { database, entry }
}
