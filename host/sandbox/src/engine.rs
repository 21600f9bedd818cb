//! The engine that runs guests, and single calls in instances of their own.

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;
use prometheus_client::metrics::gauge::Gauge;
use wasmtime::component::Linker;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Store,
    Strategy, Trap, UpdateDeadline, WasmBacktraceDetails,
};

use super::cache::CompilerJob;
use super::compiler::{CompilerCores, OptimizationTier};
use super::lane::JobCancellation;
use super::limits::{CallBudgets, EpochTicker, GuestLimits, SharedLimits, TABLE_ELEMENTS};
use super::metrics::{CallUsage, Metrics};
use super::tally::CallTally;
use super::values::{BudgetKind, GuestDigest, World};
use super::wasi::{self, CallStoreState};
use svc_base::{Stopwatch, ThreadCpuStopwatch};

/// Address space of one linear memory, in bytes. With the full 32-bit range reserved, compiled code needs no bounds checks. It is
/// not memory, and does not depend on the limits, so that compiled code works with all limits.
const MEMORY_RESERVATION: u64 = 4 << 30;

/// Inaccessible address space after a linear memory, in bytes.
const MEMORY_GUARD: u64 = 32 << 20;

/// Bytes of a memory or table that stay mapped between calls and are zeroed there (the pooling allocator's `keep_resident`).
/// `PAGEMAP_SCAN` would find the pages a call has written more cheaply, but wasmtime 48 takes a page that was swapped out or is
/// being moved for an unwritten one, and the next call would see its content.
const MEMORY_KEEP_RESIDENT: usize = 0;
const TABLE_KEEP_RESIDENT: usize = 0;

/// Number of linear memories and tables of a guest, over all its modules. A guest compiled from Rust has one; a composition of
/// components, such as an interpreter, has one for each. The memories share the budget.
const MAX_MEMORIES: u32 = 4;
const MAX_TABLES: u32 = 4;

/// Largest distance below its memory at which a guest's stack overflow is recognised, in bytes.
const MAX_FRAME_BYTES: u64 = 16 << 20;

/// Size of the wasm stack of a call, in bytes.
const WASM_STACK_BYTES: usize = 1 << 20;

/// Bytes that a guest may return beyond its page or verdict: names, positions, the list itself.
const EXTRA_RESULT_BYTES: usize = 16 << 20;

/// Function of a guest: the label in metrics.
#[derive(Clone, Copy, Debug)]
pub(super) enum GuestFunction {
    Render,
    Draw,
    Judge,
    Recognise,
    Clean,
    Resize,
    Check,
}

impl GuestFunction {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Render => "render",
            Self::Draw => "draw",
            Self::Judge => "judge",
            Self::Recognise => "recognise",
            Self::Clean => "clean",
            Self::Resize => "resize",
            Self::Check => "check",
        }
    }

    /// Returns the world whose guest has the function.
    pub(super) const fn world(self) -> World {
        match self {
            Self::Render
            | Self::Draw
            | Self::Judge
            | Self::Recognise
            | Self::Clean
            | Self::Resize => World::Render,
            Self::Check => World::Gate,
        }
    }
}

/// Counts an existing instance in the gauge.
struct InstanceGaugeGuard<'a>(&'a Gauge);

impl<'a> InstanceGaugeGuard<'a> {
    fn new(gauge: &'a Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for InstanceGaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Reason why a call has no result.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// It ran out of a budget.
    Budget(BudgetKind),
    /// The caller no longer waits for the result.
    Abandoned,
    /// The guest failed otherwise. The text is for the log.
    Broken(anyhow::Error),
}

/// Outcome and usage of a call.
#[derive(Debug)]
pub(super) struct CallResult<T> {
    pub(super) outcome: Result<T, CallFailure>,
    pub(super) used: CallUsage,
}

/// Bounds of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallLimits {
    pub(super) limits: CallBudgets,
    /// Processor time of its thread.
    pub(super) processor: Duration,
}

impl From<CallBudgets> for CallLimits {
    /// Allows everything within the limits of a call.
    fn from(limits: CallBudgets) -> Self {
        Self {
            limits,
            processor: Duration::MAX,
        }
    }
}

/// Error that ends a call whose caller has gone away.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("nobody waits for its result any more")]
struct CallerGone;

/// Engine with everything that a call needs; it compiles and runs code of one tier.
pub(super) struct GuestEngine {
    tier: OptimizationTier,
    instances: usize,
    engine: Engine,
    linker: Linker<CallStoreState>,
    limits: GuestLimits,
    ticker: EpochTicker,
    metrics: Metrics,
}

impl fmt::Debug for GuestEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestEngine").finish_non_exhaustive()
    }
}

impl GuestEngine {
    /// Creates an engine for at most `instances` calls at once.
    pub(super) fn new(
        tier: OptimizationTier,
        instances: usize,
        limits: GuestLimits,
        metrics: Metrics,
    ) -> anyhow::Result<Self> {
        let memory_bytes = limits.render.memory_bytes.max(limits.gate.memory_bytes);
        let pool = instance_pool(instances, memory_bytes)?;
        let engine = build_engine(engine_config(tier).allocation_strategy(pool))?;
        let mut linker = Linker::new(&engine);
        wasi::add_to_linker(&mut linker)?;
        let ticker = EpochTicker::start(engine.clone())?;
        Ok(Self {
            tier,
            instances,
            engine,
            linker,
            limits,
            ticker,
            metrics,
        })
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Creates an engine of another tier with the same budgets and the same number of calls.
    pub(super) fn with_tier(&self, tier: OptimizationTier) -> anyhow::Result<Self> {
        Self::new(tier, self.instances, self.limits, self.metrics.clone())
    }

    pub(super) fn tier(&self) -> OptimizationTier {
        self.tier
    }

    /// Describes how code for this engine is compiled.
    pub(super) fn job(&self, cores: CompilerCores) -> CompilerJob<'_> {
        CompilerJob {
            tier: self.tier,
            cores,
            engine: &self.engine,
        }
    }

    pub(super) fn linker(&self) -> &Linker<CallStoreState> {
        &self.linker
    }

    /// Returns the budgets of a call of a world's guest.
    pub(super) fn limits(&self, world: World) -> &CallBudgets {
        self.limits.of(world)
    }

    /// Returns the budget of a page with all its drawings.
    pub(super) fn page_limits(&self) -> SharedLimits {
        self.limits.page
    }

    /// Returns the budget of all SQL that is judged for one request.
    pub(super) fn judging_limits(&self) -> SharedLimits {
        self.limits.judging()
    }

    /// Creates a store for the calling thread. Its call ends when the allowance is used up, or `stop` is set.
    fn store(
        &self,
        allowance: CallLimits,
        stop: JobCancellation,
    ) -> wasmtime::Result<Store<CallStoreState>> {
        let CallLimits { limits, processor } = allowance;
        let mut store = Store::new(&self.engine, CallStoreState::new(limits.memory_bytes));
        store.limiter(|state| &mut state.meter);
        let (wall, spent) = (Stopwatch::start(), ThreadCpuStopwatch::start());
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |_| {
            if stop.is_cancelled() {
                return Err(CallerGone.into());
            }
            if wall.elapsed() >= limits.wall || spent.elapsed() >= processor {
                return Ok(UpdateDeadline::Interrupt);
            }
            Ok(UpdateDeadline::Continue(1))
        });
        store.set_hostcall_fuel(limits.memory_bytes.saturating_add(EXTRA_RESULT_BYTES));
        store.set_fuel(limits.fuel)?;
        Ok(store)
    }

    /// Creates a store with the budget of a world's guest and runs `body` in it; nothing is counted.
    ///
    /// # Errors
    ///
    /// An error of `body`, or a budget that runs out in it.
    pub(super) fn with_store<T>(
        &self,
        world: World,
        body: impl FnOnce(&mut Store<CallStoreState>) -> wasmtime::Result<T>,
    ) -> wasmtime::Result<T> {
        let _running = self.ticker.start_call();
        let allowance = CallLimits::from(*self.limits(world));
        body(&mut self.store(allowance, JobCancellation::default())?)
    }

    /// Runs `body`, which instantiates and calls a guest, in a new store. The usage is counted in `tally`, which belongs to the
    /// guest, and recorded in the current span.
    pub(super) fn call<T>(
        &self,
        (function, tally): (GuestFunction, &CallTally),
        allowance: CallLimits,
        stop: &JobCancellation,
        body: impl FnOnce(&mut Store<CallStoreState>) -> wasmtime::Result<T>,
    ) -> CallResult<T> {
        let _running = self.ticker.start_call();
        let (stopwatch, spent) = (Stopwatch::start(), ThreadCpuStopwatch::start());
        // Declared before the store, so that it is dropped after it.
        let _live = InstanceGaugeGuard::new(&self.metrics.live_instances);
        let mut store = match self.store(allowance, stop.clone()) {
            Ok(store) => store,
            Err(error) => {
                return CallResult {
                    outcome: Err(CallFailure::Broken(error.into())),
                    used: CallUsage::default(),
                };
            }
        };
        let result = body(&mut store);

        let used = CallUsage {
            fuel: allowance
                .limits
                .fuel
                .saturating_sub(store.get_fuel().unwrap_or(0)),
            memory: store.data().meter.used(),
            duration: stopwatch.elapsed(),
            processor: spent.elapsed(),
        };
        let outcome = result.map_err(|error| classify_failure(error, store.data()));
        let label = match &outcome {
            Ok(_) => "ok",
            Err(CallFailure::Budget(budget)) => budget.as_str(),
            Err(CallFailure::Abandoned) => "abandoned",
            Err(CallFailure::Broken(_)) => "broken",
        };
        let trapped = !matches!(outcome, Ok(_) | Err(CallFailure::Abandoned));
        self.metrics
            .record_call(function.as_str(), label, trapped, used);
        tally.count(&outcome, &used);
        let span = tracing::Span::current();
        span.record("outcome", label);
        span.record("fuel", used.fuel);
        span.record("memory_bytes", used.memory_bytes());
        span.record("seconds", used.duration.as_secs_f64());
        tracing::debug!("a guest was called");
        CallResult { outcome, used }
    }
}

/// Creates the span of a call; [`GuestEngine::call`] records the fields.
pub(super) fn call_span(function: GuestFunction, guest: GuestDigest) -> tracing::Span {
    tracing::info_span!(
        "guest",
        function = function.as_str(),
        %guest,
        outcome = tracing::field::Empty,
        fuel = tracing::field::Empty,
        memory_bytes = tracing::field::Empty,
        seconds = tracing::field::Empty,
    )
}

/// Maps an error to an exhausted budget or a failure.
fn classify_failure(error: wasmtime::Error, state: &CallStoreState) -> CallFailure {
    if error.is::<CallerGone>() {
        return CallFailure::Abandoned;
    }
    // A refused allocation is the cause, whatever error the guest made of it.
    if state.meter.exceeded_limit() {
        return CallFailure::Budget(BudgetKind::Memory);
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => CallFailure::Budget(BudgetKind::Fuel),
        Some(Trap::Interrupt) => CallFailure::Budget(BudgetKind::Time),
        Some(Trap::StackOverflow) => CallFailure::Budget(BudgetKind::Stack),
        Some(Trap::MemoryOutOfBounds) if is_stack_overflow(&error) => {
            CallFailure::Budget(BudgetKind::Stack)
        }
        _ => {
            let error = anyhow::Error::from(error);
            let output = state.output.tail();
            CallFailure::Broken(if output.is_empty() {
                error
            } else {
                error.context(format!("the guest wrote: {output}"))
            })
        }
    }
}

/// Whether a guest overflowed its own stack. The stack lies at the low end of the memory and grows down: an overflow wraps to an
/// address near the end of the 32-bit range, or beyond it by an offset.
fn is_stack_overflow(error: &wasmtime::Error) -> bool {
    // The error's type is private to wasmtime, so its text is parsed.
    let fault = error.chain().find_map(|cause| {
        let text = cause.to_string();
        let address = text.strip_prefix("memory fault at wasm address 0x")?;
        let digits = address.split(' ').next()?;
        u64::from_str_radix(digits, 16).ok()
    });
    fault.is_some_and(|address| address >= MEMORY_RESERVATION - MAX_FRAME_BYTES)
}

/// Creates an engine that compiles code for those of the tier, and runs none.
pub(super) fn compiler_engine(
    tier: OptimizationTier,
    cores: CompilerCores,
) -> anyhow::Result<Engine> {
    build_engine(engine_config(tier).parallel_compilation(cores == CompilerCores::All))
}

fn build_engine(config: &Config) -> anyhow::Result<Engine> {
    Engine::new(config)
        .map_err(anyhow::Error::from)
        .context("cannot set up the engine for guests")
}

/// Returns the pool that holds the memories and tables of so many instances.
fn instance_pool(
    instances: usize,
    memory_bytes: usize,
) -> anyhow::Result<InstanceAllocationStrategy> {
    let count = u32::try_from(instances).context("that many instances at once")?;
    let reservation = usize::try_from(MEMORY_RESERVATION).context("the sandbox needs 64 bits")?;
    anyhow::ensure!(
        memory_bytes <= reservation,
        "a guest cannot have more than {MEMORY_RESERVATION} bytes of memory"
    );
    let mut pool = PoolingAllocationConfig::new();
    // Components have a few small core modules beside their own code, hence the factors.
    pool.total_component_instances(count)
        .total_core_instances(count.saturating_mul(16))
        .total_memories(count.saturating_mul(MAX_MEMORIES))
        .total_tables(count.saturating_mul(MAX_TABLES))
        .total_gc_heaps(0)
        // Stacks of asynchronous calls are not used: by default there would be a thousand, each of two mappings.
        .total_stacks(0)
        .max_memories_per_component(MAX_MEMORIES)
        .max_tables_per_component(MAX_TABLES)
        .max_memories_per_module(MAX_MEMORIES)
        .max_tables_per_module(MAX_TABLES)
        .max_core_instances_per_component(16)
        .max_memory_size(reservation)
        .table_elements(TABLE_ELEMENTS)
        .max_unused_warm_slots(count)
        .pagemap_scan(Enabled::No)
        .linear_memory_keep_resident(MEMORY_KEEP_RESIDENT)
        .table_keep_resident(TABLE_KEEP_RESIDENT);
    Ok(InstanceAllocationStrategy::Pooling(pool))
}

/// Returns the settings of a tier, without the allocation strategy: code is shared by all engines of a tier.
fn engine_config(tier: OptimizationTier) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .memory_reservation(MEMORY_RESERVATION)
        .memory_guard_size(MEMORY_GUARD)
        .memory_may_move(false)
        .memory_init_cow(true)
        .strategy(match tier {
            OptimizationTier::Baseline => Strategy::Winch,
            OptimizationTier::Optimised => Strategy::Cranelift,
        })
        .cranelift_opt_level(OptLevel::Speed)
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        // Features that components of stable Rust do not use. Extended constant expressions and several memories stay on:
        // interpreters are linked that way, and the compiler joins components by modules with the memories of both.
        .gc_support(false)
        .concurrency_support(false)
        .wasm_custom_page_sizes(false)
        .wasm_exceptions(false)
        .wasm_function_references(false)
        .wasm_gc(false)
        .wasm_memory64(false)
        .wasm_relaxed_simd(false)
        .wasm_simd(false)
        .wasm_tail_call(false)
        .wasm_threads(false)
        .wasm_wide_arithmetic(false);
    config
}
