//! Random numbers of a seed: the same ones on every machine.

/// Generator of one schedule: splitmix64.
pub(super) struct SeededRandom(u64);

impl SeededRandom {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `bound`, which is small.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns an index of something of this length, which is not empty.
    pub(super) fn index(&mut self, length: usize) -> usize {
        let bound = u64::try_from(length).unwrap();
        usize::try_from(self.below(bound)).unwrap()
    }

    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
