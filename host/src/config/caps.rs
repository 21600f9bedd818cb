//! Caps that all share, and the parts of them that others cannot take.
//!
//! Of each cap a part is kept for owners, and neither one client nor one owner passes a part of its own. So nobody who may
//! publish without a credential keeps owners out, and no owner keeps out the others.

use super::Limits;

/// A cap that all share, with its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Key of the cap in the settings.
    pub key: &'static str,
    /// The most that all hold together.
    pub whole: u64,
    /// The most that those hold together for whom no part is kept.
    pub strangers: u64,
    /// The most that one client without a credential holds.
    pub per_client: u64,
    /// The most that one owner holds.
    pub per_owner: u64,
}

/// Part of a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapPart {
    /// All of it.
    Whole,
    /// All but what is kept for owners.
    Strangers,
    /// One client's.
    Client,
    /// One owner's.
    Owner,
}

impl CapPart {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Strangers => "strangers",
            Self::Client => "client",
            Self::Owner => "owner",
        }
    }
}

/// Amounts that are held of a cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapUsage {
    /// Amount that all hold together.
    pub all: u64,
    /// Amount that those hold for whom no part is kept.
    pub strangers: u64,
    /// Amount that the one holds who asks for more.
    pub own: u64,
}

/// Kind of the one who asks for more of a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapHolder {
    /// A client without a credential.
    Client,
    /// An owner for whom no part is kept.
    NewOwner,
    /// An owner for whom a part is kept.
    Owner,
}

/// A cap that is reached, by the part that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` is reached: {}", .part.as_str())]
pub struct CapReached {
    /// Key of the cap in the settings.
    pub key: &'static str,
    /// The part that is reached.
    pub part: CapPart,
}

impl Cap {
    /// Refuses what would pass the cap, or the part of it that its holder may have.
    ///
    /// # Errors
    /// The widest part that is reached.
    pub fn check(&self, holder: CapHolder, held: CapUsage, more: u64) -> Result<(), CapReached> {
        let strangers = (CapPart::Strangers, held.strangers, self.strangers);
        let own = match holder {
            CapHolder::Client => (CapPart::Client, held.own, self.per_client),
            CapHolder::NewOwner | CapHolder::Owner => (CapPart::Owner, held.own, self.per_owner),
        };
        let parts = [
            Some((CapPart::Whole, held.all, self.whole)),
            (holder != CapHolder::Owner).then_some(strangers),
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
    pub fn deployments_cap(&self) -> Cap {
        self.cap("active_deployments", self.active_deployments)
    }

    /// Returns the cap on the bytes of quick shares.
    pub fn share_bytes_cap(&self) -> Cap {
        self.cap("share_bytes", self.share_bytes)
    }

    /// Returns the cap on backends.
    pub fn backends_cap(&self) -> Cap {
        self.cap("backends", self.backends)
    }

    /// Divides a cap into its parts.
    pub fn cap(&self, key: &'static str, whole: u64) -> Cap {
        let percent = |percent: u64| {
            let part = u128::from(whole) * u128::from(percent) / 100;
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let part = |of: u64| percent(of).max(self.cap_part_least).min(whole);
        Cap {
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
            let cap = limits.cap("k", whole);
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
        let cap = Limits::default().cap("k", 100);
        let held = |all, strangers, own| CapUsage {
            all,
            strangers,
            own,
        };
        for (holder, held, expected) in [
            (CapHolder::Client, held(0, 0, 0), None),
            (CapHolder::Client, held(9, 9, 9), None),
            (CapHolder::Client, held(10, 10, 10), Some(CapPart::Client)),
            (CapHolder::Client, held(80, 80, 0), Some(CapPart::Strangers)),
            (
                CapHolder::NewOwner,
                held(80, 80, 0),
                Some(CapPart::Strangers),
            ),
            (CapHolder::Owner, held(80, 80, 0), None),
            (CapHolder::Owner, held(50, 0, 50), Some(CapPart::Owner)),
            (CapHolder::Owner, held(100, 80, 0), Some(CapPart::Whole)),
            (CapHolder::Client, held(100, 80, 10), Some(CapPart::Whole)),
        ] {
            let reached = cap.check(holder, held, 1).err();
            assert_eq!(
                reached.map(|reached| reached.part),
                expected,
                "{holder:?} {held:?}"
            );
        }
        assert!(cap.check(CapHolder::Client, held(0, 0, 0), 11).is_err());
        let full = held(u64::MAX, u64::MAX, u64::MAX);
        assert!(cap.check(CapHolder::Owner, full, u64::MAX).is_err());
    }
}
