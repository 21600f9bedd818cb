//! An object's members, each once and as it was written: two readers of a message must not see two things.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The members of an object, by their names.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct JsonMembers(pub(super) BTreeMap<String, Box<RawValue>>);

impl<'de> Deserialize<'de> for JsonMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Once;

        impl<'de> Visitor<'de> for Once {
            type Value = JsonMembers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonMembers, A::Error> {
                let mut members = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if members.contains_key(&name) {
                        return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
                    }
                    members.insert(name, map.next_value()?);
                }
                Ok(JsonMembers(members))
            }
        }

        deserializer.deserialize_map(Once)
    }
}

impl JsonMembers {
    /// The value of a member that can be read as what is wanted.
    pub(super) fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let json = self.0.get(name)?;
        serde_json::from_str(json.get()).ok()
    }
}
