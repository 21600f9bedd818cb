//! Members of a JSON object, each once and unparsed: two parsers of a message must not see different values.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// Members of an object by name.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct JsonMembers(pub(super) BTreeMap<String, Box<RawValue>>);

impl<'de> Deserialize<'de> for JsonMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct UniqueMembersVisitor;

        impl<'de> Visitor<'de> for UniqueMembersVisitor {
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

        deserializer.deserialize_map(UniqueMembersVisitor)
    }
}

impl JsonMembers {
    /// Returns the value of a member, if it exists and has the requested type.
    pub(super) fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let json = self.0.get(name)?;
        serde_json::from_str(json.get()).ok()
    }
}
