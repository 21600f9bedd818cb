//! Histories that are wrong: what judges the runs of three nodes finds each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use svc_tests::Answer;
use svc_tests::cluster::{Entry, entry_faults};
use svc_tests::scenarios::{Attempt, NameAnswer, Opened, name_faults, opening_fault};

#[test]
fn an_entry_that_is_lost_or_doubled_is_found() {
    let entries = |numbers: &[u64]| -> BTreeSet<Entry> {
        numbers.iter().map(|number| (1, *number)).collect()
    };
    let (acknowledged, sent) = (entries(&[0, 1]), entries(&[0, 1, 2]));
    for (found, faults) in [
        (&[(0, 1), (1, 1)][..], 0),
        // Nobody knows of the third one.
        (&[(0, 1), (1, 1), (2, 1)][..], 0),
        (&[(0, 1)][..], 1),
        (&[(0, 1), (1, 2)][..], 1),
        (&[(0, 1), (1, 1), (3, 1)][..], 1),
    ] {
        let found = found.iter().map(|(number, times)| ((1, *number), *times));
        let found: BTreeMap<Entry, usize> = found.collect();
        let wrong = entry_faults(&acknowledged, &sent, &found);
        assert_eq!(wrong.len(), faults, "{found:?}: {wrong:?}");
    }
}

#[test]
fn a_name_for_two_and_a_name_for_nobody_are_found() {
    let answers = |all: &[(u16, Option<&str>)]| -> Vec<NameAnswer> {
        let all = all.iter().enumerate();
        let all = all.map(|(publisher, (status, slug))| NameAnswer {
            name: "name".to_owned(),
            publisher,
            status: *status,
            slug: slug.map(str::to_owned),
        });
        all.collect()
    };
    for (history, elsewhere, is_right) in [
        (&[(201, Some("name")), (201, Some("name-2"))][..], 201, true),
        (&[(409, None), (201, Some("name"))][..], 409, true),
        // Two winners,
        (&[(201, Some("name")), (201, Some("name"))][..], 201, false),
        // none,
        (
            &[(201, Some("name-3")), (201, Some("name-2"))][..],
            201,
            false,
        ),
        (&[(409, None), (409, None)][..], 409, false),
        // one slug for two who have lost,
        (
            &[
                (201, Some("name")),
                (201, Some("name-2")),
                (201, Some("name-2")),
            ][..],
            201,
            false,
        ),
        // and an answer that nobody should get.
        (&[(201, Some("name")), (500, None)][..], 409, false),
        (
            &[(201, Some("name")), (201, Some("name-2"))][..],
            409,
            false,
        ),
    ] {
        let faults = name_faults(&answers(history), elsewhere);
        assert_eq!(faults.is_empty(), is_right, "{history:?}: {faults:?}");
    }
}

#[test]
fn a_page_for_two_readers_and_a_page_for_nobody_are_found() {
    let (got, gone, unknown) = (Opened::Got, Opened::Gone, Opened::Unknown);
    for (opened, is_killed, is_right) in [
        ([got, gone, gone], false, true),
        ([gone, gone, gone], false, false),
        ([unknown, gone, gone], false, false),
        ([got, got, gone], false, false),
        ([unknown, gone, gone], true, true),
        ([got, unknown, gone], true, true),
        ([got, got, gone], true, false),
    ] {
        let fault = opening_fault(&opened, is_killed);
        assert_eq!(fault.is_none(), is_right, "{opened:?}, killed: {is_killed}");
    }
}

#[test]
fn an_authority_that_is_taken_after_its_end_is_found() {
    for (status, is_cut, after, took, is_right) in [
        (Some(401), false, 0, 1, true),
        (Some(403), true, 2_000, 1, true),
        (Some(503), false, 0, 10_300, true),
        (Some(200), false, 0, 1, false),
        (Some(200), true, 900, 1, true),
        (Some(200), true, 1_000, 1, false),
        (Some(503), true, 0, 12_100, false),
        (Some(500), false, 0, 1, false),
        (None, true, 0, 1, false),
    ] {
        let attempt = Attempt {
            status,
            is_cut,
            after: Duration::from_millis(after),
            took: Duration::from_millis(took),
        };
        assert_eq!(attempt.fault().is_none(), is_right, "{attempt:?}");
    }
}

#[test]
fn answers_of_two_nodes_that_differ_are_found() {
    let answer = |status: u16, body: &'static str, headers: &[(&'static str, &'static str)]| {
        let headers = headers.iter();
        let headers = headers.map(|&(name, value)| {
            let value = HeaderValue::from_static(value);
            (http::HeaderName::from_static(name), value)
        });
        Answer {
            status,
            headers: headers.collect::<HeaderMap>(),
            body: body.as_bytes().to_vec().into(),
        }
    };
    let first = answer(200, "page", &[("etag", "a"), ("date", "now")]);
    for (other, is_same) in [
        (
            answer(200, "page", &[("etag", "a"), ("date", "then")]),
            true,
        ),
        (
            answer(200, "page", &[("etag", "b"), ("date", "now")]),
            false,
        ),
        (answer(200, "page", &[("date", "now")]), false),
        (answer(200, "other", &[("etag", "a")]), false),
        (answer(404, "page", &[("etag", "a")]), false),
    ] {
        assert_eq!(first.is_same(&other), is_same, "{other:?}");
    }
}
