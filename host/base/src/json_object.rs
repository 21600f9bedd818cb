//! Objects in JSON: a list of an object's values, in the order of its members, is none.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

/// A value that is written as an object.
#[derive(Debug)]
pub struct JsonObject<T>(pub T);

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = JsonObject<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(JsonObject)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// Deserializes an object that may be null, for `deserialize_with`. Without this, serde takes a list of its members' values, too.
///
/// # Errors
/// Anything that is neither null nor an object, and those of the object's members.
pub fn optional_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let object = Option::<JsonObject<T>>::deserialize(deserializer)?;
    Ok(object.map(|JsonObject(value)| value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, PartialEq, Eq)]
    struct Outer {
        #[serde(default, deserialize_with = "optional_object")]
        inner: Option<Inner>,
    }

    #[derive(Debug, Deserialize, PartialEq, Eq)]
    struct Inner {
        a: Option<u8>,
    }

    #[test]
    fn a_list_is_no_object() {
        for (text, expected) in [
            ("{}", Some(None)),
            (r#"{"inner": null}"#, Some(None)),
            (r#"{"inner": {}}"#, Some(Some(Inner { a: None }))),
            (r#"{"inner": {"a": 1}}"#, Some(Some(Inner { a: Some(1) }))),
            (r#"{"inner": [1]}"#, None),
            (r#"{"inner": [null]}"#, None),
            (r#"{"inner": 1}"#, None),
        ] {
            let read = serde_json::from_str::<Outer>(text).ok();
            assert_eq!(read.map(|outer| outer.inner), expected, "{text}");
        }
    }
}
