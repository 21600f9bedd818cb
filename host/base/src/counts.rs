//! Counts by key: how much each client, network or tenant holds of something.

use std::collections::HashMap;
use std::hash::Hash;

/// Counts by key. A key that holds nothing takes no memory.
#[derive(Debug)]
pub struct CountsByKey<K>(HashMap<K, u64>);

impl<K> Default for CountsByKey<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> CountsByKey<K> {
    /// Returns how much a key holds.
    pub fn count(&self, key: &K) -> u64 {
        self.0.get(key).copied().unwrap_or(0)
    }

    /// Counts one more for a key.
    pub fn increment(&mut self, key: K) {
        *self.0.entry(key).or_default() += 1;
    }

    /// Counts one less for a key.
    pub fn decrement(&mut self, key: &K) {
        if let Some(count) = self.0.get_mut(key) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.0.remove(key);
            }
        }
    }

    /// Returns how many keys hold anything.
    pub fn keys(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_hold_nothing_are_forgotten() {
        let mut counts = CountsByKey::default();
        for key in ["a", "a", "b"] {
            counts.increment(key);
        }
        assert_eq!(
            (counts.count(&"a"), counts.count(&"b"), counts.keys()),
            (2, 1, 2)
        );
        for key in ["a", "b", "b", "c"] {
            counts.decrement(&key);
        }
        assert_eq!(
            (counts.count(&"a"), counts.count(&"b"), counts.keys()),
            (1, 0, 1)
        );
    }
}
