//! Runs what strangers send: values in, values out, and nothing of the outside world in between.
//!
//! Pages are rendered and SQL is judged by guests, WebAssembly components that get a fresh instance for every call
//! and a budget of fuel, memory and wall time for it ([`Limits`]). They are given nothing to reach the outside
//! with: no files, network, clock, environment or randomness, and no way to wait. A call that runs out of a budget or traps costs its
//! own caller an error, and its instance is gone with it.
//!
//! [`Sandbox`] is the handle to all of it. It starts at once and loads the guests in the background; until
//! then callers wait, for a minute at most. The guests built into the host serve unless newer ones are installed.
//! [`Workers`] are the threads that calls run on, for whatever else occupies a thread too.

mod bindings;
mod cache;
mod calls;
mod engine;
mod gate;
mod limits;
mod metrics;
mod registry;
mod renderer;
mod stopwatch;
#[cfg(test)]
mod tests;
mod values;
mod wasi;
mod workers;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;

use cache::Cache;
use engine::GuestEngine;
use registry::Registry;

pub use calls::{Calls, Cost};
pub use gate::{SCRIPT_BYTES, STATEMENT_BYTES};
pub use limits::Limits;
pub use metrics::Metrics;
pub use renderer::{DIAGRAM_BYTES, DIAGRAMS};
pub use stopwatch::Stopwatch;
pub use values::{
    Budget, ContentType, GateFailure, GuestDigest, NamedTable, Position, Purpose, Refusal,
    RenderFailure, Rendered, RuntimeScript, Source, Statement, StatementKind, UnknownContentType,
};
pub use workers::{Busy, Workers, WorkersConfig};

/// What a sandbox is made of.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// Where installed guests lie; a folder that does not exist is an empty one. `None`: only the built-in ones serve.
    pub guests_dir: Option<PathBuf>,
    /// Where compiled guests are kept. Made where it is missing; refused where it is not the user's own or open to others.
    pub cache_dir: PathBuf,
    /// What one call may use that renders a page or draws a diagram.
    pub render: Limits,
    /// What one call may use that judges SQL.
    pub gate: Limits,
    /// How many calls run at once; see [`SandboxConfig::default_threads`].
    pub threads: usize,
}

impl SandboxConfig {
    /// The house's limits, no installed guests, and a thread for each core.
    #[must_use]
    pub fn new(cache_dir: PathBuf) -> Self {
        Self {
            guests_dir: None,
            cache_dir,
            render: Limits::RENDER,
            gate: Limits::GATE,
            threads: Self::default_threads(),
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

/// What the clones of a handle share.
struct Inner {
    render: Limits,
    gate: Limits,
    engine: Arc<GuestEngine>,
    registry: Arc<Registry>,
    workers: Arc<Workers>,
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
        let workers = WorkersConfig::with_threads(config.threads.max(1));
        Self::start_with(config, workers)
    }

    fn start_with(config: SandboxConfig, workers: WorkersConfig) -> anyhow::Result<Self> {
        let cache = Cache::open(config.cache_dir)?;
        let metrics = Metrics::default();
        // A worker makes its next instance after its last one is gone; the other half is for guests that are being checked.
        let memory = config.render.memory_bytes.max(config.gate.memory_bytes);
        let engine = Arc::new(GuestEngine::new(
            workers.threads * 2,
            memory,
            metrics.clone(),
        )?);
        let workers = Workers::start(workers, metrics.clone())?;
        let registry = Arc::new(Registry::new(engine.clone(), cache, config.guests_dir));
        let loader = thread::Builder::new()
            .name("svc-guests".to_owned())
            .spawn({
                let registry = registry.clone();
                move || registry.load()
            })
            .context("cannot start the thread that loads guests")?;
        Ok(Self {
            inner: Arc::new(Inner {
                render: config.render,
                gate: config.gate,
                engine,
                registry,
                workers: Arc::new(workers),
                metrics,
                loader: Mutex::new(Some(loader)),
            }),
        })
    }

    /// Whether both guests serve. Calls may be made before: they wait.
    #[must_use]
    pub fn loaded(&self) -> bool {
        self.inner.registry.loaded()
    }

    /// Which renderer serves, once one does: what pages are keyed by.
    #[must_use]
    pub fn renderer(&self) -> Option<GuestDigest> {
        self.inner.registry.digests().0
    }

    /// Which gate serves, once one does: what verdicts are keyed by.
    #[must_use]
    pub fn gate(&self) -> Option<GuestDigest> {
        self.inner.registry.digests().1
    }

    /// Renders a page and draws its diagrams.
    ///
    /// # Errors
    ///
    /// See [`RenderFailure`]. In a page of text a diagram that cannot be drawn is no failure: its source is shown. In a mermaid page it is one,
    /// unless the guest does not draw its kind.
    pub async fn render(&self, source: Source) -> Result<Rendered, RenderFailure> {
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
        gate::check(&self.inner, sql.into(), purpose).await
    }

    /// The threads that calls run on.
    #[must_use]
    pub fn workers(&self) -> &Arc<Workers> {
        &self.inner.workers
    }

    /// What is counted.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
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
            .field("render", &self.render)
            .field("gate", &self.gate)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}
