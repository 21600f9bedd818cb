//! Sizes of files and functions.

use super::*;

/// A source file of more lines than this, its unit tests included, has to say why it is one thing. The number asks a question; it is
/// no reason to split what belongs together.
const LINES: usize = 600;

/// Sources, by the ends of their names.
const SOURCES: [&str; 6] = [".rs", ".js", ".mjs", ".ts", ".css", ".py"];

/// Files past [`LINES`], each with the answer.
const LONG: [(&str, &str); 2] = [
    (
        "host/client/src/responses.rs",
        "the rules of every answer that the client reads",
    ),
    (
        "host/client/src/error.rs",
        "a failure of a command, and how it is told to people and to programs",
    ),
];

/// The most lines that a function has, tests aside.
const FUNCTION_LINES: usize = 60;

/// Longer functions, each with the reason: all are tables.
const LONG_FUNCTIONS: [(&str, &str, &str); 13] = [
    (
        "host/platform/src/config/mod.rs",
        "resolve",
        "a line for each setting",
    ),
    ("host/src/app/mod.rs", "assemble", "a line for each service"),
    ("host/src/router/mod.rs", "api", "a line for each route"),
    ("host/src/router/mod.rs", "project", "a line for each route"),
    (
        "host/src/router/mod.rs",
        "owner_operations",
        "a line for each route",
    ),
    (
        "host/backends/src/backends/problems.rs",
        "from",
        "an arm for each error",
    ),
    (
        "host/api/src/operations.rs",
        "rows",
        "a line for each operation",
    ),
    (
        "host/api/src/mcp/tools/manage_project.rs",
        "call",
        "an arm for each action of the tool",
    ),
    (
        "host/api/src/mcp/tools/manage_backend.rs",
        "call",
        "an arm for each action of the tool",
    ),
    ("host/src/gauges.rs", "register", "a line for each gauge"),
    (
        "guest-gate/src/walk/expression.rs",
        "walk_expression",
        "an arm for each kind of expression",
    ),
    (
        "guest-gate/src/walk/statement.rs",
        "walk_statement",
        "an arm for each kind of statement",
    ),
    (
        "guest-gate/src/parse.rs",
        "is_name",
        "a line for each kind of token",
    ),
];

#[test]
fn a_long_file_says_why_it_is_one() {
    let mut found = Vec::new();
    for (path, text) in SOURCES.into_iter().flat_map(sources) {
        let lines = text.lines().count();
        let listed = LONG.iter().any(|(long, _)| *long == path);
        if lines > LINES && !listed {
            found.push(format!("{path} has {lines} lines: is it one thing?"));
        }
        if listed && lines <= LINES {
            found.push(format!("{path} has {lines} lines: take it off the list"));
        }
    }
    for (path, _) in LONG {
        if !root().join(path).is_file() {
            found.push(format!("{path} is listed and is not there"));
        }
    }
    assert_none(
        &found,
        &format!(
            "a source of more than {LINES} lines is split where it is several things, or listed with the reason why it is one"
        ),
    );
}

/// The functions of a source, each with the number of its lines.
fn functions(code: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        let Some((before, after)) = text.split_once("fn ") else {
            continue;
        };
        let words = ["pub", "const", "async", "unsafe", "extern"];
        let is_item = before
            .split_whitespace()
            .all(|word| words.iter().any(|known| word.starts_with(known)));
        let mut head = lines[at..]
            .iter()
            .filter(|line| line.ends_with([';', '{', '}']));
        let is_declaration = head.next().is_none_or(|line| line.ends_with(';'));
        if !is_item || is_declaration {
            continue;
        }
        let name = after
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_');
        let indent = &line[..line.len() - text.len()];
        let end = format!("{indent}}}");
        let length = lines[at..].iter().position(|line| *line == end);
        found.push((name.collect(), length.map_or(1, |length| length + 1)));
    }
    found
}

#[test]
fn functions_are_short() {
    let mut found = Vec::new();
    let mut listed = Vec::new();
    for (path, text) in sources(".rs") {
        if is_test(&path) {
            continue;
        }
        let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for (name, lines) in functions(production) {
            let known = LONG_FUNCTIONS
                .iter()
                .find(|(file, function, _)| *file == path && *function == name);
            match known {
                Some(known) if lines > FUNCTION_LINES => listed.push(*known),
                None if lines > FUNCTION_LINES => {
                    found.push(format!("{path}: {name} has {lines} lines"));
                }
                _ => {}
            }
        }
    }
    for known in LONG_FUNCTIONS
        .iter()
        .filter(|known| !listed.contains(known))
    {
        found.push(format!(
            "{}: {} may be taken off the list",
            known.0, known.1
        ));
    }
    assert_none(
        &found,
        &format!("a function has {FUNCTION_LINES} lines at most, but for tables"),
    );
}

#[test]
fn long_functions_are_found() {
    let body = "    a();\n".repeat(70);
    let code = format!(
        "/// About.\npub(super) async fn long<T>(\n    a: T,\n) {{\n{body}}}\n\nfn short() {{}}\n"
    );
    let found = functions(&code);
    assert_eq!(found, [("long".to_owned(), 74), ("short".to_owned(), 1)]);
    assert!(functions("    // the fn of a comment\n    let f: fn (u8) = g;").is_empty());
    let declared = format!("    fn declared(\n        &self,\n    ) -> u8;\n}}\n{body}    }}\n");
    assert!(functions(&declared).is_empty());
}
