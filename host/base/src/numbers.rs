//! Whole numbers in JSON: 60, 60.0 and 6e1 are one number.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// Largest double below which all whole numbers are exact.
const LARGEST_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// A whole number from 0, in any spelling of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeNumber(pub u64);

impl<'de> Deserialize<'de> for WholeNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(WholeNumberVisitor).map(Self)
    }
}

/// Deserializes a whole number that may be absent or null, for `deserialize_with`.
///
/// # Errors
/// Anything that is neither null nor a whole number from 0.
pub fn optional_whole_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    let number = Option::<WholeNumber>::deserialize(deserializer)?;
    Ok(number.map(|number| number.0))
}

struct WholeNumberVisitor;

impl Visitor<'_> for WholeNumberVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        if number.fract() != 0.0 || !(0.0..=LARGEST_EXACT_INTEGER).contains(&number) {
            return Err(E::invalid_value(Unexpected::Float(number), &self));
        }
        // The number is whole and within the bounds of both types; `abs` removes the sign of a negative zero.
        format!("{:.0}", number.abs()).parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Example {
        #[serde(default, deserialize_with = "optional_whole_number")]
        count: Option<u64>,
    }

    #[test]
    fn a_number_is_whole_by_its_value() {
        for (json, count) in [
            ("{}", Ok(None)),
            (r#"{"count":null}"#, Ok(None)),
            (r#"{"count":0}"#, Ok(Some(0))),
            (r#"{"count":60}"#, Ok(Some(60))),
            (r#"{"count":60.0}"#, Ok(Some(60))),
            (r#"{"count":6e1}"#, Ok(Some(60))),
            (r#"{"count":-0.0}"#, Ok(Some(0))),
            (r#"{"count":18446744073709551615}"#, Ok(Some(u64::MAX))),
            (r#"{"count":60.5}"#, Err("60.5")),
            (r#"{"count":-1}"#, Err("-1")),
            (r#"{"count":-1.0}"#, Err("-1.0")),
            (r#"{"count":1e300}"#, Err("1e+300")),
            (r#"{"count":"60"}"#, Err("string")),
            (r#"{"count":true}"#, Err("boolean")),
        ] {
            let found = serde_json::from_str::<Example>(json);
            match (found, count) {
                (Ok(found), Ok(count)) => assert_eq!(found.count, count, "{json}"),
                (Err(error), Err(says)) => {
                    assert!(error.to_string().contains(says), "{json}: {error}");
                }
                (found, _) => panic!("{json}: {:?}", found.map(|found| found.count)),
            }
        }
    }
}
