//! Logs as SQLite writes them, and what may become of one; chains through crashes; bounds.

mod limits;
mod logs;
mod states;

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use cap_std::ambient_authority;
use rusqlite::Connection;
use tempfile::TempDir;

use super::moments::HistoryFindings;
use super::record::RecordFormat;
use super::*;
use crate::files::DATABASE_FILE;
use crate::wal::CommittedFrames;
use svc_base::clock::Clock;

/// A database in a temporary directory; only the test checkpoints its log.
struct HistoryFixture {
    directory: TempDir,
    dir: Dir,
    connection: RefCell<Connection>,
    history_settings: Arc<HistorySettings>,
}

fn connect(directory: &Path) -> Connection {
    let connection = Connection::open(directory.join(DATABASE_FILE)).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;",
        )
        .unwrap();
    let keep = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    connection.set_db_config(keep, true).unwrap();
    connection
}

impl HistoryFixture {
    fn new(max_bytes: u64) -> Self {
        let directory = TempDir::new().unwrap();
        let dir = Dir::open_ambient_dir(directory.path(), ambient_authority()).unwrap();
        let connection = connect(directory.path());
        connection
            .execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
            .unwrap();
        let history_settings = Arc::new(HistorySettings {
            clock: Clock::manual(Timestamp(1_000_000_000_000)),
            max_bytes,
            min_free_bytes: 0,
        });
        Self {
            directory,
            dir,
            connection: RefCell::new(connection),
            history_settings,
        }
    }

    fn run(&self, sql: &str) {
        self.connection.borrow().execute_batch(sql).unwrap();
    }

    fn tick(&self) {
        self.history_settings
            .clock
            .advance(std::time::Duration::from_secs(1));
    }

    fn history(&self) -> DatabaseHistory {
        DatabaseHistory::open(
            self.dir.try_clone().unwrap(),
            Arc::clone(&self.history_settings),
        )
    }

    fn log(&self) -> WalFile {
        WalFile::open(&self.dir, LOG_FILE).unwrap().unwrap()
    }

    fn now(&self) -> Vec<u8> {
        self.connection
            .borrow_mut()
            .serialize(MAIN_DB)
            .unwrap()
            .to_vec()
    }

    fn copy_log(&self, how: &str) {
        let sql = format!("PRAGMA wal_checkpoint({how})");
        let connection = self.connection.borrow();
        let busy: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(busy, 0);
    }

    fn frames(&self) -> i32 {
        let log = fs::metadata(self.directory.path().join(LOG_FILE)).map_or(0, |m| m.len());
        i32::try_from(log.saturating_sub(32) / 4120).unwrap()
    }

    /// The rows of an image.
    fn rows(image: &[u8]) -> Vec<(i64, String)> {
        let mut connection = Connection::open_in_memory().unwrap();
        connection
            .deserialize_read_exact(MAIN_DB, image, image.len(), false)
            .unwrap();
        let check: String = connection
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok");
        let mut read = connection
            .prepare("SELECT id, a FROM t ORDER BY id")
            .unwrap();
        let rows = read
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        rows.map(Result::unwrap).collect()
    }
}

/// Applies the frames of a log to a copy of the database file.
fn replay(base: &[u8], frames: &CommittedFrames) -> Vec<u8> {
    let mut image = base.to_vec();
    for (page, data) in frames.pages.iter().zip(frames.data.chunks_exact(PAGE_SIZE)) {
        chain::write_page(&mut image, *page, data).unwrap();
    }
    image
}

fn add(fixture: &HistoryFixture, history: &mut DatabaseHistory, text: &str) -> Timestamp {
    fixture.tick();
    fixture.run(&format!("INSERT INTO t (a) VALUES ('{text}')"));
    history.note_commit(fixture.frames_in_log(), history.now());
    history.last().unwrap()
}

impl HistoryFixture {
    /// How many frames the log has that are of its generation.
    fn frames_in_log(&self) -> i32 {
        let log = self.log();
        i32::try_from(
            log.read_committed(&log.start(), ALL_FRAMES)
                .unwrap()
                .end
                .frames,
        )
        .unwrap()
    }

    fn at(&self, history: &DatabaseHistory, at: Timestamp) -> Vec<String> {
        let image = history.image_at(at).unwrap().unwrap();
        assert!(image.at <= at);
        let rows = Self::rows(&image.bytes).into_iter();
        rows.map(|(_, text)| text).collect()
    }
}

#[test]
fn every_commit_can_be_gone_back_to() {
    let fixture = HistoryFixture::new(1 << 30);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let mut made = Vec::new();
    for round in 0..20 {
        made.push(add(&fixture, &mut history, &round.to_string()));
        match round % 5 {
            1 => history
                .record_log(&mut fixture.connection.borrow_mut())
                .unwrap(),
            2 => {
                history
                    .record_log(&mut fixture.connection.borrow_mut())
                    .unwrap();
                fixture.copy_log("PASSIVE");
                history.note_checkpoint(true, 0);
            }
            3 => {
                history
                    .record_log(&mut fixture.connection.borrow_mut())
                    .unwrap();
                fixture.copy_log("TRUNCATE");
                history.note_checkpoint(true, 0);
                history.append_seal().unwrap();
                history = fixture.history();
                assert!(history.chain.is_some(), "{round}: it was sealed");
            }
            _ => {}
        }
    }
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    assert_eq!(
        chain::list_numbers(&fixture.dir).unwrap(),
        [1],
        "one chain has all"
    );
    for (round, at) in made.iter().enumerate() {
        let expected: Vec<_> = (0..=round).map(|n| n.to_string()).collect();
        assert_eq!(fixture.at(&history, *at), expected);
    }
    let past = history.list_moments(None, 5).unwrap();
    assert_eq!(
        past.moments,
        made.iter().rev().take(5).copied().collect::<Vec<_>>()
    );
    assert!(past.has_more);
    let past = history.list_moments(Some(made[3]), 100).unwrap();
    assert_eq!(past.moments[..3], [made[2], made[1], made[0]]);
    assert_eq!((past.newest, past.has_more), (made.last().copied(), false));
    assert!(past.oldest < Some(made[0]));
    assert!(history.image_at(Timestamp(0)).unwrap().is_none());
}

#[test]
fn a_crash_blurs_what_was_not_taken_and_loses_nothing_else() {
    let fixture = HistoryFixture::new(1 << 30);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let first = add(&fixture, &mut history, "first");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let lost = add(&fixture, &mut history, "second");
    add(&fixture, &mut history, "third");
    // Another process goes on, before the two are taken.
    drop(history);
    fixture.tick();
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    assert_eq!(
        chain::list_numbers(&fixture.dir).unwrap(),
        [1],
        "the log shows that it follows"
    );
    assert_eq!(
        fixture.at(&history, lost),
        ["first"],
        "never something between"
    );
    assert_eq!(fixture.at(&history, first), ["first"]);
    let newest = history.last().unwrap();
    assert_eq!(newest, history.now());
    assert_eq!(fixture.at(&history, newest), ["first", "second", "third"]);
}

#[test]
fn where_the_log_does_not_follow_another_chain_begins() {
    type Meanwhile = fn(&HistoryFixture);
    let cases: [(&str, Meanwhile, usize); 5] = [
        ("nothing", |_| {}, 1),
        (
            "begun anew once",
            |fixture| {
                fixture.copy_log("PASSIVE");
                fixture.run("INSERT INTO t (a) VALUES ('next')");
            },
            1,
        ),
        (
            "begun anew twice",
            |fixture| {
                for _ in 0..2 {
                    fixture.copy_log("PASSIVE");
                    fixture.run("INSERT INTO t (a) VALUES ('next')");
                }
            },
            2,
        ),
        ("cut", |fixture| fixture.copy_log("TRUNCATE"), 2),
        (
            "copied unseen, and begun anew once",
            |fixture| {
                fixture.run("CREATE TABLE unseen (a)");
                fixture.copy_log("PASSIVE");
                fixture.run("INSERT INTO t (a) VALUES ('next')");
            },
            2,
        ),
    ];
    for (what, meanwhile, chains) in cases {
        let fixture = HistoryFixture::new(1 << 30);
        let mut history = fixture.history();
        history
            .record_log(&mut fixture.connection.borrow_mut())
            .unwrap();
        let first = add(&fixture, &mut history, "first");
        history
            .record_log(&mut fixture.connection.borrow_mut())
            .unwrap();
        drop(history);
        meanwhile(&fixture);
        fixture.tick();
        let mut history = fixture.history();
        history
            .record_log(&mut fixture.connection.borrow_mut())
            .unwrap();
        let numbers = chain::list_numbers(&fixture.dir).unwrap();
        assert_eq!(numbers.len(), chains, "{what}");
        assert_eq!(fixture.at(&history, first), ["first"], "{what}");
        let rows = "SELECT count(*) FROM t";
        let rows = fixture
            .connection
            .borrow()
            .query_row(rows, [], |row| row.get::<_, isize>(0));
        let now = fixture.at(&history, history.now());
        assert_eq!(now.len(), rows.unwrap().unsigned_abs(), "{what}");
    }
}

#[test]
fn a_file_that_somebody_else_has_changed_is_not_gone_on_with() {
    let fixture = HistoryFixture::new(1 << 30);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let first = add(&fixture, &mut history, "first");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    fixture.copy_log("TRUNCATE");
    history.note_checkpoint(true, 0);
    history.append_seal().unwrap();
    fixture.run("INSERT INTO t (a) VALUES ('theirs')");
    fixture.copy_log("TRUNCATE");
    fixture.tick();
    let mut history = fixture.history();
    assert!(history.chain.is_none());
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    assert_eq!(fixture.at(&history, first), ["first"]);
    assert_eq!(fixture.at(&history, history.now()), ["first", "theirs"]);
}

#[test]
fn a_copy_of_the_log_that_was_given_up_may_have_been_complete() {
    let fixture = HistoryFixture::new(1 << 30);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    add(&fixture, &mut history, "first");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    fixture.copy_log("PASSIVE");
    history.note_checkpoint(false, fixture.frames());
    // SQLite begins the log anew, and two commits are in it before it is looked at.
    let second = add(&fixture, &mut history, "second");
    add(&fixture, &mut history, "third");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    assert_eq!(chain::list_numbers(&fixture.dir).unwrap(), [1]);
    assert_eq!(fixture.at(&history, second), ["first", "second"]);
}

#[test]
fn a_torn_end_of_a_chain_is_taken_again() {
    for keep in [0, 1, 60, 75, 76, 77, 107, 108, 120] {
        let fixture = HistoryFixture::new(1 << 30);
        let mut history = fixture.history();
        history
            .record_log(&mut fixture.connection.borrow_mut())
            .unwrap();
        let before = history.chain.as_ref().unwrap().end;
        add(&fixture, &mut history, "first");
        history
            .record_log(&mut fixture.connection.borrow_mut())
            .unwrap();
        let path = fixture.directory.path().join("0000000001.history");
        let mut bytes = fs::read(&path).unwrap();
        // The file has its length on disk, but not all of its content.
        for byte in bytes
            .iter_mut()
            .skip(usize::try_from(before + keep).unwrap())
        {
            *byte = 0;
        }
        fs::write(&path, bytes).unwrap();
        drop(history);
        fixture.tick();
        let mut history = fixture.history();
        assert_eq!(history.chain.as_ref().unwrap().end, before, "{keep}");
        history
            .record_log(&mut fixture.connection.borrow_mut())
            .unwrap();
        assert_eq!(fixture.at(&history, history.now()), ["first"], "{keep}");
        assert_eq!(verify(&fixture.dir).unwrap(), HistoryFindings::default());
    }
}

#[test]
fn a_damaged_chain_is_found_and_never_believed() {
    let fixture = HistoryFixture::new(1 << 30);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let mut made = Vec::new();
    for round in 0..3 {
        made.push(add(&fixture, &mut history, &round.to_string()));
        history
            .record_log(&mut fixture.connection.borrow_mut())
            .unwrap();
    }
    let path = fixture.directory.path().join("0000000001.history");
    let bytes = fs::read(&path).unwrap();
    let last = history.chain.as_ref().unwrap().end;
    assert_eq!(last, bytes.len() as u64);
    for place in (0..bytes.len()).step_by(37) {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        fs::write(&path, changed).unwrap();
        for (round, at) in made.iter().enumerate() {
            // An error, an earlier moment, or the truth.
            if let Ok(Some(image)) = history.image_at(*at) {
                let rows = HistoryFixture::rows(&image.bytes).len();
                let known = made.iter().position(|known| *known == image.at);
                let expected = known.map_or(0, |known| known + 1);
                assert_eq!(rows, expected, "byte {place}, round {round}");
            }
        }
    }
}

#[test]
fn a_clock_that_is_set_back_confuses_nobody() {
    let fixture = HistoryFixture::new(1 << 30);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let first = add(&fixture, &mut history, "first");
    let back = |millis: i64| Timestamp(first.0 - millis);
    assert_eq!(
        history.commit_time(back(5)),
        first,
        "a little: it stands still"
    );
    assert_eq!(
        history.commit_time(back(MAX_CLOCK_SETBACK_MILLIS + 1)),
        back(MAX_CLOCK_SETBACK_MILLIS + 1)
    );
    // Two commits at the same time get different times only on request.
    history.frames_seen = 0;
    history.note_commit(fixture.frames_in_log(), first);
    assert_eq!(history.last(), Some(first));
    history.frames_seen = 0;
    history.note_distinct_commit(fixture.frames_in_log());
    assert_eq!(history.last(), Some(Timestamp(first.0 + 1)));
}
