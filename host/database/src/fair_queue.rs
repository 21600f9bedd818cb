//! Queue of a lane, in which workspaces take turns, and within each its databases. Each has a bound of threads.

use std::collections::{HashMap, VecDeque};

use svc_base::ids::{BackendId, WorkspaceId};

/// The most jobs of one database that may wait in a lane.
const MAX_WAITING_JOBS: usize = 256;

/// A queued job.
pub(super) type LaneJob = Box<dyn FnOnce() + Send>;

/// Owner of jobs in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobOwner {
    pub(super) workspace: Option<WorkspaceId>,
    pub(super) database: BackendId,
}

/// The most threads of a lane that one workspace and one database may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadLimits {
    pub(super) workspace: usize,
    pub(super) database: usize,
}

impl ThreadLimits {
    /// Shares of a long lane: half of the threads for a workspace, and half of that for a database.
    pub(super) fn for_long_work(threads: usize) -> Self {
        Self {
            workspace: (threads / 2).max(1),
            database: (threads / 4).max(1),
        }
    }
}

/// Key of a turn: a workspace, or a database without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FairTurnKey {
    Workspace(WorkspaceId),
    Database(BackendId),
}

impl JobOwner {
    fn key(&self) -> FairTurnKey {
        self.workspace
            .map_or(FairTurnKey::Database(self.database), FairTurnKey::Workspace)
    }
}

/// Queue of all workspaces, which take turns.
#[derive(Default)]
pub(super) struct WorkspaceFairQueue {
    by_key: HashMap<FairTurnKey, WorkspaceQueue>,
    /// Workspaces with waiting jobs, in the order of their turns.
    turns: VecDeque<FairTurnKey>,
}

/// Queue of one workspace, by database.
#[derive(Default)]
struct WorkspaceQueue {
    waiting: HashMap<BackendId, VecDeque<(JobOwner, LaneJob)>>,
    running: HashMap<BackendId, usize>,
    /// Databases with waiting jobs, in the order of their turns.
    turns: VecDeque<BackendId>,
}

impl WorkspaceQueue {
    fn running_count(&self) -> usize {
        self.running.values().sum()
    }

    /// Index of the next database that is below its share of threads.
    fn next_index(&self, share: ThreadLimits) -> Option<usize> {
        if self.running_count() >= share.workspace {
            return None;
        }
        let free = |id: &BackendId| self.running.get(id).is_none_or(|n| *n < share.database);
        self.turns.iter().position(free)
    }

    /// Takes the next job, of the database whose turn it is.
    fn take(&mut self, share: ThreadLimits) -> Option<(JobOwner, LaneJob)> {
        let index = self.next_index(share)?;
        let id = self.turns.remove(index)?;
        let queue = self.waiting.get_mut(&id)?;
        let job = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting.remove(&id);
        } else {
            self.turns.push_back(id);
        }
        *self.running.entry(id).or_default() += 1;
        Some(job)
    }
}

impl WorkspaceFairQueue {
    /// Adds a job; returns false if the database has too many waiting. A job with `first` is always added, at the front.
    pub(super) fn push(&mut self, owner: JobOwner, job: LaneJob, first: bool) -> bool {
        let key = owner.key();
        let line = self.by_key.entry(key).or_default();
        let queue = line.waiting.entry(owner.database).or_default();
        if queue.len() >= MAX_WAITING_JOBS && !first {
            return false;
        }
        if line.turns.is_empty() {
            self.turns.push_back(key);
        }
        if queue.is_empty() {
            line.turns.push_back(owner.database);
        }
        if first {
            queue.push_front((owner, job));
        } else {
            queue.push_back((owner, job));
        }
        true
    }

    /// Index of the next workspace with a job that may run.
    fn next_index(&self, share: ThreadLimits) -> Option<usize> {
        let may = |key: &FairTurnKey| {
            let line = self.by_key.get(key);
            line.is_some_and(|line| line.next_index(share).is_some())
        };
        self.turns.iter().position(may)
    }

    /// Whether a job may run now.
    pub(super) fn has_work(&self, share: ThreadLimits) -> bool {
        self.next_index(share).is_some()
    }

    /// Takes the next job, of the workspace whose turn it is.
    pub(super) fn take(&mut self, share: ThreadLimits) -> Option<(JobOwner, LaneJob)> {
        let index = self.next_index(share)?;
        let key = self.turns.remove(index)?;
        let line = self.by_key.get_mut(&key)?;
        let job = line.take(share)?;
        if !line.turns.is_empty() {
            self.turns.push_back(key);
        }
        Some(job)
    }

    pub(super) fn finish(&mut self, owner: JobOwner) {
        let key = owner.key();
        let Some(line) = self.by_key.get_mut(&key) else {
            return;
        };
        if let Some(running) = line.running.get_mut(&owner.database) {
            *running -= 1;
            if *running == 0 {
                line.running.remove(&owner.database);
            }
        }
        if line.running.is_empty() && line.waiting.is_empty() {
            self.by_key.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::{Clock, Timestamp};
    use svc_base::random::Random;

    const ONE: ThreadLimits = ThreadLimits {
        workspace: 2,
        database: 1,
    };

    fn owners<const N: usize>() -> [JobOwner; N] {
        let clock = Clock::manual(Timestamp(0));
        let random = Random::system();
        [(); N].map(|()| JobOwner {
            workspace: Some(WorkspaceId::new(&clock, &random).unwrap()),
            database: BackendId::new(&clock, &random).unwrap(),
        })
    }

    fn push(shares: &mut WorkspaceFairQueue, owner: JobOwner) -> bool {
        shares.push(owner, Box::new(|| {}), false)
    }

    fn taken(shares: &mut WorkspaceFairQueue) -> Option<JobOwner> {
        shares.take(ONE).map(|(owner, _)| owner)
    }

    #[test]
    fn shares_are_taken_in_turn_and_bounded() {
        let [greedy, modest] = owners();
        let mut shares = WorkspaceFairQueue::default();
        for _ in 0..MAX_WAITING_JOBS {
            assert!(push(&mut shares, greedy));
        }
        assert!(!push(&mut shares, greedy));
        assert!(push(&mut shares, modest));
        assert_eq!(taken(&mut shares), Some(greedy));
        assert_eq!(taken(&mut shares), Some(modest));
        assert_eq!(taken(&mut shares), None);
        shares.finish(greedy);
        assert_eq!(taken(&mut shares), Some(greedy));
    }

    #[test]
    fn a_workspace_holds_its_share_however_many_databases_it_has() {
        let [one, two, three, other] = owners();
        let same = |owner: JobOwner| JobOwner {
            workspace: one.workspace,
            ..owner
        };
        let (two, three) = (same(two), same(three));
        let mut shares = WorkspaceFairQueue::default();
        for owner in [one, one, two, three, other] {
            assert!(push(&mut shares, owner));
        }
        assert_eq!(taken(&mut shares), Some(one));
        assert_eq!(taken(&mut shares), Some(other));
        // One database has its share, and the next of its workspace follows.
        assert_eq!(taken(&mut shares), Some(two));
        // The workspace has its share.
        assert_eq!(taken(&mut shares), None);
        shares.finish(two);
        assert_eq!(taken(&mut shares), Some(three));
        shares.finish(one);
        assert_eq!(taken(&mut shares), Some(one));
        for owner in [one, three, other] {
            shares.finish(owner);
        }
        assert!(shares.by_key.is_empty() && shares.turns.is_empty());
    }

    #[test]
    fn what_nobody_owns_is_a_holder_of_its_own() {
        let [one, two] = owners().map(|owner| JobOwner {
            workspace: None,
            ..owner
        });
        let mut shares = WorkspaceFairQueue::default();
        assert!(push(&mut shares, one) && push(&mut shares, two));
        assert_eq!(taken(&mut shares), Some(one));
        assert_eq!(taken(&mut shares), Some(two));
    }
}
