//! Random numbers that are passed in: the operating system's generator behind one narrow type.

use ring::rand::{SecureRandom, SystemRandom};

/// Alphabet of random slugs: no vowels, so that no words come out, and no look-alikes.
const SLUG_ALPHABET: &[u8] = b"23456789bcdfghjkmnpqrstvwxz";

/// Whether a text has only characters that random slugs have.
pub fn is_random_slug(text: &str) -> bool {
    text.bytes().all(|b| SLUG_ALPHABET.contains(&b))
}

/// A cryptographically secure generator of random bytes.
#[derive(Clone, Debug)]
pub struct Random(SystemRandom);

/// The operating system gave no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random bytes")]
pub struct RandomSourceError;

impl Random {
    /// Returns the operating system's generator.
    pub fn system() -> Self {
        Self(SystemRandom::new())
    }

    /// Returns `N` random bytes.
    pub fn bytes<const N: usize>(&self) -> Result<[u8; N], RandomSourceError> {
        let mut bytes = [0; N];
        self.0.fill(&mut bytes).map_err(|_| RandomSourceError)?;
        Ok(bytes)
    }

    /// Returns a random slug of `length` characters. Each is one of 27 characters and has 4.7 bits.
    pub fn slug(&self, length: usize) -> Result<String, RandomSourceError> {
        let alphabet = SLUG_ALPHABET.len();
        let mut slug = String::with_capacity(length);
        while slug.len() < length {
            for byte in self.bytes::<16>()? {
                // Bytes beyond the last whole run of the alphabet are rejected: all characters stay equally likely.
                let byte = usize::from(byte);
                if byte < 256 / alphabet * alphabet && slug.len() < length {
                    slug.push(char::from(SLUG_ALPHABET[byte % alphabet]));
                }
            }
        }
        Ok(slug)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_have_their_length_and_alphabet() {
        let slug = Random::system().slug(10).unwrap();
        assert_eq!(slug.len(), 10);
        assert!(is_random_slug(&slug) && !is_random_slug("rhythm"));
    }
}
