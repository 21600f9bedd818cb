//! Entries of the audit that tell of a part, and what is said of it.

use super::*;

fn entry(at: i64, action: &str, target: &str) -> AuditEntry {
    AuditEntry {
        at: Timestamp(at),
        principal: format!("by {action}"),
        action: action.to_owned(),
        target: target.to_owned(),
    }
}

fn action(at: i64) -> ReleaseOfPart {
    let mark = |target: &str, actions| AuditMark {
        at: Some(Timestamp(at)),
        ..AuditMark::new(target, actions)
    };
    ReleaseOfPart {
        at: Some(Timestamp(at).to_string()),
        marks: vec![
            mark("b", &["backend.define"]),
            mark("b/recent", &["action.rollback"]),
        ],
        place: PartPlace::OnServer,
        ..ReleaseOfPart::default()
    }
}

#[test]
fn each_part_has_its_entry() {
    let entries = [
        entry(9, "project.update", "p"),
        entry(8, "action.delete", "b/old"),
        entry(7, "frontend.delete", "f"),
        entry(6, "action.rollback", "b/other"),
        entry(6, "action.rollback", "b/recent"),
        entry(5, "backend.define", "b"),
        entry(5, "backend.query", "b"),
        entry(4, "revision.create", "f"),
        entry(3, "backend.define", "b"),
    ];
    let ended = |target: &str, actions| ReleaseOfPart::ended(Some(AuditMark::new(target, actions)));
    let live = ReleaseOfPart {
        marks: vec![AuditMark::new("f", &[])],
        ..ReleaseOfPart::default()
    };
    for (release, expected) in [
        (action(6), Some(4)),
        (action(5), Some(5)),
        (action(3), Some(8)),
        (action(2), None),
        (ended("b/old", &["action.delete"]), Some(1)),
        (ended("b/recent", &["action.delete"]), None),
        (ended("f", &["frontend.delete"]), Some(2)),
        (ended("p", &["project.update"]), Some(0)),
        (ReleaseOfPart::ended(None), None),
        (live, Some(2)),
    ] {
        let found = release.find_entry(&entries);
        assert_eq!(found, expected.map(|at| &entries[at]), "{release:?}");
    }
}

#[test]
fn a_part_is_told_with_who_and_when_and_what_helps() {
    use ConflictReason::{BothChanged, Stale};
    use PartPlace::{Ended, OnServer, Setting};
    let at = Timestamp(0);
    let told = |kind, place, is_known: bool, reason| {
        let mut release = ReleaseOfPart {
            place,
            ..ReleaseOfPart::default()
        };
        if is_known {
            release.take_entry(&entry(0, "x", "y"));
        }
        PartConflict::new(kind, "a", reason, release).to_text()
    };
    for (kind, place, is_known, reason, expected) in [
        ("page", OnServer, true, BothChanged, format!("page a: both have changed it; the server's was released {at} by by x")),
        ("page", OnServer, true, Stale, format!("page a: the folder has an earlier text; the server's was released {at} by by x")),
        ("price", OnServer, false, BothChanged, "price a: both have changed it; the server's was released. Change it in svc.toml.".to_owned()),
        ("page", Ended, true, BothChanged, format!("page a: the folder has changed it, and the server's was ended {at} by by x. Remove it from svc.toml.")),
        ("action", Ended, false, BothChanged, "action a: the folder has changed it, and it is not on the server any more. Remove its file.".to_owned()),
        ("project", Setting, false, BothChanged, "project a: both have changed it since they last met. Change it in svc.toml.".to_owned()),
        ("project", Setting, true, BothChanged, format!("project a: both have changed it; the server's settings were last changed {at} by by x. Change it in svc.toml.")),
    ] {
        assert_eq!(told(kind, place, is_known, reason), expected);
    }
}
