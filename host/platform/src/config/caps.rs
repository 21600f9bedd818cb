//! Shared caps, and the parts of them that are reserved.
//!
//! A part of each cap is reserved for owners, and one client or one owner may hold only a part of it. So clients without a
//! credential cannot keep owners out, and no owner can keep out the others.

use super::Limits;

/// A shared cap with its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DividedCap {
    /// Key of the cap in the settings.
    pub key: &'static str,
    /// Most that all hold together.
    pub whole: u64,
    /// Most that holders without a reserved part hold together.
    pub strangers: u64,
    /// Most that one client without a credential holds.
    pub per_client: u64,
    /// Most that one owner holds.
    pub per_owner: u64,
}

/// Part of a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DividedCapPart {
    /// The whole cap.
    Whole,
    /// The part that is not reserved for owners.
    Strangers,
    /// The part of one client.
    Client,
    /// The part of one owner.
    Owner,
}

impl DividedCapPart {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Strangers => "strangers",
            Self::Client => "client",
            Self::Owner => "owner",
        }
    }
}

/// Amounts in use of a cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapUsage {
    /// Amount that all hold together.
    pub all: u64,
    /// Amount of the holders without a reserved part.
    pub strangers: u64,
    /// Amount of the holder that asks for more.
    pub own: u64,
}

/// Kind of the holder that asks for more of a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapHolderKind {
    /// A client without a credential.
    Client,
    /// An owner without a reserved part.
    NewOwner,
    /// An owner with a reserved part.
    Owner,
}

/// Error of a reached cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` is reached: {}", .part.as_str())]
pub struct CapReached {
    /// Key of the cap in the settings.
    pub key: &'static str,
    /// The reached part.
    pub part: DividedCapPart,
}

impl DividedCap {
    /// Refuses an amount that would exceed the cap or the holder's part of it.
    ///
    /// # Errors
    /// The widest part that is reached.
    pub fn check(
        &self,
        holder: CapHolderKind,
        held: CapUsage,
        more: u64,
    ) -> Result<(), CapReached> {
        let strangers = (DividedCapPart::Strangers, held.strangers, self.strangers);
        let own = match holder {
            CapHolderKind::Client => (DividedCapPart::Client, held.own, self.per_client),
            CapHolderKind::NewOwner | CapHolderKind::Owner => {
                (DividedCapPart::Owner, held.own, self.per_owner)
            }
        };
        let parts = [
            Some((DividedCapPart::Whole, held.all, self.whole)),
            (holder != CapHolderKind::Owner).then_some(strangers),
            Some(own),
        ];
        let mut parts = parts.into_iter().flatten();
        let key = self.key;
        match parts.find(|(_, held, most)| held.saturating_add(more) > *most) {
            Some((part, ..)) => Err(CapReached { key, part }),
            None => Ok(()),
        }
    }
}

impl Limits {
    /// Returns the cap on quick shares and frontends.
    pub fn deployments_cap(&self) -> DividedCap {
        self.divide_cap("active_deployments", self.active_deployments)
    }

    /// Returns the cap on the bytes of quick shares.
    pub fn share_bytes_cap(&self) -> DividedCap {
        self.divide_cap("share_bytes", self.share_bytes)
    }

    /// Returns the cap on backends.
    pub fn backends_cap(&self) -> DividedCap {
        self.divide_cap("backends", self.backends)
    }

    /// Divides a cap into its parts.
    pub fn divide_cap(&self, key: &'static str, whole: u64) -> DividedCap {
        let percent = |percent: u64| {
            let part = u128::from(whole) * u128::from(percent) / 100;
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let part = |of: u64| percent(of).max(self.cap_part_least).min(whole);
        DividedCap {
            key,
            whole,
            strangers: whole - percent(self.cap_owners_percent).min(whole),
            per_client: part(self.cap_client_percent),
            per_owner: part(self.cap_owner_percent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_divided_and_small_ones_are_not() {
        let limits = Limits::default();
        let parts = |whole| {
            let cap = limits.divide_cap("k", whole);
            (cap.strangers, cap.per_client, cap.per_owner)
        };
        for (whole, expected) in [
            (5_000, (4_000, 500, 2_500)),
            (250, (200, 25, 125)),
            (24, (20, 10, 12)),
            (4, (4, 4, 4)),
            (0, (0, 0, 0)),
            (
                u64::MAX,
                (u64::MAX - u64::MAX / 5, u64::MAX / 10, u64::MAX / 2),
            ),
        ] {
            assert_eq!(parts(whole), expected, "{whole}");
        }
    }

    #[test]
    fn what_is_reached_is_named() {
        let cap = Limits::default().divide_cap("k", 100);
        let held = |all, strangers, own| CapUsage {
            all,
            strangers,
            own,
        };
        for (holder, held, expected) in [
            (CapHolderKind::Client, held(0, 0, 0), None),
            (CapHolderKind::Client, held(9, 9, 9), None),
            (
                CapHolderKind::Client,
                held(10, 10, 10),
                Some(DividedCapPart::Client),
            ),
            (
                CapHolderKind::Client,
                held(80, 80, 0),
                Some(DividedCapPart::Strangers),
            ),
            (
                CapHolderKind::NewOwner,
                held(80, 80, 0),
                Some(DividedCapPart::Strangers),
            ),
            (CapHolderKind::Owner, held(80, 80, 0), None),
            (
                CapHolderKind::Owner,
                held(50, 0, 50),
                Some(DividedCapPart::Owner),
            ),
            (
                CapHolderKind::Owner,
                held(100, 80, 0),
                Some(DividedCapPart::Whole),
            ),
            (
                CapHolderKind::Client,
                held(100, 80, 10),
                Some(DividedCapPart::Whole),
            ),
        ] {
            let reached = cap.check(holder, held, 1).err();
            assert_eq!(
                reached.map(|reached| reached.part),
                expected,
                "{holder:?} {held:?}"
            );
        }
        assert!(cap.check(CapHolderKind::Client, held(0, 0, 0), 11).is_err());
        let full = held(u64::MAX, u64::MAX, u64::MAX);
        assert!(cap.check(CapHolderKind::Owner, full, u64::MAX).is_err());
    }
}
