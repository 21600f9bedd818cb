//! The operations that the console calls, held against the description: each is used, or listed with the reason why not.

use std::collections::BTreeMap;
use std::path::Path;

use super::ConsoleFixture;

/// The module that names the operations.
const MODULE: &str = "host/assets/console/app/api.js";

/// Reads the members of an object in the module, from the line that opens it to the one that closes it.
fn members(module: &str, opening: &str) -> BTreeMap<String, String> {
    let (_, rest) = module
        .split_once(opening)
        .unwrap_or_else(|| panic!("{MODULE} has no line `{opening}`"));
    let (object, _) = rest.split_once("\n};").unwrap();
    let lines = object.lines().map(str::trim);
    let members = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    let members = members.map(|line| {
        let (id, text) = line.split_once(": '").unwrap_or_else(|| panic!("{line}"));
        let text = text.trim_end_matches(',').trim_end_matches('\'');
        (id.to_owned(), text.to_owned())
    });
    members.collect()
}

/// Returns a path without the names of its parameters.
fn shape(path: &str) -> String {
    let parts = path.split('/').map(|part| match part.starts_with('{') {
        true => "{}",
        false => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_operation_is_called_or_has_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let module = std::fs::read_to_string(root.join(MODULE));
    let module = module.unwrap_or_else(|error| panic!("{MODULE}: {error}"));
    let mut called = members(&module, "const operations = {\n");
    let mut unused = members(&module, "export const unused = {\n");
    let fixture = ConsoleFixture::start().await;
    let document = fixture.get("/api/v1/openapi.json").await.expect(200).json();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation.get("x-role").is_none() {
                continue;
            }
            let id = operation["operationId"].as_str().unwrap();
            match (called.remove(id), unused.remove(id)) {
                (Some(line), None) => {
                    let mut words = line.split(' ');
                    let (verb, below) = (words.next().unwrap(), words.next().unwrap());
                    let is_same = verb.eq_ignore_ascii_case(method)
                        && shape(&format!("/api/v1{below}")) == shape(path);
                    if !is_same {
                        found.push(format!("{id} is `{line}`, and not {method} {path}"));
                    }
                }
                (None, Some(reason)) if reason.len() > 10 => {}
                (None, _) => found.push(format!("{id} is neither called nor given a reason")),
                (Some(_), Some(_)) => found.push(format!("{id} is called, and said not to be")),
            }
        }
    }
    found.extend(called.keys().map(|id| format!("{id} is no operation")));
    found.extend(unused.keys().map(|id| format!("{id} is no operation")));
    assert!(found.is_empty(), "{}", found.join("\n"));
}
