//! The ledger as a trait, with the values that it takes and returns.

use std::fmt;
use std::future::Future;
use std::str::FromStr;
use std::time::Duration;

use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::{self, BackendId, DeploymentId};
use svc_base::positions::{Checksum, CommitPosition, Entry};
use svc_base::random::{Random, RandomSourceError};
use uuid::Uuid;

/// Id of a run: a process from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Uuid);

impl RunId {
    /// Creates an id for a process that starts.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn new(clock: &Clock, random: &Random) -> Result<Self, RandomSourceError> {
        ids::uuid_v7(clock, random).map(Self)
    }
}

impl From<Uuid> for RunId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl From<RunId> for Uuid {
    fn from(run: RunId) -> Self {
        run.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// Name of a database: that of the installation itself, or that of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DatabaseName {
    /// The control database. Its text is `control`.
    Control,
    /// The database of a backend. Its text is the backend's id.
    Backend(BackendId),
}

/// Text of [`DatabaseName::Control`].
const CONTROL: &str = "control";

impl fmt::Display for DatabaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control => f.write_str(CONTROL),
            Self::Backend(id) => id.fmt(f),
        }
    }
}

impl FromStr for DatabaseName {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            CONTROL => Ok(Self::Control),
            id => id.parse().map(Self::Backend),
        }
    }
}

/// A commit of a database, as it is appended and read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseEntry {
    /// Database that the commit belongs to.
    pub database: DatabaseName,
    /// The commit.
    pub entry: Entry,
}

/// Short form of a commit in the ledger, by which a run recognises its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundEntry {
    /// Run that appended it.
    pub run: RunId,
    /// Checksum of the state after it.
    pub after: Checksum,
}

/// Number of beats of a run. It grows with each beat and each append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BeatCount(pub u64);

/// Description of a run, by which it joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Id of the run.
    pub run: RunId,
    /// Name of the node in the settings.
    pub name: String,
    /// Time for which its beat may stand still before it is taken for dead.
    pub suspect_after: Duration,
    /// Address at which the other nodes reach it.
    pub peer_url: String,
    /// Public key that the other nodes expect there.
    pub peer_key: Vec<u8>,
    /// Version of the program.
    pub version: String,
    /// Newest schema of the control database that the program knows.
    pub schema: u32,
}

/// A run as the ledger has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// Description of the run.
    pub node: Node,
    /// Whether it may append. Once false, this stays false.
    pub live: bool,
    /// Number of its beats.
    pub beat: BeatCount,
    /// Whether it takes no more databases.
    pub leaving: bool,
    /// Whether it has begun to serve: it takes control when nobody has that. A run that only waits for control does not.
    pub serves: bool,
    /// Whether an operator has removed its node from the lists. Only the dead are removed.
    pub removed: bool,
}

/// The right of a run to write a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The database.
    pub database: DatabaseName,
    /// Run that may write it, as long as it lives.
    pub run: RunId,
    /// Beat of the run that the claim was. No two claims of a run have the same.
    pub epoch: BeatCount,
}

/// Answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// The place belongs to the caller now.
    Claimed(Place),
    /// A live run has the place.
    Held(Place),
}

/// Bases that a database keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBases {
    /// The newest alone.
    Newest,
    /// The newest, and the one before it.
    Two,
}

impl KeptBases {
    /// Number of the bases.
    pub(crate) fn count(self) -> u8 {
        match self {
            Self::Newest => 1,
            Self::Two => 2,
        }
    }
}

/// A copy of a database in the bucket, from which its commits go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The database.
    pub database: DatabaseName,
    /// Last commit in the copy.
    pub position: CommitPosition,
    /// Checksum of the state after that commit.
    pub state: Checksum,
    /// Name of the object in the bucket.
    pub object: String,
    /// Size of the object.
    pub bytes: u64,
    /// Time at which the copy was made.
    pub at: Timestamp,
}

/// A request to the ledger failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The run was buried, or never joined. Nothing was done, and its process must end.
    #[error("this run may not write any more: another node has buried it")]
    Fenced,
    /// The ledger does not wait for its standbys as it must. Nothing was done.
    #[error("the ledger does not wait for as many standbys as it must")]
    Unsynced,
    /// A commit does not continue the ledger's last one of its database, or its number is taken. Nothing was done.
    #[error("a commit does not continue the ledger")]
    NotNext,
    /// The run does not have the place of the database. Nothing was done.
    #[error("this run does not have the place of the database")]
    NotPlaced,
    /// The request was sent and the answer is lost: it may have been done, now or in a while.
    #[error("the answer of the ledger is lost: {0}")]
    Unknown(String),
    /// The ledger cannot be reached, or refused the request for now. Nothing was done.
    #[error("the ledger is unavailable: {0}")]
    Unavailable(String),
    /// Every server of the ledger refuses the role, its password or the database. Nothing was done.
    #[error("the ledger refuses the role, the password or the database of its URL: {0}")]
    Refused(String),
    /// The ledger has what this program cannot read. Nothing was done.
    #[error("the ledger has what this program cannot read: {0}")]
    Unreadable(String),
}

/// Order of commits, fence of runs, and places of databases, in one engine that several nodes share.
///
/// Each method that takes a run is one transaction, counts as a beat of the run, and fails with [`LedgerError::Fenced`] if the run
/// does not live. Because of the beat the transaction is a commit, even where it finds all done already. So `Ok` says two things: it
/// was done, and everything that the answer tells survives the loss of a machine. Without the beat an answer may tell of a commit
/// that was never replicated.
///
/// [`LedgerError::Unknown`] is the only error after which something may have been done. No method tries again, takes back what was
/// sent, or guesses. It waits for the answer as long as the server that was asked is the one that takes writes. A request whose
/// answer is lost may be done late, even after a later request of the run was answered. So each method says whether it may be
/// repeated.
pub trait Ledger: Send + Sync + 'static {
    /// Makes the tables of a new installation. Returns `false` if the ledger has an installation already, and does nothing then. May
    /// be repeated. Of two that found at once, one may fail with [`LedgerError::Unavailable`].
    fn found(&self, installation: Uuid) -> impl Future<Output = Result<bool, LedgerError>> + Send;

    /// Returns the id of the installation, if somebody has founded one. May be repeated.
    fn installation(&self) -> impl Future<Output = Result<Option<Uuid>, LedgerError>> + Send;

    /// Adds a run, which lives. A run that is there stays as it is, dead or alive. May be repeated. A ledger that outlives its runs
    /// deletes the rows of those that have been dead for a day.
    fn join(&self, node: &Node) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Counts a beat of `run` and returns all runs that live, with the newest of the dead, in the order of their ids. May be repeated.
    fn beat(&self, run: RunId) -> impl Future<Output = Result<Vec<NodeState>, LedgerError>> + Send;

    /// Appends commits: all or none. Each must continue the last one of its database or the one before it in `entries`, by its number
    /// and its checksum; the first of a database continues a base. The place is not asked for: of two runs that append, the one that
    /// comes second fails with [`LedgerError::NotNext`].
    ///
    /// May be repeated only after [`Ledger::find`] has said that nothing of it is there. Even then the first request may still be on
    /// its way: the one that comes second fails with [`LedgerError::NotNext`].
    fn append(
        &self,
        run: RunId,
        entries: &[DatabaseEntry],
    ) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Returns the commits that are at these positions, in the order of `at`. May be repeated.
    fn find(
        &self,
        run: RunId,
        at: &[(DatabaseName, CommitPosition)],
    ) -> impl Future<Output = Result<Vec<Option<FoundEntry>>, LedgerError>> + Send;

    /// Buries `dead` in the name of `run`, if it lives and its beat is still `seen`; without `seen`, whatever its beat is. Returns
    /// whether `dead` does not live any more, by this call or already: `false` if its beat has moved. May be repeated.
    ///
    /// A run may bury itself.
    fn bury(
        &self,
        run: RunId,
        dead: RunId,
        seen: Option<BeatCount>,
    ) -> impl Future<Output = Result<bool, LedgerError>> + Send;

    /// Notes that a run serves from now on. May be repeated.
    fn note_serving(&self, run: RunId) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Notes that all runs of a node's name are removed, unless one of them lives: then the answer is `false`, and nothing is done. Their
    /// rows stay as long as those of other dead runs. May be repeated.
    fn remove_node(
        &self,
        run: RunId,
        name: &str,
    ) -> impl Future<Output = Result<bool, LedgerError>> + Send;

    /// Gives the place of a database to `run`, if nobody has it, a dead run has it, or `run` has it already: this is a new claim,
    /// too. May be repeated.
    fn claim(
        &self,
        run: RunId,
        database: DatabaseName,
    ) -> impl Future<Output = Result<ClaimOutcome, LedgerError>> + Send;

    /// Gives a place back in the name of its run, if the run has it by this very claim: a request that comes late does not take a
    /// later claim away. May be repeated.
    fn release(&self, place: Place) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Returns all places, in the order of their databases. What it tells may be lost again.
    fn places(&self) -> impl Future<Output = Result<Vec<Place>, LedgerError>> + Send;

    /// Returns commits of a database after a position, in their order: at least one if there is any, and no more than fit into
    /// `max_bytes` of bodies otherwise. May be repeated.
    ///
    /// Without a `reader` nothing is counted and nobody need live: then what it tells may be lost again, or not be the newest.
    fn tail(
        &self,
        reader: Option<RunId>,
        database: DatabaseName,
        after: CommitPosition,
        max_bytes: usize,
    ) -> impl Future<Output = Result<Vec<Entry>, LedgerError>> + Send;

    /// Returns the bases of a database, the newest first. `reader` is as for [`Ledger::tail`]. May be repeated.
    fn bases(
        &self,
        reader: Option<RunId>,
        database: DatabaseName,
    ) -> impl Future<Output = Result<Vec<Base>, LedgerError>> + Send;

    /// Names a base of a database whose place `run` has. The object must be in the bucket already, and be of a state that was
    /// acknowledged. It must have the state of the commit at its position where the ledger has that commit, and must not be ahead of the
    /// last commit if there is one, else the error is [`LedgerError::NotNext`]. May be repeated.
    fn add_base(
        &self,
        run: RunId,
        base: &Base,
    ) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Deletes what the newest bases of a database whose place `run` has make needless, `kept` of which stay: the commits before the
    /// oldest of them, and all other bases, whose objects may go afterwards. The commit at its position stays, as do all commits after
    /// it: from them the database is loaded if a newer base turns out to be damaged. Returns how many commits were deleted. May be
    /// repeated.
    fn trim(
        &self,
        run: RunId,
        database: DatabaseName,
        kept: KeptBases,
    ) -> impl Future<Output = Result<u64, LedgerError>> + Send;

    /// Deletes everything of a database whose place `run` has: commits, bases and the place. Nothing is done if nobody has the
    /// place. May be repeated.
    fn forget(
        &self,
        run: RunId,
        database: DatabaseName,
    ) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Adds views that were counted to those of their deployments, under an id of this flush: another one with the same id adds
    /// nothing. Returns the views that these deployments have then. A deployment may be named twice. May be repeated, with the same id,
    /// for a day; only the ledger's own clock counts.
    fn add_visits(
        &self,
        run: RunId,
        flush: Uuid,
        counts: &[(DeploymentId, u64)],
    ) -> impl Future<Output = Result<Vec<(DeploymentId, u64)>, LedgerError>> + Send;

    /// Returns the views of deployments whose ids come after `after`, or of all, in the order of the ids: `most` at most. `reader` is as
    /// for [`Ledger::tail`]. May be repeated.
    fn visits(
        &self,
        reader: Option<RunId>,
        after: Option<DeploymentId>,
        most: usize,
    ) -> impl Future<Output = Result<Vec<(DeploymentId, u64)>, LedgerError>> + Send;

    /// Deletes the views of deployments that no longer exist. May be repeated.
    fn forget_visits(
        &self,
        run: RunId,
        gone: &[DeploymentId],
    ) -> impl Future<Output = Result<(), LedgerError>> + Send;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_have_one_name_each() {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        for (text, known) in [
            ("control", true),
            (id, true),
            ("Control", false),
            ("", false),
        ] {
            let name: Result<DatabaseName, _> = text.parse();
            assert_eq!(name.is_ok(), known, "{text}");
            if let Ok(name) = name {
                assert_eq!(name.to_string(), text);
            }
        }
    }
}
