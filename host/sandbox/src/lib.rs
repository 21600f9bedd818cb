//! Sandbox for everything that strangers send: values in, values out, and no access to the outside world.
//!
//! Pages are rendered and SQL is judged by guests: WebAssembly components that get a fresh instance and a budget of fuel, memory
//! and wall time for every call ([`CallBudgets`]). They have no files, network, clock, environment or randomness, and cannot wait. A
//! call that runs out of a budget or traps is an error for its caller alone, and its instance is dropped.
//!
//! [`Sandbox`] is the handle. It starts at once and loads the guests in the background; callers wait until then, for a minute at
//! most. The built-in guests serve unless others are installed. Calls run in lanes ([`Lane`]), as does all other blocking work;
//! callers share them fairly, by their [`CallerFlow`].

#![warn(missing_docs)]

mod admission;
mod bindings;
mod cache;
mod calls;
mod choice;
mod compilation;
mod compiler;
mod component;
mod drawings;
mod engine;
mod fair_queue;
mod files;
mod gate;
mod interface;
mod lane;
mod limits;
mod metrics;
mod page;
mod registry;
mod renderer;
mod rules;
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

use cache::CompiledGuestCache;
use compiler::GuestCompiler;
use engine::GuestEngine;
use lane::LaneConfig;
use registry::GuestRegistry;
use trial::SecondCallTrials;

pub use admission::{ComponentInspection, MAX_COMPONENT_BYTES, inspect_component, read_component};
pub use calls::{CallCost, DirectGuestCaller};
pub use choice::{GuestCandidates, GuestCandidatesByWorld, GuestOrigin, components_newest_first};
pub use compilation::GuestCompilation;
pub use compiler::{COMPILE_COMMAND, OptimizationTier, compile_from_stdin};
pub use component::{built_in_component, built_in_digest};
pub use files::{
    CleanedPicture, FileFailure, FileHead, FilePiece, FileRecognition, MAX_HEAD_BYTES, PictureCopy,
    PictureFault,
};
pub use gate::{MAX_SCRIPT_BYTES, MAX_STATEMENT_BYTES};
pub use interface::InterfaceVersion;
pub use lane::{JobCancellation, Lane, LaneBusy};
pub use limits::{
    CallBudgets, GuestLimits, MIN_GATE_MEMORY, MIN_RENDER_MEMORY, SharedBudget, SharedLimits,
};
pub use metrics::Metrics;
pub use registry::GuestSelectionResult;
pub use renderer::{MAX_DIAGRAM_BYTES, MAX_DIAGRAMS, PageReservation};
pub use rules::{
    HeaderRule, MAX_RULE_FILE_BYTES, PatternPart, RedirectRule, RedirectTarget, RuleFault,
    RuleFile, RuleFiles, RulesFailure, SiteRules, TargetPart,
};
pub use svc_base::flow::{CallerClass, CallerFlow};
pub use svc_sources::{ContentType, UnknownContentType};
pub use tally::{CallPercentiles, CallTotals, GuestUsage};
pub use trial::RolledBackGuest;
pub use values::{
    AllowedStatement, BudgetKind, GateFailure, GuestDigest, MalformedSource, NamedTable,
    PageFooter, RenderFailure, RenderSource, RenderedPage, RuntimeScript, SourcePosition,
    SqlPosition, SqlPurpose, SqlRefusal, StatementKind, UndrawnDiagram, Verdict, World,
};

/// Code that the built-in guests start with if the cache has no optimised code. All budgets hold for both kinds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum StartupCodeTier {
    /// Optimised code: calls wait until it is compiled.
    #[default]
    Optimised,
    /// Baseline code, which compiles fast and runs slower, until optimised code is compiled in the background.
    Baseline,
    /// Baseline code alone, whatever the cache has: for tests.
    BaselineOnly,
}

/// Settings of a sandbox.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// Guests that are to serve.
    pub guests: GuestCandidatesByWorld,
    /// Directory of compiled guests. It is created where it is missing, and refused if others can access it.
    pub cache_dir: PathBuf,
    /// Budgets of one call.
    pub limits: GuestLimits,
    /// Threads of a lane that serve everybody; see [`SandboxConfig::default_threads`]. One more serves owners.
    pub threads: usize,
    /// Code that the built-in guests start with.
    pub startup_code: StartupCodeTier,
    /// Program that compiles guests by [`COMPILE_COMMAND`]; without one, this process does.
    pub compiler: Option<PathBuf>,
}

impl SandboxConfig {
    /// Returns the default limits, no installed guests, and a thread for each core.
    #[must_use]
    pub fn new(cache_dir: PathBuf) -> Self {
        Self {
            guests: GuestCandidatesByWorld::default(),
            cache_dir,
            limits: GuestLimits::DEFAULT,
            threads: Self::default_threads(),
            startup_code: StartupCodeTier::default(),
            compiler: None,
        }
    }

    /// Returns the number of the machine's cores.
    #[must_use]
    pub fn default_threads() -> usize {
        thread::available_parallelism().map_or(1, usize::from)
    }
}

/// Handle to the guests. Clones share one sandbox; dropping the last one waits for running calls, for a few seconds at most, and
/// joins the threads.
#[derive(Clone, Debug)]
pub struct Sandbox {
    inner: Arc<SharedSandboxState>,
}

/// State shared by the clones of a handle.
struct SharedSandboxState {
    engine: Arc<GuestEngine>,
    registry: Arc<GuestRegistry>,
    trials: SecondCallTrials,
    pages: Arc<Lane>,
    checks: Arc<Lane>,
    metrics: Metrics,
    loader: Mutex<Option<JoinHandle<()>>>,
}

impl Sandbox {
    /// Starts the engine and the threads, and begins to load the guests; on a new machine they are compiled first.
    ///
    /// # Errors
    ///
    /// The cache directory is refused, the limits exceed 32 bits, or the system has no memory or threads left.
    pub fn start(config: SandboxConfig) -> anyhow::Result<Self> {
        let threads = config.threads.max(1);
        let lanes = [LaneConfig::pages(threads), LaneConfig::checks(threads)];
        Self::start_with_lanes(config, lanes)
    }

    fn start_with_lanes(
        config: SandboxConfig,
        [pages, checks]: [LaneConfig; 2],
    ) -> anyhow::Result<Self> {
        let cache =
            CompiledGuestCache::open(config.cache_dir, GuestCompiler::new(config.compiler))?;
        let metrics = Metrics::default();
        // A thread drops its instance before it makes the next; the other half is for guests that are being checked.
        let threads = pages.threads + checks.threads + 2;
        let engine = Arc::new(GuestEngine::new(
            OptimizationTier::Optimised,
            threads * 2,
            config.limits,
            metrics.clone(),
        )?);
        let pages = Arc::new(Lane::start(pages, metrics.clone())?);
        let checks = Arc::new(Lane::start(checks, metrics.clone())?);
        let registry =
            GuestRegistry::new(engine.clone(), config.startup_code, cache, metrics.clone());
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
            inner: Arc::new(SharedSandboxState {
                engine,
                registry,
                trials: SecondCallTrials::default(),
                pages,
                checks,
                metrics,
                loader: Mutex::new(Some(loader)),
            }),
        })
    }

    /// Returns the compilation under way before both guests serve; `None` if there is none.
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

    /// Returns the digest of the serving renderer, which pages are keyed by; `None` before it is loaded.
    #[must_use]
    pub fn renderer_digest(&self) -> Option<GuestDigest> {
        self.inner.registry.render.digest()
    }

    /// Returns the digest of the serving gate, which verdicts are keyed by; `None` before it is loaded.
    #[must_use]
    pub fn gate_digest(&self) -> Option<GuestDigest> {
        self.inner.registry.gate.digest()
    }

    /// Renders a page and draws its diagrams.
    ///
    /// # Errors
    ///
    /// See [`RenderFailure`]. A diagram that cannot be drawn is no failure in a page of text, which shows its source. A Mermaid
    /// page fails, unless the guest just does not know the kind of diagram.
    pub async fn render(&self, source: RenderSource) -> Result<RenderedPage, RenderFailure> {
        self.render_reserved(source, &|_| Ok(())).await
    }

    /// Renders a page like [`Sandbox::render`], and reserves its bytes before its drawings wait for threads.
    ///
    /// # Errors
    ///
    /// Like [`Sandbox::render`]; [`RenderFailure::Busy`] where `reserve` refuses.
    pub async fn render_reserved(
        &self,
        source: RenderSource,
        reserve: PageReservation<'_>,
    ) -> Result<RenderedPage, RenderFailure> {
        let budget = self.inner.engine.page_limits();
        renderer::render(&self.inner, source, budget, reserve).await
    }

    /// Renders a page that is stored nowhere, with a part of a page's budget: what is stored must not lack what that part does not
    /// suffice for.
    ///
    /// # Errors
    ///
    /// Like [`Sandbox::render_reserved`].
    pub async fn render_preview(
        &self,
        source: RenderSource,
        reserve: PageReservation<'_>,
    ) -> Result<RenderedPage, RenderFailure> {
        let budget = self.inner.engine.page_limits().for_preview();
        renderer::render(&self.inner, source, budget, reserve).await
    }

    /// Judges the rules of a site, in one call of the renderer.
    ///
    /// # Errors
    ///
    /// See [`RulesFailure`].
    pub async fn judge_rules(&self, files: RuleFiles) -> Result<SiteRules, RulesFailure> {
        rules::judge(&self.inner, files).await
    }

    /// Recognises a file of a visitor by its first bytes.
    ///
    /// # Errors
    ///
    /// See [`FileFailure`].
    pub async fn recognise_file(&self, head: FileHead) -> Result<FileRecognition, FileFailure> {
        files::recognise(&self.inner, head).await
    }

    /// Whether a file of a visitor is a text.
    ///
    /// # Errors
    ///
    /// See [`FileFailure`].
    pub async fn is_text_file(&self, file: bytes::Bytes) -> Result<bool, FileFailure> {
        files::is_text(&self.inner, file).await
    }

    /// Takes out of a visitor's picture what does not draw.
    ///
    /// # Errors
    ///
    /// See [`FileFailure`].
    pub async fn clean_picture(
        &self,
        file: bytes::Bytes,
        keep_metadata: bool,
    ) -> Result<CleanedPicture, FileFailure> {
        files::clean(&self.inner, file, keep_metadata).await
    }

    /// Makes a copy of a visitor's picture that fits a square of `size` pixels.
    ///
    /// # Errors
    ///
    /// See [`FileFailure`].
    pub async fn resize_picture(
        &self,
        file: bytes::Bytes,
        size: u32,
    ) -> Result<PictureCopy, FileFailure> {
        files::resize(&self.inner, file, size).await
    }

    /// Returns a budget for all SQL of one request.
    #[must_use]
    pub fn judging_budget(&self) -> SharedBudget {
        SharedBudget::new(self.inner.engine.judging_limits())
    }

    /// Judges SQL that is all of its request; returns its statements in order, exactly one for an action or a query.
    ///
    /// # Errors
    ///
    /// See [`GateFailure`].
    pub async fn check_sql(
        &self,
        sql: impl Into<String> + Send,
        purpose: SqlPurpose,
    ) -> Result<Vec<AllowedStatement>, GateFailure> {
        let budget = self.judging_budget();
        Ok(self.judge(sql, purpose, &budget).await?.statements)
    }

    /// Judges SQL within the rest of its request's budget. Returns also the digest of the gate, under which the verdict is stored.
    ///
    /// # Errors
    ///
    /// See [`GateFailure`].
    pub async fn judge(
        &self,
        sql: impl Into<String> + Send,
        purpose: SqlPurpose,
        budget: &SharedBudget,
    ) -> Result<Verdict, GateFailure> {
        gate::judge_sql(&self.inner, sql.into(), purpose, budget).await
    }

    /// Makes the chosen guest serve from now on; running calls finish as they began. If no guest of the choice can serve, the
    /// current one goes on. Blocks while a guest is loaded, and compiled if need be.
    #[must_use]
    pub fn apply(&self, world: World, choice: &GuestCandidates) -> GuestSelectionResult {
        self.inner.registry.apply(world, choice)
    }

    /// Returns the digest of the serving guest of a world, and its usage since it was loaded; `None` while it is being loaded.
    #[must_use]
    pub fn usage(&self, world: World) -> Option<(GuestDigest, GuestUsage)> {
        let registry = &self.inner.registry;
        match world {
            World::Render => registry.render.usage(),
            World::Gate => registry.gate.usage(),
        }
    }

    /// Returns the totals over all calls of a world's guest.
    #[must_use]
    pub fn total(&self, world: World) -> CallTotals {
        let registry = &self.inner.registry;
        let total = match world {
            World::Render => registry.render.current().map(|now| now.guest.tally.total()),
            World::Gate => registry.gate.current().map(|now| now.guest.tally.total()),
        };
        total.unwrap_or_default()
    }

    /// Takes the guests that were rolled back since the last call: they failed where the previous ones did not.
    #[must_use]
    pub fn take_rolled_back(&self) -> Vec<RolledBackGuest> {
        self.inner.trials.take_rolled_back()
    }

    /// Returns the lane that renders pages.
    #[must_use]
    pub fn page_lane(&self) -> &Arc<Lane> {
        &self.inner.pages
    }

    /// Returns the lane for short work that never waits for a page: judging SQL, hashing passwords.
    #[must_use]
    pub fn check_lane(&self) -> &Arc<Lane> {
        &self.inner.checks
    }

    /// Returns the metrics.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }
}

/// Replaces baseline code by optimised code on a detached thread: a compilation cannot be interrupted, so a stopping server does
/// not wait for it.
fn spawn_optimiser(registry: Arc<GuestRegistry>) {
    if !registry.has_baseline_code() {
        return;
    }
    let thread = thread::Builder::new().name("svc-optimise".to_owned());
    if let Err(error) = thread.spawn(move || registry.optimise()) {
        tracing::error!(%error, "there is no thread to optimise guests: they go on with baseline code, which is slower");
    }
}

impl Drop for SharedSandboxState {
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

impl std::fmt::Debug for SharedSandboxState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedSandboxState")
            .field("engine", &self.engine)
            .field("pages", &self.pages)
            .field("checks", &self.checks)
            .finish_non_exhaustive()
    }
}
