//! Budgets of a guest's call, and their enforcement: fuel by the engine, memory by [`MemoryMeter`], wall time by [`EpochTicker`].

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use wasmtime::{Engine, ResourceLimiter};

use super::engine::CallLimits;
use super::metrics::CallUsage;
use super::values::{BudgetKind, World};

/// Interval at which the wall time of running calls is checked.
const TICK_INTERVAL: Duration = Duration::from_millis(10);

/// Ticks without a call after which the ticker sleeps: an idle process does not wake up.
const IDLE_TICKS: u32 = 100;

/// Size limit of a table. Tables hold a guest's functions, a few thousand; none grows at run time.
pub(super) const TABLE_ELEMENTS: usize = 100_000;

/// Smallest memory limit of a rendering call, in bytes: the guest starts with 3 MB, and draws a small diagram with 5 MB.
pub const MIN_RENDER_MEMORY: u64 = 8 << 20;

/// Smallest memory limit of a judging call, in bytes: the guest starts with 1 MB.
pub const MIN_GATE_MEMORY: u64 = 2 << 20;

/// A preview gets the page's budget divided by this.
const PREVIEW_DIVISOR: u32 = 4;

/// All SQL of a request may use as much as this many calls. A script of 256 KB is to be judged in one call, and a request has no more
/// than four times as much.
const CALLS_PER_REQUEST: u32 = 4;

/// Budgets of one call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CallBudgets {
    /// Units of work, about one for each instruction.
    pub fuel: u64,
    /// Bytes of the guest's memory, all included.
    pub memory_bytes: usize,
    /// Wall time from the start of the call, precise to about 10 ms.
    pub wall: Duration,
}

impl CallBudgets {
    /// Limits for rendering a page and for drawing a diagram. Measured: 1 MB of Markdown that is all code takes 2 G of fuel, 1 MB
    /// of emphasis in one paragraph more than 64 MiB; a flowchart of 100 nodes and 150 edges takes 0.6 G, one of 300 nodes and
    /// 450 edges 4.3 G and 24 MB. 5 G of fuel last about a second; the rest of the time is for busy machines.
    pub const RENDER: Self = Self {
        fuel: 5_000_000_000,
        memory_bytes: 128 << 20,
        wall: Duration::from_secs(5),
    };

    /// Limits for judging SQL.
    pub const GATE: Self = Self {
        fuel: 500_000_000,
        memory_bytes: 32 << 20,
        wall: Duration::from_secs(1),
    };
}

/// Limits that several calls share: all that make a page with its drawings, or all that judge the SQL of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SharedLimits {
    /// Units of work.
    pub fuel: u64,
    /// Processor time of the calls.
    pub processor: Duration,
    /// Wall time of the calls, without waiting for threads.
    pub wall: Duration,
}

impl SharedLimits {
    /// The default limits of a page.
    pub const PAGE: Self = Self {
        fuel: 8_000_000_000,
        processor: Duration::from_millis(1_800),
        wall: Duration::from_secs(10),
    };

    /// Returns the budget of a preview.
    #[must_use]
    pub fn for_preview(self) -> Self {
        Self {
            fuel: self.fuel / u64::from(PREVIEW_DIVISOR),
            processor: self.processor / PREVIEW_DIVISOR,
            wall: self.wall,
        }
    }

    /// Returns what one call may use of the rest of the budget.
    pub(super) fn allowance(&self, limits: CallBudgets) -> CallLimits {
        CallLimits {
            limits: CallBudgets {
                fuel: limits.fuel.min(self.fuel),
                wall: limits.wall.min(self.wall),
                ..limits
            },
            processor: self.processor,
        }
    }

    /// Subtracts the usage of a call.
    pub(super) fn charge(&mut self, used: &CallUsage) {
        self.fuel = self.fuel.saturating_sub(used.fuel);
        self.processor = self.processor.saturating_sub(used.processor);
        self.wall = self.wall.saturating_sub(used.duration);
    }

    /// Returns the exhausted budget, if there is one.
    pub(super) fn exhausted(&self) -> Option<BudgetKind> {
        if self.fuel == 0 {
            return Some(BudgetKind::Fuel);
        }
        (self.processor.is_zero() || self.wall.is_zero()).then_some(BudgetKind::Time)
    }

    /// Raises each limit to half of the `whole`'s, if it is lower.
    fn raise_to_half(&mut self, whole: &Self) {
        self.fuel = self.fuel.max(whole.fuel / 2);
        self.processor = self.processor.max(whole.processor / 2);
        self.wall = self.wall.max(whole.wall / 2);
    }
}

/// Budget that several calls share: what one has used, the next no longer has.
#[derive(Debug)]
pub struct SharedBudget {
    whole: SharedLimits,
    left: Mutex<SharedLimits>,
}

impl SharedBudget {
    pub(super) fn new(whole: SharedLimits) -> Self {
        Self {
            whole,
            left: Mutex::new(whole),
        }
    }

    /// Returns what one call may use of the rest.
    pub(super) fn allowance(&self, limits: CallBudgets) -> CallLimits {
        self.left().allowance(limits)
    }

    /// Subtracts the usage of a call.
    pub(super) fn charge(&self, used: &CallUsage) {
        self.left().charge(used);
    }

    /// Returns the exhausted part, if there is one.
    pub(super) fn exhausted(&self) -> Option<BudgetKind> {
        self.left().exhausted()
    }

    /// Makes sure that at least half of the budget is left.
    pub(super) fn raise_to_half(&self) {
        self.left().raise_to_half(&self.whole);
    }

    fn left(&self) -> MutexGuard<'_, SharedLimits> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Budgets of calls, for the guests of each world.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GuestLimits {
    /// Limits of a call that renders a page or draws a diagram.
    pub render: CallBudgets,
    /// Limits of a call that judges SQL.
    pub gate: CallBudgets,
    /// Budget of all calls that make one page.
    pub page: SharedLimits,
}

impl GuestLimits {
    /// The default limits.
    pub const DEFAULT: Self = Self {
        render: CallBudgets::RENDER,
        gate: CallBudgets::GATE,
        page: SharedLimits::PAGE,
    };

    /// Returns the budget of all SQL that is judged for one request.
    pub(super) fn judging(&self) -> SharedLimits {
        SharedLimits {
            fuel: self.gate.fuel.saturating_mul(CALLS_PER_REQUEST.into()),
            processor: self.gate.wall.saturating_mul(CALLS_PER_REQUEST),
            wall: Duration::MAX,
        }
    }

    /// Returns the limits of a world.
    #[must_use]
    pub const fn of(&self, world: World) -> &CallBudgets {
        match world {
            World::Render => &self.render,
            World::Gate => &self.gate,
        }
    }
}

/// Counts the memory of a call and refuses more than its limit.
#[derive(Debug)]
pub(super) struct MemoryMeter {
    limit: usize,
    used: usize,
    refused: bool,
}

impl MemoryMeter {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            used: 0,
            refused: false,
        }
    }

    /// Returns the bytes of all linear memories, which only grow.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Whether the guest exceeded its limit: this is then the cause of its failure.
    pub(super) fn exceeded_limit(&self) -> bool {
        self.refused
    }
}

impl ResourceLimiter for MemoryMeter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self.used.saturating_add(desired.saturating_sub(current));
        if total > self.limit {
            self.refused = true;
            // A trap is clearer: a failed allocation inside the guest would panic with a worse message.
            wasmtime::bail!("{total} bytes of memory, of {} allowed", self.limit);
        }
        self.used = total;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.refused = true;
        Err(error)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS)
    }
}

/// Thread that advances the engine's epoch, so that running calls notice their deadlines.
#[derive(Debug)]
pub(super) struct EpochTicker {
    shared: Arc<TickerState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct TickerState {
    /// Calls that run now.
    running: AtomicUsize,
    asleep: AtomicBool,
    stop: Mutex<bool>,
    wake: Condvar,
}

/// A running call: the ticker ticks while there is one.
#[derive(Debug)]
pub(super) struct RunningCallGuard<'a>(&'a TickerState);

impl EpochTicker {
    /// Starts the thread for the calls of `engine`.
    pub(super) fn start(engine: Engine) -> anyhow::Result<Self> {
        let shared = Arc::new(TickerState::default());
        let thread = thread::Builder::new()
            .name("svc-epoch".to_owned())
            .spawn({
                let shared = shared.clone();
                move || shared.tick(&engine)
            })
            .context("cannot start the thread that measures wall time")?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Marks a call as running until the guard is dropped.
    pub(super) fn start_call(&self) -> RunningCallGuard<'_> {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::SeqCst) {
            // The lock orders this after the ticker's last check, so that the wake-up is not lost.
            drop(self.shared.lock());
            self.shared.wake.notify_all();
        }
        RunningCallGuard(&self.shared)
    }
}

impl Drop for RunningCallGuard<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for EpochTicker {
    fn drop(&mut self) {
        *self.shared.lock() = true;
        self.shared.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl TickerState {
    fn lock(&self) -> std::sync::MutexGuard<'_, bool> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self, engine: &Engine) {
        let mut idle = 0;
        let mut stop = self.lock();
        while !*stop {
            if idle > IDLE_TICKS {
                self.asleep.store(true, Ordering::SeqCst);
                // A call is counted before it checks whether the ticker sleeps, so that one of them sees the other.
                while self.running.load(Ordering::SeqCst) == 0 && !*stop {
                    stop = self.wake.wait(stop).unwrap_or_else(PoisonError::into_inner);
                }
                self.asleep.store(false, Ordering::SeqCst);
                idle = 0;
                continue;
            }
            stop = self
                .wake
                .wait_timeout(stop, TICK_INTERVAL)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            engine.increment_epoch();
            idle = if self.running.load(Ordering::SeqCst) == 0 {
                idle + 1
            } else {
                0
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_charged_for_all_its_calls() {
        let mut left = SharedLimits {
            fuel: 100,
            processor: Duration::from_millis(10),
            wall: Duration::from_millis(50),
        };
        let used = |fuel, processor, wall| CallUsage {
            fuel,
            duration: Duration::from_millis(wall),
            processor: Duration::from_millis(processor),
            ..CallUsage::default()
        };
        left.charge(&used(60, 4, 20));
        assert_eq!(left.exhausted(), None);
        let allowance = left.allowance(CallBudgets::RENDER);
        assert_eq!(allowance.limits.fuel, 40);
        assert_eq!(allowance.limits.wall, Duration::from_millis(30));
        assert_eq!(allowance.processor, Duration::from_millis(6));
        let small = CallBudgets {
            fuel: 1,
            ..CallBudgets::RENDER
        };
        assert_eq!(left.allowance(small).limits.fuel, 1);
        for (used, budget) in [
            (used(40, 0, 0), BudgetKind::Fuel),
            (used(0, 7, 0), BudgetKind::Time),
            (used(0, 0, 30), BudgetKind::Time),
        ] {
            let mut left = left;
            left.charge(&used);
            assert_eq!(left.exhausted(), Some(budget));
        }
    }

    #[test]
    fn a_second_attempt_has_the_rest_and_at_least_half() {
        let limits = |fuel, millis| SharedLimits {
            fuel,
            processor: Duration::from_millis(millis),
            wall: Duration::from_millis(millis),
        };
        let budget = SharedBudget::new(limits(100, 40));
        let used = |fuel, millis| CallUsage {
            fuel,
            processor: Duration::from_millis(millis),
            duration: Duration::from_millis(millis),
            ..CallUsage::default()
        };
        budget.charge(&used(30, 10));
        budget.raise_to_half();
        assert_eq!(*budget.left(), limits(70, 30));
        budget.charge(&used(70, 5));
        assert_eq!(budget.exhausted(), Some(BudgetKind::Fuel));
        budget.raise_to_half();
        assert_eq!(*budget.left(), limits(50, 25));
    }

    #[test]
    fn memory_is_counted_over_all_memories_and_refused_beyond_the_budget() {
        let mut meter = MemoryMeter::new(1000);
        assert!(meter.memory_growing(0, 400, None).unwrap());
        assert!(meter.memory_growing(0, 300, None).unwrap());
        assert!(meter.memory_growing(400, 700, None).unwrap());
        assert_eq!(meter.used(), 1000);
        assert!(!meter.exceeded_limit());
        assert!(meter.memory_growing(300, 301, None).is_err());
        assert!(meter.exceeded_limit());
        assert_eq!(meter.used(), 1000);
    }

    #[test]
    fn the_ticker_stops_when_it_is_dropped_asleep_or_awake() {
        let engine = Engine::new(wasmtime::Config::new().gc_support(false)).unwrap();
        let ticker = EpochTicker::start(engine.clone()).unwrap();
        drop(ticker.start_call());
        drop(ticker);
        let ticker = EpochTicker::start(engine).unwrap();
        while !ticker.shared.asleep.load(Ordering::SeqCst) {
            thread::sleep(TICK_INTERVAL);
        }
        drop(ticker.start_call());
        drop(ticker);
    }
}
