//! Tests of records: installs, rollbacks, automatic rollbacks and crashes.

use super::*;

const NOW: Timestamp = Timestamp(1_795_176_000_000);

fn folder() -> (tempfile::TempDir, WorldFolder) {
    let guests = tempfile::tempdir().unwrap();
    let folder = WorldFolder::new(&guests.path().join("guests"), World::Gate);
    (guests, folder)
}

fn install_at(
    folder: &WorldFolder,
    component: &[u8],
    now: Timestamp,
) -> Result<GuestRecord, GuestRecordError> {
    let _held = folder.store(component)?;
    folder.choose(GuestDigest::of(component), "here".to_owned(), now)
}

fn install(folder: &WorldFolder, component: &[u8]) -> GuestRecord {
    install_at(folder, component, NOW).unwrap()
}

fn fallen(guest: GuestDigest) -> RolledBackGuest {
    RolledBackGuest {
        world: World::Gate,
        guest,
        before: guest,
        why: "trap".to_owned(),
    }
}

fn serving(record: &GuestRecord) -> Vec<GuestDigest> {
    record.serving.iter().map(|one| one.digest).collect()
}

fn components(folder: &WorldFolder) -> usize {
    components_newest_first(&folder.path).len()
}

#[test]
fn who_served_before_serves_again() {
    let (_guests, folder) = folder();
    assert_eq!(folder.read().unwrap().serving, []);
    let none = folder.roll_back(None, NOW);
    assert!(matches!(
        none,
        Err(GuestRecordError::NoPreviousGuest(World::Gate))
    ));
    let [a, b, c] = [b"a", b"b", b"c"].map(|bytes| GuestDigest::of(bytes));
    install(&folder, b"a");
    assert_eq!(serving(&install(&folder, b"b")), [a, b]);
    let again = install_at(&folder, b"b", NOW);
    assert!(matches!(again, Err(GuestRecordError::AlreadyServing)));
    assert_eq!(serving(&folder.roll_back(None, NOW).unwrap()), [a]);
    assert_eq!(serving(&install(&folder, b"c")), [a, c]);
    assert_eq!(components(&folder), 2);
    let other = folder.roll_back(Some(b), NOW);
    assert!(matches!(other, Err(GuestRecordError::OtherGuestServes)));
    folder.remove_rolled_back(&fallen(c), NOW).unwrap();
    folder.remove_rolled_back(&fallen(c), NOW).unwrap();
    assert_eq!(serving(&folder.read().unwrap()), [a]);
    let built_in = folder.roll_back(None, NOW).unwrap();
    assert_eq!(folder.read().unwrap(), built_in);
    assert_eq!(
        folder.choice(&built_in, NOW).origins,
        [GuestOrigin::BuiltIn],
        "{built_in:?}"
    );
    let kinds: Vec<_> = built_in
        .history
        .iter()
        .map(|change| (change.kind, change.digest))
        .collect();
    use GuestChangeCause::{Automatic, Install, Rollback};
    assert_eq!(
        kinds,
        [
            (Install, Some(a)),
            (Install, Some(b)),
            (Rollback, Some(a)),
            (Install, Some(c)),
            (Automatic, Some(a)),
            (Rollback, None),
        ]
    );
    assert_eq!(built_in.sequence, 6);
    assert_eq!(components(&folder), 0);
}

#[test]
fn a_guest_is_on_trial_for_a_day_after_it_was_installed() {
    let (_guests, folder) = folder();
    install(&folder, b"a");
    let record = install(&folder, b"b");
    assert!(folder.choice(&record, NOW).on_trial);
    assert!(
        folder
            .choice(&record, NOW.plus_seconds(TRIAL_SECONDS - 1))
            .on_trial
    );
    assert!(
        !folder
            .choice(&record, NOW.plus_seconds(TRIAL_SECONDS))
            .on_trial
    );
}

#[test]
fn a_guest_that_is_put_back_is_on_trial_until_its_own_day_is_over() {
    let (_guests, folder) = folder();
    install(&folder, b"a");
    let later = NOW.plus_seconds(TRIAL_SECONDS / 2);
    let newer = install_at(&folder, b"b", later).unwrap();
    let b = newer.current_guest().unwrap().digest;
    let over = NOW.plus_seconds(TRIAL_SECONDS);
    assert!(folder.choice(&newer, over).on_trial, "its day began later");
    let fallen = fallen(b);
    for fall in [false, true] {
        let back = if fall {
            install_at(&folder, b"b", later).unwrap();
            folder.remove_rolled_back(&fallen, later).unwrap();
            folder.read().unwrap()
        } else {
            folder.roll_back(None, later).unwrap()
        };
        assert_eq!(back.trial_until(), Some(over), "{back:?}");
        assert!(folder.choice(&back, later).on_trial, "{back:?}");
        assert!(!folder.choice(&back, over).on_trial, "{back:?}");
    }
    let built_in = folder.roll_back(None, later).unwrap();
    assert_eq!(built_in.trial_until(), None);
}

#[test]
fn only_the_latest_are_kept() {
    let (_guests, folder) = folder();
    for number in 0..MAX_CHANGES + 5 {
        install(&folder, number.to_string().as_bytes());
    }
    let record = folder.read().unwrap();
    assert_eq!(record.serving.len(), ROLLBACK_DEPTH);
    assert_eq!(components(&folder), ROLLBACK_DEPTH);
    assert_eq!(record.history.len(), MAX_CHANGES);
    assert_eq!(record.sequence, (MAX_CHANGES + 5) as u64);
}

#[test]
fn what_was_put_there_by_hand_serves_until_something_is_installed() {
    let (_guests, folder) = folder();
    std::fs::create_dir_all(&folder.path).unwrap();
    for name in ["000001.wasm", "000002.wasm"] {
        std::fs::write(folder.path.join(name), name).unwrap();
    }
    // A component that a crashed command left behind is not among them.
    let left = format!("{}.wasm", GuestDigest::of(b"left"));
    std::fs::write(folder.path.join(left), "left").unwrap();
    let record = folder.read().unwrap();
    assert_eq!(record.current_guest().unwrap().file, "000002.wasm");
    assert!(!folder.choice(&record, NOW).on_trial);
    install(&folder, b"a");
    let back = folder.roll_back(None, NOW).unwrap();
    assert_eq!(back.current_guest().unwrap().file, "000002.wasm");
    assert_eq!(back.trial_until(), None, "nobody has installed it");
    assert_eq!(components(&folder), 2, "what is not ours stays");
}

#[test]
fn only_a_component_that_is_stored_is_chosen() {
    let (_guests, folder) = folder();
    let [a, b] = [b"a", b"b"].map(|bytes| GuestDigest::of(bytes));
    drop(folder.store(b"b").unwrap());
    // A component that a command stored and never chose is removed by the next change.
    install(&folder, b"a");
    let gone = folder.choose(b, String::new(), NOW);
    assert!(matches!(gone, Err(GuestRecordError::ComponentMissing(digest)) if digest == b));
    assert_eq!(serving(&folder.read().unwrap()), [a]);
}

#[test]
fn a_component_that_a_command_has_stored_outlives_the_changes_of_others() {
    let (_guests, folder) = folder();
    let [a, b] = [b"a", b"b"].map(|bytes| GuestDigest::of(bytes));
    let held = folder.store(b"b").unwrap();
    // Another command stores the same component and ends first, without its choice.
    drop(folder.store(b"b").unwrap());
    install(&folder, b"a");
    let chosen = folder.choose(b, String::new(), NOW).unwrap();
    drop(held);
    assert_eq!(serving(&chosen), [a, b]);
    assert_eq!(components(&folder), 2);
}

#[test]
fn a_record_that_is_none_is_named() {
    let (guests, folder) = folder();
    install(&folder, b"a");
    for text in [
        "",
        "{",
        r#"{"format":2,"sequence":1,"serving":[],"history":[]}"#,
    ] {
        std::fs::write(folder.record_path(), text).unwrap();
        let error = format!("{:#}", folder.read().unwrap_err());
        assert!(error.contains(RECORD_FILE), "{error}");
        assert!(install_at(&folder, b"b", NOW).is_err());
        let mut choices = read_choices(&guests.path().join("guests"), NOW);
        assert_eq!(*choices.of(World::Gate), GuestCandidates::default());
    }
}

#[test]
fn one_that_fell_and_was_replaced_meanwhile_never_serves_again() {
    let (_guests, folder) = folder();
    let [a, b, c] = [b"a", b"b", b"c"].map(|bytes| GuestDigest::of(bytes));
    for component in [b"a", b"b", b"c"] {
        install(&folder, component);
    }
    folder.remove_rolled_back(&fallen(b), NOW).unwrap();
    let record = folder.read().unwrap();
    assert_eq!(serving(&record), [a, c]);
    assert!(folder.choice(&record, NOW).on_trial, "the newest still is");
    assert_eq!(serving(&folder.roll_back(Some(c), NOW).unwrap()), [a]);
}
