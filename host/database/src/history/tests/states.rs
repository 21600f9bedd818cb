//! Numbers of commits, and the states that records name.

use super::*;

/// The points of a chain's moments, oldest first.
fn points(fixture: &HistoryFixture, chain: u32) -> Vec<CommitFingerprint> {
    let moment_locations = HistoryChainFile::open(&fixture.dir, chain)
        .unwrap()
        .moment_locations()
        .unwrap();
    moment_locations
        .iter()
        .map(|spot| spot.moment.point.unwrap())
        .collect()
}

/// Commits where the one chain is `before`, which is of an earlier format: it is sound and noted, and stays as it is beside another.
/// Returns the history, and the time of the commit.
fn begin_chain_after_earlier_format(
    fixture: &HistoryFixture,
    before: &[u8],
) -> (DatabaseHistory, Timestamp) {
    let found = verify(&fixture.dir).unwrap();
    assert_eq!(found.faults, Vec::<String>::new());
    assert_eq!(found.notes.len(), 1, "{found:?}");
    assert!(found.notes[0].contains("earlier format"), "{found:?}");
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let new = add(fixture, &mut history, "new");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    assert_eq!(chain::list_numbers(&fixture.dir).unwrap(), [1, 2]);
    let bytes = fs::read(fixture.directory.path().join("0000000001.history")).unwrap();
    assert_eq!(bytes, before, "nothing was added to it");
    (history, new)
}

#[test]
fn every_commit_has_a_number_and_names_the_state_that_it_led_to() {
    let fixture = HistoryFixture::new(1 << 30);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let mut states = vec![PageHashes::of(&fixture.now()).checksum()];
    for round in 0..12 {
        add(&fixture, &mut history, &"x".repeat(1 + round * 900));
        states.push(PageHashes::of(&fixture.now()).checksum());
        match round % 4 {
            1 => history
                .record_log(&mut fixture.connection.borrow_mut())
                .unwrap(),
            2 => {
                history
                    .record_log(&mut fixture.connection.borrow_mut())
                    .unwrap();
                fixture.copy_log("TRUNCATE");
                history.note_checkpoint(true, 0);
                history.append_seal().unwrap();
                history = fixture.history();
            }
            _ => {}
        }
    }
    // The database also shrinks.
    fixture.tick();
    fixture.run("DELETE FROM t WHERE id > 2; VACUUM");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    states.push(PageHashes::of(&fixture.now()).checksum());
    let points = points(&fixture, 1);
    let found: Vec<u64> = points.iter().map(|point| point.state).collect();
    assert_eq!(found[..states.len() - 1], states[..states.len() - 1]);
    assert_eq!(found.last(), states.last());
    let commits: Vec<u64> = points.iter().map(|point| point.commit).collect();
    assert_eq!(commits[..13], (1..=13).collect::<Vec<_>>()[..]);
    assert_eq!(commits[13..], [15], "two commits nobody noted");
    assert_eq!(verify(&fixture.dir).unwrap(), HistoryFindings::default());
}

#[test]
fn commits_go_on_being_counted_where_another_chain_begins() {
    let fixture = HistoryFixture::new(1 << 30);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    for round in 0..3 {
        add(&fixture, &mut history, &round.to_string());
    }
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    drop(history);
    // A commit that was not noted leaves a gap.
    fixture.copy_log("TRUNCATE");
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let (first, second) = (points(&fixture, 1), points(&fixture, 2));
    assert_eq!(first.last().unwrap().commit, 4);
    assert_eq!(
        second[0].commit, 5,
        "what may have been missed counts as one"
    );
    assert_eq!(second[0].state, first.last().unwrap().state);
}

#[test]
fn commits_may_be_numbered_from_elsewhere() {
    let fixture = HistoryFixture::new(1 << 30);
    let numbers = LastCommitTracker::new(fixture.history_settings.clock.now());
    let mut history = fixture.history();
    history.set_commit_numbers(Arc::clone(&numbers));
    numbers.resume_at(50);
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    numbers.add(history.now());
    add(&fixture, &mut history, "first");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    assert!(!history.leave_chain_numbered_otherwise());
    // Where they are counted otherwise another chain begins, here aside, while the next commit is made.
    numbers.resume_at(70);
    assert!(history.leave_chain_numbered_otherwise());
    let path = fixture.directory.path().canonicalize().unwrap();
    let path = path.join(DATABASE_FILE);
    let settings = crate::connection::DatabaseOpenSettings::standalone(path, 1 << 30);
    let packer = BackgroundCheckpointer::start().unwrap();
    let frames = fixture.frames_in_log();
    let mut lent = history.lend(&packer, &settings, frames).unwrap();
    numbers.add(history.now());
    add(&fixture, &mut history, "second");
    assert_eq!(lent.reclaim(&mut history, true), Some(true));
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    // Numbers before its own are left for chains from elsewhere.
    for (nth, commits) in [(1, [50, 51]), (2, [70, 71])] {
        let points = points(&fixture, chain::NUMBERS_BEFORE_LOADED + nth);
        let numbers: Vec<u64> = points.iter().map(|point| point.commit).collect();
        assert_eq!(numbers, commits);
    }
    assert_eq!(verify(&fixture.dir).unwrap(), HistoryFindings::default());
}

#[test]
fn chains_that_have_ended_go_elsewhere_and_come_back() {
    let fixture = HistoryFixture::new(1 << 30);
    let numbers = LastCommitTracker::new(fixture.history_settings.clock.now());
    let mut history = fixture.history();
    history.set_commit_numbers(Arc::clone(&numbers));
    let mut record = |position| {
        numbers.resume_at(position);
        history.leave_chain_numbered_otherwise();
        history
            .record_log(&mut fixture.connection.borrow_mut())
            .unwrap();
    };
    record(50);
    assert!(EndedChain::list(&fixture.dir, false).unwrap().is_empty());
    record(70);
    let listed = EndedChain::list(&fixture.dir, true).unwrap();
    let commits: Vec<_> = listed.iter().map(|it| (it.first.0, it.last.0)).collect();
    assert_eq!(commits, [(50, 50), (70, 70)]);
    let ended = EndedChain::list(&fixture.dir, false).unwrap();
    assert_eq!(ended, listed[..1]);
    let ended = ended[0];
    let first = || first_commit_kept(&fixture.dir).unwrap().unwrap().0;
    assert_eq!(first(), 50);

    let bytes = ended.read(&fixture.dir).unwrap().unwrap();
    chain::remove_chain_file(&fixture.dir, chain::NUMBERS_BEFORE_LOADED + 1).unwrap();
    assert_eq!(ended.read(&fixture.dir).unwrap(), None);
    EndedChain::put_before_others(&fixture.dir, &bytes).unwrap();
    assert_eq!(EndedChain::list(&fixture.dir, true).unwrap(), listed);
    // Others go before it.
    EndedChain::put_before_others(&fixture.dir, &bytes).unwrap();
    assert_eq!(
        chain::list_numbers(&fixture.dir).unwrap()[0],
        chain::NUMBERS_BEFORE_LOADED
    );
    assert_eq!(first(), 50);
}

/// Changes what the last record of a chain says of where it leads.
fn append_wrong_state(fixture: &HistoryFixture, number: u32) -> Timestamp {
    let chain = HistoryChainFile::open(&fixture.dir, number).unwrap();
    let (offset, header) = *chain.records.last().unwrap();
    let path = fixture
        .directory
        .path()
        .join(format!("{number:010}.history"));
    let file = fs::File::open(&path).unwrap();
    let mut moments = header.moments(&file, offset).unwrap();
    let content = header.content(&file, offset).unwrap();
    let mut point = header.point.unwrap();
    point.state ^= 1;
    moments.last_mut().unwrap().point = Some(point);
    let end = (header.last, point);
    let record = NewHistoryRecord::new(header.kind, &moments, &content, header.end, end).unwrap();
    chain::append_record(&fixture.dir, number, offset, &record).unwrap();
    header.last
}

#[test]
fn a_record_that_leads_elsewhere_is_named_and_never_restored() {
    let fixture = HistoryFixture::new(1 << 30);
    let mut history = fixture.history();
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let first = add(&fixture, &mut history, "first");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let second = add(&fixture, &mut history, "second");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    let at = append_wrong_state(&fixture, 1);
    assert_eq!(at, second);
    let found = verify(&fixture.dir).unwrap();
    let line = format!("history 1 does not lead to the state that it names: record 3, of {at}");
    assert_eq!(found.faults, [line]);
    assert_eq!(fixture.at(&history, first), ["first"]);
    let refused = history.image_at(second).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
    // The next writer does not continue this chain.
    drop(history);
    let mut history = fixture.history();
    let third = add(&fixture, &mut history, "third");
    history
        .record_log(&mut fixture.connection.borrow_mut())
        .unwrap();
    assert_eq!(chain::list_numbers(&fixture.dir).unwrap(), [1, 2]);
    let now = history.last().unwrap();
    assert!(now > third);
    assert_eq!(fixture.at(&history, now), ["first", "second", "third"]);
}

#[test]
fn a_history_of_the_first_format_is_read_and_another_begins() {
    let before =
        include_bytes!("../../../../../tests/http/earlier_installation/0000000001.history");
    let fixture = HistoryFixture::new(1 << 30);
    fs::write(fixture.directory.path().join("0000000001.history"), before).unwrap();
    let chain = HistoryChainFile::open(&fixture.dir, 1).unwrap();
    assert!(
        chain
            .records
            .iter()
            .all(|(_, h)| h.format == RecordFormat::V1)
    );
    let old: Vec<_> = chain.moment_locations().unwrap();
    assert!(old.len() > 2, "{old:?}");
    // The clock of the site has to be past it.
    let last = chain.last().unwrap();
    let ahead = u64::try_from(last.0 - fixture.history_settings.clock.now().0).unwrap();
    let clock = &fixture.history_settings.clock;
    clock.advance(std::time::Duration::from_millis(ahead + 1000));
    let (history, new) = begin_chain_after_earlier_format(&fixture, before);
    assert_eq!(fixture.at(&history, new), ["new"]);
    let commits: Vec<u64> = points(&fixture, 2)
        .iter()
        .map(|point| point.commit)
        .collect();
    assert_eq!(commits, [1, 2]);
    // The old moments can still be restored.
    let guests = |at| {
        let image = history.image_at(at).unwrap().unwrap();
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

/// Writes a chain as format 2 had it: a base, and a commit after it.
fn write_chain_of_format_2(fixture: &HistoryFixture, states: [(Timestamp, &[u8]); 2]) -> Vec<u8> {
    let mut file = Vec::new();
    for ((at, image), commit) in states.into_iter().zip(1..) {
        let pages = u32::try_from(image.len() / PAGE_SIZE).unwrap();
        let (kind, frames, content) = match commit {
            1 => (RecordKind::Base, 0, image.to_vec()),
            _ => {
                let numbers: Vec<u32> = (1..=pages).collect();
                let content = chain::pack_frames(&numbers, image);
                (RecordKind::Frames, pages, content)
            }
        };
        let point = CommitFingerprint {
            commit,
            state: PageHashes::in_format(RecordFormat::V2, image).checksum(),
        };
        let moment = Moment {
            at,
            frames,
            pages,
            point: Some(point),
        };
        let (end, last) = (WalPosition::default(), (at, point));
        let record = NewHistoryRecord::new(kind, &[moment], &content, end, last).unwrap();
        let mut bytes = record.bytes;
        bytes[..8].copy_from_slice(b"svchist2");
        let checksum = crc32fast::hash(&bytes[..72]);
        bytes[72..76].copy_from_slice(&checksum.to_le_bytes());
        file.extend(bytes);
    }
    let path = fixture.directory.path().join("0000000001.history");
    fs::write(path, &file).unwrap();
    file
}

#[test]
fn a_history_of_the_second_format_is_read_and_another_begins() {
    let fixture = HistoryFixture::new(1 << 30);
    let began = fixture.history_settings.clock.now();
    let empty = fixture.now();
    fixture.run("INSERT INTO t (a) VALUES ('before')");
    fixture.tick();
    let last = fixture.history_settings.clock.now();
    let filled = fixture.now();
    let states = [(began, empty.as_slice()), (last, filled.as_slice())];
    let before = write_chain_of_format_2(&fixture, states);
    fixture.tick();
    let (history, new) = begin_chain_after_earlier_format(&fixture, &before);
    assert_eq!(fixture.at(&history, began), [""; 0]);
    assert_eq!(fixture.at(&history, last), ["before"]);
    assert_eq!(fixture.at(&history, new), ["before", "new"]);
    let commits: Vec<u64> = points(&fixture, 2)
        .iter()
        .map(|point| point.commit)
        .collect();
    assert_eq!(commits, [3, 4], "they are counted on");
    // The next writer goes on with the new one.
    assert_eq!(fixture.history().chain.unwrap().number, 2);
}
