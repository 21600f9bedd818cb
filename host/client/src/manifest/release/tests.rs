//! Releases: their order, their sizes, and the parts that a problem names.

use std::path::PathBuf;

use http::StatusCode;

use super::super::pages::{LocalContent, LocalPage};
use super::super::{Manifest, MigrationFile};
use super::*;
use crate::source::SourceToPublish;

/// A folder with so many migrations, actions and pages, whose texts have so many characters.
fn folder(count: usize, length: usize) -> ProjectFolder {
    let text = "x".repeat(length);
    let path = |kind: &str, number: usize| PathBuf::from(format!("{kind}{number}"));
    ProjectFolder {
        manifest: Manifest::default(),
        migrations: (0..count)
            .map(|number| MigrationFile {
                name: format!("m{number}.sql"),
                path: path("m", number),
                sql: text.clone(),
                checksum: String::new(),
            })
            .collect(),
        actions: (0..count)
            .map(|number| ActionFile {
                name: format!("a{number}"),
                path: path("a", number),
                sql: text.clone(),
                defaults: Map::new(),
                files: Map::new(),
            })
            .collect(),
        pages: (0..count)
            .map(|number| LocalPage {
                slug: format!("p{number}"),
                title: None,
                content: LocalContent::Page(
                    SourceToPublish::from_bytes(&path("p", number), text.as_bytes(), None).unwrap(),
                ),
            })
            .collect(),
    }
}

fn page(number: usize) -> ReleasePart {
    ReleasePart::Page {
        number,
        slug: format!("p{number}"),
        expected: None,
        is_new: true,
        base: None,
    }
}

fn action(number: usize) -> ReleasePart {
    ReleasePart::Action {
        number,
        expected: 0,
    }
}

fn problem(members: Value) -> CliFailure {
    let Value::Object(members) = members else {
        panic!("no object: {members}");
    };
    CliFailure::from_problem(StatusCode::CONFLICT, members)
}

#[test]
fn what_is_needed_comes_first() {
    let end = ReleasePart::RemoveAction {
        name: "old".to_owned(),
        expected: 3,
    };
    let mut parts = vec![
        end.clone(),
        page(0),
        action(1),
        ReleasePart::Migration(0),
        action(0),
    ];
    sort_parts(&mut parts);
    let migration = ReleasePart::Migration(0);
    assert_eq!(parts, [migration, action(1), action(0), page(0), end]);
    let body = release_body(&folder(2, 1), &parts, Some("p0"), Some("Why"));
    assert_eq!(body["actions"][0]["expected_version"], 0);
    assert_eq!(body["pages"][0]["expected_active_revision_id"], Value::Null);
    assert!(
        body["pages"][0]
            .get("expected_active_revision_id")
            .is_some()
    );
    assert_eq!(
        body["remove_actions"][0],
        json!({"name": "old", "expected_version": 3})
    );
    assert_eq!(
        (&body["home"], &body["message"]),
        (&json!("p0"), &json!("Why"))
    );
    assert!(body.get("remove_pages").is_none());
}

#[test]
fn a_release_is_as_large_as_the_server_takes() {
    let limits = ReleaseLimits::DEFAULT;
    let (small, large) = (folder(150, 10), folder(10, 1 << 20));
    let parts: Vec<_> = (0..150).map(action).collect();
    assert_eq!(limits.fitting(&small, &parts), 100);
    assert_eq!(limits.fitting(&small, &parts[100..]), 50);
    assert_eq!(limits.count(&small, &parts), 2);
    assert_eq!(limits.count(&small, &[]), 0);
    let parts: Vec<_> = (0..10).map(page).collect();
    assert_eq!(limits.fitting(&large, &parts), 2);
    assert_eq!(limits.count(&large, &parts), 5);
    // One that is too large alone is sent all the same: the server says so.
    let mut limits = limits;
    for _ in 0..30 {
        limits.halve();
    }
    assert_eq!(limits.fitting(&large, &parts), 1);
}

#[test]
fn a_slug_that_is_taken_is_followed_by_others() {
    let folder = folder(2, 1);
    let mut parts = vec![action(0), page(0), page(1)];
    let taken = problem(json!({ "code": "slug_conflict", "part": "pages[1]" }));
    let mut slugs = Vec::new();
    while let Some((number, slug)) = choose_free_slug(&taken, &mut parts, &folder).unwrap() {
        assert_eq!(number, 1);
        slugs.push(slug);
    }
    assert_eq!(
        slugs[..8],
        (2..10).map(|n| format!("p1-{n}")).collect::<Vec<_>>()
    );
    assert!(slugs.len() == 9 && slugs[8].len() == "p1-".len() + RANDOM_SUFFIX_LENGTH);
    assert_eq!(final_slug(&folder, &parts, "p1"), slugs[8]);
    assert_eq!(final_slug(&folder, &parts, "p0"), "p0");
    // Other refusals, and those of other parts, are passed on.
    for other in [
        json!({ "code": "release_conflict", "part": "pages[1]" }),
        json!({ "code": "slug_conflict" }),
        json!({ "code": "slug_conflict", "part": "pages[9]" }),
        json!({ "code": "slug_conflict", "part": "actions[0]" }),
        json!({ "code": "slug_conflict", "part": "pages" }),
    ] {
        let found = choose_free_slug(&problem(other.clone()), &mut parts, &folder);
        assert_eq!(found.unwrap(), None, "{other}");
    }
}

#[test]
fn a_refused_part_is_told_with_its_file() {
    let folder = folder(2, 1);
    let parts = [ReleasePart::Migration(1), action(0), page(1)];
    for (part, file) in [
        ("migrations[0]", "m1"),
        ("actions[0]", "a0"),
        ("pages[0]", "p1"),
    ] {
        let refused = problem(json!({ "title": "Refused", "detail": "No.", "part": part }));
        let text = with_part_files(refused, &parts, &folder).to_text();
        assert_eq!(text, format!("error: {file}: Refused: No."));
    }
}
