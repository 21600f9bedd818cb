//! Interfaces that this host accepts: for each world the current version of its package and the previous one.
//!
//! A guest of the previous version is called through an adapter, such as `versions.rs`. `wit/README.md` says when a version ends.

use std::fmt;

use anyhow::Context as _;
use wasmparser::{Encoding, Parser, Payload};

use super::values::World;

/// A version of a guest package.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InterfaceVersion {
    /// Renderers of `svc:render@2.0.0`.
    Render2,
    /// Renderers of `svc:render@1.0.0`.
    Render1,
    /// Gates of `svc:gate@1.0.0`.
    Gate1,
}

impl InterfaceVersion {
    /// All accepted interfaces; the current one of each world comes first.
    pub const ALL: [Self; 3] = [Self::Render2, Self::Render1, Self::Gate1];

    /// Returns the current interface of a world.
    #[must_use]
    pub const fn current(world: World) -> Self {
        match world {
            World::Render => Self::Render2,
            World::Gate => Self::Gate1,
        }
    }

    /// Returns the world that it is a version of.
    #[must_use]
    pub const fn world(self) -> World {
        match self {
            Self::Render2 | Self::Render1 => World::Render,
            Self::Gate1 => World::Gate,
        }
    }

    /// Returns the version of the package.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::Render2 => "2.0.0",
            Self::Render1 | Self::Gate1 => "1.0.0",
        }
    }

    /// Returns the first version of this program that refuses guests of it; `None` for a current interface.
    #[must_use]
    pub const fn taken_until(self) -> Option<&'static str> {
        match self {
            Self::Render1 => Some("0.3.0"),
            Self::Render2 | Self::Gate1 => None,
        }
    }

    /// Returns the instance that a guest of it exports.
    pub(super) const fn export(self) -> &'static str {
        match self {
            Self::Render2 => "svc:render/renderer@2.0.0",
            Self::Render1 => "svc:render/renderer@1.0.0",
            Self::Gate1 => "svc:gate/judge@1.0.0",
        }
    }

    /// Finds the interface of a component by its exports, without compiling it.
    #[must_use]
    pub fn of_component(component: &[u8]) -> Option<Self> {
        Self::newest_among(&ImportAndExportNames::parse(component).ok()?.exports)
    }

    /// Finds the newest interface among a component's exports.
    pub(super) fn newest_among(exports: &[String]) -> Option<Self> {
        let is_exported = |known: &Self| exports.iter().any(|name| name == known.export());
        Self::ALL.into_iter().find(is_exported)
    }

    /// Lists the accepted versions of a world's package.
    pub(super) fn accepted_versions(world: World) -> String {
        let of_world = Self::ALL.iter().filter(|known| known.world() == world);
        let named = of_world.map(|known| match known.taken_until() {
            None => known.version().to_owned(),
            Some(end) => format!("{} until svc {end}", known.version()),
        });
        named.collect::<Vec<_>>().join(", and ")
    }
}

impl fmt::Display for InterfaceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "svc:{}@{}", self.world(), self.version())
    }
}

/// Names of a component's imports and exports, without those of inner components.
#[derive(Debug, Default)]
pub(super) struct ImportAndExportNames {
    pub(super) imports: Vec<String>,
    pub(super) exports: Vec<String>,
}

impl ImportAndExportNames {
    /// Reads the names from a component.
    ///
    /// # Errors
    ///
    /// The bytes are no component.
    pub(super) fn parse(component: &[u8]) -> anyhow::Result<Self> {
        let mut names = Self::default();
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(component) {
            match payload.context("it is no component")? {
                Payload::Version { encoding, .. } => {
                    let is_component = encoding == Encoding::Component;
                    anyhow::ensure!(depth > 0 || is_component, "it is a module and no component");
                    depth += 1;
                }
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(imports) if depth == 1 => {
                    for import in imports {
                        names.imports.push(import?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(exports) if depth == 1 => {
                    for export in exports {
                        names.exports.push(export?.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_told_by_the_components_own_exports() {
        for interface in InterfaceVersion::ALL {
            let export = interface.export();
            // Names inside count for nothing.
            let inner =
                r#"(component (instance $i) (export "svc:gate/judge@9.0.0" (instance $i)))"#;
            let text = format!(
                r#"(component {inner} (instance $guest) (export "{export}" (instance $guest)))"#
            );
            let component = wat::parse_str(text).unwrap();
            assert_eq!(InterfaceVersion::of_component(&component), Some(interface));
            assert_eq!(
                ImportAndExportNames::parse(&component).unwrap().exports,
                [export]
            );
        }
        for other in ["(component)", "(module)"] {
            assert_eq!(
                InterfaceVersion::of_component(&wat::parse_str(other).unwrap()),
                None
            );
        }
        assert_eq!(InterfaceVersion::of_component(b"neither"), None);
    }

    #[test]
    fn each_world_has_one_current_interface_and_says_how_long_it_takes_another() {
        for interface in InterfaceVersion::ALL {
            let is_current = interface == InterfaceVersion::current(interface.world());
            assert_eq!(interface.taken_until().is_none(), is_current);
            // The named release no longer has an adapter for it.
            let minor = |version: &str| {
                version
                    .split('.')
                    .nth(1)
                    .and_then(|text| text.parse::<u32>().ok())
            };
            let ended = interface
                .taken_until()
                .is_some_and(|end| minor(env!("CARGO_PKG_VERSION")) >= minor(end));
            assert!(!ended, "{interface} is not taken any more: remove it");
        }
        assert_eq!(
            InterfaceVersion::accepted_versions(World::Render),
            "2.0.0, and 1.0.0 until svc 0.3.0"
        );
        assert_eq!(InterfaceVersion::accepted_versions(World::Gate), "1.0.0");
    }
}
