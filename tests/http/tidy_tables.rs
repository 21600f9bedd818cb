//! Tables of the control database and their owners: nobody writes another domain's, and reads of them are listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use svc::control::{ControlDatabase, TABLES, TableDatabaseFile};

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
    (
        "backends",
        "workspaces",
        "backends of free workspaces are counted apart from the others",
    ),
    (
        "activity",
        "projects",
        "a node's counts of a project that has ended are not kept",
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
        "views that were counted there move to the counters",
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
    ("overview", "visitor_files", "counts"),
    ("overview", "reports", "counts"),
    ("overview", "blobs", "counts"),
    ("overview", "file_owners", "counts"),
    ("overview", "blocked", "counts"),
];

/// The words before a table's name, and whether they write.
const SQL_KEYWORDS: [(&str, bool); 4] = [
    ("FROM ", false),
    ("JOIN ", false),
    ("INTO ", true),
    ("UPDATE ", true),
];

/// A use of a table by the code of a domain.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TableUse {
    domain: String,
    table: String,
    writes: bool,
}

/// The uses of tables in a text with SQL in it.
fn table_uses(domain: &str, code: &str) -> BTreeSet<TableUse> {
    let mut found = BTreeSet::new();
    for (word, writes) in SQL_KEYWORDS {
        for (at, _) in code.match_indices(word) {
            let table: String = code[at + word.len()..]
                .chars()
                .take_while(|c| c.is_ascii_lowercase() || *c == '_')
                .collect();
            if TABLES.iter().any(|known| known.name == table) {
                found.insert(TableUse {
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
fn faults(uses: &BTreeSet<TableUse>) -> Vec<String> {
    let owners = TABLES.iter().map(|table| (table.name, table.owner));
    let owners: BTreeMap<&str, &str> = owners.collect();
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
    let packages = [
        "api/src",
        "backends/src",
        "pages/src",
        "platform/src",
        "src",
    ];
    let sources = packages
        .into_iter()
        .flat_map(|package| texts(&host(package), ".rs"));
    for (path, text) in sources.filter(|(path, _)| !path.ends_with("tests.rs")) {
        let domain = path.split('/').next().unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        all.extend(table_uses(domain, code));
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
    let listed: BTreeSet<_> = TABLES.iter().map(|table| table.name.to_owned()).collect();
    assert_eq!(listed.len(), TABLES.len(), "a table is listed once");
    assert_eq!(made, listed);
}

/// The names of the tables in a database.
fn tables(file: &Path) -> BTreeSet<String> {
    let connection = rusqlite::Connection::open(file).unwrap();
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut tables = connection.prepare(sql).unwrap();
    let tables = tables.query_map([], |row| row.get(0)).unwrap();
    tables.collect::<Result<_, _>>().unwrap()
}

#[test]
fn every_table_is_in_the_file_that_the_list_names() {
    let data = tempfile::tempdir().unwrap();
    drop(ControlDatabase::open(data.path()).unwrap());
    for (name, file) in [
        ("control.db", TableDatabaseFile::Control),
        ("counters.db", TableDatabaseFile::Counters),
    ] {
        let listed = TABLES.iter().filter(|table| table.file == file);
        let listed: BTreeSet<_> = listed.map(|table| table.name.to_owned()).collect();
        assert_eq!(tables(&data.path().join(name)), listed, "{name}");
    }
}

#[test]
fn an_answer_a_report_and_an_entry_are_kept_where_their_effect_is() {
    let file = |name: &str| TABLES.iter().find(|table| table.name == name).unwrap().file;
    for kept in ["idempotency", "reports", "audit", "purges"] {
        assert_eq!(file(kept), file("deployments"), "{kept}");
    }
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
        assert_eq!(faults(&table_uses(domain, sql)).len(), 1, "{domain}: {sql}");
    }
    assert!(
        faults(&table_uses(
            "deployments",
            "SELECT 1 FROM deployments d JOIN projects p"
        ))
        .is_empty()
    );
}
