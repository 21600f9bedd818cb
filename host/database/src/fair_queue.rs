//! Work that waits in a lane, by workspace and by database, taken in turn and in shares.

use std::collections::{HashMap, VecDeque};

use svc_base::ids::{BackendId, WorkspaceId};

/// How many pieces of work of one database may wait in a lane.
const MAX_WAITING: usize = 256;

/// A piece of work.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// Owner of work in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobOwner {
    pub(super) workspace: Option<WorkspaceId>,
    pub(super) database: BackendId,
}

/// How many threads of a lane one may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadShare {
    pub(super) workspace: usize,
    pub(super) database: usize,
}

impl ThreadShare {
    /// Of a lane for long work: half of the threads, and half of that.
    pub(super) fn for_long_work(threads: usize) -> Self {
        Self {
            workspace: (threads / 2).max(1),
            database: (threads / 4).max(1),
        }
    }
}

/// Holder of a turn in a lane: a workspace, or a database that is known to be nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum QueueKey {
    Workspace(WorkspaceId),
    Database(BackendId),
}

impl JobOwner {
    fn key(&self) -> QueueKey {
        self.workspace
            .map_or(QueueKey::Database(self.database), QueueKey::Workspace)
    }
}

/// Work by workspace, taken in turn.
#[derive(Default)]
pub(super) struct FairQueue {
    by_key: HashMap<QueueKey, WorkspaceQueue>,
    /// Those whose work waits.
    turns: VecDeque<QueueKey>,
}

/// The work of a workspace, by database.
#[derive(Default)]
struct WorkspaceQueue {
    waiting: HashMap<BackendId, VecDeque<(JobOwner, Job)>>,
    running: HashMap<BackendId, usize>,
    /// Databases whose work waits.
    turns: VecDeque<BackendId>,
}

impl WorkspaceQueue {
    fn running_count(&self) -> usize {
        self.running.values().sum()
    }

    /// Index of the next database that is below its share of threads.
    fn next_index(&self, share: ThreadShare) -> Option<usize> {
        if self.running_count() >= share.workspace {
            return None;
        }
        let free = |id: &BackendId| self.running.get(id).is_none_or(|n| *n < share.database);
        self.turns.iter().position(free)
    }

    /// The next job of the database whose turn it is.
    fn take(&mut self, share: ThreadShare) -> Option<(JobOwner, Job)> {
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

impl FairQueue {
    /// Adds work of a database, unless too much of it waits; what comes first is always taken in.
    pub(super) fn push(&mut self, owner: JobOwner, job: Job, first: bool) -> bool {
        let key = owner.key();
        let line = self.by_key.entry(key).or_default();
        let queue = line.waiting.entry(owner.database).or_default();
        if queue.len() >= MAX_WAITING && !first {
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

    /// Index of the next workspace that may take work.
    fn next_index(&self, share: ThreadShare) -> Option<usize> {
        let may = |key: &QueueKey| {
            let line = self.by_key.get(key);
            line.is_some_and(|line| line.next_index(share).is_some())
        };
        self.turns.iter().position(may)
    }

    /// Whether there is work to take.
    pub(super) fn has_work(&self, share: ThreadShare) -> bool {
        self.next_index(share).is_some()
    }

    /// The next job of the workspace whose turn it is.
    pub(super) fn take(&mut self, share: ThreadShare) -> Option<(JobOwner, Job)> {
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

    const ONE: ThreadShare = ThreadShare {
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

    fn push(shares: &mut FairQueue, owner: JobOwner) -> bool {
        shares.push(owner, Box::new(|| {}), false)
    }

    fn taken(shares: &mut FairQueue) -> Option<JobOwner> {
        shares.take(ONE).map(|(owner, _)| owner)
    }

    #[test]
    fn shares_are_taken_in_turn_and_bounded() {
        let [greedy, modest] = owners();
        let mut shares = FairQueue::default();
        for _ in 0..MAX_WAITING {
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
        let mut shares = FairQueue::default();
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
        let mut shares = FairQueue::default();
        assert!(push(&mut shares, one) && push(&mut shares, two));
        assert_eq!(taken(&mut shares), Some(one));
        assert_eq!(taken(&mut shares), Some(two));
    }
}
