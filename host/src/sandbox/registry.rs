//! The guests that serve: loaded in the background, checked before they serve, replaced while calls run.
//!
//! The components built into the host serve unless an operator installed newer ones, as
//! `<guests>/render/<name>.wasm` and `<guests>/gate/<name>.wasm`. Of several files in a folder the one whose name sorts last is the
//! newest, so names begin with a number of fixed width (`000002-….wasm`); names that begin with a dot are not
//! looked at, so that a file may be written under such a name and then renamed. One that cannot serve is named in the log,
//! and the next newest, at last the built-in one, serves in its place.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use arc_swap::ArcSwapOption;
use tokio::sync::watch;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, InstancePre};
use wasmtime::{Engine, Store};

use super::bindings::gate::GatePre;
use super::bindings::render::RenderPre;
use super::cache::Cache;
use super::engine::GuestEngine;
use super::limits::Limits;
use super::values::GuestDigest;
use super::wasi::{self, CallState};

static RENDER: &[u8] = include_bytes!(env!("SVC_GUEST_RENDER"));
static GATE: &[u8] = include_bytes!(env!("SVC_GUEST_GATE"));

/// The largest component that is looked at, in bytes.
const COMPONENT_BYTES: u64 = 64 << 20;

/// How long a caller waits for the guests at the start.
const LOADING: Duration = Duration::from_secs(60);

/// A world that guests implement.
pub(super) trait World: Sized + Send + Sync + 'static {
    /// The name of its folder, of its files in the cache, and in the log.
    const NAME: &'static str;

    /// The component built into the host.
    fn built_in() -> &'static [u8];

    /// What calls begin from, if the component exports the world.
    fn prepare(instance: InstancePre<CallState>) -> wasmtime::Result<Self>;

    /// Makes an instance and looks up the exports with their types.
    fn probe(&self, store: &mut Store<CallState>) -> wasmtime::Result<()>;
}

impl World for RenderPre<CallState> {
    const NAME: &'static str = "render";

    fn built_in() -> &'static [u8] {
        RENDER
    }

    fn prepare(instance: InstancePre<CallState>) -> wasmtime::Result<Self> {
        Self::new(instance)
    }

    fn probe(&self, store: &mut Store<CallState>) -> wasmtime::Result<()> {
        self.instantiate(store).map(drop)
    }
}

impl World for GatePre<CallState> {
    const NAME: &'static str = "gate";

    fn built_in() -> &'static [u8] {
        GATE
    }

    fn prepare(instance: InstancePre<CallState>) -> wasmtime::Result<Self> {
        Self::new(instance)
    }

    fn probe(&self, store: &mut Store<CallState>) -> wasmtime::Result<()> {
        self.instantiate(store).map(drop)
    }
}

/// A guest that serves.
pub(super) struct Guest<W> {
    pub(super) world: W,
    pub(super) digest: GuestDigest,
}

/// Why there is no guest to call.
#[derive(Debug)]
pub(super) enum Unready {
    /// It is still being loaded.
    Loading,
    /// It cannot be loaded.
    Failed(anyhow::Error),
}

#[derive(Clone, Debug)]
enum Progress {
    Loading,
    Loaded,
    Failed(Arc<str>),
}

/// The guest of one world. Calls hold the guest that they began with; a new one serves the calls that come after.
pub(super) struct Slot<W> {
    current: ArcSwapOption<Guest<W>>,
    progress: watch::Sender<Progress>,
}

impl<W: World> Slot<W> {
    fn new() -> Self {
        Self {
            current: ArcSwapOption::empty(),
            progress: watch::Sender::new(Progress::Loading),
        }
    }

    /// The guest, once it is loaded.
    pub(super) async fn guest(&self) -> Result<Arc<Guest<W>>, Unready> {
        if let Some(guest) = self.current.load_full() {
            return Ok(guest);
        }
        let mut progress = self.progress.subscribe();
        let known = progress.wait_for(|now| !matches!(now, Progress::Loading));
        let known = match tokio::time::timeout(LOADING, known).await {
            Err(_) | Ok(Err(_)) => return Err(Unready::Loading),
            Ok(Ok(known)) => known.clone(),
        };
        if let Progress::Failed(why) = known {
            return Err(Unready::Failed(anyhow::anyhow!("{why}")));
        }
        self.current.load_full().ok_or(Unready::Loading)
    }

    fn loaded(&self) -> bool {
        self.current.load().is_some()
    }

    fn digest(&self) -> Option<GuestDigest> {
        self.current.load().as_ref().map(|guest| guest.digest)
    }

    fn swap(&self, guest: Guest<W>) {
        self.current.store(Some(Arc::new(guest)));
        self.progress.send_replace(Progress::Loaded);
    }

    /// Notes that nothing can be loaded. What serves goes on serving.
    fn fail(&self, why: &anyhow::Error) {
        self.progress.send_if_modified(|progress| {
            let waiting = !matches!(progress, Progress::Loaded);
            if waiting {
                *progress = Progress::Failed(format!("{why:#}").into());
            }
            waiting
        });
    }
}

/// The guests of both worlds.
pub(super) struct Registry {
    engine: Arc<GuestEngine>,
    cache: Cache,
    dir: Option<PathBuf>,
    stopped: AtomicBool,
    pub(super) render: Slot<RenderPre<CallState>>,
    pub(super) gate: Slot<GatePre<CallState>>,
}

impl Registry {
    /// Guests from `dir`, else the built-in ones; nothing is loaded yet.
    pub(super) fn new(engine: Arc<GuestEngine>, cache: Cache, dir: Option<PathBuf>) -> Self {
        Self {
            engine,
            cache,
            dir,
            stopped: AtomicBool::new(false),
            render: Slot::new(),
            gate: Slot::new(),
        }
    }

    /// Loads the newest guests; those that serve go on until then.
    pub(super) fn load(&self) {
        // The gate first: it is by far the smaller.
        self.load_slot(&self.gate);
        self.load_slot(&self.render);
    }

    /// Ends a `load` at its next step.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether both worlds are served.
    pub(super) fn loaded(&self) -> bool {
        self.gate.loaded() && self.render.loaded()
    }

    /// Which guests serve: the renderer and the gate.
    pub(super) fn digests(&self) -> (Option<GuestDigest>, Option<GuestDigest>) {
        (self.render.digest(), self.gate.digest())
    }

    fn load_slot<W: World>(&self, slot: &Slot<W>) {
        let installed = self
            .dir
            .iter()
            .flat_map(|dir| newest_first(&dir.join(W::NAME)))
            .map(Some);
        let mut why = None;
        for candidate in installed.chain([None]) {
            if self.stopped.load(Ordering::Relaxed) {
                return;
            }
            let name = candidate.as_deref().map_or_else(
                || Cow::Borrowed("built in"),
                |path| path.to_string_lossy().into_owned().into(),
            );
            match self.candidate::<W>(candidate.as_deref()) {
                Ok(guest) => {
                    tracing::info!(guest = W::NAME, from = %name, digest = %guest.digest, "a guest serves");
                    return slot.swap(guest);
                }
                Err(error) => {
                    tracing::error!(guest = W::NAME, from = %name, error = format!("{error:#}"), "a guest cannot serve");
                    why = Some(error);
                }
            }
        }
        if let Some(why) = why {
            slot.fail(&why);
        }
    }

    fn candidate<W: World>(&self, path: Option<&Path>) -> anyhow::Result<Guest<W>> {
        let bytes = path.map_or(Ok(Cow::Borrowed(W::built_in())), |path| {
            read(path).map(Cow::Owned)
        })?;
        self.admit(&bytes)
    }

    /// Compiles a component, or finds it compiled, and checks that it may serve as a guest of the world.
    ///
    /// # Errors
    ///
    /// It is no component, imports what guests are not given, lacks the world's exports, or cannot be instantiated.
    pub(super) fn admit<W: World>(&self, bytes: &[u8]) -> anyhow::Result<Guest<W>> {
        let component = self.cache.load(self.engine.engine(), W::NAME, bytes)?;
        check_imports(self.engine.engine(), &component)?;
        let world = self
            .engine
            .linker()
            .instantiate_pre(&component)
            .and_then(W::prepare)
            .map_err(anyhow::Error::from)
            .with_context(|| format!("it is not a {} guest", W::NAME))?;
        let mut store = self.engine.store(&Limits::RENDER)?;
        world
            .probe(&mut store)
            .map_err(anyhow::Error::from)
            .context("it cannot be instantiated")?;
        Ok(Guest {
            world,
            digest: GuestDigest::of(bytes),
        })
    }
}

/// The components in a folder, the newest first; none where there is no folder.
fn newest_first(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension() == Some(OsStr::new("wasm")))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."))
        })
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    found
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let size = fs::metadata(path).context("cannot look at it")?.len();
    anyhow::ensure!(
        size <= COMPONENT_BYTES,
        "it has {size} bytes, of {COMPONENT_BYTES} allowed"
    );
    fs::read(path).context("cannot read it")
}

/// Refuses a component that imports more than the empty WASI set.
fn check_imports(engine: &Engine, component: &Component) -> anyhow::Result<()> {
    let refused: Vec<String> = component
        .component_type()
        .imports(engine)
        .filter(|(name, item)| !is_allowed(name) && !has_only_types(engine, &item.ty))
        .map(|(name, _)| name.to_owned())
        .collect();
    anyhow::ensure!(
        refused.is_empty(),
        "it imports what guests are not given: {}",
        refused.join(", ")
    );
    Ok(())
}

fn is_allowed(name: &str) -> bool {
    name.split_once('@').is_some_and(|(interface, version)| {
        version.starts_with("0.2.") && wasi::ALLOWED.contains(&interface)
    })
}

/// Whether an import is an interface that nothing can be called through: those of the worlds' own packages.
fn has_only_types(engine: &Engine, item: &ComponentItem) -> bool {
    match item {
        ComponentItem::ComponentInstance(instance) => instance
            .exports(engine)
            .all(|(_, export)| matches!(export.ty, ComponentItem::Type(_))),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_wasi_set_is_named_with_its_version() {
        assert!(is_allowed("wasi:io/streams@0.2.6"));
        assert!(is_allowed("wasi:io/streams@0.2.0"));
        assert!(!is_allowed("wasi:io/streams@0.3.0"));
        assert!(!is_allowed("wasi:io/streams"));
        assert!(!is_allowed("wasi:filesystem/types@0.2.6"));
        assert!(!is_allowed("wasi:sockets/tcp@0.2.6"));
        assert!(!is_allowed("wasi:http/outgoing-handler@0.2.6"));
    }

    #[test]
    fn the_newest_component_has_the_last_name() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "000001-a.wasm",
            "000002-b.wasm",
            ".000003.wasm",
            "notes.txt",
        ] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let found = newest_first(dir.path());
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(names, ["000002-b.wasm", "000001-a.wasm"]);
        assert!(newest_first(&dir.path().join("none")).is_empty());
    }
}
