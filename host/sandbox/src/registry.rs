//! Registry of serving guests: loaded in the background, checked before they serve, replaced while calls run.
//!
//! The built-in components serve unless an operator chose others ([`GuestCandidatesByWorld`]). A component that cannot serve is logged, and the
//! next of the choice serves. Code is loaded and checked on the thread that applies a choice; calls see one pointer that changes.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use wasmtime::Store;
use wasmtime::component::{Component, InstancePre};

use super::StartupCodeTier;
use super::admission::{check_imports, read_component};
use super::bindings::gate::GatePre;
use super::cache::CompiledGuestCache;
use super::choice::{GuestCandidates, GuestCandidatesByWorld, GuestOrigin};
use super::compilation::{CompilationProgress, GuestCompilation};
use super::compiler::{CompilerCores, OptimizationTier};
use super::component::{GuestComponent, built_in_component};
use super::engine::GuestEngine;
use super::interface::InterfaceVersion;
use super::metrics::{Metrics, WorldLabels};
use super::slot::{GuestCode, GuestSlot, LoadedGuest};
use super::values::{GuestDigest, World};
use super::versions::PreparedRenderer;
use super::wasi::CallStoreState;
use svc_base::threads::lower_priority;

/// Bindings of a world that guests implement.
pub(super) trait GuestWorldBindings: Sized + Send + Sync + 'static {
    /// World of the bindings.
    const WORLD: World;

    /// Prepares an instance template, if the component exports the world.
    fn prepare(instance: InstancePre<CallStoreState>) -> wasmtime::Result<Self>;

    /// Returns the interface of the component.
    fn interface(&self) -> InterfaceVersion;

    /// Creates an instance and type-checks its exports.
    fn probe(&self, store: &mut Store<CallStoreState>) -> wasmtime::Result<()>;

    /// Returns the slot of the world's guest.
    fn slot(registry: &GuestRegistry) -> &GuestSlot<Self>;
}

impl GuestWorldBindings for PreparedRenderer {
    const WORLD: World = World::Render;

    fn prepare(instance: InstancePre<CallStoreState>) -> wasmtime::Result<Self> {
        Self::new(instance)
    }

    fn interface(&self) -> InterfaceVersion {
        Self::interface(self)
    }

    fn probe(&self, store: &mut Store<CallStoreState>) -> wasmtime::Result<()> {
        self.type_check(store)
    }

    fn slot(registry: &GuestRegistry) -> &GuestSlot<Self> {
        &registry.render
    }
}

impl GuestWorldBindings for GatePre<CallStoreState> {
    const WORLD: World = World::Gate;

    fn prepare(instance: InstancePre<CallStoreState>) -> wasmtime::Result<Self> {
        Self::new(instance)
    }

    fn interface(&self) -> InterfaceVersion {
        InterfaceVersion::Gate1
    }

    fn probe(&self, store: &mut Store<CallStoreState>) -> wasmtime::Result<()> {
        self.instantiate(store).map(drop)
    }

    fn slot(registry: &GuestRegistry) -> &GuestSlot<Self> {
        &registry.gate
    }
}

/// Prepares a component as a guest of the world, if it is allowed to serve.
///
/// # Errors
///
/// The component imports interfaces that guests do not get, lacks the world's exports, or cannot be instantiated.
pub(super) fn prepare_guest<W: GuestWorldBindings>(
    engine: &GuestEngine,
    component: &Component,
) -> anyhow::Result<W> {
    check_imports(engine.engine(), component)?;
    let world = engine
        .linker()
        .instantiate_pre(component)
        .and_then(W::prepare)
        .map_err(anyhow::Error::from)
        .with_context(|| format!("it is not a {} guest", W::WORLD))?;
    engine
        .with_store(W::WORLD, |store| world.probe(store))
        .map_err(anyhow::Error::from)
        .context("it cannot be instantiated")?;
    Ok(world)
}

/// Creates the engine for baseline code, or returns the existing one.
type BaselineEngineFactory<'m> = &'m dyn Fn() -> Option<Arc<GuestEngine>>;

/// Result of applying a choice.
#[derive(Clone, Debug, Default)]
pub struct GuestSelectionResult {
    /// Digest of the guest that serves.
    pub serves: Option<GuestDigest>,
    /// Reasons why earlier components of the choice do not serve.
    pub failures: Vec<String>,
}

/// The guests of both worlds.
pub(super) struct GuestRegistry {
    /// Engine that runs optimised code.
    engine: Arc<GuestEngine>,
    startup_code: StartupCodeTier,
    progress: CompilationProgress,
    cache: CompiledGuestCache,
    metrics: Metrics,
    stopped: AtomicBool,
    pub(super) render: GuestSlot<PreparedRenderer>,
    pub(super) gate: GuestSlot<GatePre<CallStoreState>>,
}

impl GuestRegistry {
    /// Creates a registry without guests.
    pub(super) fn new(
        engine: Arc<GuestEngine>,
        startup_code: StartupCodeTier,
        cache: CompiledGuestCache,
        metrics: Metrics,
    ) -> Self {
        Self {
            engine,
            startup_code,
            progress: CompilationProgress::default(),
            cache,
            metrics,
            stopped: AtomicBool::new(false),
            render: GuestSlot::new(),
            gate: GuestSlot::new(),
        }
    }

    /// Loads the chosen guests. Blocks, for as long as compiling takes.
    ///
    /// It does not load standby guests: applying the choices again does.
    pub(super) fn load(&self, choices: &GuestCandidatesByWorld) {
        let first = |choice: &GuestCandidates| GuestCandidates {
            on_trial: false,
            ..choice.clone()
        };
        let made = OnceCell::new();
        let baseline = || made.get_or_init(|| self.baseline_engine()).clone();
        // The gate first: it is much smaller.
        self.apply_to(&self.gate, &first(&choices.gate), Some(&baseline));
        self.apply_to(&self.render, &first(&choices.render), Some(&baseline));
    }

    /// Creates the engine for baseline code; `None` if only optimised code is wanted, or the processor has no supported baseline
    /// compiler.
    fn baseline_engine(&self) -> Option<Arc<GuestEngine>> {
        if self.startup_code == StartupCodeTier::Optimised || !cfg!(target_arch = "x86_64") {
            return None;
        }
        let made = self.engine.with_tier(OptimizationTier::Baseline);
        made.inspect_err(|error| {
            tracing::warn!(
                error = format!("{error:#}"),
                "there is no baseline code: publishing waits for optimised code"
            );
        })
        .ok()
        .map(Arc::new)
    }

    /// Whether a guest runs baseline code that is to be replaced.
    pub(super) fn has_baseline_code(&self) -> bool {
        fn of<W: GuestWorldBindings>(slot: &GuestSlot<W>) -> bool {
            slot.loaded_guests().iter().any(is_baseline)
        }
        self.startup_code == StartupCodeTier::Baseline && (of(&self.render) || of(&self.gate))
    }

    /// Compiles optimised code for guests that run baseline code, and switches them to it. Blocks, at a low priority.
    pub(super) fn optimise(&self) {
        lower_priority();
        let optimised = [
            self.optimise_guest(&self.render),
            self.optimise_guest(&self.gate),
        ];
        for error in optimised.into_iter().filter_map(Result::err) {
            tracing::error!(
                error = format!("{error:#}"),
                "there is no optimised code: a guest goes on with baseline code, which is slower"
            );
        }
    }

    fn optimise_guest<W: GuestWorldBindings>(&self, slot: &GuestSlot<W>) -> anyhow::Result<()> {
        let guest = slot.loaded_guests().into_iter().find(is_baseline);
        let Some(guest) = guest.filter(|_| !self.stopped.load(Ordering::Relaxed)) else {
            return Ok(());
        };
        let component = GuestComponent::built_in(W::WORLD);
        let job = self.engine.job(CompilerCores::One);
        let compiled = self.cache.load(&job, component)?;
        let optimised = GuestCode {
            world: prepare_guest(&self.engine, &compiled)?,
            engine: Arc::clone(&self.engine),
        };
        let baseline = guest.code();
        guest.replace_code(optimised);
        self.cache.remove(baseline.engine.engine(), component);
        tracing::info!(guest = %W::WORLD, digest = %guest.digest, "a guest goes on with optimised code");
        Ok(())
    }

    /// Returns the compilation under way.
    pub(super) fn compilation(&self) -> Option<GuestCompilation> {
        self.progress.now()
    }

    /// Applies the choice for one world.
    pub(super) fn apply(&self, world: World, choice: &GuestCandidates) -> GuestSelectionResult {
        match world {
            World::Render => self.apply_to(&self.render, choice, None),
            World::Gate => self.apply_to(&self.gate, choice, None),
        }
    }

    /// Ends `load` at its next step.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether both worlds have a guest.
    pub(super) fn is_loaded(&self) -> bool {
        self.gate.is_loaded() && self.render.is_loaded()
    }

    /// Applies a choice; `baseline` makes the engine of the first code if no guest serves yet.
    fn apply_to<W: GuestWorldBindings>(
        &self,
        slot: &GuestSlot<W>,
        choice: &GuestCandidates,
        baseline: Option<BaselineEngineFactory<'_>>,
    ) -> GuestSelectionResult {
        let known = slot.loaded_guests();
        let mut applied = GuestSelectionResult::default();
        let mut left = choice.origins.iter();
        let mut found = None;
        for origin in left.by_ref() {
            if self.stopped.load(Ordering::Relaxed) {
                return applied;
            }
            match self.load_guest::<W>(origin, &known, baseline) {
                Ok(guest) => {
                    found = Some((origin, guest));
                    break;
                }
                Err(error) => {
                    tracing::error!(guest = %W::WORLD, from = %origin, error = format!("{error:#}"), "a guest cannot serve");
                    applied.failures.push(format!("{origin}: {error:#}"));
                }
            }
        }
        let Some((origin, guest)) = found else {
            slot.mark_failed(&applied.failures.join("; "));
            return applied;
        };
        applied.serves = Some(guest.digest);
        let was = slot.digest();
        // Until the standby guest is loaded, an already loaded one stands by, but never one that was just rolled back.
        let chosen = |digest: &GuestDigest| left.clone().any(|origin| origin.has(W::WORLD, digest));
        let next = known
            .into_iter()
            .find(|known| choice.on_trial && known.digest != guest.digest && chosen(&known.digest));
        if slot.swap(Arc::clone(&guest), next) {
            let world = W::WORLD.as_str();
            self.metrics
                .switches
                .get_or_create(&WorldLabels { world })
                .inc();
        }
        if was != Some(guest.digest) {
            let interface = guest.code().world.interface();
            tracing::info!(guest = %W::WORLD, from = %origin, digest = %guest.digest, %interface, "a guest serves");
            if let Some(end) = interface.taken_until() {
                let current = InterfaceVersion::current(W::WORLD);
                tracing::warn!(guest = %W::WORLD, from = %origin, %interface, "a guest speaks an earlier interface, which svc {end} refuses: build it against {current}");
            }
        }
        if choice.on_trial {
            let known = slot.loaded_guests();
            let before = left
                .filter_map(|origin| self.load_guest::<W>(origin, &known, None).ok())
                .find(|before| before.digest != guest.digest);
            slot.set_standby(&guest, before);
        }
        applied
    }

    /// Returns the guest of an origin, and loads it if need be.
    fn load_guest<W: GuestWorldBindings>(
        &self,
        origin: &GuestOrigin,
        known: &[Arc<LoadedGuest<W>>],
        baseline: Option<BaselineEngineFactory<'_>>,
    ) -> anyhow::Result<Arc<LoadedGuest<W>>> {
        let loaded = |digest: &GuestDigest| known.iter().find(|guest| guest.digest == *digest);
        if let GuestOrigin::File {
            digest: Some(digest),
            ..
        } = origin
            && let Some(guest) = loaded(digest)
        {
            return Ok(Arc::clone(guest));
        }
        let bytes = origin.read(W::WORLD)?;
        let component = match origin {
            GuestOrigin::BuiltIn => GuestComponent::built_in(W::WORLD),
            GuestOrigin::File { .. } => GuestComponent::of(&bytes),
        };
        let digest = component.digest;
        if let GuestOrigin::File {
            digest: Some(wanted),
            ..
        } = origin
        {
            anyhow::ensure!(
                *wanted == digest,
                "it is damaged: its digest is {digest}, not {wanted}"
            );
        }
        if let Some(guest) = loaded(&digest) {
            return Ok(Arc::clone(guest));
        }
        // The baseline compiler, which is the younger one, runs only this program's own components.
        let baseline = baseline.filter(|_| matches!(origin, GuestOrigin::BuiltIn));
        let code = self.code_of(component, baseline)?;
        Ok(Arc::new(LoadedGuest::new(digest, code)?))
    }

    /// Returns code of a component: what the cache has, else baseline code if there is a compiler for it, else optimised code.
    fn code_of<W: GuestWorldBindings>(
        &self,
        component: GuestComponent<'_>,
        baseline: Option<BaselineEngineFactory<'_>>,
    ) -> anyhow::Result<GuestCode<W>> {
        let is_only = self.startup_code == StartupCodeTier::BaselineOnly && baseline.is_some();
        let found = match is_only {
            true => None,
            false => self.cache.find(self.engine.engine(), component),
        };
        if found.is_none()
            && let Some(code) = baseline.and_then(|make| self.baseline_code(component, make))
        {
            return Ok(code);
        }
        anyhow::ensure!(
            found.is_some() || !self.stopped.load(Ordering::Relaxed),
            "the server stops"
        );
        let world = match found {
            Some(found) => prepare_guest(&self.engine, &found)?,
            None => self.compile_or_load(&self.engine, component)?,
        };
        Ok(GuestCode {
            world,
            engine: Arc::clone(&self.engine),
        })
    }

    /// Returns baseline code of a component; `None` if there is no baseline compiler.
    fn baseline_code<W: GuestWorldBindings>(
        &self,
        component: GuestComponent<'_>,
        make: BaselineEngineFactory<'_>,
    ) -> Option<GuestCode<W>> {
        let engine = make()?;
        match self.compile_or_load(&engine, component) {
            Ok(world) => Some(GuestCode { engine, world }),
            Err(error) => {
                tracing::warn!(guest = %W::WORLD, error = format!("{error:#}"), "there is no baseline code: publishing waits for optimised code");
                None
            }
        }
    }

    /// Compiles a component or loads it from the cache, and checks that it may serve as a guest of the world.
    ///
    /// # Errors
    ///
    /// The file is not a component, or [`prepare_guest`] refuses it.
    #[cfg(test)]
    pub(super) fn prepare_component<W: GuestWorldBindings>(
        &self,
        bytes: &[u8],
    ) -> anyhow::Result<W> {
        self.compile_or_load(&self.engine, GuestComponent::of(bytes))
    }

    /// Compiles a component with an engine or loads it from the cache, and reports progress.
    fn compile_or_load<W: GuestWorldBindings>(
        &self,
        engine: &GuestEngine,
        component: GuestComponent<'_>,
    ) -> anyhow::Result<W> {
        let job = engine.job(CompilerCores::All);
        let compiled = match self.cache.find(engine.engine(), component) {
            Some(found) => found,
            None => {
                let compile = || self.cache.load(&job, component);
                let bytes = component.bytes.len() as u64;
                self.progress.track(W::WORLD, bytes, compile)?
            }
        };
        prepare_guest(engine, &compiled)
    }
}

fn is_baseline<W>(guest: &Arc<LoadedGuest<W>>) -> bool {
    guest.code().engine.tier() == OptimizationTier::Baseline
}

impl GuestOrigin {
    fn read(&self, world: World) -> anyhow::Result<Cow<'static, [u8]>> {
        match self {
            Self::BuiltIn => Ok(Cow::Borrowed(built_in_component(world))),
            Self::File { path, .. } => read_component(path).map(Cow::Owned),
        }
    }

    /// Whether the component with this digest comes from here.
    fn has(&self, world: World, digest: &GuestDigest) -> bool {
        match self {
            Self::File {
                digest: Some(named),
                ..
            } => named == digest,
            _ => self
                .read(world)
                .is_ok_and(|bytes| GuestDigest::of(&bytes) == *digest),
        }
    }

    /// Returns the origin of a file, whatever its digest.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        Self::File {
            path: path.to_owned(),
            digest: None,
        }
    }
}

impl fmt::Display for GuestOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File { path, .. } => path.display().fmt(f),
        }
    }
}
