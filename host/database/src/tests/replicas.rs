//! Replicas: files that follow the commits of a database while they are read.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use rusqlite::{Connection, MAIN_DB, OpenFlags};
use svc_base::disk;
use svc_base::positions::CommitPosition;
use tempfile::TempDir;

use super::shipping::{NAME, Source, connect, load, masked, numbers, random_change};
use super::*;

/// A replica of the first base of a database.
fn replica_of(source: &Source) -> (TempDir, PathBuf, Replica) {
    let directory = tempfile::tempdir().unwrap();
    let state = load(&source.bases[0], &[], directory.path()).unwrap();
    let file = directory.path().join(NAME);
    let replica = Replica::open(&file, state).unwrap();
    (directory, file, replica)
}

fn reader(file: &Path) -> Connection {
    Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// Content of a database, as a connection sees it.
fn image(connection: &mut Connection) -> Vec<u8> {
    masked(connection.serialize(MAIN_DB).unwrap().to_vec())
}

/// A reader in the middle of a transaction, and what it sees.
fn reader_with_snapshot(file: &Path) -> (Connection, Vec<u8>) {
    let mut reader = reader(file);
    reader.execute_batch("BEGIN").unwrap();
    let seen = image(&mut reader);
    (reader, seen)
}

fn check_integrity(reader: &Connection) {
    let found: String = reader
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(found, "ok");
}

#[test]
fn a_replica_is_what_it_follows_while_it_is_read() {
    for seed in 0..4 {
        let mut next = numbers(seed);
        let mut source = Source::new();
        let (_directory, file, mut replica) = replica_of(&source);
        let mut reader = reader(&file);
        let mut snapshot = None;
        let mut applied = 0;
        for _ in 0..30 {
            for _ in 0..=next(4) {
                source.run(&random_change(&mut next));
            }
            source.ship();
            let new = &source.entries[applied..];
            let together = usize::try_from(next(4)).unwrap() + 1;
            for entries in new.chunks(together) {
                replica = replica.apply(entries).unwrap();
            }
            applied = source.entries.len();
            assert_eq!(replica.state(), source.shipper.state());
            assert!(
                image(&mut reader) == image(&mut source.connection),
                "{seed}"
            );
            check_integrity(&reader);
            if let Some((reader, seen)) = &mut snapshot {
                assert!(image(reader) == *seen, "{seed}");
            }
            match next(6) {
                0 => snapshot = Some(reader_with_snapshot(&file)),
                1 => snapshot = None,
                2 => assert!(replica.empty_log().unwrap() || snapshot.is_some()),
                3 => source.copy_log("TRUNCATE"),
                _ => {}
            }
        }
    }
}

#[test]
fn what_was_behind_the_end_does_not_come_back() {
    let mut source = Source::new();
    let (_directory, file, mut replica) = replica_of(&source);
    let mut reader = reader(&file);
    let grow = "INSERT INTO t (a, b) VALUES ('big', zeroblob(300000))";
    source.run(grow);
    source.run("INSERT INTO t (a, b) VALUES ('x', printf('%.*c', 300000, 'x'))");
    source.ship();
    replica = replica.apply(&source.entries).unwrap();
    let applied = source.entries.len();
    source.run("DELETE FROM t; VACUUM");
    source.run(grow);
    source.ship();
    replica = replica.apply(&source.entries[applied..]).unwrap();
    assert_eq!(replica.state(), source.shipper.state());
    assert!(image(&mut reader) == image(&mut source.connection));
    check_integrity(&reader);
}

#[test]
fn a_commit_that_does_not_fit_changes_nothing() {
    let mut source = Source::new();
    for n in 0..3 {
        source.run(&format!("INSERT INTO t (a) VALUES ({n})"));
        source.ship();
    }
    let good = &source.entries;
    let mut damaged = good.clone();
    damaged[2].body = Arc::clone(&good[1].body);
    for entries in [&good[1..], &damaged[..]] {
        let (_directory, file, replica) = replica_of(&source);
        let mut reader = reader(&file);
        let before = image(&mut reader);
        let refused = replica.apply(entries).unwrap_err();
        assert!(matches!(refused, ReplicaError::Entry(_)), "{refused}");
        assert!(image(&mut reader) == before);
    }
}

#[test]
fn a_writer_goes_on_from_a_replica_that_is_read() {
    let mut source = Source::new();
    for n in 0..3 {
        source.run(&format!("INSERT INTO t (a) VALUES ({n})"));
    }
    source.ship();
    let (directory, file, replica) = replica_of(&source);
    let (_other_directory, other_file, other) = replica_of(&source);
    let [replica, mut other] = [replica, other].map(|one| one.apply(&source.entries).unwrap());
    let (_reader, _) = reader_with_snapshot(&file);
    let mut state = replica.close().unwrap();
    let log = DatabasesDirectory::LOG_NAME;
    assert!(directory.path().join(log).exists());
    // The log has commits that are not shipped again.
    let dir = disk::open_directory(directory.path()).unwrap();
    let mut shipper = LogShipper::after_log(dir, log, state.clone()).unwrap();
    assert!(shipper.is_up_to_date().unwrap());
    let mut writer = connect(directory.path(), &Arc::new(AtomicU64::new(0)));
    for n in 3..6 {
        writer
            .execute(&format!("INSERT INTO t (a) VALUES ({n})"), [])
            .unwrap();
        let position = CommitPosition(state.position().0 + 1);
        let entries = shipper.ship(position, Timestamp(9)).unwrap();
        assert_eq!(entries.len(), 1);
        other = other.apply(&entries).unwrap();
        state = shipper.state().clone();
        assert_eq!(*other.state(), state);
    }
    assert!(image(&mut reader(&other_file)) == image(&mut writer));
}
