//! Logs as the history reads them: whole, torn, and begun anew.

use super::*;
use crate::wal;

#[test]
fn a_log_holds_what_was_committed() {
    let fixture = HistoryFixture::new(0);
    fixture.run("INSERT INTO t (a) VALUES ('one'); INSERT INTO t (a) VALUES (hex(zeroblob(9000)))");
    let log = fixture.log();
    let frames = log.read_committed(&log.start(), ALL_FRAMES).unwrap();
    assert_eq!(frames.commits.len(), 3, "the table, and two rows");
    assert_eq!(
        frames.end.frames,
        u32::try_from(frames.pages.len()).unwrap()
    );
    assert_eq!(replay(&[], &frames), fixture.now());
    // From a later position, the rest is read.
    let first = frames.commits[0].frames;
    fixture.run("INSERT INTO t (a) VALUES ('three')");
    let rest = log.read_committed(&frames.end, ALL_FRAMES).unwrap();
    assert_eq!(rest.commits.len(), 1);
    assert!(log.contains(&frames.end).unwrap() && log.contains(&rest.end).unwrap());
    assert_eq!(
        rest.end,
        log.read_committed(&log.start(), ALL_FRAMES).unwrap().end
    );
    assert!(first < rest.end.frames);
    assert_eq!(replay(&replay(&[], &frames), &rest), fixture.now());
}

#[test]
fn a_log_that_begins_anew_follows_the_one_before() {
    let fixture = HistoryFixture::new(0);
    let mut before = None;
    for generation in 0..4 {
        fixture.run("INSERT INTO t (a) VALUES ('one')");
        let log = fixture.log();
        let end = log.read_committed(&log.start(), ALL_FRAMES).unwrap().end;
        if let Some(before) = before.replace(end) {
            let before: WalPosition = before;
            assert!(before.is_followed_by(log.start().salts), "{generation}");
            assert!(!log.contains(&before).unwrap(), "{generation}");
            assert!(!before.is_followed_by(before.salts));
        }
        // Frames of the generation before are behind those of this one.
        fixture.copy_log("PASSIVE");
    }
    assert!(!WalPosition::default().is_followed_by([1, 0]));
}

#[test]
fn what_was_not_committed_is_not_taken() {
    let fixture = HistoryFixture::new(0);
    let log = fixture.log();
    let before = log.read_committed(&log.start(), ALL_FRAMES).unwrap();
    fixture.run("PRAGMA cache_size = 1; BEGIN");
    for _ in 0..200 {
        fixture.run("INSERT INTO t (a) VALUES (hex(randomblob(2000)))");
    }
    assert!(fixture.frames() > 20, "it spilled into the log");
    let during = log.read_committed(&log.start(), ALL_FRAMES).unwrap();
    assert_eq!((during.end, during.data), (before.end, before.data.clone()));
    fixture.run("ROLLBACK; INSERT INTO t (a) VALUES ('kept')");
    let after = log.read_committed(&before.end, ALL_FRAMES).unwrap();
    assert_eq!(after.commits.len(), 1);
    assert_eq!(replay(&replay(&[], &before), &after), fixture.now());
}

#[test]
fn a_torn_or_changed_log_ends_before_the_damage() {
    let fixture = HistoryFixture::new(0);
    for _ in 0..6 {
        fixture.run("INSERT INTO t (a) VALUES (hex(randomblob(3000)))");
    }
    let whole = fixture
        .log()
        .read_committed(&fixture.log().start(), ALL_FRAMES)
        .unwrap();
    let bytes = fs::read(fixture.directory.path().join(LOG_FILE)).unwrap();
    let torn = TempDir::new().unwrap();
    let dir = Dir::open_ambient_dir(torn.path(), ambient_authority()).unwrap();
    let read = |bytes: &[u8]| {
        fs::write(torn.path().join("log"), bytes).unwrap();
        let log = WalFile::open(&dir, "log").unwrap()?;
        Some(log.read_committed(&log.start(), ALL_FRAMES).unwrap())
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
    let fixture = HistoryFixture::new(0);
    fixture.run("INSERT INTO t (a) VALUES ('one'); INSERT INTO t (a) VALUES ('two')");
    let expected = fixture.now();
    let mut bytes = fs::read(fixture.directory.path().join(LOG_FILE)).unwrap();
    bytes[3] ^= 1;
    let big_endian = bytes[3] & 1 == 1;
    let mut checksums = wal::frame_checksum(big_endian, [0, 0], &bytes[..24]);
    let put = |place: &mut [u8], checksums: [u32; 2]| {
        place[..4].copy_from_slice(&checksums[0].to_be_bytes());
        place[4..8].copy_from_slice(&checksums[1].to_be_bytes());
    };
    put(&mut bytes[24..32], checksums);
    for frame in bytes[32..].chunks_exact_mut(4120) {
        checksums = wal::frame_checksum(big_endian, checksums, &frame[..8]);
        checksums = wal::frame_checksum(big_endian, checksums, &frame[24..]);
        put(&mut frame[16..24], checksums);
    }
    let other = TempDir::new().unwrap();
    let original = fs::read(fixture.directory.path().join(DATABASE_FILE)).unwrap();
    fs::write(other.path().join(DATABASE_FILE), original).unwrap();
    fs::write(other.path().join(LOG_FILE), bytes).unwrap();
    let dir = Dir::open_ambient_dir(other.path(), ambient_authority()).unwrap();
    let log = WalFile::open(&dir, LOG_FILE).unwrap().unwrap();
    let frames = log.read_committed(&log.start(), ALL_FRAMES).unwrap();
    assert_eq!(replay(&[], &frames), expected);
    // SQLite agrees that it is one.
    let theirs = connect(other.path()).serialize(MAIN_DB).unwrap().to_vec();
    assert_eq!(theirs, expected);
}
