//! Components of guests: the two that are built in, and the digest by which the compiled code of one is found.

use super::values::{GuestDigest, World};

static RENDER_COMPONENT: &[u8] = include_bytes!(env!("SVC_GUEST_RENDER"));
static GATE_COMPONENT: &[u8] = include_bytes!(env!("SVC_GUEST_GATE"));
static RENDER_DIGEST: &[u8; 32] = include_bytes!(env!("SVC_GUEST_RENDER_DIGEST"));
static GATE_DIGEST: &[u8; 32] = include_bytes!(env!("SVC_GUEST_GATE_DIGEST"));

/// Returns the built-in component of a world.
#[must_use]
pub fn built_in_component(world: World) -> &'static [u8] {
    match world {
        World::Render => RENDER_COMPONENT,
        World::Gate => GATE_COMPONENT,
    }
}

/// Returns the digest of the built-in component of a world. The build has computed it: a start whose code is compiled already reads
/// nothing of the component.
#[must_use]
pub fn built_in_digest(world: World) -> GuestDigest {
    GuestDigest::from_bytes(match world {
        World::Render => *RENDER_DIGEST,
        World::Gate => *GATE_DIGEST,
    })
}

/// A component with its digest.
#[derive(Clone, Copy, Debug)]
pub(super) struct GuestComponent<'c> {
    pub(super) bytes: &'c [u8],
    pub(super) digest: GuestDigest,
}

impl<'c> GuestComponent<'c> {
    /// Computes the digest of a component.
    pub(super) fn of(bytes: &'c [u8]) -> Self {
        Self {
            bytes,
            digest: GuestDigest::of(bytes),
        }
    }
}

impl GuestComponent<'static> {
    /// Returns the built-in component of a world.
    pub(super) fn built_in(world: World) -> Self {
        Self {
            bytes: built_in_component(world),
            digest: built_in_digest(world),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_knows_the_digests_of_its_guests() {
        for world in World::ALL {
            assert_eq!(
                built_in_digest(world),
                GuestDigest::of(built_in_component(world))
            );
        }
    }
}
