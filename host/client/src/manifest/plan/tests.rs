//! Plans of changes.

use super::super::remote_state::AppliedMigration;
use super::super::{Manifest, MigrationFile};
use super::*;

fn folder(migrations: &[&str]) -> ProjectFolder {
    ProjectFolder {
        manifest: Manifest::default(),
        migrations: migrations
            .iter()
            .map(|sql| MigrationFile {
                name: format!("{sql}.sql"),
                path: format!("{sql}.sql").into(),
                sql: (*sql).to_owned(),
                checksum: (*sql).to_owned(),
            })
            .collect(),
        actions: Vec::new(),
        pages: Vec::new(),
    }
}

#[test]
fn only_what_comes_after_the_ledger_is_pending() {
    for (files, ledger, expected) in [
        (&["a", "b"][..], &[][..], Some(&[0, 1][..])),
        (&["a", "b"], &["a"], Some(&[1])),
        (&["a", "b"], &["a", "b"], Some(&[])),
        // Another client has migrated, and there is nothing to do here.
        (&["a"], &["a", "b"], Some(&[])),
        // It was changed after it was applied.
        (&["a2", "b"], &["a", "b"], None),
        (&["a", "c"], &["a", "b"], None),
        // A new one between old ones.
        (&["a", "a2", "b"], &["a", "b"], None),
    ] {
        let ledger = (1..)
            .zip(ledger)
            .map(|(version, checksum)| AppliedMigration {
                version,
                checksum: (*checksum).to_owned(),
                sql: String::new(),
            });
        let found = pending_migrations(&folder(files), &ledger.collect::<Vec<_>>());
        assert_eq!(found.ok().as_deref(), expected, "{files:?}");
    }
}

#[test]
fn batches_are_as_large_as_the_server_takes() {
    let mut folder = folder(&[]);
    folder.actions = (0..450)
        .map(|number| ActionFile {
            name: format!("a{number}"),
            path: format!("a{number}.sql").into(),
            defaults: serde_json::Map::new(),
            sql: "x".repeat(if number < 10 { 60_000 } else { 10 }),
        })
        .collect();
    let all: Vec<_> = (0..450).collect();
    let sizes: Vec<_> = action_batches(&folder, &all)
        .iter()
        .map(|batch| batch["actions"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes.iter().sum::<usize>(), 450);
    assert!(
        sizes.iter().all(|size| (1..=200).contains(size)) && sizes[0] == 4,
        "{sizes:?}"
    );
    assert!(action_batches(&folder, &[]).is_empty());
}
