//! Bounds of the history, and what is taken beside others.

use super::*;

#[test]
fn the_oldest_goes_when_there_is_too_much_and_when_it_is_too_old() {
    let most = 256 << 10;
    let site = Site::new(most);
    let mut history = site.history();
    history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap();
    for round in 0..300 {
        site.tick();
        let sql = format!(
            "REPLACE INTO t VALUES ({}, hex(randomblob(1500)))",
            round % 20
        );
        site.run(&sql);
        history.note_commit(site.frames_in_log(), history.now());
        if round % 3 == 0 {
            history
                .record_log(&mut site.connection.borrow_mut())
                .unwrap();
            let past = history.list_moments(None, 0).unwrap();
            assert!(past.bytes <= most, "round {round}: {}", past.bytes);
        }
    }
    let numbers = chain::list_numbers(&site.dir).unwrap();
    assert!(numbers.len() > 2 && numbers[0] > 1, "{numbers:?}");
    history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap();
    let kept = history.list_moments(None, usize::MAX).unwrap().moments;
    assert!(kept.len() > 20, "{}", kept.len());

    // The present state is never too old, and the one before it is.
    site.history_settings
        .clock
        .advance(std::time::Duration::from_secs(6 * 24 * 3600));
    add(&site, &mut history, "later");
    history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap();
    assert!(
        history
            .list_moments(None, usize::MAX)
            .unwrap()
            .moments
            .len()
            > 20
    );
    assert!(!has_expired_moments(&site.dir, history.now()).unwrap());
    site.history_settings
        .clock
        .advance(std::time::Duration::from_secs(2 * 24 * 3600));
    assert!(has_expired_moments(&site.dir, history.now()).unwrap());
    history.prune(&mut site.connection.borrow_mut()).unwrap();
    assert!(!has_expired_moments(&site.dir, history.now()).unwrap());
    let left = history.list_moments(None, usize::MAX).unwrap();
    assert_eq!(
        left.moments.len(),
        2,
        "the last that is gone, and what is there"
    );
    site.history_settings
        .clock
        .advance(std::time::Duration::from_secs(8 * 24 * 3600));
    history.prune(&mut site.connection.borrow_mut()).unwrap();
    let left = history.list_moments(None, usize::MAX).unwrap().moments;
    assert_eq!(left.len(), 1, "what is there");
    assert_eq!(chain::list_numbers(&site.dir).unwrap().len(), 1);
    assert_eq!(
        Site::rows(&history.image_at(history.now()).unwrap().unwrap().bytes).len(),
        21
    );
}

#[test]
fn without_room_history_has_a_gap_and_nothing_fails() {
    // Switched off, it keeps nothing, and what was kept goes.
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap();
    drop(history);
    let off = Arc::new(HistorySettings {
        clock: site.history_settings.clock.clone(),
        most_bytes: 0,
        free_disk: 0,
    });
    let mut history = History::open(site.dir.try_clone().unwrap(), off);
    assert!(chain::list_numbers(&site.dir).unwrap().is_empty());
    history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap();
    assert_eq!(history.list_moments(None, 9).unwrap().oldest, None);
    // With less free disk than there must be, too.
    let full = Arc::new(HistorySettings {
        clock: site.history_settings.clock.clone(),
        most_bytes: 1 << 30,
        free_disk: u64::MAX,
    });
    let mut history = History::open(site.dir.try_clone().unwrap(), full);
    let error = history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(chain::list_numbers(&site.dir).unwrap().is_empty());
}

#[test]
fn a_database_that_outgrows_its_history_has_none_until_it_fits_again() {
    let site = Site::new(256 << 10);
    let mut history = site.history();
    history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap();
    let before = history.now();
    site.tick();
    site.run("INSERT INTO t VALUES (1, hex(randomblob(250000)))");
    history.note_commit(site.frames_in_log(), history.now());
    for _ in 0..2 {
        let error = history
            .record_log(&mut site.connection.borrow_mut())
            .unwrap_err();
        assert!(HistoryLimitExceeded::is(&error), "{error}");
        assert!(history.is_too_large() && history.can_be_lent());
    }
    let past = history.image_at(before).unwrap().unwrap();
    assert_eq!(Site::rows(&past.bytes).len(), 0, "what was kept is there");
    site.run("DELETE FROM t; VACUUM");
    history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap();
    assert!(!history.is_too_large());
    let noted = add(&site, &mut history, "fits");
    history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap();
    let past = history.image_at(noted).unwrap().unwrap();
    assert_eq!(Site::rows(&past.bytes), [(1, "fits".to_owned())]);
}

#[test]
fn a_chain_that_is_begun_aside_is_dated_before_what_is_committed_meanwhile() {
    let site = Site::new(256 << 10);
    let mut history = site.history();
    let path = site
        .directory
        .path()
        .canonicalize()
        .unwrap()
        .join(DATABASE_FILE);
    let settings = crate::connection::OpenSettings::standalone(path, 1 << 30);
    let packer = Checkpointer::start().unwrap();
    site.run("INSERT INTO t VALUES (1, hex(randomblob(250000)))");
    history.note_commit(site.frames_in_log(), history.now());
    let error = history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap_err();
    assert!(HistoryLimitExceeded::is(&error), "{error}");
    site.run("DELETE FROM t; VACUUM");
    history.note_commit(site.frames_in_log(), history.now());
    let mut lent = history
        .lend(&packer, &settings, site.frames_in_log())
        .unwrap();
    let during = add(&site, &mut history, "during");
    assert_eq!(lent.reclaim(&mut history, true), Some(true));
    history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap();
    let moments = history.list_moments(None, 100).unwrap().moments;
    assert_eq!(moments.len(), 2, "{moments:?}");
    assert!(moments[0] == during && moments[1] < during, "{moments:?}");
    assert_eq!(site.at(&history, during).len(), 1);
    assert_eq!(site.at(&history, moments[1]).len(), 0);
}

#[test]
fn what_nobody_noted_is_dated_by_its_log() {
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap();
    let noted = add(&site, &mut history, "first");
    history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap();
    let written = |at: Timestamp| {
        let log = fs::File::options()
            .write(true)
            .open(site.directory.path().join(LOG_FILE));
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
        site.history_settings
            .clock
            .advance(std::time::Duration::from_secs(3600));
        history = site.history();
        history
            .record_log(&mut site.connection.borrow_mut())
            .unwrap();
        assert_eq!(history.last(), Some(expected));
        assert_eq!(site.at(&history, expected).len(), 2 + number);
    }
    assert_eq!(site.at(&history, noted), ["first"]);
}

#[test]
fn what_is_taken_aside_ends_where_it_was_lent_out() {
    let site = Site::new(1 << 30);
    let mut history = site.history();
    history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap();
    let path = site
        .directory
        .path()
        .canonicalize()
        .unwrap()
        .join(DATABASE_FILE);
    let settings = crate::connection::OpenSettings::standalone(path, 1 << 30);
    let packer = Checkpointer::start().unwrap();
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
        assert_eq!(lent.reclaim(&mut history, true), Some(true));
        if round % 3 == 0 {
            made.push(add(&site, &mut history, &format!("after {round}")));
        }
    }
    history
        .record_log(&mut site.connection.borrow_mut())
        .unwrap();
    assert_eq!(
        chain::list_numbers(&site.dir).unwrap(),
        [1],
        "there is no gap"
    );
    for (number, at) in made.iter().enumerate() {
        assert_eq!(site.at(&history, *at).len(), number + 1);
    }
    let past = history.list_moments(None, 100).unwrap().moments;
    assert_eq!(
        past[..made.len()],
        made.iter().rev().copied().collect::<Vec<_>>()[..]
    );
}
