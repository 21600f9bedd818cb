//! A JSON document that is read for its syntax alone: nothing of it stays in memory, however many small parts it has.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Any JSON value, of which nothing is kept.
pub(super) struct JsonSyntax;

impl<'de> Deserialize<'de> for JsonSyntax {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not `deserialize_ignored_any`, which looks neither at escapes nor at the text of strings.
        deserializer.deserialize_any(JsonSyntaxVisitor)
    }
}

struct JsonSyntaxVisitor;

impl<'de> Visitor<'de> for JsonSyntaxVisitor {
    type Value = JsonSyntax;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<JsonSyntax, E> {
        Ok(JsonSyntax)
    }

    fn visit_bool<E>(self, _: bool) -> Result<JsonSyntax, E> {
        Ok(JsonSyntax)
    }

    fn visit_i64<E>(self, _: i64) -> Result<JsonSyntax, E> {
        Ok(JsonSyntax)
    }

    fn visit_u64<E>(self, _: u64) -> Result<JsonSyntax, E> {
        Ok(JsonSyntax)
    }

    fn visit_f64<E>(self, _: f64) -> Result<JsonSyntax, E> {
        Ok(JsonSyntax)
    }

    fn visit_str<E>(self, _: &str) -> Result<JsonSyntax, E> {
        Ok(JsonSyntax)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<JsonSyntax, A::Error> {
        while elements.next_element::<JsonSyntax>()?.is_some() {}
        Ok(JsonSyntax)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<JsonSyntax, A::Error> {
        while members.next_entry::<JsonSyntax, JsonSyntax>()?.is_some() {}
        Ok(JsonSyntax)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_is_judged_as_for_a_document_that_is_kept() {
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let documents = [
            "{\"a\":[1,-2,3.5,null,true,\"x\",{}]}".to_owned(),
            "{\"a\":1,}".to_owned(),
            "[1,2".to_owned(),
            "\"\\ud800\"".to_owned(),
            "{\"\\ud800\":1}".to_owned(),
            "\"\\q\"".to_owned(),
            "{1:2}".to_owned(),
            "1e999".to_owned(),
            "[] []".to_owned(),
            String::new(),
            deep(100),
            deep(200),
        ];
        for json in documents {
            let kept = serde_json::from_str::<serde_json::Value>(&json);
            let unkept = serde_json::from_str::<JsonSyntax>(&json);
            let told = |error: serde_json::Error| error.to_string();
            assert_eq!(
                unkept.map(drop).map_err(told),
                kept.map(drop).map_err(told),
                "{json}"
            );
        }
        assert!(serde_json::from_slice::<JsonSyntax>(b"\"\xff\"").is_err());
    }
}
