//! Queue of a lane, by flow: the flow that has used less thread time comes first.
//!
//! The algorithm is start-time fair queueing. A flow is charged the time for which its jobs hold threads. A flow that begins to
//! wait is charged at least as much as the last one that was started, so that nobody saves up time. A page of twenty small
//! drawings does not wait for twenty large ones of another client, however they are spread over requests.
//!
//! Owners go first, but cannot starve strangers: [`StrangersTurn`] gives these a share of the threads that serve everybody.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use svc_base::flow::{CallerClass, CallerFlow};

/// Maximum of waiting jobs of one flow: of a client without a credential, and of any other.
const MAX_WAITING_PER_FLOW: (usize, usize) = (64, 256);
/// Number of idle flows whose usage is remembered.
const MAX_IDLE_FLOWS: usize = 1024;
/// Thread time of owners, in seconds, after which a stranger who waits goes first.
const STRANGERS_PATIENCE: f64 = 1.0;
/// Thread time of owners that follows a time of strangers, as a multiple of it: strangers get up to about a quarter.
const STRANGERS_COST: f64 = 3.0;
/// Longest thread time, in seconds, that strangers are charged in advance.
const MAX_STRANGERS_DEBT: f64 = 4.0;

/// Order of the flows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FlowOrder {
    /// By class, and within a class by usage.
    ByClass,
    /// By usage alone.
    ByUsage,
}

/// Flows whose jobs a thread runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ServedFlows {
    /// All of them.
    All,
    /// Only callers with a credential, so that others cannot hold all threads.
    Owners,
}

/// Bounds of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct FairQueueSettings {
    /// Threads that serve everybody; one more serves owners.
    pub(super) threads: usize,
    /// Maximum of waiting jobs of one class.
    pub(super) waiting: usize,
    /// Order of the flows.
    pub(super) order: FlowOrder,
}

/// Waiting jobs, and the usage of the flows that they belong to.
#[derive(Debug)]
pub(super) struct FairQueue<J> {
    bounds: FairQueueSettings,
    flows: HashMap<CallerFlow, FlowBacklog<J>>,
    waiting: [usize; CallerClass::ALL.len()],
    previews_running: usize,
    strangers_turn: StrangersTurn,
    /// Usage of the flow that was started last, at that time, for each rank.
    floors: [Duration; CallerClass::ALL.len()],
    /// Number of the next job.
    next: u64,
}

#[derive(Debug)]
struct FlowBacklog<J> {
    jobs: VecDeque<(u64, J)>,
    /// Number of jobs that hold a thread.
    running: usize,
    /// Total time for which jobs have held a thread.
    used: Duration,
}

impl<J> FlowBacklog<J> {
    fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.running == 0
    }
}

/// Balance of owners and strangers at the threads that serve both, in seconds: owners' time while strangers wait is a credit of
/// strangers, and strangers' time while owners wait is charged to them.
#[derive(Debug, Default)]
struct StrangersTurn(f64);

impl StrangersTurn {
    /// Whether the next stranger goes before owners.
    fn is_now(&self) -> bool {
        self.0 >= STRANGERS_PATIENCE
    }

    /// Adds to the balance. It is bounded, so that nobody saves up turns or pays for long ago.
    fn add(&mut self, seconds: f64) {
        self.0 = (self.0 + seconds).clamp(-MAX_STRANGERS_DEBT, STRANGERS_PATIENCE);
    }
}

impl<J> FairQueue<J> {
    pub(super) fn new(bounds: FairQueueSettings) -> Self {
        Self {
            bounds,
            flows: HashMap::new(),
            waiting: Default::default(),
            previews_running: 0,
            strangers_turn: StrangersTurn::default(),
            floors: Default::default(),
            next: 0,
        }
    }

    /// Adds a job; returns its number, or `None` if too many wait.
    pub(super) fn add(&mut self, flow: CallerFlow, job: J) -> Option<u64> {
        let class = flow.class();
        // The second half is kept for flows without waiting jobs: a few greedy flows cannot keep others out.
        let waits = self
            .flows
            .get(&flow)
            .is_some_and(|backlog| !backlog.jobs.is_empty());
        let room = match waits {
            true => (self.bounds.waiting / 2).max(1),
            false => self.bounds.waiting,
        };
        if self.waiting[class as usize] >= room {
            return None;
        }
        self.forget_idle();
        let floor = self.floors[self.class_rank(class)];
        let most = match class {
            CallerClass::Stranger | CallerClass::Preview => MAX_WAITING_PER_FLOW.0,
            CallerClass::Owner | CallerClass::Server => MAX_WAITING_PER_FLOW.1,
        };
        let backlog = self.flows.entry(flow).or_insert(FlowBacklog {
            jobs: VecDeque::new(),
            running: 0,
            used: floor,
        });
        if backlog.jobs.len() >= most {
            return None;
        }
        if backlog.is_idle() {
            backlog.used = backlog.used.max(floor);
        }
        let number = self.next;
        self.next += 1;
        backlog.jobs.push_back((number, job));
        self.waiting[class as usize] += 1;
        Some(number)
    }

    /// Removes a waiting job, which will not run.
    pub(super) fn remove(&mut self, flow: &CallerFlow, number: u64) -> Option<J> {
        let backlog = self.flows.get_mut(flow)?;
        let place = backlog.jobs.iter().position(|(at, _)| *at == number)?;
        let (_, job) = backlog.jobs.remove(place)?;
        self.waiting[flow.class() as usize] -= 1;
        Some(job)
    }

    /// Takes the next job for a thread; [`FairQueue::release_thread`] returns the thread.
    pub(super) fn take(&mut self, serves: ServedFlows) -> Option<(CallerFlow, J)> {
        let order = |(flow, backlog): &(&CallerFlow, &FlowBacklog<J>)| {
            let first = backlog.jobs.front().map_or(u64::MAX, |(number, _)| *number);
            (self.place(flow.class()), backlog.used, first)
        };
        let may_start = |(flow, backlog): &(&CallerFlow, &FlowBacklog<J>)| {
            self.may_start(flow, backlog, serves)
        };
        let next = self.flows.iter().filter(may_start).min_by_key(order);
        let flow = next?.0.clone();
        let rank = self.class_rank(flow.class());
        if flow.class() == CallerClass::Stranger && self.strangers_turn.is_now() {
            self.strangers_turn.add(-STRANGERS_PATIENCE);
        }
        let backlog = self.flows.get_mut(&flow)?;
        let (_, job) = backlog.jobs.pop_front()?;
        backlog.running += 1;
        self.floors[rank] = self.floors[rank].max(backlog.used);
        self.waiting[flow.class() as usize] -= 1;
        self.previews_running += usize::from(flow.class() == CallerClass::Preview);
        Some((flow, job))
    }

    /// Returns the thread of a job, which held it for `held`. `serves` is the thread's, as in [`FairQueue::take`].
    pub(super) fn release_thread(
        &mut self,
        serves: ServedFlows,
        flow: &CallerFlow,
        held: Duration,
    ) {
        if self.bounds.order == FlowOrder::ByClass && serves == ServedFlows::All {
            match flow.class() {
                CallerClass::Owner if self.waiting(CallerClass::Stranger) > 0 => {
                    self.strangers_turn.add(held.as_secs_f64());
                }
                CallerClass::Stranger if self.waiting(CallerClass::Owner) > 0 => {
                    self.strangers_turn
                        .add(-STRANGERS_COST * held.as_secs_f64());
                }
                _ => {}
            }
        }
        let floor = self.floors[self.class_rank(flow.class())];
        let Some(backlog) = self.flows.get_mut(flow) else {
            return;
        };
        backlog.running -= 1;
        backlog.used += held;
        self.previews_running -= usize::from(flow.class() == CallerClass::Preview);
        if backlog.is_idle() && backlog.used <= floor {
            self.flows.remove(flow);
        }
    }

    /// Removes and returns all waiting jobs.
    pub(super) fn drain(&mut self) -> Vec<J> {
        self.waiting = Default::default();
        let backlogs = self.flows.values_mut();
        backlogs
            .flat_map(|backlog| std::mem::take(&mut backlog.jobs))
            .map(|(_, job)| job)
            .collect()
    }

    /// Counts the waiting jobs of a class.
    pub(super) fn waiting(&self, class: CallerClass) -> usize {
        self.waiting[class as usize]
    }

    /// Whether no job waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.iter().all(|waiting| *waiting == 0)
    }

    fn may_start(&self, flow: &CallerFlow, backlog: &FlowBacklog<J>, serves: ServedFlows) -> bool {
        let threads = self.bounds.threads;
        let half = (threads / 2).max(1);
        let class = flow.class();
        let share = match class {
            // One more thread serves all owners.
            CallerClass::Owner | CallerClass::Server => threads,
            CallerClass::Stranger | CallerClass::Preview => half,
        };
        let is_served = match serves {
            ServedFlows::All => true,
            // Never a second job of a flow: an owner with many jobs leaves this thread to the others.
            ServedFlows::Owners => class == CallerClass::Owner && backlog.running == 0,
        };
        let is_full = class == CallerClass::Preview && self.previews_running >= half;
        !backlog.jobs.is_empty() && backlog.running < share && is_served && !is_full
    }

    /// Returns the place of a class among those that wait: its rank, but before all others if it is the strangers' turn.
    fn place(&self, class: CallerClass) -> usize {
        match class {
            CallerClass::Stranger if self.strangers_turn.is_now() => 0,
            _ => self.class_rank(class) + 1,
        }
    }

    fn class_rank(&self, class: CallerClass) -> usize {
        match self.bounds.order {
            FlowOrder::ByClass => class as usize,
            FlowOrder::ByUsage => 0,
        }
    }

    /// Forgets the usage of idle flows if there are too many.
    fn forget_idle(&mut self) {
        if self.flows.len() > MAX_IDLE_FLOWS {
            self.flows.retain(|_, backlog| !backlog.is_idle());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MOMENT: Duration = Duration::from_millis(10);

    fn queue(threads: usize, order: FlowOrder) -> FairQueue<u32> {
        FairQueue::new(FairQueueSettings {
            threads,
            waiting: 100,
            order,
        })
    }

    fn owner(name: &str) -> CallerFlow {
        CallerFlow::Owner(name.into())
    }

    fn stranger(number: u8) -> CallerFlow {
        CallerFlow::stranger([192, 0, 2, number].into())
    }

    fn taken(queue: &mut FairQueue<u32>) -> Option<u32> {
        queue.take(ServedFlows::All).map(|(_, job)| job)
    }

    #[test]
    fn owners_come_before_strangers_and_previews_last() {
        let mut queue = queue(4, FlowOrder::ByClass);
        queue.add(stranger(1).preview(), 4);
        queue.add(CallerFlow::Server, 3);
        queue.add(stranger(1), 2);
        queue.add(owner("a"), 1);
        let all = [(); 4].map(|()| taken(&mut queue).unwrap());
        assert_eq!(all, [1, 2, 3, 4]);
        assert!(queue.is_empty());
    }

    #[test]
    fn by_use_no_class_comes_first() {
        let mut queue = queue(4, FlowOrder::ByUsage);
        queue.add(owner("a"), 1);
        taken(&mut queue);
        queue.release_thread(ServedFlows::All, &owner("a"), SECOND);
        queue.add(owner("a"), 2);
        queue.add(stranger(1), 3);
        assert_eq!(taken(&mut queue), Some(3));
    }

    #[test]
    fn who_has_used_less_comes_first_however_work_is_spread_over_requests() {
        let mut queue = queue(1, FlowOrder::ByClass);
        let (greedy, modest) = (stranger(1), stranger(2));
        queue.add(greedy.clone(), 1);
        assert_eq!(taken(&mut queue), Some(1));
        queue.add(modest.clone(), 10);
        queue.add(greedy.clone(), 2);
        queue.release_thread(ServedFlows::All, &greedy, SECOND);
        // Each small job comes to the queue only after the one before it, as the drawings of a page do.
        for small in 10..20 {
            assert_eq!(taken(&mut queue), Some(small));
            queue.release_thread(ServedFlows::All, &modest, MOMENT);
            queue.add(modest.clone(), small + 1);
        }
    }

    #[test]
    fn nobody_saves_up_turns() {
        let mut queue = queue(1, FlowOrder::ByClass);
        let (busy, late) = (stranger(1), stranger(2));
        for job in 0..10 {
            queue.add(busy.clone(), job);
            assert_eq!(taken(&mut queue), Some(job));
            queue.release_thread(ServedFlows::All, &busy, SECOND);
        }
        // Ten seconds of another flow are no credit of a new one: the two take turns.
        for job in 0..2 {
            queue.add(late.clone(), 20 + job);
            queue.add(busy.clone(), 30 + job);
        }
        let mut order = Vec::new();
        for _ in 0..4 {
            let (flow, job) = queue.take(ServedFlows::All).unwrap();
            queue.release_thread(ServedFlows::All, &flow, SECOND);
            order.push(job);
        }
        assert_eq!(order, [20, 30, 21, 31]);
    }

    #[test]
    fn no_stranger_holds_more_than_half_and_the_thread_of_owners_is_theirs() {
        let mut queue = queue(4, FlowOrder::ByClass);
        for job in 0..4 {
            queue.add(stranger(1), job);
        }
        assert!(taken(&mut queue).is_some() && taken(&mut queue).is_some());
        assert_eq!(taken(&mut queue), None, "it has its share");
        queue.add(stranger(2), 10);
        assert!(queue.take(ServedFlows::Owners).is_none());
        queue.add(owner("a"), 20);
        assert_eq!(queue.take(ServedFlows::Owners), Some((owner("a"), 20)));
        assert_eq!(taken(&mut queue), Some(10));
        queue.release_thread(ServedFlows::All, &stranger(1), MOMENT);
        assert_eq!(taken(&mut queue), Some(2));
    }

    #[test]
    fn an_owner_with_many_jobs_leaves_the_thread_of_owners_to_the_others() {
        let mut queue = queue(2, FlowOrder::ByClass);
        for job in 0..4 {
            queue.add(owner("greedy"), job);
        }
        queue.add(stranger(1), 5);
        assert!(taken(&mut queue).is_some());
        assert!(queue.take(ServedFlows::Owners).is_none());
        queue.add(owner("modest"), 10);
        assert_eq!(queue.take(ServedFlows::Owners), Some((owner("modest"), 10)));
    }

    #[test]
    fn strangers_have_a_share_however_many_owners_work_and_owners_have_most() {
        let mut queue = queue(2, FlowOrder::ByClass);
        let mut running = VecDeque::new();
        let (mut order, mut share) = (Vec::new(), 0);
        for job in 0..200 {
            // Two owners and two strangers always have work.
            for flow in [owner("a"), owner("b"), stranger(1), stranger(2)] {
                let waits = queue
                    .flows
                    .get(&flow)
                    .is_some_and(|known| !known.jobs.is_empty());
                if !waits {
                    queue.add(flow, job);
                }
            }
            let (flow, _) = queue.take(ServedFlows::All).unwrap();
            order.push(flow.class());
            share += u32::from(flow.class() == CallerClass::Stranger);
            running.push_back(flow);
            if running.len() == 2 {
                let done = running.pop_front().unwrap();
                queue.release_thread(ServedFlows::All, &done, SECOND / 4);
            }
        }
        // Four jobs make the second of patience, and one more is started before the last of them ends.
        let first = order
            .iter()
            .position(|class| *class == CallerClass::Stranger);
        assert_eq!(first, Some(5), "{order:?}");
        assert!((20..=50).contains(&share), "{share} of 200");
    }

    #[test]
    fn the_thread_of_owners_brings_strangers_no_turn() {
        let mut queue = queue(1, FlowOrder::ByClass);
        queue.add(stranger(1), 0);
        for job in 1..10 {
            queue.add(owner("a"), job);
            assert!(queue.take(ServedFlows::Owners).is_some());
            queue.release_thread(ServedFlows::Owners, &owner("a"), SECOND);
        }
        queue.add(owner("b"), 10);
        assert_eq!(taken(&mut queue), Some(10));
    }

    #[test]
    fn all_previews_together_hold_half_of_the_threads() {
        let mut queue = queue(2, FlowOrder::ByClass);
        for client in 1..=3 {
            queue.add(stranger(client).preview(), u32::from(client));
        }
        assert!(taken(&mut queue).is_some());
        assert_eq!(taken(&mut queue), None);
        queue.add(stranger(4), 10);
        assert_eq!(taken(&mut queue), Some(10));
    }

    #[test]
    fn a_flow_and_a_class_fill_up_alone() {
        let mut queue = queue(1, FlowOrder::ByClass);
        let mut fill = |number: u8| {
            let added = (0..).take_while(|_| queue.add(stranger(number), 0).is_some());
            added.count()
        };
        assert_eq!(
            fill(1),
            50.min(MAX_WAITING_PER_FLOW.0),
            "half of the class, or a flow's most"
        );
        for other in 2..=50 {
            let added = fill(other);
            assert!(added >= 1, "{other} is kept out by those before");
        }
        let full = (51..=200).filter(|number| fill(*number) == 0).count();
        assert!(full > 0, "the class is full at last");
        assert!(queue.add(owner("a"), 0).is_some());
    }

    #[test]
    fn what_is_removed_never_runs_and_idle_flows_are_forgotten() {
        let mut queue = queue(1, FlowOrder::ByClass);
        let number = queue.add(stranger(1), 1).unwrap();
        assert_eq!(queue.remove(&stranger(1), number), Some(1));
        assert_eq!(queue.remove(&stranger(1), number), None);
        assert_eq!(taken(&mut queue), None);
        for client in 0..=u8::MAX {
            for network in 0..8 {
                let flow = CallerFlow::stranger([10, 0, network, client].into());
                queue.add(flow.clone(), 0).unwrap();
                taken(&mut queue).unwrap();
                queue.release_thread(ServedFlows::All, &flow, SECOND);
            }
        }
        assert!(
            queue.flows.len() <= MAX_IDLE_FLOWS + 1,
            "{}",
            queue.flows.len()
        );
    }
}
