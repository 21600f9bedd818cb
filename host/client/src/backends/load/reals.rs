//! Real numbers on their way to the server. SQLite's own conversion of a text may miss a double by its last digit, so that a number
//! goes as two integers: a whole part, and the power of two by which it is multiplied. Both are exact, and so is their product.

/// Bits of the fraction of a double.
const FRACTION_BITS: u32 = 52;
/// Exponent of the lowest bit of the smallest doubles.
const MIN_EXPONENT: i64 = -1074;
/// Parts of the negative zero, which has a sign and no value: a power that is too small to be any.
const NEGATIVE_ZERO: (i64, i64) = (-1, -1100);

/// A double as `whole * 2^power`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RealParts {
    pub(super) whole: i64,
    pub(super) power: i64,
}

impl RealParts {
    /// Takes a finite number apart.
    pub(super) fn of(number: f64) -> Self {
        let bits = number.to_bits();
        let fraction = bits & ((1 << FRACTION_BITS) - 1);
        let exponent = i64::try_from((bits >> FRACTION_BITS) & 0x7ff).unwrap_or_default();
        let (whole, power) = match (exponent, fraction) {
            (0, 0) if number.is_sign_negative() => {
                let (whole, power) = NEGATIVE_ZERO;
                return Self { whole, power };
            }
            (0, 0) => return Self { whole: 0, power: 0 },
            // The smallest doubles have no leading one.
            (0, fraction) => (fraction, MIN_EXPONENT),
            (exponent, fraction) => (fraction | (1 << FRACTION_BITS), exponent - 1 + MIN_EXPONENT),
        };
        // A shorter whole part, for shorter requests.
        let zeros = whole.trailing_zeros();
        let whole = i64::try_from(whole >> zeros).unwrap_or_default();
        Self {
            whole: if number < 0.0 { -whole } else { whole },
            power: power + i64::from(zeros),
        }
    }

    /// Puts the number together, as the server does.
    pub(super) fn number(self) -> f64 {
        self.whole as f64 * 2f64.powf(self.power as f64)
    }
}

/// Reads a text that is a plain decimal number with a fraction or an exponent, as SQLite takes it for a column of numbers. `None` for
/// any other text, and for a number that is no finite double.
pub(super) fn parse_real(text: &str) -> Option<f64> {
    let is_plain = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let is_real = text.contains(['.', 'e', 'E']) && text.bytes().all(is_plain);
    let number: f64 = is_real.then(|| text.parse().ok()).flatten()?;
    number.is_finite().then_some(number)
}

/// Whether a column of this declared type makes numbers of texts, by SQLite's rules of affinity. A column of `ANY` may be of a strict
/// table, which keeps texts.
pub(super) fn makes_numbers(declared: &str) -> bool {
    let declared = declared.to_ascii_uppercase();
    let has = |parts: &[&str]| parts.iter().any(|part| declared.contains(part));
    let is_other = has(&["CHAR", "CLOB", "TEXT", "BLOB"]);
    let is_open = declared.trim().is_empty() || declared == "ANY";
    has(&["INT"]) || !(is_other || is_open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_double_is_put_together_as_it_was() {
        let mut bits = 0x9E37_79B9_7F4A_7C15_u64;
        let mut numbers = vec![
            0.0,
            -0.0,
            0.1,
            0.5,
            -941_989.543_432_770_5,
            0.300_000_000_000_000_04,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            5e-324,
            -5e-324,
            f64::from_bits((1 << FRACTION_BITS) - 1),
            1e300,
        ];
        while numbers.len() < 10_000 {
            bits = bits
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let number = f64::from_bits(bits ^ (bits >> 29));
            numbers.extend(number.is_finite().then_some(number));
        }
        for number in numbers {
            let parts = RealParts::of(number);
            let again = parts.number();
            assert_eq!(again.to_bits(), number.to_bits(), "{number:?} {parts:?}");
            assert!(parts.whole.unsigned_abs() < 1 << 53, "{parts:?}");
        }
        let short = RealParts {
            whole: 3,
            power: -1,
        };
        assert_eq!(RealParts::of(1.5), short);
    }

    #[test]
    fn only_plain_numbers_are_read() {
        for (text, expected) in [
            ("0.1", Some(0.1)),
            ("-941989.5434327705", Some(-941_989.543_432_770_5)),
            ("+1e3", Some(1000.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("7", None),
            ("1e", None),
            (".", None),
            ("1e999", None),
            ("1.2.3", None),
            (" 1.5", None),
            ("1,5", None),
            ("inf", None),
            ("nan", None),
            ("0x1.8", None),
            ("", None),
        ] {
            assert_eq!(parse_real(text), expected, "{text}");
        }
    }

    #[test]
    fn columns_make_numbers_by_their_types() {
        for (declared, expected) in [
            ("REAL", true),
            ("double precision", true),
            ("NUMERIC(10, 2)", true),
            ("DATETIME", true),
            ("INTEGER", true),
            ("TEXT", false),
            ("varchar(5)", false),
            ("BLOB", false),
            ("ANY", false),
            ("", false),
        ] {
            assert_eq!(makes_numbers(declared), expected, "{declared}");
        }
    }
}
