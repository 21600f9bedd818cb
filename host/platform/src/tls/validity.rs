//! The validity period of a certificate, read from its DER.

use rustls::pki_types::CertificateDer;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{PrimitiveDateTime, UtcOffset};

use svc_base::clock::Timestamp;

const SEQUENCE_TAG: u8 = 0x30;
const INTEGER_TAG: u8 = 0x02;
/// Tag `[0]`, which contains the version.
const VERSION_TAG: u8 = 0xa0;
/// Two digits for the year, of 1950 to 2049 (RFC 5280, section 4.1.2.5.1).
const UTC_TIME: u8 = 0x17;
/// Four digits for the year.
const GENERALIZED_TIME: u8 = 0x18;
const TIME_FORMAT: &[BorrowedFormatItem<'_>] =
    format_description!("[year][month][day][hour][minute][second]Z");

/// Validity period of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValidityPeriod {
    /// Start of the period.
    pub(super) begins: Timestamp,
    /// End of the period.
    pub(super) ends: Timestamp,
}

impl ValidityPeriod {
    /// Reads the period; `None` if the bytes are not an X.509 certificate.
    pub(super) fn parse(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (certificate, _) = take_value(certificate, SEQUENCE_TAG)?;
        let (signed, _) = take_value(certificate, SEQUENCE_TAG)?;
        let signed = take_value(signed, VERSION_TAG).map_or(signed, |(_, rest)| rest);
        let (_, rest) = take_value(signed, INTEGER_TAG)?;
        let (_algorithm, rest) = take_value(rest, SEQUENCE_TAG)?;
        let (_issuer, rest) = take_value(rest, SEQUENCE_TAG)?;
        let (validity, _) = take_value(rest, SEQUENCE_TAG)?;
        let (begins, rest) = parse_time(validity)?;
        let (ends, _) = parse_time(rest)?;
        Some(Self { begins, ends })
    }

    /// Returns the time of the renewal: after two thirds of the period.
    pub(super) fn renewal_time(&self) -> Timestamp {
        let lasts = self.ends.0.saturating_sub(self.begins.0).max(0);
        Timestamp(self.ends.0.saturating_sub(lasts / 3))
    }
}

/// Splits off a DER value with a tag (X.690, section 8.1); returns its content and the rest.
fn take_value(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        short @ ..=0x7f => (usize::from(short), rest),
        // Three bytes of length are enough: larger values are refused.
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = digits
                .iter()
                .fold(0, |length, digit| length << 8 | usize::from(*digit));
            (length, rest)
        }
        _ => return None,
    };
    (found == tag).then(|| rest.split_at_checked(length))?
}

fn parse_time(bytes: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (text, rest) = match take_value(bytes, UTC_TIME) {
        Some((text, rest)) => {
            let text = std::str::from_utf8(text).ok()?;
            let century = if text < "50" { "20" } else { "19" };
            (format!("{century}{text}"), rest)
        }
        None => {
            let (text, rest) = take_value(bytes, GENERALIZED_TIME)?;
            (std::str::from_utf8(text).ok()?.to_owned(), rest)
        }
    };
    let at = PrimitiveDateTime::parse(&text, TIME_FORMAT).ok()?;
    let millis = at
        .assume_offset(UtcOffset::UTC)
        .unix_timestamp()
        .checked_mul(1_000)?;
    Some((Timestamp(millis), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_time_are_read() {
        for (years, begins, ends) in [
            (
                (2026, 2027),
                "2026-01-02T00:00:00.000Z",
                "2027-01-02T00:00:00.000Z",
            ),
            (
                (1975, 4096),
                "1975-01-02T00:00:00.000Z",
                "4096-01-02T00:00:00.000Z",
            ),
            (
                (2049, 2050),
                "2049-01-02T00:00:00.000Z",
                "2050-01-02T00:00:00.000Z",
            ),
        ] {
            let mut params = rcgen::CertificateParams::new(vec!["a.example".into()]).unwrap();
            params.not_before = rcgen::date_time_ymd(years.0, 1, 2);
            params.not_after = rcgen::date_time_ymd(years.1, 1, 2);
            let key = rcgen::KeyPair::generate().unwrap();
            let certificate = params.self_signed(&key).unwrap();
            let found = ValidityPeriod::parse(certificate.der()).unwrap();
            assert_eq!(found.begins, Timestamp::parse(begins).unwrap());
            assert_eq!(found.ends, Timestamp::parse(ends).unwrap());
            for cut in [0, 1, 5, 40, 80] {
                let cut = CertificateDer::from(certificate.der()[..cut].to_vec());
                assert_eq!(ValidityPeriod::parse(&cut), None);
            }
        }
    }

    #[test]
    fn a_certificate_is_renewed_after_two_thirds_of_it() {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let validity = ValidityPeriod {
            begins: at("2026-01-01T00:00:00Z"),
            ends: at("2026-04-01T00:00:00Z"),
        };
        assert_eq!(validity.renewal_time(), at("2026-03-02T00:00:00Z"));
    }
}
