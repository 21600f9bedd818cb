//! Logs as SQLite writes them, and what may become of one; chains through crashes; bounds.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use cap_std::ambient_authority;
use rusqlite::Connection;
use tempfile::TempDir;

use super::log::Frames;
use super::past::Verified;
use super::record::Format;
use super::*;
use crate::files::FILE;
use svc_base::clock::Clock;

/// A database in a directory of its own, with a log that only we copy.
struct Site {
    directory: TempDir,
    dir: Dir,
    connection: RefCell<Connection>,
    terms: Arc<Terms>,
}

fn connect(directory: &Path) -> Connection {
    let connection = Connection::open(directory.join(FILE)).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;",
        )
        .unwrap();
    let keep = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    connection.set_db_config(keep, true).unwrap();
    connection
}

impl Site {
    fn new(most_bytes: u64) -> Self {
        let directory = TempDir::new().unwrap();
        let dir = Dir::open_ambient_dir(directory.path(), ambient_authority()).unwrap();
        let connection = connect(directory.path());
        connection
            .execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
            .unwrap();
        let terms = Arc::new(Terms {
            clock: Clock::manual(Timestamp(1_000_000_000_000)),
            most_bytes,
            free_disk: 0,
        });
        Self {
            directory,
            dir,
            connection: RefCell::new(connection),
            terms,
        }
    }

    fn run(&self, sql: &str) {
        self.connection.borrow().execute_batch(sql).unwrap();
    }

    fn tick(&self) {
        self.terms.clock.advance(std::time::Duration::from_secs(1));
    }

    fn history(&self) -> History {
        History::open(self.dir.try_clone().unwrap(), Arc::clone(&self.terms))
    }

    fn log(&self) -> Log {
        Log::open(&self.dir, LOG).unwrap().unwrap()
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
        let log = fs::metadata(self.directory.path().join(LOG)).map_or(0, |m| m.len());
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

/// A copy of a database's file and of its log's frames over it.
fn replayed(base: &[u8], frames: &Frames) -> Vec<u8> {
    let mut image = base.to_vec();
    for (page, data) in frames.pages.iter().zip(frames.data.chunks_exact(PAGE)) {
        chain::put(&mut image, *page, data).unwrap();
    }
    image
}

#[test]
fn a_log_holds_what_was_committed() {
    let site = Site::new(0);
    site.run("INSERT INTO t (a) VALUES ('one'); INSERT INTO t (a) VALUES (hex(zeroblob(9000)))");
    let log = site.log();
    let frames = log.committed(&log.start(), ALL).unwrap();
    assert_eq!(frames.commits.len(), 3, "the table, and two rows");
    assert_eq!(
        frames.end.frames,
        u32::try_from(frames.pages.len()).unwrap()
    );
    assert_eq!(replayed(&[], &frames), site.now());
    // From a place in its midst on, there is the rest.
    let first = frames.commits[0].frames;
    site.run("INSERT INTO t (a) VALUES ('three')");
    let rest = log.committed(&frames.end, ALL).unwrap();
    assert_eq!(rest.commits.len(), 1);
    assert!(log.holds(&frames.end).unwrap() && log.holds(&rest.end).unwrap());
    assert_eq!(rest.end, log.committed(&log.start(), ALL).unwrap().end);
    assert!(first < rest.end.frames);
    assert_eq!(replayed(&replayed(&[], &frames), &rest), site.now());
}

#[test]
fn a_log_that_begins_anew_follows_the_one_before() {
    let site = Site::new(0);
    let mut before = None;
    for generation in 0..4 {
        site.run("INSERT INTO t (a) VALUES ('one')");
        let log = site.log();
        let end = log.committed(&log.start(), ALL).unwrap().end;
        if let Some(before) = before.replace(end) {
            let before: Position = before;
            assert!(before.is_followed_by(log.start().salts), "{generation}");
            assert!(!log.holds(&before).unwrap(), "{generation}");
            assert!(!before.is_followed_by(before.salts));
        }
        // Frames of the generation before are behind those of this one.
        site.copy_log("PASSIVE");
    }
    assert!(!Position::default().is_followed_by([1, 0]));
}

#[test]
fn what_was_not_committed_is_not_taken() {
    let site = Site::new(0);
    let log = site.log();
    let before = log.committed(&log.start(), ALL).unwrap();
    site.run("PRAGMA cache_size = 1; BEGIN");
    for _ in 0..200 {
        site.run("INSERT INTO t (a) VALUES (hex(randomblob(2000)))");
    }
    assert!(site.frames() > 20, "it spilled into the log");
    let during = log.committed(&log.start(), ALL).unwrap();
    assert_eq!((during.end, during.data), (before.end, before.data.clone()));
    site.run("ROLLBACK; INSERT INTO t (a) VALUES ('kept')");
    let after = log.committed(&before.end, ALL).unwrap();
    assert_eq!(after.commits.len(), 1);
    assert_eq!(replayed(&replayed(&[], &before), &after), site.now());
}

#[test]
fn a_torn_or_changed_log_ends_before_the_damage() {
    let site = Site::new(0);
    for _ in 0..6 {
        site.run("INSERT INTO t (a) VALUES (hex(randomblob(3000)))");
    }
    let whole = site.log().committed(&site.log().start(), ALL).unwrap();
    let bytes = fs::read(site.directory.path().join(LOG)).unwrap();
    let torn = TempDir::new().unwrap();
    let dir = Dir::open_ambient_dir(torn.path(), ambient_authority()).unwrap();
    let read = |bytes: &[u8]| {
        fs::write(torn.path().join("log"), bytes).unwrap();
        let log = Log::open(&dir, "log").unwrap()?;
        Some(log.committed(&log.start(), ALL).unwrap())
    };
    let last_before = |frames: u32| {
        let commits = whole.commits.iter().rev();
        let commit = commits.map(|c| c.frames).find(|end| *end <= frames);
        commit.unwrap_or(0)
    };
    for cut in (0..bytes.len()).step_by(509) {
        let Some(found) = read(&bytes[..cut]) else {
            assert!(cut < 32, "{cut}");
            continue;
        };
        let frames = u32::try_from((cut - 32) / 4120).unwrap();
        assert_eq!(found.end.frames, last_before(frames), "cut at {cut}");
        assert_eq!(found.data, whole.data[..found.data.len()]);
    }
    for place in (0..bytes.len()).step_by(251) {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        let found = read(&changed);
        if place < 32 {
            assert!(found.is_none(), "{place}: the header is wrong");
            continue;
        }
        let frames = u32::try_from((place - 32) / 4120).unwrap();
        assert_eq!(found.unwrap().end.frames, last_before(frames), "{place}");
    }
}

#[test]
fn a_log_of_the_other_byte_order_is_read_too() {
    let site = Site::new(0);
    site.run("INSERT INTO t (a) VALUES ('one'); INSERT INTO t (a) VALUES ('two')");
    let expected = site.now();
    let mut bytes = fs::read(site.directory.path().join(LOG)).unwrap();
    bytes[3] ^= 1;
    let big_endian = bytes[3] & 1 == 1;
    let mut sums = log::sum(big_endian, [0, 0], &bytes[..24]);
    let put = |place: &mut [u8], sums: [u32; 2]| {
        place[..4].copy_from_slice(&sums[0].to_be_bytes());
        place[4..8].copy_from_slice(&sums[1].to_be_bytes());
    };
    put(&mut bytes[24..32], sums);
    for frame in bytes[32..].chunks_exact_mut(4120) {
        sums = log::sum(big_endian, sums, &frame[..8]);
        sums = log::sum(big_endian, sums, &frame[24..]);
        put(&mut frame[16..24], sums);
    }
    let other = TempDir::new().unwrap();
    let original = fs::read(site.directory.path().join(FILE)).unwrap();
    fs::write(other.path().join(FILE), original).unwrap();
    fs::write(other.path().join(LOG), bytes).unwrap();
    let dir = Dir::open_ambient_dir(other.path(), ambient_authority()).unwrap();
    let log = Log::open(&dir, LOG).unwrap().unwrap();
    let frames = log.committed(&log.start(), ALL).unwrap();
    assert_eq!(replayed(&[], &frames), expected);
    // SQLite agrees that it is one.
    let theirs = connect(other.path()).serialize(MAIN_DB).unwrap().to_vec();
    assert_eq!(theirs, expected);
}

fn add(site: &Site, history: &mut History, text: &str) -> Timestamp {
    site.tick();
    site.run(&format!("INSERT INTO t (a) VALUES ('{text}')"));
    history.note(site.frames_in_log(), history.now());
    history.last().unwrap()
}

impl Site {
    /// How many frames the log has that are of its generation.
    fn frames_in_log(&self) -> i32 {
        let log = self.log();
        i32::try_from(log.committed(&log.start(), ALL).unwrap().end.frames).unwrap()
    }

    fn at(&self, history: &History, at: Timestamp) -> Vec<String> {
        let image = history.at(at).unwrap().unwrap();
        assert!(image.at <= at);
        let rows = Self::rows(&image.bytes).into_iter();
        rows.map(|(_, text)| text).collect()
    }
}

#[test]
fn every_commit_can_be_gone_back_to() {
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let mut made = Vec::new();
    for round in 0..20 {
        made.push(add(&site, &mut history, &round.to_string()));
        match round % 5 {
            1 => history.take(&mut site.connection.borrow_mut()).unwrap(),
            2 => {
                history.take(&mut site.connection.borrow_mut()).unwrap();
                site.copy_log("PASSIVE");
                history.copied(true, 0);
            }
            3 => {
                history.take(&mut site.connection.borrow_mut()).unwrap();
                site.copy_log("TRUNCATE");
                history.copied(true, 0);
                history.seal().unwrap();
                history = site.history();
                assert!(history.chain.is_some(), "{round}: it was sealed");
            }
            _ => {}
        }
    }
    history.take(&mut site.connection.borrow_mut()).unwrap();
    assert_eq!(chain::numbers(&site.dir).unwrap(), [1], "one chain has all");
    for (round, at) in made.iter().enumerate() {
        let expected: Vec<_> = (0..=round).map(|n| n.to_string()).collect();
        assert_eq!(site.at(&history, *at), expected);
    }
    let past = history.past(None, 5).unwrap();
    assert_eq!(
        past.moments,
        made.iter().rev().take(5).copied().collect::<Vec<_>>()
    );
    assert!(past.more);
    let past = history.past(Some(made[3]), 100).unwrap();
    assert_eq!(past.moments[..3], [made[2], made[1], made[0]]);
    assert_eq!((past.newest, past.more), (made.last().copied(), false));
    assert!(past.oldest < Some(made[0]));
    assert!(history.at(Timestamp(0)).unwrap().is_none());
}

#[test]
fn a_crash_blurs_what_was_not_taken_and_loses_nothing_else() {
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let first = add(&site, &mut history, "first");
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let lost = add(&site, &mut history, "second");
    add(&site, &mut history, "third");
    // Nobody takes the two, and the process is another.
    drop(history);
    site.tick();
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    assert_eq!(
        chain::numbers(&site.dir).unwrap(),
        [1],
        "the log shows that it follows"
    );
    assert_eq!(
        site.at(&history, lost),
        ["first"],
        "never something between"
    );
    assert_eq!(site.at(&history, first), ["first"]);
    let newest = history.last().unwrap();
    assert_eq!(newest, history.now());
    assert_eq!(site.at(&history, newest), ["first", "second", "third"]);
}

#[test]
fn where_the_log_does_not_follow_another_chain_begins() {
    type Meanwhile = fn(&Site);
    let cases: [(&str, Meanwhile, usize); 5] = [
        ("nothing", |_| {}, 1),
        (
            "begun anew once",
            |site| {
                site.copy_log("PASSIVE");
                site.run("INSERT INTO t (a) VALUES ('next')");
            },
            1,
        ),
        (
            "begun anew twice",
            |site| {
                for _ in 0..2 {
                    site.copy_log("PASSIVE");
                    site.run("INSERT INTO t (a) VALUES ('next')");
                }
            },
            2,
        ),
        ("cut", |site| site.copy_log("TRUNCATE"), 2),
        (
            "copied unseen, and begun anew once",
            |site| {
                site.run("CREATE TABLE unseen (a)");
                site.copy_log("PASSIVE");
                site.run("INSERT INTO t (a) VALUES ('next')");
            },
            2,
        ),
    ];
    for (what, meanwhile, chains) in cases {
        let site = Site::new(1 << 30);
        let mut history = site.history();
        history.take(&mut site.connection.borrow_mut()).unwrap();
        let first = add(&site, &mut history, "first");
        history.take(&mut site.connection.borrow_mut()).unwrap();
        drop(history);
        meanwhile(&site);
        site.tick();
        let mut history = site.history();
        history.take(&mut site.connection.borrow_mut()).unwrap();
        let numbers = chain::numbers(&site.dir).unwrap();
        assert_eq!(numbers.len(), chains, "{what}");
        assert_eq!(site.at(&history, first), ["first"], "{what}");
        let rows = "SELECT count(*) FROM t";
        let rows = site
            .connection
            .borrow()
            .query_row(rows, [], |row| row.get::<_, isize>(0));
        let now = site.at(&history, history.now());
        assert_eq!(now.len(), rows.unwrap().unsigned_abs(), "{what}");
    }
}

#[test]
fn a_file_that_somebody_else_has_changed_is_not_gone_on_with() {
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let first = add(&site, &mut history, "first");
    history.take(&mut site.connection.borrow_mut()).unwrap();
    site.copy_log("TRUNCATE");
    history.copied(true, 0);
    history.seal().unwrap();
    site.run("INSERT INTO t (a) VALUES ('theirs')");
    site.copy_log("TRUNCATE");
    site.tick();
    let mut history = site.history();
    assert!(history.chain.is_none());
    history.take(&mut site.connection.borrow_mut()).unwrap();
    assert_eq!(site.at(&history, first), ["first"]);
    assert_eq!(site.at(&history, history.now()), ["first", "theirs"]);
}

#[test]
fn a_copy_of_the_log_that_was_given_up_may_have_been_complete() {
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    add(&site, &mut history, "first");
    history.take(&mut site.connection.borrow_mut()).unwrap();
    site.copy_log("PASSIVE");
    history.copied(false, site.frames());
    // SQLite begins the log anew, and two commits are in it before it is looked at.
    let second = add(&site, &mut history, "second");
    add(&site, &mut history, "third");
    history.take(&mut site.connection.borrow_mut()).unwrap();
    assert_eq!(chain::numbers(&site.dir).unwrap(), [1]);
    assert_eq!(site.at(&history, second), ["first", "second"]);
}

#[test]
fn a_torn_end_of_a_chain_is_taken_again() {
    for keep in [0, 1, 60, 75, 76, 77, 107, 108, 120] {
        let site = Site::new(1 << 30);
        let mut history = site.history();
        history.take(&mut site.connection.borrow_mut()).unwrap();
        let before = history.chain.as_ref().unwrap().end;
        add(&site, &mut history, "first");
        history.take(&mut site.connection.borrow_mut()).unwrap();
        let path = site.directory.path().join("0000000001.history");
        let mut bytes = fs::read(&path).unwrap();
        // The length came to the disk, and not all of what it is the length of.
        for byte in bytes
            .iter_mut()
            .skip(usize::try_from(before + keep).unwrap())
        {
            *byte = 0;
        }
        fs::write(&path, bytes).unwrap();
        drop(history);
        site.tick();
        let mut history = site.history();
        assert_eq!(history.chain.as_ref().unwrap().end, before, "{keep}");
        history.take(&mut site.connection.borrow_mut()).unwrap();
        assert_eq!(site.at(&history, history.now()), ["first"], "{keep}");
        assert_eq!(verify(&site.dir).unwrap(), Verified::default());
    }
}

#[test]
fn a_damaged_chain_is_found_and_never_believed() {
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let mut made = Vec::new();
    for round in 0..3 {
        made.push(add(&site, &mut history, &round.to_string()));
        history.take(&mut site.connection.borrow_mut()).unwrap();
    }
    let path = site.directory.path().join("0000000001.history");
    let bytes = fs::read(&path).unwrap();
    let last = history.chain.as_ref().unwrap().end;
    assert_eq!(last, bytes.len() as u64);
    for place in (0..bytes.len()).step_by(37) {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        fs::write(&path, changed).unwrap();
        for (round, at) in made.iter().enumerate() {
            // An error, an earlier moment, or the truth.
            if let Ok(Some(image)) = history.at(*at) {
                let rows = Site::rows(&image.bytes).len();
                let known = made.iter().position(|known| *known == image.at);
                let expected = known.map_or(0, |known| known + 1);
                assert_eq!(rows, expected, "byte {place}, round {round}");
            }
        }
    }
}

#[test]
fn a_clock_that_is_set_back_confuses_nobody() {
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let first = add(&site, &mut history, "first");
    let back = |millis: i64| Timestamp(first.0 - millis);
    assert_eq!(history.next(back(5)), first, "a little: it stands still");
    assert_eq!(history.next(back(SET_BACK + 1)), back(SET_BACK + 1));
    // Two commits at one time can only be told apart where somebody asks for it.
    history.seen = 0;
    history.note(site.frames_in_log(), first);
    assert_eq!(history.last(), Some(first));
    history.seen = 0;
    history.note_apart(site.frames_in_log());
    assert_eq!(history.last(), Some(Timestamp(first.0 + 1)));
}

#[test]
fn the_oldest_goes_when_there_is_too_much_and_when_it_is_too_old() {
    let most = 256 << 10;
    let site = Site::new(most);
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    for round in 0..300 {
        site.tick();
        let sql = format!(
            "REPLACE INTO t VALUES ({}, hex(randomblob(1500)))",
            round % 20
        );
        site.run(&sql);
        history.note(site.frames_in_log(), history.now());
        if round % 3 == 0 {
            history.take(&mut site.connection.borrow_mut()).unwrap();
            let past = history.past(None, 0).unwrap();
            assert!(past.bytes <= most, "round {round}: {}", past.bytes);
        }
    }
    let numbers = chain::numbers(&site.dir).unwrap();
    assert!(numbers.len() > 2 && numbers[0] > 1, "{numbers:?}");
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let kept = history.past(None, usize::MAX).unwrap().moments;
    assert!(kept.len() > 20, "{}", kept.len());

    // What is there still is never too old, and what it was before is.
    site.terms
        .clock
        .advance(std::time::Duration::from_secs(6 * 24 * 3600));
    add(&site, &mut history, "later");
    history.take(&mut site.connection.borrow_mut()).unwrap();
    assert!(history.past(None, usize::MAX).unwrap().moments.len() > 20);
    assert!(!is_stale(&site.dir, history.now()).unwrap());
    site.terms
        .clock
        .advance(std::time::Duration::from_secs(2 * 24 * 3600));
    assert!(is_stale(&site.dir, history.now()).unwrap());
    history
        .forget_old(&mut site.connection.borrow_mut())
        .unwrap();
    assert!(!is_stale(&site.dir, history.now()).unwrap());
    let left = history.past(None, usize::MAX).unwrap();
    assert_eq!(
        left.moments.len(),
        2,
        "the last that is gone, and what is there"
    );
    site.terms
        .clock
        .advance(std::time::Duration::from_secs(8 * 24 * 3600));
    history
        .forget_old(&mut site.connection.borrow_mut())
        .unwrap();
    let left = history.past(None, usize::MAX).unwrap().moments;
    assert_eq!(left.len(), 1, "what is there");
    assert_eq!(chain::numbers(&site.dir).unwrap().len(), 1);
    assert_eq!(
        Site::rows(&history.at(history.now()).unwrap().unwrap().bytes).len(),
        21
    );
}

#[test]
fn without_room_history_has_a_gap_and_nothing_fails() {
    // Switched off, it keeps nothing, and what was kept goes.
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    drop(history);
    let off = Arc::new(Terms {
        clock: site.terms.clock.clone(),
        most_bytes: 0,
        free_disk: 0,
    });
    let mut history = History::open(site.dir.try_clone().unwrap(), off);
    assert!(chain::numbers(&site.dir).unwrap().is_empty());
    history.take(&mut site.connection.borrow_mut()).unwrap();
    assert_eq!(history.past(None, 9).unwrap().oldest, None);
    // With less free disk than there must be, too.
    let full = Arc::new(Terms {
        clock: site.terms.clock.clone(),
        most_bytes: 1 << 30,
        free_disk: u64::MAX,
    });
    let mut history = History::open(site.dir.try_clone().unwrap(), full);
    let error = history.take(&mut site.connection.borrow_mut()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(chain::numbers(&site.dir).unwrap().is_empty());
}

#[test]
fn what_nobody_noted_is_dated_by_its_log() {
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let noted = add(&site, &mut history, "first");
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let written = |at: Timestamp| {
        let log = fs::File::options()
            .write(true)
            .open(site.directory.path().join(LOG));
        let since = std::time::Duration::from_millis(at.0.unsigned_abs());
        let time = std::time::UNIX_EPOCH + since;
        log.unwrap().set_modified(time).unwrap();
    };
    // It died an hour ago, two seconds after the last commit that is known.
    let died = Timestamp(noted.0 + 2000);
    for (number, (at, expected)) in [
        (died, died),
        // A time that cannot be is brought to where it can.
        (noted, Timestamp(died.0 + 1)),
    ]
    .into_iter()
    .enumerate()
    {
        site.run(&format!("INSERT INTO t (a) VALUES ('lost {number}')"));
        drop(history);
        written(at);
        site.terms
            .clock
            .advance(std::time::Duration::from_secs(3600));
        history = site.history();
        history.take(&mut site.connection.borrow_mut()).unwrap();
        assert_eq!(history.last(), Some(expected));
        assert_eq!(site.at(&history, expected).len(), 2 + number);
    }
    assert_eq!(site.at(&history, noted), ["first"]);
}

#[test]
fn what_is_taken_aside_ends_where_it_was_lent_out() {
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let path = site.directory.path().canonicalize().unwrap().join(FILE);
    let settings = crate::handle::Settings::alone(path, 1 << 30);
    let packer = Packer::start().unwrap();
    let mut made = Vec::new();
    for round in 0..6 {
        made.push(add(&site, &mut history, &format!("before {round}")));
        let frames = site.frames_in_log();
        assert!(history.can_be_lent());
        let mut lent = history.lend(&packer, &settings, frames).unwrap();
        // Commits go on while it is away, in some rounds.
        if round % 2 == 0 {
            made.push(add(&site, &mut history, &format!("during {round}")));
        }
        assert_eq!(lent.give_back(&mut history, true), Some(true));
        if round % 3 == 0 {
            made.push(add(&site, &mut history, &format!("after {round}")));
        }
    }
    history.take(&mut site.connection.borrow_mut()).unwrap();
    assert_eq!(chain::numbers(&site.dir).unwrap(), [1], "there is no gap");
    for (number, at) in made.iter().enumerate() {
        assert_eq!(site.at(&history, *at).len(), number + 1);
    }
    let past = history.past(None, 100).unwrap().moments;
    assert_eq!(
        past[..made.len()],
        made.iter().rev().copied().collect::<Vec<_>>()[..]
    );
}

/// The points of a chain's moments, oldest first.
fn points(site: &Site, chain: u32) -> Vec<Point> {
    let spots = Chain::open(&site.dir, chain).unwrap().spots().unwrap();
    spots
        .iter()
        .map(|spot| spot.moment.point.unwrap())
        .collect()
}

#[test]
fn every_commit_has_a_number_and_names_the_state_that_it_led_to() {
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let mut states = vec![State::of(&site.now()).checksum()];
    for round in 0..12 {
        add(&site, &mut history, &"x".repeat(1 + round * 900));
        states.push(State::of(&site.now()).checksum());
        match round % 4 {
            1 => history.take(&mut site.connection.borrow_mut()).unwrap(),
            2 => {
                history.take(&mut site.connection.borrow_mut()).unwrap();
                site.copy_log("TRUNCATE");
                history.copied(true, 0);
                history.seal().unwrap();
                history = site.history();
            }
            _ => {}
        }
    }
    // It becomes smaller, too.
    site.tick();
    site.run("DELETE FROM t WHERE id > 2; VACUUM");
    history.take(&mut site.connection.borrow_mut()).unwrap();
    states.push(State::of(&site.now()).checksum());
    let points = points(&site, 1);
    let found: Vec<u64> = points.iter().map(|point| point.state).collect();
    assert_eq!(found[..states.len() - 1], states[..states.len() - 1]);
    assert_eq!(found.last(), states.last());
    let commits: Vec<u64> = points.iter().map(|point| point.commit).collect();
    assert_eq!(commits[..13], (1..=13).collect::<Vec<_>>()[..]);
    assert_eq!(commits[13..], [15], "two commits nobody noted");
    assert_eq!(verify(&site.dir).unwrap(), Verified::default());
}

#[test]
fn commits_go_on_being_counted_where_another_chain_begins() {
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    for round in 0..3 {
        add(&site, &mut history, &round.to_string());
    }
    history.take(&mut site.connection.borrow_mut()).unwrap();
    drop(history);
    // Nobody has seen this, so that there is a gap.
    site.copy_log("TRUNCATE");
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let (first, second) = (points(&site, 1), points(&site, 2));
    assert_eq!(first.last().unwrap().commit, 4);
    assert_eq!(
        second[0].commit, 5,
        "what may have been missed counts as one"
    );
    assert_eq!(second[0].state, first.last().unwrap().state);
}

/// Changes what the last record of a chain says of where it leads.
fn mislead(site: &Site, number: u32) -> Timestamp {
    let chain = Chain::open(&site.dir, number).unwrap();
    let (offset, header) = *chain.records.last().unwrap();
    let path = site.directory.path().join(format!("{number:010}.history"));
    let file = fs::File::open(&path).unwrap();
    let mut moments = header.moments(&file, offset).unwrap();
    let content = header.content(&file, offset).unwrap();
    let mut point = header.point.unwrap();
    point.state ^= 1;
    moments.last_mut().unwrap().point = Some(point);
    let end = (header.last, point);
    let record = Record::new(header.kind, &moments, &content, header.end, end).unwrap();
    chain::append(&site.dir, number, offset, &record).unwrap();
    header.last
}

#[test]
fn a_record_that_leads_elsewhere_is_named_and_never_restored() {
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let first = add(&site, &mut history, "first");
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let second = add(&site, &mut history, "second");
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let at = mislead(&site, 1);
    assert_eq!(at, second);
    let found = verify(&site.dir).unwrap();
    let line = format!("history 1 does not lead to the state that it names: record 3, of {at}");
    assert_eq!(found.wrong, [line]);
    assert_eq!(site.at(&history, first), ["first"]);
    let refused = history.at(second).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
    // Whoever opens it next does not go on with it.
    drop(history);
    let mut history = site.history();
    let third = add(&site, &mut history, "third");
    history.take(&mut site.connection.borrow_mut()).unwrap();
    assert_eq!(chain::numbers(&site.dir).unwrap(), [1, 2]);
    let now = history.last().unwrap();
    assert!(now > third);
    assert_eq!(site.at(&history, now), ["first", "second", "third"]);
}

#[test]
fn a_history_of_the_format_before_is_read_and_another_begins() {
    let before = include_bytes!("../../../../tests/http/before/0000000001.history");
    let site = Site::new(1 << 30);
    fs::write(site.directory.path().join("0000000001.history"), before).unwrap();
    let chain = Chain::open(&site.dir, 1).unwrap();
    assert!(
        chain
            .records
            .iter()
            .all(|(_, h)| h.format == Format::Before)
    );
    let old: Vec<_> = chain.spots().unwrap();
    assert!(old.len() > 2, "{old:?}");
    // The clock of the site has to be past it.
    let last = chain.last().unwrap();
    let ahead = u64::try_from(last.0 - site.terms.clock.now().0).unwrap();
    let clock = &site.terms.clock;
    clock.advance(std::time::Duration::from_millis(ahead + 1000));
    let found = verify(&site.dir).unwrap();
    assert_eq!(found.wrong, Vec::<String>::new());
    assert_eq!(found.notes.len(), 1, "{found:?}");
    assert!(found.notes[0].contains("earlier format"), "{found:?}");
    let mut history = site.history();
    history.take(&mut site.connection.borrow_mut()).unwrap();
    let new = add(&site, &mut history, "new");
    history.take(&mut site.connection.borrow_mut()).unwrap();
    assert_eq!(chain::numbers(&site.dir).unwrap(), [1, 2]);
    let bytes = fs::read(site.directory.path().join("0000000001.history")).unwrap();
    assert_eq!(bytes, before, "nothing was added to it");
    assert_eq!(site.at(&history, new), ["new"]);
    let commits: Vec<u64> = points(&site, 2).iter().map(|point| point.commit).collect();
    assert_eq!(commits, [1, 2]);
    // What it has can be gone back to.
    let guests = |at| {
        let image = history.at(at).unwrap().unwrap();
        let mut connection = Connection::open_in_memory().unwrap();
        let bytes = &*image.bytes;
        connection
            .deserialize_read_exact(MAIN_DB, bytes, bytes.len(), false)
            .unwrap();
        let count = "SELECT count(*) FROM guests";
        connection
            .query_row(count, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let counts: Vec<i64> = old
        .iter()
        .rev()
        .take(3)
        .map(|spot| guests(spot.moment.at))
        .collect();
    assert_eq!(counts, [3, 2, 1]);
}
