//! Caches that are bounded by what their values weigh.

use std::hash::Hash;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// A cache of about `items` values that together weigh `weight` at most, in `shards` parts with a lock and an equal share of the
/// weight each: what weighs more than a part is not kept.
pub fn weighted_cache<K, V, W>(
    items: usize,
    weight: u64,
    shards: usize,
    weighter: W,
) -> Cache<K, V, W>
where
    K: Eq + Hash,
    V: Clone,
    W: Weighter<K, V> + Clone,
{
    let options = OptionsBuilder::new()
        .estimated_items_capacity(items)
        .weight_capacity(weight)
        .shards(shards)
        .build();
    match options {
        Ok(options) => Cache::with_options(
            options,
            weighter,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        ),
        Err(_) => Cache::with_weighter(items, weight, weighter),
    }
}
