//! Examples of the description, recorded from a server: `examples.json` has them by operation and by name.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

const EXAMPLES: &str = include_str!("examples.json");
/// Base URL in the recorded examples.
const BASE_URL: &str = "https://svc.example";
/// Statuses whose answers are complete JSON documents.
const ANSWERS: [&str; 3] = ["200", "201", "202"];

/// The examples of one operation, by name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OperationExamples {
    /// Examples of its request body.
    #[serde(default)]
    request: Map<String, Value>,
    /// Examples of its JSON answer.
    #[serde(default)]
    answer: Map<String, Value>,
}

/// Returns all examples by operation id, with this base URL.
pub(super) fn all_examples(base_url: &str) -> BTreeMap<String, OperationExamples> {
    serde_json::from_str(&EXAMPLES.replace(BASE_URL, base_url)).unwrap_or_default()
}

impl OperationExamples {
    /// Adds the examples to the body and the answers of the operation.
    pub(super) fn add_to(&self, operation: &mut Map<String, Value>) {
        let body = operation.get_mut("requestBody");
        let content = body.and_then(|body| body["content"].as_object_mut());
        for media in content.into_iter().flat_map(Map::values_mut) {
            add_named(media, &self.request);
        }
        let answers = operation
            .get_mut("responses")
            .and_then(Value::as_object_mut);
        for (status, answer) in answers.into_iter().flatten() {
            let json = answer.pointer_mut("/content/application~1json");
            if let Some(media) = json.filter(|_| ANSWERS.contains(&status.as_str())) {
                add_named(media, &self.answer);
            }
        }
    }
}

fn add_named(media: &mut Value, examples: &Map<String, Value>) {
    for (name, example) in examples {
        media["examples"][name] = json!({ "value": example });
    }
}
