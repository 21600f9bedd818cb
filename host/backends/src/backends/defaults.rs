//! Values of binds that a call of an action may leave out.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::calls::is_reserved;
use super::calls::requests::read_params;
use svc_database::values::{self, Params, Value};
use svc_sandbox::AllowedStatement;

/// Maximum length of an action's defaults, in bytes of JSON: every call that leaves the params out has a copy of the values.
pub(super) const MAX_DEFAULTS_BYTES: usize = 65_536;
/// Maximum number of an action's defaults.
pub(super) const MAX_DEFAULTS: usize = 100;
/// Defaults of an action without any.
const NONE: &str = "{}";

/// Defaults of an action: a JSON object in the order of the statement's binds. The values are written in one way, so that defaults
/// are equal if their texts are; numbers are kept as they were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionDefaults(Box<str>);

impl Default for ActionDefaults {
    fn default() -> Self {
        Self(NONE.into())
    }
}

impl ActionDefaults {
    /// Checks the defaults of a statement.
    ///
    /// # Errors
    /// A sentence for the author of the action.
    pub(super) fn new(
        given: &[(String, Box<RawValue>)],
        statement: &AllowedStatement,
    ) -> Result<Self, String> {
        if given.len() > MAX_DEFAULTS {
            return Err(format!(
                "`defaults` has {} members; {MAX_DEFAULTS} is the most.",
                given.len()
            ));
        }
        let mut values = Vec::with_capacity(given.len());
        for (name, json) in given {
            if is_reserved(name) {
                return Err(format!(
                    "`defaults`: `{name}` begins with svc_, so the platform gives it: leave it out."
                ));
            }
            let bind = statement.binds.iter().position(|bind| bind == name);
            let Some(bind) = bind else {
                return Err(format!(
                    "`defaults`: the statement has no bind `:{name}`. Correct the name, or leave it out."
                ));
            };
            let text = canonical(json)
                .map_err(|why| format!("`defaults`: the value of `{name}` {why}."))?;
            values.push((bind, name, text));
        }
        values.sort_unstable_by_key(|(bind, ..)| *bind);
        let members = values.iter().map(|(_, name, text)| {
            // A bind is a plain name.
            format!("\"{name}\":{text}")
        });
        let json = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
        if json.len() > MAX_DEFAULTS_BYTES {
            return Err(format!(
                "`defaults` has {} bytes as JSON; {MAX_DEFAULTS_BYTES} is the most.",
                json.len()
            ));
        }
        Ok(Self(json.into()))
    }

    /// Reads the column of a stored version.
    pub(super) fn from_column(json: Option<String>) -> Self {
        json.map_or_else(Self::default, |json| Self(json.into()))
    }

    /// Text of the column of a stored version; NULL without any default.
    pub(super) fn column(&self) -> Option<&str> {
        (&*self.0 != NONE).then_some(&*self.0)
    }

    /// Size of the JSON, in bytes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the values.
    pub(super) fn to_params(&self) -> Params {
        match self.column() {
            // A default is checked before it is stored, so it can be read.
            Some(json) => read_params(Some(json)).unwrap_or_default(),
            None => Params::new(),
        }
    }

    /// Returns the values as JSON, to define them again.
    pub(super) fn to_json_values(&self) -> Vec<(String, Box<RawValue>)> {
        super::calls::requests::read_raw_params(&self.0).unwrap_or_default()
    }
}

impl Serialize for ActionDefaults {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        json.serialize(serializer)
    }
}

/// Returns the one text of a value: equal values have equal texts, but for numbers, whose text is kept.
fn canonical(json: &RawValue) -> Result<String, &'static str> {
    Ok(match values::parse(json)? {
        Value::Text(text) => serde_json::Value::String(text).to_string(),
        blob @ Value::Blob(_) => values::to_json(&blob),
        Value::Null | Value::Integer(_) | Value::Real(_) => json.get().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_sandbox::StatementKind;

    fn defaults(json: &str) -> Result<ActionDefaults, String> {
        let binds = ["b", "a", "svc_user_id"];
        let statement = AllowedStatement {
            kind: StatementKind::Read,
            binds: binds.map(str::to_owned).to_vec(),
            returns_rows: true,
            tables: Vec::new(),
            view: None,
            parts: 0,
            start: 0,
            end: 0,
        };
        let given = crate::backends::calls::requests::read_raw_params(json).unwrap();
        ActionDefaults::new(&given, &statement)
    }

    #[test]
    fn defaults_have_one_text() {
        for (sent, kept) in [
            ("{}", "{}"),
            (r#"{ "a" : 1, "b" : 2 }"#, r#"{"b":2,"a":1}"#),
            (
                r#"{"a":9223372036854775807,"b":1.50}"#,
                r#"{"b":1.50,"a":9223372036854775807}"#,
            ),
            (r#"{"a":"\u00e9\/","b":null}"#, r#"{"b":null,"a":"é/"}"#),
            (
                r#"{"a":{ "base64" : "AAE\u003d" },"b":true}"#,
                r#"{"b":true,"a":{"base64":"AAE="}}"#,
            ),
        ] {
            let found = defaults(sent).unwrap();
            assert_eq!(&*found.0, kept);
            assert_eq!(serde_json::to_string(&found).unwrap(), kept);
            assert_eq!(
                ActionDefaults::from_column(found.column().map(str::to_owned)),
                found
            );
        }
    }

    #[test]
    fn a_default_of_something_else_is_refused() {
        for (sent, says) in [
            (r#"{"c":1}"#, "no bind `:c`"),
            (r#"{"A":1}"#, "no bind `:A`"),
            (r#"{"svc_user_id":1}"#, "begins with svc_"),
            (r#"{"Svc_x":1}"#, "begins with svc_"),
            (r#"{"a":[1]}"#, "is an array"),
            (r#"{"a":{"x":1}}"#, "an object other than"),
            (r#"{"a":9223372036854775808}"#, "outside of 64 bits"),
        ] {
            let refused = defaults(sent).unwrap_err();
            assert!(refused.contains(says), "{sent}: {refused}");
        }
        let long = |length| defaults(&format!(r#"{{"a":"{}"}}"#, "x".repeat(length)));
        long(MAX_DEFAULTS_BYTES - 8).unwrap();
        assert!(
            long(MAX_DEFAULTS_BYTES - 7)
                .unwrap_err()
                .contains("65536 is the most")
        );
    }
}
