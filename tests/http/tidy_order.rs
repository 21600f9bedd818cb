//! The order of dependencies between the parts of the host, computed from their imports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Layers of the host, from the ground up, as ARCHITECTURE draws them: a part may use the layers below its own. Parts of one
/// layer do not know each other.
const LAYERS: &[&[&str]] = &[
    &["config", "data_lock", "permissions", "telemetry"],
    &["content", "control", "data_dir", "issuers", "log", "tls"],
    &["infra"],
    &["edge", "http", "overview"],
    &["activity"],
    &["stripe", "workspaces"],
    &["access"],
    &["projects"],
    &["deployments"],
    &["console", "gauges", "landing", "visitors"],
    &["backends"],
    &["guests", "payments", "realtime", "visitor_files"],
    &["check", "cluster", "envelope", "errands", "releases"],
    &["accounts", "backup", "stats"],
    &["operations"],
    &["mcp"],
    &["app", "openapi"],
    &["guides", "operators"],
    &["router"],
    &["server"],
    &["cli"],
];

/// Layers of `host/pages/src/deployments`, in the same way: services, and what they share.
const DEPLOYMENTS: &[&[&str]] = &[
    &[
        "address",
        "blocked",
        "forms",
        "once_files",
        "open_tabs",
        "problems",
        "requests",
        "views",
    ],
    &["model", "sites"],
    &["store"],
    &["collection", "operators", "serving"],
    &["publication", "reports"],
    &["files"],
    &["frontends", "rerender"],
    &["revisions", "shares"],
];

/// Packages that the parts lie in. The compiler keeps the order among them.
const PACKAGES: &[&str] = &[
    "host/platform/src",
    "host/pages/src",
    "host/backends/src",
    "host/api/src",
    "host/src",
];

/// Files that name the parts and are none.
const ROOTS: &[&str] = &["lib", "main"];

/// The source of each part below `root`, without comments and unit tests, by file.
fn parts(root: &str) -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(root);
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

/// The parts of `root` that some code uses: with `crate::` it is `crate::part` wherever it stands, and the members of `use crate::{…}`.
fn used_parts(root: &str, code: &str) -> BTreeSet<String> {
    let identifier = |text: &str| -> String {
        text.chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect()
    };
    let mut found = BTreeSet::new();
    for rest in code.split(root).skip(1) {
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

/// The layer of a part.
fn layer(layers: &[&[&str]], part: &str) -> Option<usize> {
    layers.iter().position(|layer| layer.contains(&part))
}

/// Uses of another part that is not below, as `file uses part`.
fn upward_uses(part: &str, file: &Path, code: &str) -> Vec<String> {
    upwards_in(LAYERS, "crate::", part, file, code)
}

/// Uses of another part that is not below, in these layers of the parts of `root`.
fn upwards_in(layers: &[&[&str]], root: &str, part: &str, file: &Path, code: &str) -> Vec<String> {
    let Some(own) = layer(layers, part) else {
        return vec![format!("{part} is in no layer")];
    };
    used_parts(root, code)
        .into_iter()
        .filter(|used| used != part && layer(layers, used).is_some_and(|layer| layer >= own))
        .map(|used| format!("{} uses {used}", file.display()))
        .collect()
}

#[test]
fn parts_use_what_is_below_them_and_no_peer() {
    let mut all = BTreeMap::new();
    for package in PACKAGES {
        for (part, files) in parts(package) {
            if !ROOTS.contains(&part.as_str()) {
                let twice = all.insert(part, files);
                assert!(twice.is_none(), "a part lies in one package");
            }
        }
    }
    let parts = all;
    let known: BTreeSet<&str> = parts.keys().map(String::as_str).collect();
    let drawn: BTreeSet<&str> = LAYERS.iter().copied().flatten().copied().collect();
    assert_eq!(known, drawn, "the parts of the host");
    let found: Vec<String> = parts
        .iter()
        .flat_map(|(part, files)| {
            files
                .iter()
                .flat_map(move |(file, code)| upward_uses(part, file, code))
        })
        .collect();
    assert!(found.is_empty(), "not below:\n  {}", found.join("\n  "));
}

#[test]
fn services_of_deployments_use_those_below_them_and_no_peer() {
    let mut parts = parts("host/pages/src/deployments");
    parts.remove("mod");
    let known: BTreeSet<&str> = parts.keys().map(String::as_str).collect();
    let drawn: BTreeSet<&str> = DEPLOYMENTS.iter().copied().flatten().copied().collect();
    assert_eq!(known, drawn, "the parts of deployments");
    let mut found = Vec::new();
    for (part, files) in &parts {
        for (file, code) in files {
            // In a file of the folder itself, and in the front of a service, `super` is the folder.
            let depth = file.components().count();
            let code = match depth == 1 || (depth == 2 && file.ends_with("mod.rs")) {
                true => code.replace("super::", "crate::deployments::"),
                false => code.clone(),
            };
            found.extend(upwards_in(
                DEPLOYMENTS,
                "crate::deployments::",
                part,
                file,
                &code,
            ));
        }
    }
    assert!(found.is_empty(), "not below:\n  {}", found.join("\n  "));
}

#[test]
fn the_drawing_has_the_layers() {
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md");
    let text = std::fs::read_to_string(text).unwrap();
    for (name, layers) in [(" layer ", LAYERS), (" deployments ", DEPLOYMENTS)] {
        let drawn: Vec<Vec<&str>> = text
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.split_once('│'))
            .map(|(_, parts)| parts.split_whitespace().collect())
            .collect();
        let from_the_top: Vec<Vec<&str>> =
            layers.iter().rev().map(|layer| layer.to_vec()).collect();
        assert_eq!(drawn, from_the_top);
    }
}

#[test]
fn every_way_of_using_what_is_not_below_is_found() {
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
        ("payments", "use crate::realtime::Rooms;"),
    ];
    for (part, code) in cases {
        let found = upward_uses(part, Path::new("file.rs"), code);
        assert_eq!(found.len(), 1, "{part}: {code}: {found:?}");
    }
    let allowed = "use crate::{config::Config, http::problem::{Code, Problem}};";
    assert!(upward_uses("projects", Path::new("file.rs"), allowed).is_empty());
}
