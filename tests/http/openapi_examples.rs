//! Examples of the description: every JSON body has one, and each is what its schema says.

use serde_json::Value;
use svc_tests::TestServer;

use crate::openapi::{description, operations};

/// Why a document does not fit a schema, as far as the description's schemas go.
pub(crate) fn schema_mismatch(
    description: &Value,
    schema: &Value,
    document: &Value,
) -> Option<String> {
    let fits = |schema: &Value| schema_mismatch(description, schema, document).is_none();
    if let Some(reference) = schema["$ref"].as_str() {
        let schema = description.pointer(&reference[1..]).unwrap();
        return schema_mismatch(description, schema, document);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().filter(|choice| fits(choice)).count();
        if fitting != 1 {
            return Some(format!("{document} is {fitting} of {choices:?}"));
        }
    }
    if let Some(choices) = schema["anyOf"].as_array()
        && !choices.iter().any(fits)
    {
        return Some(format!("{document} is none of {choices:?}"));
    }
    if schema.get("not").is_some_and(fits) {
        return Some(format!("{document} is what it must not be"));
    }
    let all = schema["allOf"].as_array().into_iter().flatten();
    let parts = all.filter_map(|part| schema_mismatch(description, part, document));
    let own = [
        kind_mismatch(schema, document),
        value_mismatch(schema, document),
    ];
    parts
        .chain(own.into_iter().flatten())
        .chain(member_mismatch(description, schema, document))
        .next()
}

fn kind_mismatch(schema: &Value, document: &Value) -> Option<String> {
    let wanted = match &schema["type"] {
        Value::Null => return None,
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let is = |kind: &Value| match kind.as_str().unwrap() {
        "null" => document.is_null(),
        "boolean" => document.is_boolean(),
        "integer" => document
            .as_f64()
            .is_some_and(|number| number.fract() == 0.0),
        "number" => document.is_number(),
        "string" => document.is_string(),
        "array" => document.is_array(),
        "object" => document.is_object(),
        other => panic!("no type {other}"),
    };
    (!wanted.iter().any(is)).then(|| format!("{document} is no {wanted:?}"))
}

fn value_mismatch(schema: &Value, document: &Value) -> Option<String> {
    let choices = schema["enum"].as_array();
    let known = choices.is_none_or(|choices| choices.contains(document))
        && schema.get("const").is_none_or(|only| only == document);
    let least = schema["minimum"].as_f64().unwrap_or(f64::MIN);
    let largest = schema["maximum"].as_f64().unwrap_or(f64::MAX);
    let enough = document
        .as_f64()
        .is_none_or(|number| (least..=largest).contains(&number));
    let within = |length: Option<usize>, least: &str, most: &str| {
        let least = schema[least].as_u64().unwrap_or(0);
        let most = schema[most].as_u64().unwrap_or(u64::MAX);
        length.is_none_or(|length| (least..=most).contains(&(length as u64)))
    };
    let length = document.as_str().map(|text| text.chars().count());
    let short = within(length, "minLength", "maxLength")
        && within(document.as_array().map(Vec::len), "minItems", "maxItems");
    (!(known && enough && short)).then(|| format!("{document} is not within {schema}"))
}

fn member_mismatch(description: &Value, schema: &Value, document: &Value) -> Option<String> {
    let items = document.as_array().into_iter().flatten();
    let mut items = items.filter_map(|item| schema_mismatch(description, &schema["items"], item));
    let Some(object) = document.as_object() else {
        return items.next();
    };
    let properties = schema["properties"].as_object();
    let required = schema["required"].as_array().into_iter().flatten();
    let missing = required
        .filter_map(Value::as_str)
        .find(|name| !object.contains_key(*name));
    if let Some(name) = missing {
        return Some(format!("{document} has no {name}"));
    }
    object.iter().find_map(|(name, member)| {
        match properties.and_then(|properties| properties.get(name)) {
            Some(schema) => schema_mismatch(description, schema, member),
            None if schema["additionalProperties"] == false => {
                Some(format!("{document} has a {name}"))
            }
            None => schema_mismatch(description, &schema["additionalProperties"], member),
        }
    })
}

#[tokio::test]
async fn every_json_body_has_examples_that_fit_its_schema() {
    let server = TestServer::start().await;
    let description = description(&server).await;
    let mut seen = 0;
    for (path, method, operation) in operations(&description) {
        let mut contents = vec![("request".to_owned(), &operation["requestBody"]["content"])];
        for (status, response) in operation["responses"].as_object().unwrap() {
            if status.starts_with('2') {
                contents.push((status.clone(), &response["content"]));
            }
        }
        for (part, content) in contents {
            let media = &content["application/json"];
            if media.is_null() {
                continue;
            }
            let named = media["examples"].as_object().into_iter().flatten();
            let mut examples: Vec<_> = named.map(|(_, example)| &example["value"]).collect();
            examples.extend(media.get("example"));
            assert!(!examples.is_empty(), "{method} {path}, {part}: no example");
            for example in examples {
                let misfit = schema_mismatch(&description, &media["schema"], example);
                assert_eq!(misfit, None, "{method} {path}, {part}");
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn a_document_that_does_not_fit_is_found() {
    let description = serde_json::json!({ "a": { "type": "object", "required": ["b"], "additionalProperties": false, "properties": {
        "b": { "type": "array", "items": { "enum": ["x"] } },
        "c": { "oneOf": [{ "type": "null" }, { "type": "integer", "minimum": 1 }] },
    } } });
    let schema = serde_json::json!({ "$ref": "#/a" });
    for (document, fits) in [
        (r#"{"b":["x"],"c":1}"#, true),
        (r#"{"b":[],"c":null}"#, true),
        (r#"{"c":1}"#, false),
        (r#"{"b":["y"]}"#, false),
        (r#"{"b":[],"c":0}"#, false),
        (r#"{"b":[],"d":0}"#, false),
        ("[]", false),
    ] {
        let found = schema_mismatch(
            &description,
            &schema,
            &serde_json::from_str(document).unwrap(),
        );
        assert_eq!(found.is_none(), fits, "{document}: {found:?}");
    }
}
