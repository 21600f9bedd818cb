//! The house rules that no compiler knows, by reading the sources.

mod caches;
mod comments;
mod places;
mod sizes;

use std::path::{Path, PathBuf};

/// Parts of the host that are no domain: what domains are built on, and what is built on them.
const FOUNDATION: [&str; 10] = [
    "access", "app", "cli", "config", "content", "control", "http", "openapi", "router", "server",
];

/// Files of a domain that speak HTTP and are not its routes.
const HTTP: [(&str, &str); 20] = [
    (
        "landing/mod.rs",
        "the form's page while guests are compiled, which is no page of the files that are made once",
    ),
    (
        "activity/outcome.rs",
        "how a request ended, for the log: read off its answer",
    ),
    (
        "backends/calls/call_log.rs",
        "the note of a call, which goes into the log when it is answered",
    ),
    (
        "deployments/serving/request_log.rs",
        "the layer around routes that writes their requests into the log",
    ),
    (
        "stats/follow.rs",
        "the end of the route of a log that is followed: a stream of events",
    ),
    (
        "mcp/transport.rs",
        "the way from a request to the protocol's library and back, for both endpoints of tools",
    ),
    (
        "accounts/scope.rs",
        "the extractor that gives a handler a workspace of its caller's",
    ),
    (
        "deployments/serving/answer.rs",
        "the end of the page routes: from finished bytes to an answer",
    ),
    (
        "deployments/serving/memory_answer.rs",
        "the end of the routes of sites, where all of an answer is in memory",
    ),
    (
        "deployments/serving/visitor_files.rs",
        "the end of the routes of visitors' files: from a reader to a body",
    ),
    (
        "visitor_files/form.rs",
        "the body of an upload, read as it comes",
    ),
    (
        "visitor_files/model.rs",
        "the errors of an upload, of which a broken body's are the transfer's",
    ),
    (
        "visitor_files/uploads.rs",
        "an upload, whose body is read between two looks at what it may bring",
    ),
    (
        "deployments/serving/site_answer.rs",
        "the end of the routes of sites, in the same way",
    ),
    (
        "tls/acme.rs",
        "the authority's problems, which have the same form (RFC 8555), and are none of ours",
    ),
    (
        "projects/scope.rs",
        "the extractor that gives a handler a project of its caller's",
    ),
    (
        "deployments/frontends/scope.rs",
        "the extractor that gives a handler a frontend of its caller's",
    ),
    (
        "deployments/shares/scope.rs",
        "the extractor of a share's token",
    ),
    (
        "backends/scope.rs",
        "the extractor that gives a handler a backend of its caller's",
    ),
    (
        "realtime/scope.rs",
        "the extractor that gives a handler the rooms of its caller's backend",
    ),
];

/// Shells of a domain: the files that may name the problems of the wire, beside those of [`HTTP`]. All others return the domain's
/// own errors, and `problems.rs` maps them.
const SHELLS: [&str; 5] = [
    "operations.rs",
    "problems.rs",
    "requests.rs",
    "routes.rs",
    "scope.rs",
];

/// Packages of the host that have domains.
const PACKAGES: [&str; 5] = [
    "host/api/src/",
    "host/backends/src/",
    "host/pages/src/",
    "host/platform/src/",
    "host/src/",
];

/// The only files that may look at the machine's clock.
const CLOCKS: [&str; 2] = ["host/base/src/clock.rs", "host/base/src/stopwatch.rs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Every file of the project, by its path from the root.
fn files() -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            let ours = !matches!(
                name.to_str(),
                Some(".git" | "target" | "node_modules" | "data")
            );
            if path.is_dir() && ours {
                open.push(path);
            } else if path.is_file() {
                let path = path.strip_prefix(&root).unwrap();
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

fn sources(extension: &str) -> Vec<(String, String)> {
    let sources = files().into_iter().filter(|path| path.ends_with(extension));
    sources
        .map(|path| {
            let text = std::fs::read_to_string(root().join(&path)).unwrap();
            (path, text)
        })
        .collect()
}

/// The code of a file, without comments and without its unit tests.
fn code(text: &str) -> String {
    let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = production
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The path of a file below the package of the host that has it.
fn path_in_package(path: &str) -> Option<&str> {
    let mut packages = PACKAGES.iter();
    packages.find_map(|package| path.strip_prefix(package))
}

/// The files of the host's domains: the domain, the path below its package, and the code.
fn domains() -> Vec<(String, String, String)> {
    let host = sources(".rs").into_iter();
    let host =
        host.filter_map(|(path, text)| Some((path_in_package(&path)?.to_owned(), code(&text))));
    let files = host.filter_map(|(path, code)| {
        let domain = path.split_once('/')?.0.to_owned();
        (!FOUNDATION.contains(&domain.as_str())).then_some((domain, path, code))
    });
    let files: Vec<_> = files.collect();
    assert!(files.iter().any(|(domain, ..)| domain == "deployments"));
    assert!(files.iter().any(|(domain, ..)| domain == "workspaces"));
    files
}

/// Whether a file has tests alone.
fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("tests.rs")
}

#[track_caller]
fn assert_none(found: &[String], rule: &str) {
    assert!(found.is_empty(), "{rule}:\n  {}", found.join("\n  "));
}

#[test]
fn every_source_says_what_it_is_for() {
    for (extension, opening) in [(".rs", "//! "), (".wit", "/// ")] {
        let sources = sources(extension);
        assert!(sources.len() > 1);
        let silent = sources
            .into_iter()
            .filter(|(_, text)| !text.starts_with(opening));
        let silent: Vec<_> = silent.map(|(path, _)| path).collect();
        assert_none(&silent, &format!("begin with a line `{opening}…`"));
    }
}

#[test]
fn a_module_with_a_folder_lies_in_it() {
    let sources = sources(".rs");
    let beside = sources.iter().filter(|(path, _)| {
        let folder = format!("{}/", path.trim_end_matches(".rs"));
        sources.iter().any(|(other, _)| other.starts_with(&folder))
    });
    let beside: Vec<_> = beside.map(|(path, _)| path.clone()).collect();
    assert_none(&beside, "a module with a folder is the folder's mod.rs");
}

#[test]
fn sql_is_for_stores_and_http_for_routes() {
    let mut found = Vec::new();
    for (_, path, code) in domains() {
        let name = path.rsplit('/').next().unwrap();
        if code.contains("rusqlite") && name != "store.rs" {
            found.push(format!("{path} uses rusqlite"));
        }
        let speaks = HTTP.iter().any(|(listed, _)| *listed == path);
        if code.contains("axum") && name != "routes.rs" && !speaks {
            found.push(format!("{path} uses axum"));
        }
    }
    assert_none(&found, "rusqlite is for store.rs, axum for routes.rs");
}

/// Whether some code names the problems of the wire, or their codes.
fn names_problems(code: &str) -> bool {
    let mut names = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    names.any(|name| name == "Problem") || code.contains("http::problem::")
}

#[test]
fn problems_are_for_shells() {
    let domains = domains().into_iter();
    let found = domains.filter(|(domain, path, code)| {
        let name = path.rsplit('/').next().unwrap();
        let speaks = SHELLS.contains(&name) || HTTP.iter().any(|(listed, _)| listed == path);
        // All of the tools is a shell.
        domain != "mcp" && !speaks && names_problems(code)
    });
    let found: Vec<_> = found.map(|(_, path, _)| path).collect();
    assert_none(&found, "return the domain's own error");
}

#[test]
fn problems_are_found_wherever_they_are_named() {
    for (code, named) in [
        ("use crate::http::problem::Problem;", true),
        (
            "use crate::http::{extract, problem::{Code, Problem}};",
            true,
        ),
        ("use crate::http::problem::Code;", true),
        (
            "fn f() -> Result<(), crate::http::problem::Problem> {}",
            true,
        ),
        ("use crate::http::problem_page::shell;", false),
        ("use super::problems;\nstruct ProblemList;", false),
    ] {
        assert_eq!(names_problems(code), named, "{code}");
    }
}

#[test]
fn a_domain_is_reached_through_its_front_door() {
    let mut found = Vec::new();
    let domains = domains();
    let names: std::collections::BTreeSet<_> = domains.iter().map(|(domain, ..)| domain).collect();
    for (path, text) in sources(".rs") {
        for domain in &names {
            let below = path_in_package(&path).unwrap_or_default();
            let inside = below.starts_with(&format!("{domain}/"));
            let entries = [format!("{domain}::store"), format!("{domain}::{{store")];
            let enters = |entry: &String| {
                let code = code(&text);
                let mut ends = code.split(entry.as_str()).skip(1);
                ends.any(|end| !end.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
            };
            if !inside && entries.iter().any(enters) && !path.starts_with("tests/http/tidy") {
                found.push(format!("{path} uses the store of {domain}"));
            }
        }
    }
    for (domain, path, code) in &domains {
        if path.ends_with("/mod.rs") && code.contains("pub mod store;") {
            found.push(format!("{domain} shows its store"));
        }
    }
    assert_none(&found, "a store belongs to its domain");
}

#[test]
fn time_is_handed_in() {
    let mut found = Vec::new();
    for (path, text) in sources(".rs") {
        if path.starts_with("tests/") || CLOCKS.contains(&path.as_str()) {
            continue;
        }
        for clock in ["SystemTime::now", "Instant::now", "OffsetDateTime::now"] {
            if code(&text).contains(clock) {
                found.push(format!("{path} uses {clock}"));
            }
        }
    }
    assert_none(&found, "ask the Clock, or measure with a Stopwatch");
}

#[test]
fn no_test_is_left_out() {
    let attribute = concat!("#[", "ignore");
    let ignored = sources(".rs")
        .into_iter()
        .filter(|(_, text)| text.contains(attribute));
    let ignored: Vec<_> = ignored.map(|(path, _)| path).collect();
    assert_none(&ignored, "no test is ignored");
}

#[test]
fn every_path_that_a_document_names_exists() {
    let files = files();
    let exists = |path: &str| {
        let path = path.trim_end_matches('/');
        let (below, within) = (format!("{path}/"), format!("/{path}/"));
        files.iter().any(|file| {
            file == path
                || file.ends_with(&format!("/{path}"))
                || file.starts_with(&below)
                || file.contains(&within)
        })
    };
    let mut found = Vec::new();
    let mut seen = 0;
    let main = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
    let guides = files
        .iter()
        .filter(|file| file.starts_with("docs/") && file.ends_with(".md"));
    for document in guides.map(String::as_str).chain(main) {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        for path in text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|code| is_path(code))
        {
            seen += 1;
            if !exists(path) {
                found.push(format!("{document}: {path}"));
            }
        }
    }
    assert!(seen > 10, "the documents name no paths?");
    assert_none(&found, "a document names what is not there");
}

/// Whether a piece of code in a document is meant as a path of the project.
fn is_path(code: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let relative = code.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
    // Paths of builds and servers, files in a reader's folder, and media types.
    let foreign = [
        "target/",
        "data/",
        "text/",
        "application/",
        "image/",
        "multipart/",
        "resources/",
        "svc/",
        "./data",
        "svc.toml",
    ];
    let file = [
        ".rs", ".md", ".toml", ".wit", ".sql", ".css", ".js", ".lock",
    ];
    code.chars().all(plain)
        && relative
        && !foreign.iter().any(|prefix| code.starts_with(prefix))
        && (code.contains('/') || file.iter().any(|end| code.ends_with(end)))
}
