//! The order of dependencies between the parts of the host, computed from their imports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The parts of `host/src`: each may use those before it, and none after it. ARCHITECTURE has the drawing.
const ORDER: &[&str] = &[
    "config",
    "log",
    "telemetry",
    "private",
    "data_lock",
    "data_dir",
    "tls",
    "issuers",
    "content",
    "control",
    "http",
    "stripe",
    "workspaces",
    "access",
    "edge",
    "projects",
    "deployments",
    "visitors",
    "backends",
    "realtime",
    "payments",
    "envelope",
    "accounts",
    "overview",
    "gauges",
    "guests",
    "check",
    "backup",
    "landing",
    "mcp",
    "operations",
    "openapi",
    "guides",
    "app",
    "router",
    "operators",
    "server",
    "cli",
    "lib",
    "main",
];

/// The source of each part, without comments and unit tests, by file.
fn parts() -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/src");
    let mut parts: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.file_name().unwrap().to_str().unwrap();
            if !name.ends_with(".rs") || name.ends_with("tests.rs") {
                continue;
            }
            let below = path.strip_prefix(&root).unwrap();
            let part = below.components().next().unwrap();
            let part = part.as_os_str().to_str().unwrap().trim_end_matches(".rs");
            let text = std::fs::read_to_string(&path).unwrap();
            let code = code(&text);
            parts
                .entry(part.to_owned())
                .or_default()
                .push((below.to_owned(), code));
        }
    }
    parts
}

fn code(text: &str) -> String {
    let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = production.lines();
    let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The parts that some code uses: `crate::part` wherever it stands, and the members of `use crate::{…}`.
fn used(code: &str) -> BTreeSet<String> {
    let identifier = |text: &str| -> String {
        text.chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect()
    };
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => {
                found.insert(identifier(rest));
            }
            Some(group) => {
                let mut depth = 1;
                let mut member = true;
                for (at, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        ',' if depth == 1 => member = true,
                        c if member && !c.is_whitespace() => {
                            found.insert(identifier(&group[at..]));
                            member = false;
                        }
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
        }
    }
    found
}

/// Uses of a later part by an earlier one, as `file uses part`.
fn backwards(part: &str, file: &Path, code: &str) -> Vec<String> {
    let place = |part: &str| ORDER.iter().position(|known| *known == part);
    let Some(own) = place(part) else {
        return vec![format!("{part} has no place in the order")];
    };
    used(code)
        .into_iter()
        .filter(|used| place(used).is_some_and(|place| place > own))
        .map(|used| format!("{} uses {used}", file.display()))
        .collect()
}

#[test]
fn parts_depend_in_one_direction() {
    let parts = parts();
    let known: BTreeSet<&str> = parts.keys().map(String::as_str).collect();
    assert_eq!(
        known,
        BTreeSet::from_iter(ORDER.iter().copied()),
        "the parts of the host"
    );
    let found: Vec<String> = parts
        .iter()
        .flat_map(|(part, files)| {
            files
                .iter()
                .flat_map(move |(file, code)| backwards(part, file, code))
        })
        .collect();
    assert!(
        found.is_empty(),
        "against the order:\n  {}",
        found.join("\n  ")
    );
}

#[test]
fn the_drawing_has_the_order() {
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md");
    let text = std::fs::read_to_string(text).unwrap();
    let (_, drawing) = text.split_once(" config ►").unwrap();
    let (drawing, _) = drawing.split_once("```").unwrap();
    let drawn = drawing.split('►').map(str::trim);
    let drawn: Vec<&str> = std::iter::once("config").chain(drawn).collect();
    assert_eq!([&drawn[..], &["lib", "main"]].concat(), ORDER);
}

#[test]
fn every_way_of_using_a_later_part_is_found() {
    let cases = [
        ("workspaces", "use crate::deployments::model::is_slug;"),
        (
            "projects",
            "use crate::deployments::frontends::{FrontendState, MemberSummary};",
        ),
        ("http", "use crate::app::{App, SharedApp};"),
        ("http", "use crate::{clock, router::Routers};"),
        (
            "http",
            "use crate::{\n    config::{Config, Limits},\n    workspaces,\n};",
        ),
        (
            "telemetry",
            "pub fn new(deployments: &crate::deployments::Deployments) {}",
        ),
        ("deployments", "    crate::backends::calls::call();"),
        (
            "backends",
            "impl FromRef<crate::app::SharedApp> for Backends {}",
        ),
        ("mcp", "use crate::router;"),
        ("landing", "use crate::app::App;"),
    ];
    for (part, code) in cases {
        let found = backwards(part, Path::new("file.rs"), code);
        assert_eq!(found.len(), 1, "{part}: {code}: {found:?}");
    }
    let allowed = "use crate::{config::Config, http::problem::{Code, Problem}};";
    assert!(backwards("projects", Path::new("file.rs"), allowed).is_empty());
}

#[test]
fn the_protocol_knows_no_domain() {
    let domains = [
        "workspaces",
        "projects",
        "deployments",
        "backends",
        "envelope",
    ];
    let http = parts().remove("http").unwrap();
    for (file, code) in http {
        let used = used(&code);
        let found: Vec<_> = domains.iter().filter(|d| used.contains(**d)).collect();
        assert!(found.is_empty(), "{} uses {found:?}", file.display());
    }
}
