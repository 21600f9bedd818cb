//! Plans of changes.

use super::super::remote_state::AppliedMigration;
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
        // A restore is no file's.
        (&["a", "b"], &["a", "restore"], Some(&[1])),
        (&["a", "b"], &["restore", "a"], Some(&[1])),
        (&["a", "c"], &["a", "restore", "b"], None),
        // A new one between old ones.
        (&["a", "a2", "b"], &["a", "b"], None),
    ] {
        let ledger = (1..)
            .zip(ledger)
            .map(|(version, checksum)| AppliedMigration {
                version,
                checksum: (*checksum).to_owned(),
                sql: match *checksum {
                    "restore" => {
                        "-- 3: restored to 2026-11-20, at 2026-11-21.\n\n  -- No more.\n".to_owned()
                    }
                    _ => "-- Adds\nCREATE TABLE a (b);".to_owned(),
                },
                note: None,
            });
        let found = pending_migrations(&folder(files), &ledger.collect::<Vec<_>>());
        assert_eq!(found.ok().as_deref(), expected, "{files:?}");
    }
}
