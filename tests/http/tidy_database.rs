//! The layers of `host/database`, and that its files import each other without a circle: computed from their imports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The layers, from below, with their modules: a module uses those of its own layer and of the layers below. ARCHITECTURE has the drawing.
const LAYERS: &[(&str, &[&str])] = &[
    (
        "values",
        &[
            "advice",
            "catalog",
            "changed_tables",
            "columns",
            "commit_counter",
            "error",
            "files",
            "limits",
            "meter",
            "process_settings",
            "sql_tokens",
            "timing",
            "values",
            "wal",
            "watchdog",
        ],
    ),
    ("lanes", &["fair_queue", "lanes"]),
    ("walls", &["authorizer", "cost", "functions", "statements"]),
    (
        "connection",
        &[
            "batch",
            "connection",
            "files_tables",
            "migrate",
            "result_columns",
            "run",
            "schema",
            "schema_faults",
            "transaction",
            "uploads",
            "warnings",
        ],
    ),
    ("history", &["history"]),
    (
        "shipping",
        &[
            "base",
            "chain_builder",
            "database_state",
            "entry_body",
            "load",
            "replica",
            "ship",
        ],
    ),
    (
        "writer",
        &["group", "pending_commits", "pending_write", "writer"],
    ),
    (
        "database",
        &[
            "calls",
            "database",
            "exclusive",
            "missing_tables",
            "open_databases",
            "reader_pool",
            "reads",
        ],
    ),
    (
        "installation",
        &[
            "copy",
            "databases",
            "dry_run",
            "export",
            "integrity",
            "ledger_schema",
            "payment_mirror",
            "restore",
            "visitor_files",
        ],
    ),
    ("package", &["lib"]),
];

/// The source of each module, without comments and tests, by its path: `history/chain` is `history/chain.rs`, `history` its `mod.rs`.
type Modules = BTreeMap<String, String>;

fn modules() -> Modules {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/database/src");
    let mut found = Modules::new();
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                if name != "tests" {
                    open.push(path);
                }
                continue;
            }
            // Files that only tests compile.
            if name.ends_with("tests.rs") || name == "slow_values.rs" {
                continue;
            }
            let module = path.strip_prefix(&root).unwrap().to_str().unwrap();
            let module = module.trim_end_matches(".rs").trim_end_matches("/mod");
            let text = std::fs::read_to_string(&path).unwrap();
            found.insert(module.to_owned(), code(&text));
        }
    }
    found
}

/// Code without comments and without what only tests compile.
fn code(text: &str) -> String {
    let mut kept = Vec::new();
    let mut test = false;
    for line in text.lines() {
        if test {
            test = false;
            if line.ends_with('{') {
                // A module of tests is the last item of a file.
                break;
            }
            continue;
        }
        test = line == "#[cfg(test)]";
        if !test && !line.trim_start().starts_with("//") {
            kept.push(line);
        }
    }
    kept.join("\n")
}

/// The paths of a tree of imports: `a::{b::c, d}` is `a::b::c` and `a::d`.
fn paths(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((before, group)) = tree.split_once('{') else {
        return vec![tree.to_owned()];
    };
    let group = group.trim_end().trim_end_matches('}');
    let (mut depth, mut start, mut members) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                members.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    members.push(&group[start..]);
    let members = members
        .into_iter()
        .filter(|member| !member.trim().is_empty());
    members
        .flat_map(paths)
        .map(|path| format!("{before}{path}"))
        .collect()
}

/// All paths that some code names: those of its imports, and those that begin with `crate`, `self` or `super` elsewhere.
fn named_paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = String::new();
    let mut import: Option<String> = None;
    for line in code.lines() {
        let text = line.trim();
        let begins = text.split_once("use ").filter(|(before, _)| {
            before.is_empty() || before.starts_with("pub") && !before.contains("fn ")
        });
        match (&mut import, begins) {
            (Some(tree), _) => tree.push_str(text),
            (None, Some((_, tree))) => import = Some(tree.to_owned()),
            (None, None) => {
                rest.push_str(text);
                rest.push('\n');
            }
        }
        if let Some(tree) = import.take_if(|tree| tree.ends_with(';')) {
            found.extend(paths(tree.trim_end_matches(';')));
        }
        if let Some(child) = text
            .strip_suffix(';')
            .and_then(|text| text.split_once("mod "))
        {
            found.push(format!("self::{}", child.1));
        }
    }
    let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = rest.split(|c: char| !is_path(c)).map(str::to_owned);
    found.extend(words.filter(|word| word.contains("::")));
    found
}

/// The module that a path leads to, seen from another; `None` for what is no module of the package.
fn module_of(path: &str, from: &str, modules: &Modules) -> Option<String> {
    let mut at: Vec<&str> = match from {
        "lib" => Vec::new(),
        from => from.split('/').collect(),
    };
    let mut parts = path.split("::").peekable();
    match *parts.peek()? {
        "crate" => {
            parts.next();
            at.clear();
        }
        "self" => {
            parts.next();
        }
        "super" => {}
        // A child, or what was imported.
        child => {
            let child = [&at[..], &[child]].concat().join("/");
            modules.get(&child)?;
        }
    }
    while parts.next_if_eq(&"super").is_some() {
        at.pop();
    }
    for part in parts {
        let deeper = [&at[..], &[part]].concat();
        if !modules.contains_key(&deeper.join("/")) {
            break;
        }
        at = deeper;
    }
    Some(match at.is_empty() {
        true => "lib".to_owned(),
        false => at.join("/"),
    })
}

/// Modules that each module uses. A child may use its folder's `mod.rs`, of which it is a part.
fn uses(modules: &Modules) -> BTreeMap<String, BTreeSet<String>> {
    let used = |from: &String, code: &String| {
        let found = named_paths(code)
            .into_iter()
            .filter_map(|path| module_of(&path, from, modules));
        found
            .filter(|used| used != from && !from.starts_with(&format!("{used}/")))
            .collect()
    };
    modules
        .iter()
        .map(|(from, code)| (from.clone(), used(from, code)))
        .collect()
}

/// The modules of circles, each with what it uses of them.
fn cycles(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut left = uses.clone();
    loop {
        let before = left.len();
        // A module that uses nothing of what is left, or that nothing of it uses, is in no circle.
        let known: BTreeSet<String> = left.keys().cloned().collect();
        let used: BTreeSet<String> = left.values().flatten().cloned().collect();
        left.retain(|module, uses| used.contains(module) && !uses.is_disjoint(&known));
        if left.len() == before {
            break;
        }
    }
    let known: BTreeSet<String> = left.keys().cloned().collect();
    left.iter()
        .map(|(module, used)| {
            let used: Vec<_> = used.intersection(&known).map(String::as_str).collect();
            format!("{module} uses {}", used.join(", "))
        })
        .collect()
}

/// The layer of a module, counted from below.
fn layer(module: &str) -> Option<usize> {
    let top = module.split('/').next().unwrap_or(module);
    LAYERS
        .iter()
        .position(|(_, members)| members.contains(&top))
}

#[test]
fn the_files_of_the_package_have_an_order() {
    let circles = cycles(&uses(&modules()));
    assert!(circles.is_empty(), "a circle:\n  {}", circles.join("\n  "));
}

#[test]
fn a_layer_uses_the_layers_below_it() {
    let modules = modules();
    let top: BTreeSet<&str> = modules
        .keys()
        .map(|module| module.split('/').next().unwrap())
        .collect();
    let listed = LAYERS.iter().flat_map(|(_, members)| *members).copied();
    assert_eq!(top, listed.collect(), "the modules of the package");
    let mut found = Vec::new();
    for (module, used) in uses(&modules) {
        let above = used.iter().filter(|used| layer(used) > layer(&module));
        found.extend(above.map(|used| format!("{module} uses {used}")));
    }
    assert!(found.is_empty(), "upwards:\n  {}", found.join("\n  "));
}

#[test]
fn the_drawing_has_the_layers() {
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md");
    let text = std::fs::read_to_string(text).unwrap();
    let (_, drawing) = text.split_once("The layers of `host/database`").unwrap();
    let drawing = drawing.split("```").nth(1).unwrap();
    let mut drawn: Vec<Vec<&str>> = Vec::new();
    for line in drawing.lines().filter(|line| !line.trim().is_empty()) {
        let words = line.split_whitespace();
        match line.starts_with("   ") {
            true => drawn.last_mut().unwrap().extend(words),
            false => drawn.push(words.collect()),
        }
    }
    // The drawing has the highest layer first, but for the package's door.
    drawn.reverse();
    let listed = &LAYERS[..LAYERS.len() - 1];
    let listed = listed
        .iter()
        .map(|(name, members)| [&[*name], *members].concat());
    assert_eq!(drawn, listed.collect::<Vec<_>>());
}

#[test]
fn circles_are_found_by_every_kind_of_import() {
    let circle = |one: &str, other: &str| {
        let sources = [("lib", "mod a;\nmod b;"), ("a", one), ("b", other)];
        let own = |(module, text): (&str, &str)| (module.to_owned(), code(text));
        cycles(&uses(&sources.map(own).into()))
    };
    let to_b = "use super::b::B;";
    for to_a in [
        "use super::a::A;",
        "pub(super) use super::a;",
        "use super::{\n    a::{A, C},\n    b,\n};",
        "use crate::{a, b};",
        "fn f(a: &crate::a::A) {}",
        "fn f() {\n    super::a::f();\n}",
    ] {
        assert_eq!(circle(to_b, to_a).len(), 2, "{to_a}");
    }
    for free in [
        "",
        "// use super::a::A;",
        "#[cfg(test)]\nuse super::a::A;",
        "#[cfg(test)]\nmod tests {\n    use super::super::a::A;\n}",
        "use other::a::A;",
    ] {
        assert_eq!(circle(to_b, free), [""; 0], "{free}");
    }
    let sources = [
        ("lib", "mod a;"),
        ("a", "mod b;\nmod c;"),
        ("a/b", "use super::{D, c::C};"),
    ];
    let within = |last: &str| {
        let own = |(module, text): (&str, &str)| (module.to_owned(), code(text));
        let mut modules: Modules = sources.map(own).into();
        modules.insert("a/c".to_owned(), code(last));
        cycles(&uses(&modules))
    };
    assert_eq!(within("use super::D;"), [""; 0]);
    assert_eq!(within("use super::b::B;").len(), 2);
}
