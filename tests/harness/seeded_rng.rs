//! Numbers that look random and are the same in every run.

/// A source of numbers; two with the same seed give the same.
#[derive(Debug)]
pub struct SeededRng(u64);

impl SeededRng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number, of 53 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    /// The next number below `end`.
    ///
    /// # Panics
    /// When `end` is zero.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.draw()).unwrap() % end
    }
}
