//! Runs what strangers send: values in, values out, and nothing of the outside world in between.
//!
//! Pages are rendered and SQL is judged by guests, WebAssembly components that get a fresh instance for every call
//! and a budget of fuel, memory and wall time for it ([`Limits`]). They are given nothing to reach the outside
//! with: no files, network, clock, environment or randomness, and no way to wait. A call that runs out of a budget or traps costs its
//! own caller an error, and its instance is gone with it.
//!
//! [`Sandbox`] is the handle to all of it. It starts at once and loads the guests in the background; until
//! then callers wait, for a minute at most. The guests built into the host serve unless newer ones are installed.
//! Calls run in lanes ([`Lane`]), which all else that occupies a thread uses, too; callers share them fairly, by their [`Flow`].

#![warn(missing_docs)]

mod admission;
mod bindings;
mod cache;
mod calls;
mod choice;
mod compilation;
mod drawings;
mod engine;
mod fair_queue;
mod flow;
mod gate;
mod interface;
mod lane;
mod limits;
mod metrics;
mod page;
mod registry;
mod renderer;
mod slot;
mod tally;
#[cfg(test)]
mod tests;
mod trial;
mod values;
mod versions;
mod wasi;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;

use cache::{Cache, Tier};
use engine::GuestEngine;
use lane::LaneConfig;
use registry::Registry;
use trial::Trials;

pub use admission::{Inspection, MAX_COMPONENT_BYTES, inspect_component, read_component};
pub use calls::{CallCost, DirectCalls};
pub use choice::{GuestChoice, GuestChoices, GuestOrigin, components_newest_first};
pub use compilation::GuestCompilation;
pub use flow::{Flow, FlowClass};
pub use gate::{MAX_SCRIPT_BYTES, MAX_STATEMENT_BYTES};
pub use interface::Interface;
pub use lane::{Busy, Lane, StopSignal};
pub use limits::{GuestLimits, Limits, MIN_GATE_MEMORY, MIN_RENDER_MEMORY, PageLimits};
pub use metrics::Metrics;
pub use registry::{AppliedChoice, built_in};
pub use renderer::{MAX_DIAGRAM_BYTES, MAX_DIAGRAMS};
pub use svc_sources::{ContentType, UnknownContentType};
pub use tally::{CallTotals, GuestUsage, Percentiles};
pub use trial::RolledBackGuest;
pub use values::{
    Budget, Foot, GateFailure, GuestDigest, Malformed, NamedTable, Purpose, Refusal, RenderFailure,
    RenderedPage, RuntimeScript, Source, SourcePosition, SqlPosition, Statement, StatementKind,
    UndrawnDiagram, Verdict, World,
};

/// The code that the guests built into the host begin with where the cache has no optimised code of them. Every budget holds for both
/// kinds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum StartupCode {
    /// Optimised code, for which calls wait.
    #[default]
    Optimised,
    /// Baseline code, which is ready sooner and slower to run, until optimised code has been compiled behind it.
    Baseline,
    /// Baseline code alone, whatever the cache has: for tests of it.
    BaselineOnly,
}

/// Settings of a sandbox.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// Which guests serve.
    pub guests: GuestChoices,
    /// Where compiled guests are kept. Made where it is missing; refused where it is not the user's own or open to others.
    pub cache_dir: PathBuf,
    /// Budgets of one call.
    pub limits: GuestLimits,
    /// How many threads a lane has for everybody; see [`SandboxConfig::default_threads`]. It has one more for owners.
    pub threads: usize,
    /// Code that the guests built in begin with.
    pub startup_code: StartupCode,
}

impl SandboxConfig {
    /// The default limits, no installed guests, and a thread for each core.
    #[must_use]
    pub fn new(cache_dir: PathBuf) -> Self {
        Self {
            guests: GuestChoices::default(),
            cache_dir,
            limits: GuestLimits::DEFAULT,
            threads: Self::default_threads(),
            startup_code: StartupCode::default(),
        }
    }

    /// As many threads as the process has cores.
    #[must_use]
    pub fn default_threads() -> usize {
        thread::available_parallelism().map_or(1, usize::from)
    }
}

/// The handle to the guests. Clones are cheap and the same sandbox; the last one to go waits for what runs, a few seconds
/// at most, and joins the threads.
#[derive(Clone, Debug)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

/// State that the clones of a handle share.
struct Inner {
    engine: Arc<GuestEngine>,
    registry: Arc<Registry>,
    trials: Trials,
    pages: Arc<Lane>,
    checks: Arc<Lane>,
    metrics: Metrics,
    loader: Mutex<Option<JoinHandle<()>>>,
}

impl Sandbox {
    /// Sets up the engine and the threads, and begins to load the guests: the first time on a machine they are compiled.
    ///
    /// # Errors
    ///
    /// The cache directory is refused, the limits are beyond what 32 bits address, or the system refuses memory or threads.
    pub fn start(config: SandboxConfig) -> anyhow::Result<Self> {
        let threads = config.threads.max(1);
        let lanes = [LaneConfig::pages(threads), LaneConfig::checks(threads)];
        Self::start_with_lanes(config, lanes)
    }

    fn start_with_lanes(
        config: SandboxConfig,
        [pages, checks]: [LaneConfig; 2],
    ) -> anyhow::Result<Self> {
        let cache = Cache::open(config.cache_dir)?;
        let metrics = Metrics::default();
        // A thread makes its next instance after its last one is gone; the other half is for guests that are being checked.
        let threads = pages.threads + checks.threads + 2;
        let engine = Arc::new(GuestEngine::new(
            Tier::Optimised,
            threads * 2,
            config.limits,
            metrics.clone(),
        )?);
        let pages = Arc::new(Lane::start(pages, metrics.clone())?);
        let checks = Arc::new(Lane::start(checks, metrics.clone())?);
        let registry = Registry::new(engine.clone(), config.startup_code, cache, metrics.clone());
        let registry = Arc::new(registry);
        let loader = thread::Builder::new()
            .name("svc-guests".to_owned())
            .spawn({
                let (registry, guests) = (registry.clone(), config.guests);
                move || {
                    registry.load(&guests);
                    spawn_optimiser(registry);
                }
            })
            .context("cannot start the thread that loads guests")?;
        Ok(Self {
            inner: Arc::new(Inner {
                engine,
                registry,
                trials: Trials::default(),
                pages,
                checks,
                metrics,
                loader: Mutex::new(Some(loader)),
            }),
        })
    }

    /// Returns what is being compiled before both guests serve; `None` once they do, and before a compilation begins.
    #[must_use]
    pub fn compilation(&self) -> Option<GuestCompilation> {
        let registry = &self.inner.registry;
        registry.compilation().filter(|_| !registry.is_loaded())
    }

    /// Whether both guests serve. Calls may be made before: they wait.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.inner.registry.is_loaded()
    }

    /// Which renderer serves, once one does: what pages are keyed by.
    #[must_use]
    pub fn renderer_digest(&self) -> Option<GuestDigest> {
        self.inner.registry.render.digest()
    }

    /// Which gate serves, once one does: what verdicts are keyed by.
    #[must_use]
    pub fn gate_digest(&self) -> Option<GuestDigest> {
        self.inner.registry.gate.digest()
    }

    /// Renders a page and draws its diagrams.
    ///
    /// # Errors
    ///
    /// See [`RenderFailure`]. In a page of text a diagram that cannot be drawn is no failure: its source is shown. In a mermaid page it is one,
    /// unless the guest does not draw its kind.
    pub async fn render(&self, source: Source) -> Result<RenderedPage, RenderFailure> {
        renderer::render(&self.inner, source).await
    }

    /// Judges SQL: its statements in order, exactly one for an action or a query.
    ///
    /// # Errors
    ///
    /// See [`GateFailure`].
    pub async fn check_sql(
        &self,
        sql: impl Into<String> + Send,
        purpose: Purpose,
    ) -> Result<Vec<Statement>, GateFailure> {
        Ok(self.judge(sql, purpose).await?.statements)
    }

    /// Judges SQL, and returns the digest of the gate too, under which the verdict is kept.
    ///
    /// # Errors
    ///
    /// See [`GateFailure`].
    pub async fn judge(
        &self,
        sql: impl Into<String> + Send,
        purpose: Purpose,
    ) -> Result<Verdict, GateFailure> {
        gate::judge_sql(&self.inner, sql.into(), purpose).await
    }

    /// Lets what is chosen serve from now on; calls that have begun end as they began. What serves goes on where nothing of the
    /// choice can. Blocks while a guest is loaded, and compiled where it has not been.
    #[must_use]
    pub fn apply(&self, world: World, choice: &GuestChoice) -> AppliedChoice {
        self.inner.registry.apply(world, choice)
    }

    /// Which guest of a world serves and what it has used since it was loaded; `None` while it is being loaded.
    #[must_use]
    pub fn usage(&self, world: World) -> Option<(GuestDigest, GuestUsage)> {
        let registry = &self.inner.registry;
        match world {
            World::Render => registry.render.usage(),
            World::Gate => registry.gate.usage(),
        }
    }

    /// Sums up all calls of the guest of a world.
    #[must_use]
    pub fn total(&self, world: World) -> CallTotals {
        let registry = &self.inner.registry;
        let total = match world {
            World::Render => registry.render.current().map(|now| now.guest.tally.total()),
            World::Gate => registry.gate.current().map(|now| now.guest.tally.total()),
        };
        total.unwrap_or_default()
    }

    /// Takes the guests that lost their places since the last call of this function: they failed where the ones before them did not.
    #[must_use]
    pub fn take_rolled_back(&self) -> Vec<RolledBackGuest> {
        self.inner.trials.take_rolled_back()
    }

    /// Returns the lane that pages are made in.
    #[must_use]
    pub fn page_lane(&self) -> &Arc<Lane> {
        &self.inner.pages
    }

    /// Returns the lane for what never waits for a page: SQL is judged there, and passwords are hashed.
    #[must_use]
    pub fn check_lane(&self) -> &Arc<Lane> {
        &self.inner.checks
    }

    /// Returns the counters.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }
}

/// Has guests that serve with baseline code go on with optimised code, on a thread that nobody waits for: a compilation cannot be
/// interrupted, and a server that stops has no use for it.
fn spawn_optimiser(registry: Arc<Registry>) {
    if !registry.has_baseline_code() {
        return;
    }
    let thread = thread::Builder::new().name("svc-optimise".to_owned());
    if let Err(error) = thread.spawn(move || registry.optimise()) {
        tracing::error!(%error, "there is no thread to optimise guests: they go on with baseline code, which is slower");
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.registry.stop();
        let loader = self
            .loader
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(loader) = loader {
            let _ = loader.join();
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("engine", &self.engine)
            .field("pages", &self.pages)
            .field("checks", &self.checks)
            .finish_non_exhaustive()
    }
}
