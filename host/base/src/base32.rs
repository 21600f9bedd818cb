//! Crockford's base 32 in lower case: 128 bits as 26 characters that a host name may have.

/// Digits, without those that look like others.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Number of characters of 128 bits.
const LENGTH: usize = 26;
const BITS_PER_DIGIT: u32 = 5;

/// Returns the characters of a number.
pub fn encode(number: u128) -> String {
    let digit = |place: usize| {
        let [lowest, ..] = (number >> (BITS_PER_DIGIT as usize * place)).to_le_bytes();
        char::from(DIGITS[usize::from(lowest & 31)])
    };
    (0..LENGTH).rev().map(digit).collect()
}

/// Reads a number; `None` for any other text than [`encode`] returns.
pub fn decode(text: &str) -> Option<u128> {
    if text.len() != LENGTH {
        return None;
    }
    let mut number: u128 = 0;
    for character in text.bytes() {
        let digit = DIGITS.iter().position(|digit| *digit == character)?;
        // Two bits of the first digit are beyond the number.
        if number.leading_zeros() < BITS_PER_DIGIT {
            return None;
        }
        number = (number << BITS_PER_DIGIT) | digit as u128;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_text() {
        for (number, text) in [
            (0, "00000000000000000000000000"),
            (31, "0000000000000000000000000z"),
            (u128::MAX, "7zzzzzzzzzzzzzzzzzzzzzzzzz"),
        ] {
            assert_eq!(encode(number), text);
            assert_eq!(decode(text), Some(number));
        }
        for text in [
            "",
            "0",
            "80000000000000000000000000",
            "zzzzzzzzzzzzzzzzzzzzzzzzzz",
            "0000000000000000000000000Z",
            "0000000000000000000000000i",
            "000000000000000000000000000",
            "00000000-00000000000000000",
            "0000000000000000000000000é",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
