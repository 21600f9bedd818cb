//! The file of the meetings: its name, its form, and what counts where it cannot be used.

use super::*;

const PROJECT: &str = "01900000-0000-7000-8000-000000000001";

fn server() -> Url {
    Url::parse("http://localhost:8080").unwrap()
}

fn text(sha256: &str, title: &str) -> PageText {
    PageText {
        sha256: sha256.to_owned(),
        title: Some(title.to_owned()),
    }
}

#[test]
fn a_name_leads_nowhere_else() {
    for (server, project, expected) in [
        (
            "http://localhost:8080",
            PROJECT,
            Some(".svc/localhost-8080-01900000-0000-7000-8000-000000000001.json"),
        ),
        (
            "https://svc.example",
            PROJECT,
            Some(".svc/svc.example-443-01900000-0000-7000-8000-000000000001.json"),
        ),
        (
            "http://[::1]:80",
            PROJECT,
            Some(".svc/___1_-80-01900000-0000-7000-8000-000000000001.json"),
        ),
        ("https://svc.example", "../../x", None),
        ("https://svc.example", "", None),
    ] {
        let name = file_name(&Url::parse(server).unwrap(), project);
        assert_eq!(
            name.as_deref(),
            expected.map(Path::new),
            "{server} {project}"
        );
    }
    let long = format!("https://{}.example", vec!["a".repeat(60); 4].join("."));
    assert_eq!(file_name(&Url::parse(&long).unwrap(), PROJECT), None);
}

#[test]
fn what_was_written_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let handle = DirectoryHandle::open(folder.path()).unwrap();
    let read =
        |project: &str| Meetings::read(&handle, AcceptedOwners::default(), &server(), project);
    let (mut meetings, note) = read(PROJECT);
    assert_eq!((note, meetings.has_met), (None, false));
    meetings.has_met = true;
    let (now, version) = (text("a", "A"), Some("r1".to_owned()));
    let part = meet_part(&mut meetings.pages, "a", (now.clone(), now), version);
    part.unwrap().slug = Some("a-2".to_owned());
    meetings.write(&handle).unwrap();
    assert_eq!(read(PROJECT), (meetings.clone(), None));
    assert_eq!(
        handle.read(Path::new(".svc/.gitignore")).unwrap(),
        b"*\n",
        "it is left out of version control"
    );
    // Whatever cannot be used is said, and does not count.
    let name = file_name(&server(), PROJECT).unwrap();
    let path = folder.path().join(&name);
    let whole = std::fs::read_to_string(&path).unwrap();
    for (broken, said) in [
        (whole[..whole.len() / 2].to_owned(), "not whole"),
        ("[]".to_owned(), "not whole"),
        (
            whole.replace("\"version\": 1", "\"version\": 2"),
            "another version",
        ),
        (whole.replace("localhost", "otherhost"), "another server"),
    ] {
        std::fs::write(&path, broken).unwrap();
        let (found, note) = read(PROJECT);
        assert!(!found.has_met && found.pages.is_empty());
        let note = note.unwrap();
        assert!(note.contains(said) && note.contains(".json"), "{note}");
    }
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
    let (found, note) = read(PROJECT);
    assert!(!found.has_met && note.unwrap().contains("symbolic link"));
}

#[test]
fn a_title_that_the_folder_leaves_out_is_the_servers() {
    let mut meetings = Meetings::new(&server(), PROJECT);
    meetings.has_met = true;
    let local = PageText {
        sha256: "a".to_owned(),
        title: None,
    };
    let met = (local.clone(), text("a", "Old"));
    meet_part(&mut meetings.pages, "a", met, None).unwrap();
    let decide = |local: &PageText, remote: &PageText| {
        let met = meetings.pages.get("a");
        meetings.decide(met, Some(local), Some(remote), None)
    };
    let changed = PageText {
        sha256: "b".to_owned(),
        title: None,
    };
    for (local, remote, expected) in [
        (&local, text("a", "New"), Decision::Same),
        (&changed, text("a", "New"), Decision::Apply),
        (&changed, text("c", "Old"), Decision::Conflict),
        (&text("a", "Mine"), text("a", "Old"), Decision::Apply),
        (&text("a", "Mine"), text("a", "New"), Decision::Conflict),
        (&text("a", "Old"), text("a", "New"), Decision::ServerNewer),
    ] {
        let found = decide(local, &remote);
        assert_eq!(found, PartDecision::Made(expected), "{local:?} {remote:?}");
    }
}

#[test]
fn a_release_whose_answer_was_lost_is_known_again() {
    let mut meetings = Meetings::new(&server(), PROJECT);
    meetings.has_met = true;
    let (old, sent, newer, theirs) = (
        text("a", "A"),
        text("b", "A"),
        text("c", "A"),
        text("d", "A"),
    );
    meet_part(&mut meetings.pages, "a", (old.clone(), old.clone()), None).unwrap();
    meetings.expect_page("a", sent.clone());
    let decide = |local: &PageText, remote: &PageText| {
        let met = meetings.pages.get("a");
        meetings.decide(met, Some(local), Some(remote), None)
    };
    for (remote, expected) in [
        (&sent, Decision::Apply),
        (&old, Decision::Apply),
        (&theirs, Decision::Conflict),
    ] {
        let found = decide(&newer, remote);
        assert_eq!(found, PartDecision::Made(expected), "{remote:?}");
    }
}

#[test]
fn without_a_meeting_the_history_is_asked() {
    let meetings = Meetings::new(&server(), PROJECT);
    let (local, remote) = (text("a", "A"), text("b", "A"));
    let decide =
        |earlier: Option<&[PageText]>| meetings.decide(None, Some(&local), Some(&remote), earlier);
    assert_eq!(decide(None), PartDecision::NeedsHistory);
    for (earlier, expected) in [
        (text("a", "A"), Decision::Stale),
        (text("a", "B"), Decision::Apply),
        (text("c", "A"), Decision::Apply),
    ] {
        let found = decide(Some(&[earlier]));
        assert_eq!(found, PartDecision::Made(expected));
    }
}
