//! `[[prices]]` of a manifest.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::faults::ManifestFault;
use svc_base::names::is_price_key;

/// A price in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceEntry {
    /// Name that a checkout takes.
    pub(super) key: String,
    /// Name of the product.
    pub(super) product: String,
    pub(super) label: String,
    /// Amount in minor units.
    pub(super) amount: u64,
    pub(super) currency: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) recurring: Option<Recurrence>,
    /// Description of the product; unchanged if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
}

/// How often a price is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "`recurring` is \"month\" or \"year\", or true for \"month\"; without it a price is paid once"
)]
pub(super) enum Recurrence {
    /// Whether it is paid each month.
    Monthly(bool),
    /// The time after which it is paid again.
    Every(Interval),
}

/// Time between two payments of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Interval {
    Month,
    Year,
}

impl PriceEntry {
    /// How often the price is paid; once, if none.
    pub(super) fn interval(&self) -> Option<Interval> {
        match self.recurring {
            None | Some(Recurrence::Monthly(false)) => None,
            Some(Recurrence::Monthly(true)) => Some(Interval::Month),
            Some(Recurrence::Every(interval)) => Some(interval),
        }
    }
}

/// Finds the fault of a list of prices: a key that is none, or that two have.
pub(super) fn fault_of_prices(prices: &[PriceEntry]) -> Option<ManifestFault> {
    let mut keys = BTreeSet::new();
    prices.iter().find_map(|price| {
        let key = &price.key;
        if !is_price_key(key) {
            let detail = format!(
                "The price `{key}` cannot have that key: use 1 to 64 of a-z, 0-9, _ and -, beginning with a letter, and not with `price_`."
            );
            return Some(ManifestFault::new(key, detail));
        }
        if price.amount == 0 {
            let detail = format!(
                "The price `{key}` has the amount 0: write it in minor units of the currency, such as cents."
            );
            return Some(ManifestFault::new(key, detail));
        }
        let is_second = !keys.insert(key);
        is_second.then(|| ManifestFault::new(key, format!("Two prices have the key `{key}`.")))
    })
}

/// Returns the prices of an environment: those that it names take the places of those with the same keys.
pub(super) fn prices_of_environment(top: &[PriceEntry], own: &[PriceEntry]) -> Vec<PriceEntry> {
    let is_replaced = |price: &&PriceEntry| own.iter().any(|one| one.key == price.key);
    let kept = top.iter().filter(|price| !is_replaced(price));
    kept.chain(own).cloned().collect()
}
