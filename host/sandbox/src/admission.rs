//! Admission of components: a guest implements a world that this host knows, and imports nothing that guests are not given.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use super::bindings::gate::GatePre;
use super::cache::CompiledGuestCache;
use super::compiler::{CompilerCores, GuestCompiler, OptimizationTier};
use super::component::GuestComponent;
use super::engine::GuestEngine;
use super::interface::{ImportAndExportNames, InterfaceVersion};
use super::limits::GuestLimits;
use super::metrics::Metrics;
use super::registry::{GuestWorldBindings, prepare_guest};
use super::values::{GuestDigest, World};
use super::versions::PreparedRenderer;
use super::wasi;

/// Size limit of a component, in bytes.
pub const MAX_COMPONENT_BYTES: u64 = 64 << 20;

/// Findings about a component.
#[derive(Clone, Debug, Serialize)]
pub struct ComponentInspection {
    /// SHA-256 of the component.
    pub digest: GuestDigest,
    /// Size in bytes.
    pub bytes: u64,
    /// World of the component; absent if it is no guest.
    pub world: Option<World>,
    /// Version of the world's package.
    pub version: Option<String>,
    /// First version of this program that refuses that version; absent for the current one.
    pub taken_until: Option<&'static str>,
    /// Imports of the component.
    pub imports: Vec<String>,
    /// Reasons why it may not serve, a sentence each; empty if it may.
    pub refused: Vec<String>,
}

/// Inspects a component: compiles it into the cache and instantiates it within the limits of its world.
///
/// # Errors
/// An error of the cache or the engine; faults of the component are in the result.
pub fn inspect_component(
    cache_dir: &Path,
    limits: GuestLimits,
    bytes: &[u8],
) -> anyhow::Result<ComponentInspection> {
    let engine = GuestEngine::new(OptimizationTier::Optimised, 1, limits, Metrics::default())?;
    let cache = CompiledGuestCache::open(cache_dir.to_owned(), GuestCompiler::new(None))?;
    let component = GuestComponent::of(bytes);
    let mut found = ComponentInspection {
        digest: component.digest,
        bytes: bytes.len() as u64,
        world: None,
        version: None,
        taken_until: None,
        imports: Vec::new(),
        refused: Vec::new(),
    };
    if found.bytes > MAX_COMPONENT_BYTES {
        found.refused.push(too_large_reason(found.bytes));
        return Ok(found);
    }
    let names = match ImportAndExportNames::parse(bytes) {
        Ok(names) => names,
        Err(error) => {
            found.refused.push(format!("{error:#}"));
            return Ok(found);
        }
    };
    found.imports = names.imports;
    let interface = InterfaceVersion::newest_among(&names.exports);
    let known = interface.map(|known| (known.world(), known.version().to_owned()));
    let mut exports = names.exports.iter();
    let spoken = || exports.find_map(|export| world_of_export(export));
    let Some((world, version)) = known.or_else(spoken) else {
        found.refused.push(wrong_exports_reason(&names.exports));
        return Ok(found);
    };
    (found.world, found.version) = (Some(world), Some(version.clone()));
    let Some(interface) = interface else {
        let taken = InterfaceVersion::accepted_versions(world);
        found.refused.push(format!(
            "it is a guest of svc:{world}@{version}; this host takes {taken}"
        ));
        return Ok(found);
    };
    found.taken_until = interface.taken_until();
    let refusal = code_refusal((&engine, &cache), world, component);
    found.refused.extend(refusal);
    Ok(found)
}

/// Returns why the code of a component cannot serve its world; `None` if it can.
fn code_refusal(
    (engine, cache): (&GuestEngine, &CompiledGuestCache),
    world: World,
    component: GuestComponent<'_>,
) -> Option<String> {
    let compiled = match cache.load(&engine.job(CompilerCores::All), component) {
        Ok(compiled) => compiled,
        Err(error) => return Some(format!("{error:#}")),
    };
    let admitted = match world {
        World::Render => try_prepare::<PreparedRenderer>(engine, &compiled),
        World::Gate => try_prepare::<GatePre<_>>(engine, &compiled),
    };
    admitted.err().map(|error| format!("{error:#}"))
}

/// Reads the world and the version from the name of an export, for any version.
fn world_of_export(export: &str) -> Option<(World, String)> {
    let (name, version) = export.split_once('@')?;
    let known = |world: &World| {
        InterfaceVersion::current(*world)
            .export()
            .starts_with(&format!("{name}@"))
    };
    let world = World::ALL.into_iter().find(known)?;
    Some((world, version.to_owned()))
}

/// Explains that the exports are not those of a guest.
fn wrong_exports_reason(exports: &[String]) -> String {
    let known = World::ALL.map(|world| InterfaceVersion::current(world).export());
    let known = known.join(" or ");
    match exports {
        [] => format!("it exports nothing; a guest exports {known}"),
        exports => format!("it exports {}; a guest exports {known}", exports.join(", ")),
    }
}

fn try_prepare<W: GuestWorldBindings>(
    engine: &GuestEngine,
    component: &Component,
) -> anyhow::Result<()> {
    prepare_guest::<W>(engine, component).map(drop)
}

fn too_large_reason(bytes: u64) -> String {
    format!("it has {bytes} bytes, of {MAX_COMPONENT_BYTES} allowed")
}

/// Reads a component's file.
///
/// # Errors
/// An I/O error, or the file is too large.
pub fn read_component(path: &Path) -> anyhow::Result<Vec<u8>> {
    let size = fs::metadata(path).context("cannot look at it")?;
    anyhow::ensure!(size.is_file(), "it is no file");
    let size = size.len();
    anyhow::ensure!(size <= MAX_COMPONENT_BYTES, too_large_reason(size));
    let mut bytes = Vec::new();
    let file = fs::File::open(path).context("cannot open it")?;
    // The file may grow while it is read.
    let mut file = file.take(MAX_COMPONENT_BYTES + 1);
    file.read_to_end(&mut bytes).context("cannot read it")?;
    let size = bytes.len() as u64;
    anyhow::ensure!(size <= MAX_COMPONENT_BYTES, too_large_reason(size));
    Ok(bytes)
}

/// Refuses a component that imports more than the empty WASI set.
pub(super) fn check_imports(engine: &Engine, component: &Component) -> anyhow::Result<()> {
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
        version.starts_with("0.2.") && wasi::ALLOWED_IMPORTS.contains(&interface)
    })
}

/// Whether an import has types alone, so that nothing can be called through it: the worlds' own packages have.
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
}
