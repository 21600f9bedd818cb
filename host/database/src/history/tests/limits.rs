//! Bounds of the history, and what is taken beside others.

use super::*;

#[test]
fn the_oldest_goes_when_there_is_too_much_and_when_it_is_too_old() {
    let most = 256 << 10;
    let fixture = HistoryFixture::new(most);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    for round in 0..300 {
        fixture.tick();
        let sql = format!(
            "REPLACE INTO t VALUES ({}, hex(randomblob(1500)))",
            round % 20
        );
        fixture.run(&sql);
        history.note_commit(fixture.frames_in_log(), history.now());
        if round % 3 == 0 {
            history
                .record_log(&mut fixture.connection.borrow_mut())
                .unwrap();
            let past = history.list_moments(None, 0).unwrap();
            assert!(past.bytes <= most, "round {round}: {}", past.bytes);
        }
    }
    let numbers = chain::list_numbers(&fixture.dir).unwrap();
    assert!(numbers.len() > 2 && numbers[0] > 1, "{numbers:?}");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let kept = history.list_moments(None, usize::MAX).unwrap().moments;
    assert!(kept.len() > 20, "{}", kept.len());

    // The present state never expires; the one before it has.
    fixture
        .history_settings
        .clock
        .advance(std::time::Duration::from_secs(6 * 24 * 3600));
    add(&fixture, &mut history, "later");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    assert!(
        history
            .list_moments(None, usize::MAX)
            .unwrap()
            .moments
            .len()
            > 20
    );
    assert!(!has_expired_moments(&fixture.dir, history.now()).unwrap());
    fixture
        .history_settings
        .clock
        .advance(std::time::Duration::from_secs(2 * 24 * 3600));
    assert!(has_expired_moments(&fixture.dir, history.now()).unwrap());
    history.prune(&mut fixture.connection.borrow_mut()).unwrap();
    assert!(!has_expired_moments(&fixture.dir, history.now()).unwrap());
    let left = history.list_moments(None, usize::MAX).unwrap();
    assert_eq!(
        left.moments.len(),
        2,
        "the last that is gone, and what is there"
    );
    fixture
        .history_settings
        .clock
        .advance(std::time::Duration::from_secs(8 * 24 * 3600));
    history.prune(&mut fixture.connection.borrow_mut()).unwrap();
    let left = history.list_moments(None, usize::MAX).unwrap().moments;
    assert_eq!(left.len(), 1, "what is there");
    assert_eq!(chain::list_numbers(&fixture.dir).unwrap().len(), 1);
    assert_eq!(
        HistoryFixture::rows(&history.image_at(history.now()).unwrap().unwrap().bytes).len(),
        21
    );
}

#[test]
fn without_room_history_has_a_gap_and_nothing_fails() {
    // Switched off, it keeps nothing, and what was kept goes.
    let fixture = HistoryFixture::new(1 << 30);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    drop(history);
    let off = Arc::new(HistorySettings {
        clock: fixture.history_settings.clock.clone(),
        max_bytes: 0,
        min_free_bytes: 0,
    });
    let mut history = DatabaseHistory::open(fixture.dir.try_clone().unwrap(), off);
    assert!(chain::list_numbers(&fixture.dir).unwrap().is_empty());
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    assert_eq!(history.list_moments(None, 9).unwrap().oldest, None);
    // Also with too little free disk.
    let full = Arc::new(HistorySettings {
        clock: fixture.history_settings.clock.clone(),
        max_bytes: 1 << 30,
        min_free_bytes: u64::MAX,
    });
    let mut history = DatabaseHistory::open(fixture.dir.try_clone().unwrap(), full);
    let error = history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(chain::list_numbers(&fixture.dir).unwrap().is_empty());
}

#[test]
fn a_database_that_outgrows_its_history_has_none_until_it_fits_again() {
    let fixture = HistoryFixture::new(256 << 10);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let before = history.now();
    fixture.tick();
    fixture.run("INSERT INTO t VALUES (1, hex(randomblob(250000)))");
    history.note_commit(fixture.frames_in_log(), history.now());
    for _ in 0..2 {
        let error = history
            .record_log(&mut fixture.connection.borrow_mut())
            .unwrap_err();
        assert!(HistoryLimitExceeded::is(&error), "{error}");
        assert!(history.is_too_large() && history.can_checkpoint_in_background());
    }
    let past = history.image_at(before).unwrap().unwrap();
    assert_eq!(
        HistoryFixture::rows(&past.bytes).len(),
        0,
        "what was kept is there"
    );
    fixture.run("DELETE FROM t; VACUUM");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    assert!(!history.is_too_large());
    let noted = add(&fixture, &mut history, "fits");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let past = history.image_at(noted).unwrap().unwrap();
    assert_eq!(HistoryFixture::rows(&past.bytes), [(1, "fits".to_owned())]);
}

#[test]
fn a_chain_that_is_begun_aside_is_dated_before_what_is_committed_meanwhile() {
    let fixture = HistoryFixture::new(256 << 10);
    let mut history = fixture.history();
    let path = fixture
        .directory
        .path()
        .canonicalize()
        .unwrap()
        .join(DATABASE_FILE);
    let settings = crate::connection::DatabaseOpenSettings::standalone(path, 1 << 30);
    let packer = BackgroundCheckpointer::start().unwrap();
    fixture.run("INSERT INTO t VALUES (1, hex(randomblob(250000)))");
    history.note_commit(fixture.frames_in_log(), history.now());
    let error = history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap_err();
    assert!(HistoryLimitExceeded::is(&error), "{error}");
    fixture.run("DELETE FROM t; VACUUM");
    history.note_commit(fixture.frames_in_log(), history.now());
    let mut lent = history
        .lend(&packer, &settings, fixture.frames_in_log())
        .unwrap();
    let during = add(&fixture, &mut history, "during");
    assert_eq!(lent.reclaim(&mut history, true), Some(true));
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let moments = history.list_moments(None, 100).unwrap().moments;
    assert_eq!(moments.len(), 2, "{moments:?}");
    assert!(moments[0] == during && moments[1] < during, "{moments:?}");
    assert_eq!(fixture.at(&history, during).len(), 1);
    assert_eq!(fixture.at(&history, moments[1]).len(), 0);
}

#[test]
fn what_nobody_noted_is_dated_by_its_log() {
    let fixture = HistoryFixture::new(1 << 30);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let noted = add(&fixture, &mut history, "first");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let written = |at: Timestamp| {
        let log = fs::File::options()
            .write(true)
            .open(fixture.directory.path().join(LOG_FILE));
        let since = std::time::Duration::from_millis(at.0.unsigned_abs());
        let time = std::time::UNIX_EPOCH + since;
        log.unwrap().set_modified(time).unwrap();
    };
    // The crash was an hour ago, two seconds after the last noted commit.
    let died = Timestamp(noted.0 + 2000);
    for (number, (at, expected)) in [
        (died, died),
        // An impossible time is moved to a possible one.
        (noted, Timestamp(died.0 + 1)),
    ]
    .into_iter()
    .enumerate()
    {
        fixture.run(&format!("INSERT INTO t (a) VALUES ('lost {number}')"));
        drop(history);
        written(at);
        fixture
            .history_settings
            .clock
            .advance(std::time::Duration::from_secs(3600));
        history = fixture.history();
        history
            .record_log(&mut fixture.connection.borrow_mut())
            .unwrap();
        assert_eq!(history.last(), Some(expected));
        assert_eq!(fixture.at(&history, expected).len(), 2 + number);
    }
    assert_eq!(fixture.at(&history, noted), ["first"]);
}

#[test]
fn what_is_taken_aside_ends_where_it_was_lent_out() {
    let fixture = HistoryFixture::new(1 << 30);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let path = fixture
        .directory
        .path()
        .canonicalize()
        .unwrap()
        .join(DATABASE_FILE);
    let settings = crate::connection::DatabaseOpenSettings::standalone(path, 1 << 30);
    let packer = BackgroundCheckpointer::start().unwrap();
    let mut made = Vec::new();
    for round in 0..6 {
        made.push(add(&fixture, &mut history, &format!("before {round}")));
        let frames = fixture.frames_in_log();
        assert!(history.can_checkpoint_in_background());
        let mut lent = history.lend(&packer, &settings, frames).unwrap();
        // Commits go on while it is away, in some rounds.
        if round % 2 == 0 {
            made.push(add(&fixture, &mut history, &format!("during {round}")));
        }
        assert_eq!(lent.reclaim(&mut history, true), Some(true));
        if round % 3 == 0 {
            made.push(add(&fixture, &mut history, &format!("after {round}")));
        }
    }
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    assert_eq!(
        chain::list_numbers(&fixture.dir).unwrap(),
        [1],
        "there is no gap"
    );
    for (number, at) in made.iter().enumerate() {
        assert_eq!(fixture.at(&history, *at).len(), number + 1);
    }
    let past = history.list_moments(None, 100).unwrap().moments;
    assert_eq!(
        past[..made.len()],
        made.iter().rev().copied().collect::<Vec<_>>()[..]
    );
}
