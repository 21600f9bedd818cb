//! Codes that were sent and not entered yet. Each is valid once, for ten minutes, in one browser, for a few attempts.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ring::hmac;

use crate::outbound::mail::MailAddress;
use svc_base::clock::Timestamp;
use svc_base::random::{Random, RandomSourceError};

/// Lifetime of a code, in milliseconds.
const CODE_LIFETIME_MS: i64 = 600_000;
/// Number of wrong codes that end the right one.
const MAX_ATTEMPTS: u8 = 5;
/// Number of codes that there are: they have six digits.
const CODES: u32 = 1_000_000;
/// Maximum number of codes that wait; beyond it none is sent.
const MAX_CODES: usize = 20_000;

/// Codes by the ids of their sign-ins.
#[derive(Debug)]
pub(super) struct PendingCodes {
    /// Key of this process, which the codes are hashed with: a million codes are tried quickly.
    key: hmac::Key,
    held: Mutex<HashMap<String, PendingCode>>,
}

#[derive(Debug)]
struct PendingCode {
    hash: hmac::Tag,
    /// Hash of the token of the browser that asked.
    browser: String,
    address: MailAddress,
    at: Timestamp,
    attempts_left: u8,
}

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::visitors) enum CodeVerdict {
    /// The code was right, and is used up now; contains the address that it was sent to.
    Right(MailAddress),
    /// The code was wrong; contains the address that the right one was sent to, and how many attempts are left.
    Wrong(MailAddress, u8),
    /// There is no code, or none any more, or it is another browser's.
    Unknown,
}

impl PendingCode {
    fn is_expired(&self, now: Timestamp) -> bool {
        !(0..CODE_LIFETIME_MS).contains(&(now.0 - self.at.0))
    }
}

impl PendingCodes {
    /// Creates an empty store, with a new key.
    ///
    /// # Errors
    /// No randomness is available.
    pub(super) fn new(random: &Random) -> Result<Self, RandomSourceError> {
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &random.bytes::<32>()?),
            held: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, PendingCode>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a code in the place of an earlier one; returns whether there was room.
    pub(super) fn insert(
        &self,
        sign_in: &str,
        (code, browser): (&str, &str),
        address: MailAddress,
        now: Timestamp,
    ) -> bool {
        let mut held = self.lock();
        if held.len() >= MAX_CODES {
            held.retain(|_, one| !one.is_expired(now));
        }
        if held.len() >= MAX_CODES {
            return false;
        }
        let one = PendingCode {
            hash: hmac::sign(&self.key, &hashed_text(sign_in, code)),
            browser: browser.to_owned(),
            address,
            at: now,
            attempts_left: MAX_ATTEMPTS,
        };
        held.insert(sign_in.to_owned(), one);
        true
    }

    /// Removes a code that was not sent, unless another has taken its place.
    pub(super) fn remove(&self, sign_in: &str, code: &str) {
        let mut held = self.lock();
        if held
            .get(sign_in)
            .is_some_and(|one| self.is_right(one, sign_in, code))
        {
            held.remove(sign_in);
        }
    }

    /// Compares a code with the one of a sign-in. The attempt counts before it is compared.
    pub(super) fn check(
        &self,
        sign_in: &str,
        browser: Option<&str>,
        code: &str,
        now: Timestamp,
    ) -> CodeVerdict {
        let mut held = self.lock();
        let Some(one) = held.get_mut(sign_in) else {
            return CodeVerdict::Unknown;
        };
        // Another browser uses up no attempts.
        if one.is_expired(now) || browser != Some(one.browser.as_str()) {
            return CodeVerdict::Unknown;
        }
        one.attempts_left -= 1;
        let (address, left) = (one.address.clone(), one.attempts_left);
        let is_right = self.is_right(one, sign_in, code);
        if is_right || left == 0 {
            held.remove(sign_in);
        }
        match is_right {
            true => CodeVerdict::Right(address),
            false => CodeVerdict::Wrong(address, left),
        }
    }

    fn is_right(&self, one: &PendingCode, sign_in: &str, code: &str) -> bool {
        let text = hashed_text(sign_in, code);
        hmac::verify(&self.key, &text, one.hash.as_ref()).is_ok()
    }

    /// Removes expired codes.
    pub(super) fn remove_old(&self, now: Timestamp) {
        self.lock().retain(|_, one| !one.is_expired(now));
    }
}

fn hashed_text(sign_in: &str, code: &str) -> Vec<u8> {
    [sign_in.as_bytes(), &[0], code.as_bytes()].concat()
}

/// Generates a code; all are equally likely.
///
/// # Errors
/// No randomness is available.
pub(super) fn random_code(random: &Random) -> Result<String, RandomSourceError> {
    loop {
        let number = u32::from_le_bytes(random.bytes::<4>()?);
        // Numbers beyond the last whole run of all codes are rejected.
        if number < u32::MAX / CODES * CODES {
            return Ok(format!("{:06}", number % CODES));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes() -> (PendingCodes, MailAddress) {
        let codes = PendingCodes::new(&Random::system()).unwrap();
        (codes, MailAddress::parse("ada@example.com").unwrap())
    }

    #[test]
    fn a_code_is_used_once_in_time_and_by_its_browser() {
        let (codes, ada) = codes();
        let right = CodeVerdict::Right(ada.clone());
        for (browser, after, verdict) in [
            (Some("b"), 0, &right),
            (Some("b"), 599_999, &right),
            (Some("b"), 600_000, &CodeVerdict::Unknown),
            (Some("b"), -1, &CodeVerdict::Unknown),
            (Some("other"), 0, &CodeVerdict::Unknown),
            (None, 0, &CodeVerdict::Unknown),
        ] {
            codes.insert("s", ("012345", "b"), ada.clone(), Timestamp(1_000));
            let now = Timestamp(1_000 + after);
            let found = codes.check("s", browser, "012345", now);
            assert_eq!(found, *verdict, "{browser:?} {after}");
            if found == right {
                let again = codes.check("s", browser, "012345", now);
                assert_eq!(again, CodeVerdict::Unknown);
            }
        }
        codes.insert("s", ("012345", "b"), ada.clone(), Timestamp(1_000));
        let other = codes.check("t", Some("b"), "012345", Timestamp(1_000));
        assert_eq!(other, CodeVerdict::Unknown);
        codes.remove_old(Timestamp(700_000));
        assert!(codes.lock().is_empty());
    }

    #[test]
    fn the_fifth_wrong_code_ends_the_right_one() {
        let (codes, ada) = codes();
        let now = Timestamp(1_000);
        for round in 0..2 {
            codes.insert("s", ("111111", "b"), ada.clone(), now);
            for left in (0..5).rev() {
                let found = codes.check("s", Some("b"), "222222", now);
                assert_eq!(found, CodeVerdict::Wrong(ada.clone(), left), "{round}");
            }
            let late = codes.check("s", Some("b"), "111111", now);
            assert_eq!(late, CodeVerdict::Unknown);
        }
        // The last attempt may be right.
        codes.insert("s", ("111111", "b"), ada.clone(), now);
        for _ in 0..4 {
            codes.check("s", Some("b"), "222222", now);
        }
        let last = codes.check("s", Some("b"), "111111", now);
        assert_eq!(last, CodeVerdict::Right(ada));
    }

    #[test]
    fn a_race_has_five_attempts() {
        let (codes, ada) = codes();
        let now = Timestamp(1_000);
        codes.insert("s", ("999999", "b"), ada, now);
        let compared = std::thread::scope(|scope| {
            let guessers: Vec<_> = (0..16)
                .map(|first| {
                    let codes = &codes;
                    scope.spawn(move || {
                        let guesses = (0..625).map(|at| format!("{:06}", first * 625 + at));
                        let verdicts =
                            guesses.map(|guess| codes.check("s", Some("b"), &guess, now));
                        verdicts.filter(|one| *one != CodeVerdict::Unknown).count()
                    })
                })
                .collect();
            let compared = guessers.into_iter().map(|one| one.join().unwrap());
            compared.sum::<usize>()
        });
        assert_eq!(compared, 5);
    }

    #[test]
    fn only_the_newest_code_counts() {
        let (codes, ada) = codes();
        let now = Timestamp(1_000);
        codes.insert("s", ("111111", "b"), ada.clone(), now);
        codes.insert("s", ("222222", "b"), ada.clone(), now);
        codes.remove("s", "111111");
        let old = codes.check("s", Some("b"), "111111", now);
        assert_eq!(old, CodeVerdict::Wrong(ada.clone(), 4));
        let new = codes.check("s", Some("b"), "222222", now);
        assert_eq!(new, CodeVerdict::Right(ada.clone()));
        codes.insert("s", ("333333", "b"), ada, now);
        codes.remove("s", "333333");
        let removed = codes.check("s", Some("b"), "333333", now);
        assert_eq!(removed, CodeVerdict::Unknown);
    }

    #[test]
    fn codes_have_six_digits() {
        let random = Random::system();
        for _ in 0..1_000 {
            let code = random_code(&random).unwrap();
            assert!(code.len() == 6 && code.bytes().all(|b| b.is_ascii_digit()));
        }
    }
}
