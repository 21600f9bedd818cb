//! Tables of the control database and their owners: nobody writes another domain's, and reads of them are listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Every table, with the domain that owns it.
const TABLES: &[(&str, &str)] = &[
    ("workspaces", "workspaces"),
    ("keys", "workspaces"),
    ("users", "workspaces"),
    ("memberships", "workspaces"),
    ("subscriptions", "workspaces"),
    ("ended_workspaces", "workspaces"),
    ("projects", "projects"),
    ("deployments", "deployments"),
    ("revisions", "deployments"),
    ("releases", "deployments"),
    ("runtimes", "deployments"),
    ("rerender", "deployments"),
    ("reports", "deployments"),
    ("garbage", "deployments"),
    ("ended_shares", "deployments"),
    ("visit_flushes", "deployments"),
    ("backends", "backends"),
    ("visitors", "visitors"),
    ("visitor_sessions", "visitors"),
    ("ledger", "backends"),
    ("actions", "backends"),
    ("payment_products", "payments"),
    ("payment_prices", "payments"),
    ("payment_sessions", "payments"),
    ("payment_mirrors", "payments"),
    ("payment_events", "stripe"),
    ("payment_references", "stripe"),
    ("purges", "edge"),
    ("audit", "control"),
    ("idempotency", "control"),
    ("operator_events", "control"),
    ("secrets", "control"),
];

/// Tables that a domain reads and that are another's, each with its reason. `overview` is what operators see of all domains.
const READS: &[(&str, &str, &str)] = &[
    (
        "backends",
        "projects",
        "the backends of a workspace share what it has of the lanes",
    ),
    (
        "deployments",
        "projects",
        "a page answers only while its project lives, on its project's origin",
    ),
    (
        "deployments",
        "backends",
        "a page says which live backend it calls",
    ),
    ("projects", "workspaces", "a project says whose it is"),
    (
        "projects",
        "deployments",
        "a project's home is one of its frontends",
    ),
    (
        "projects",
        "backends",
        "a project says which backend it has",
    ),
    (
        "workspaces",
        "projects",
        "a workspace goes after its last project, and says how many it has",
    ),
    (
        "control",
        "deployments",
        "a copy forgets the answers about shares that it has not got",
    ),
    (
        "payments",
        "backends",
        "a project's sessions are copied into the backend that it has",
    ),
    ("overview", "actions", "counts"),
    ("overview", "ledger", "counts"),
    ("overview", "revisions", "counts"),
    ("overview", "releases", "counts"),
    ("overview", "deployments", "counts and lists"),
    ("overview", "projects", "counts and lists"),
    ("overview", "workspaces", "counts and lists"),
    ("overview", "backends", "counts and lists"),
    ("overview", "reports", "counts"),
];

/// The words before a table's name, and whether they write.
const WORDS: [(&str, bool); 4] = [
    ("FROM ", false),
    ("JOIN ", false),
    ("INTO ", true),
    ("UPDATE ", true),
];

/// A use of a table by the code of a domain.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    domain: String,
    table: String,
    writes: bool,
}

/// The uses of tables in a text with SQL in it.
fn uses(domain: &str, code: &str) -> BTreeSet<Use> {
    let mut found = BTreeSet::new();
    for (word, writes) in WORDS {
        for (at, _) in code.match_indices(word) {
            let table: String = code[at + word.len()..]
                .chars()
                .take_while(|c| c.is_ascii_lowercase() || *c == '_')
                .collect();
            if TABLES.iter().any(|(known, _)| *known == table) {
                found.insert(Use {
                    domain: domain.to_owned(),
                    table,
                    writes: writes || code[..at].ends_with("DELETE "),
                });
            }
        }
    }
    found
}

/// Finds the faults of some uses.
fn faults(uses: &BTreeSet<Use>) -> Vec<String> {
    let owners: BTreeMap<&str, &str> = TABLES.iter().copied().collect();
    let mut faults = Vec::new();
    for used in uses {
        let owner = owners[&*used.table];
        let listed = READS
            .iter()
            .any(|(domain, table, _)| (*domain, *table) == (&*used.domain, &*used.table));
        if owner == used.domain {
            continue;
        }
        let (domain, table) = (&used.domain, &used.table);
        if used.writes {
            faults.push(format!("{domain} writes `{table}`, which is {owner}'s"));
        } else if !listed {
            faults.push(format!("{domain} reads `{table}`, which is {owner}'s"));
        }
    }
    faults
}

/// All files below a directory that end like this, with their texts.
fn texts(directory: &Path, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_str().unwrap().ends_with(ending) {
                let below = path.strip_prefix(directory).unwrap();
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((below.to_str().unwrap().to_owned(), text));
            }
        }
    }
    found
}

fn host(below: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../host")
        .join(below)
}

#[test]
fn tables_are_written_by_their_domain_and_read_where_it_is_listed() {
    let mut all = BTreeSet::new();
    let sources = texts(&host("src"), ".rs").into_iter();
    for (path, text) in sources.filter(|(path, _)| !path.ends_with("tests.rs")) {
        let domain = path.split('/').next().unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        all.extend(uses(domain, code));
    }
    assert!(all.len() > TABLES.len(), "{all:?}");
    let faults = faults(&all);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for (domain, table, _) in READS {
        let read = all
            .iter()
            .any(|used| used.domain == *domain && used.table == *table);
        assert!(
            read,
            "{domain} does not read `{table}` any more: take it off the list"
        );
    }
}

#[test]
fn every_table_has_an_owner() {
    let mut made = BTreeSet::new();
    for (_, script) in texts(&host("migrations"), ".sql") {
        for rest in script.split("CREATE TABLE ").skip(1) {
            made.insert(rest.split(' ').next().unwrap().to_owned());
        }
    }
    let listed: BTreeSet<_> = TABLES
        .iter()
        .map(|(table, _)| (*table).to_owned())
        .collect();
    assert_eq!(made, listed);
}

#[test]
fn a_foreign_write_and_an_unlisted_read_are_found() {
    for (domain, sql) in [
        ("backends", "UPDATE deployments SET backend_id = ?2"),
        ("backends", "DELETE FROM deployments"),
        ("projects", "INSERT INTO workspaces"),
        ("edge", "SELECT 1 FROM projects"),
        ("workspaces", "SELECT 1 FROM keys JOIN backends"),
    ] {
        assert_eq!(faults(&uses(domain, sql)).len(), 1, "{domain}: {sql}");
    }
    assert!(
        faults(&uses(
            "deployments",
            "SELECT 1 FROM deployments d JOIN projects p"
        ))
        .is_empty()
    );
}
