//! Links of the description: what an answer names is what the operations that it leads to take.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use svc_tests::TestServer;

use crate::openapi::{description, operations};

/// Links that must lead on: from where, and to where.
const LINK_CHAINS: [(&str, &[&str]); 6] = [
    ("deploy", &["page", "raw", "unlock", "report"]),
    (
        "create_project",
        &["get_project", "create_frontend", "create_backend"],
    ),
    (
        "create_backend",
        &["get_backend", "update_backend", "define_actions"],
    ),
    (
        "create_frontend",
        &[
            "get_frontend",
            "list_revisions",
            "get_content",
            "page",
            "call_action",
        ],
    ),
    ("list_revisions", &["create_revision"]),
    ("create_revision", &["promote_revision", "get_revision"]),
];

/// All operations by their ids.
async fn operations_by_id(server: &TestServer) -> BTreeMap<String, Value> {
    let operations = operations(&description(server).await).into_iter();
    let named = operations.map(|(_, _, operation)| {
        (
            operation["operationId"].as_str().unwrap().to_owned(),
            operation,
        )
    });
    named.collect()
}

/// The links of an operation, each with the status that it follows.
fn links(operation: &Value) -> Vec<(String, Value)> {
    let responses = operation["responses"].as_object().unwrap().iter();
    let links = responses.flat_map(|(status, response)| {
        let links = response["links"].as_object().into_iter().flatten();
        links.map(|(_, link)| (status.clone(), link.clone()))
    });
    links.collect()
}

/// The examples of a body.
fn examples(media: &Value) -> Vec<&Value> {
    let named = media["examples"].as_object().into_iter().flatten();
    named.map(|(_, example)| &example["value"]).collect()
}

/// The parameters of an operation, each with whether it must be there.
fn parameters(operation: &Value) -> BTreeMap<&str, bool> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let named = parameters.map(|parameter| {
        (
            parameter["name"].as_str().unwrap(),
            parameter["in"] == "path",
        )
    });
    named.collect()
}

/// Whether an expression is of something that the operation has: in its path, or in the examples of its bodies.
fn resolves(operation: &Value, status: &str, expression: &str) -> bool {
    let path = expression.strip_prefix("$request.path.");
    if let Some(name) = path {
        return parameters(operation).get(name) == Some(&true);
    }
    let (media, pointer) = match expression.split_once('#').unwrap() {
        ("$request.body", pointer) => (&operation["requestBody"], pointer),
        ("$response.body", pointer) => (&operation["responses"][status], pointer),
        other => panic!("{other:?}"),
    };
    let examples = examples(&media["content"]["application/json"]);
    examples
        .iter()
        .any(|example| example.pointer(pointer).is_some())
}

/// Whether a schema, or one of its alternatives, has a property.
fn has_property(description: &Value, schema: &Value, name: &str) -> bool {
    let alternatives = schema["oneOf"].as_array().into_iter().flatten();
    let mut alternatives = alternatives.map(|one| match one["$ref"].as_str() {
        Some(at) => description.pointer(&at[1..]).unwrap(),
        None => one,
    });
    schema["properties"].get(name).is_some()
        || alternatives.any(|one| has_property(description, one, name))
}

#[tokio::test]
async fn links_lead_to_operations_with_what_these_take() {
    let server = TestServer::start().await;
    let operations = operations_by_id(&server).await;
    let description = description(&server).await;
    let mut seen = 0;
    for (from, operation) in &operations {
        for (status, link) in links(operation) {
            let to = link["operationId"].as_str().unwrap();
            let target = operations
                .get(to)
                .unwrap_or_else(|| panic!("{from} leads to {to}"));
            let given = link["parameters"].as_object().cloned().unwrap_or_default();
            let taken = parameters(target);
            for name in given.keys() {
                assert!(taken.contains_key(name.as_str()), "{from} to {to}: {name}");
            }
            let body = link["requestBody"].as_object().cloned().unwrap_or_default();
            let schema = &target["requestBody"]["content"]["application/json"]["schema"]["$ref"];
            let schema = schema.as_str().and_then(|at| description.pointer(&at[1..]));
            for name in body.keys() {
                assert!(
                    has_property(&description, schema.unwrap(), name),
                    "{from} to {to}: {name}"
                );
            }
            for (name, _) in taken.iter().filter(|(_, path)| **path) {
                assert!(given.contains_key(*name), "{from} to {to} lacks {name}");
            }
            for expression in given.values().chain(body.values()) {
                let expression = expression.as_str().unwrap();
                assert!(
                    resolves(operation, &status, expression),
                    "{from} to {to}: {expression}"
                );
            }
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

#[tokio::test]
async fn what_is_made_leads_to_what_takes_it() {
    let server = TestServer::start().await;
    let operations = operations_by_id(&server).await;
    for (from, wanted) in LINK_CHAINS {
        let links = links(&operations[from]).into_iter();
        let found: BTreeSet<_> = links
            .map(|(_, link)| link["operationId"].as_str().unwrap().to_owned())
            .collect();
        for to in wanted {
            assert!(found.contains(*to), "{from} does not lead to {to}");
        }
    }
}
