//! Numbers of commits, and the states that records name.

use super::*;

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
    // A commit that was never noted: there is a gap.
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
    // The next to open it does not go on with it.
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
    let before = include_bytes!("../../../../../tests/http/earlier_installation/0000000001.history");
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
