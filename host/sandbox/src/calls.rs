//! Direct calls of guests on the caller's thread, with their cost: for benchmarks.
//!
//! A call runs as in a server, in a fresh instance with the same engine and budgets. It leaves out the queue, the threads, and
//! the checks of answers.

use std::path::PathBuf;
use std::time::Duration;

use super::bindings::gate::GatePre;
use super::cache::CompiledGuestCache;
use super::compiler::{CompilerCores, GuestCompiler, OptimizationTier};
use super::component::GuestComponent;
use super::engine::GuestEngine;
use super::gate;
use super::limits::GuestLimits;
use super::metrics::Metrics;
use super::registry::{GuestWorldBindings, prepare_guest};
use super::renderer;
use super::values::{RenderSource, SqlPurpose, World};
use super::versions::PreparedRenderer;
use super::wasi::CallStoreState;
use svc_base::Stopwatch;

/// Cost of one call.
#[derive(Clone, Copy, Debug)]
pub struct CallCost {
    /// Time until the instance existed.
    pub instantiation: Duration,
    /// Time until the instance was dropped.
    pub total: Duration,
    /// Units of work.
    pub fuel: u64,
    /// Bytes of the guest's memory.
    pub memory: usize,
    /// Whether the guest answered with a result, and not with a refusal.
    pub answered: bool,
}

/// Built-in guests, to be called directly.
pub struct DirectGuestCaller {
    engine: GuestEngine,
    render: PreparedRenderer,
    gate: GatePre<CallStoreState>,
}

impl std::fmt::Debug for DirectGuestCaller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectGuestCaller").finish_non_exhaustive()
    }
}

impl DirectGuestCaller {
    /// Loads the built-in guests from a cache, compiling them if needed; `gate` replaces the built-in gate.
    ///
    /// # Errors
    ///
    /// The cache is refused, or a guest cannot be loaded.
    pub fn new(cache_dir: PathBuf, gate: Option<&[u8]>) -> anyhow::Result<Self> {
        let engine = GuestEngine::new(
            OptimizationTier::Optimised,
            1,
            GuestLimits::DEFAULT,
            Metrics::default(),
        )?;
        let cache = CompiledGuestCache::open(cache_dir, GuestCompiler::new(None))?;
        let gate = gate.map_or_else(|| GuestComponent::built_in(World::Gate), GuestComponent::of);
        let render = load_guest(&engine, &cache, GuestComponent::built_in(World::Render))?;
        let gate = load_guest(&engine, &cache, gate)?;
        Ok(Self {
            engine,
            render,
            gate,
        })
    }

    /// Renders a page, without its diagrams.
    ///
    /// # Errors
    ///
    /// A budget ran out, or the guest failed.
    pub fn render(&self, source: &RenderSource) -> anyhow::Result<CallCost> {
        let source = renderer::source_to_wit(source);
        self.call(World::Render, |store, made| {
            let world = self.render.instantiate(&mut *store)?;
            made();
            let result = world.render(store, &source)?;
            Ok(result.is_ok())
        })
    }

    /// Draws a diagram.
    ///
    /// # Errors
    ///
    /// A budget ran out, or the guest failed.
    pub fn draw(&self, text: &str) -> anyhow::Result<CallCost> {
        self.call(World::Render, |store, made| {
            let world = self.render.instantiate(&mut *store)?;
            made();
            let result = world.draw(store, text, 0)?;
            Ok(result.is_ok())
        })
    }

    /// Judges SQL.
    ///
    /// # Errors
    ///
    /// A budget ran out, or the guest failed.
    pub fn check(&self, sql: &str, purpose: SqlPurpose) -> anyhow::Result<CallCost> {
        self.call(World::Gate, |store, made| {
            let world = self.gate.instantiate(&mut *store)?;
            made();
            let purpose = gate::purpose_to_wit(purpose);
            let result = world.svc_gate_judge().call_check(store, sql, purpose)?;
            Ok(result.is_ok())
        })
    }

    fn call(
        &self,
        world: World,
        body: impl FnOnce(
            &mut wasmtime::Store<CallStoreState>,
            &mut dyn FnMut(),
        ) -> wasmtime::Result<bool>,
    ) -> anyhow::Result<CallCost> {
        let stopwatch = Stopwatch::start();
        let mut instantiation = Duration::ZERO;
        let (answered, left, memory) = self.engine.with_store(world, |store| {
            let answered = body(store, &mut || instantiation = stopwatch.elapsed())?;
            Ok((answered, store.get_fuel()?, store.data().meter.used()))
        })?;
        let fuel = self.engine.limits(world).fuel.saturating_sub(left);
        Ok(CallCost {
            instantiation,
            total: stopwatch.elapsed(),
            fuel,
            memory,
            answered,
        })
    }
}

fn load_guest<W: GuestWorldBindings>(
    engine: &GuestEngine,
    cache: &CompiledGuestCache,
    component: GuestComponent<'_>,
) -> anyhow::Result<W> {
    prepare_guest(
        engine,
        &cache.load(&engine.job(CompilerCores::All), component)?,
    )
}
