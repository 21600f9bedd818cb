//! Record of a run: what clients were told, what they have read, and what is wrong.

use std::collections::{BTreeMap, BTreeSet};

use svc_tests::{Answer, SeededRng};

/// Writer of a row, and its number among those of the writer.
pub(super) type Entry = (u64, u64);

/// Most numbers that a read asks for.
const WINDOW: u64 = 400;
/// Pages that were published last, which are looked at most.
const NEWEST: usize = 8;

/// Knowledge of a client about what it has asked for once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It may be done.
    Unknown,
    /// It is not done.
    Refused,
    /// It is done.
    Acknowledged,
}

/// Versions of the page that is published again and again.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// The last one that was sent.
    pub(super) sent: u64,
    /// The last one that was acknowledged.
    pub(super) acknowledged: u64,
    /// Those with a request whose answer was lost: it may be on its way, and be done after later ones.
    pub(super) unknown: BTreeSet<u64>,
}

/// Knowledge of a client about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageState {
    /// It was sent.
    Sent,
    /// It is there.
    Published,
    /// A deletion was sent.
    Leaving,
    /// It is deleted.
    Gone,
}

#[derive(Debug, Default)]
pub(super) struct Record {
    /// Id of the project whose page clients write to.
    pub(super) project: String,
    /// Rows that were sent.
    pub(super) rows: BTreeMap<Entry, Outcome>,
    /// Rows that were shown.
    pub(super) shown: BTreeSet<Entry>,
    /// Pages that were sent, by their names.
    pub(super) pages: BTreeMap<String, PageState>,
    /// Names of those that were there, in order.
    published: Vec<String>,
    /// First answer to a look at each.
    views: BTreeMap<String, Answer>,
    /// Slugs that were given, each with the key of the request.
    slugs: BTreeMap<String, String>,
    /// Number of names that several publishers wanted at once.
    raced: usize,
    pub(super) versions: Versions,
    /// Number of keys that were revoked.
    pub(super) revoked: usize,
    /// One-time pages that were published, with the number of readers who got each.
    pub(super) readers: BTreeMap<String, usize>,
    faults: Vec<String>,
}

impl Record {
    /// Notes that something is wrong.
    pub(super) fn fault(&mut self, what: String) {
        println!("wrong: {what}");
        self.faults.push(what);
    }

    pub(super) fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Numbers of rows that were acknowledged, of rows that were shown, of pages, of pages that were looked at, of one-time pages that were
    /// asked for, of names that several wanted, of versions of one page, and of revoked keys.
    pub(super) fn progress(&self) -> [usize; 8] {
        let rows = self.rows.values();
        let rows = rows.filter(|outcome| **outcome == Outcome::Acknowledged);
        [
            rows.count(),
            self.shown.len(),
            self.published.len(),
            self.views.len(),
            self.readers.len(),
            self.raced,
            usize::try_from(self.versions.acknowledged).unwrap(),
            self.revoked,
        ]
    }

    /// Notes what is known of a page.
    pub(super) fn turn_page(&mut self, name: &str, state: PageState) {
        self.pages.insert(name.to_owned(), state);
        if state == PageState::Published {
            self.published.push(name.to_owned());
        }
    }

    /// Draws a page that was published, with what is known of it: one of the newest, or any.
    pub(super) fn draw_page(&self, rng: &mut SeededRng) -> Option<(String, PageState)> {
        let count = self.published.len();
        let from = match rng.below(2) {
            0 => count.saturating_sub(NEWEST),
            _ => 0,
        };
        let drawn = (count > 0).then(|| &self.published[from + rng.below(count - from)])?;
        Some((drawn.clone(), self.pages[drawn]))
    }

    /// Notes the answer to a look at a page, of which this was known `before`: all nodes show the same, once it is published and until its
    /// deletion is sent.
    pub(super) fn note_view(&mut self, name: &str, before: PageState, answer: &Answer) {
        let first = self.views.get(name);
        let is_right = match answer.status {
            200 => {
                before != PageState::Gone
                    && answer.text().contains(&format!("of {name}"))
                    && first.is_none_or(|first| first.is_same(answer))
            }
            404 => before != PageState::Published || self.pages[name] != PageState::Published,
            status => status == 503,
        };
        if !is_right {
            let first = first.cloned();
            self.fault(format!(
                "{name}, known before as {before:?}: {answer:?}, at first {first:?}"
            ));
        } else if answer.status == 200 && first.is_none() {
            self.views.insert(name.to_owned(), answer.clone());
        }
    }

    /// Notes that a request with this key got a slug.
    pub(super) fn note_slug(&mut self, slug: &str, key: &str) {
        let before = self.slugs.insert(slug.to_owned(), key.to_owned());
        if let Some(before) = before.filter(|before| before != key) {
            self.fault(format!("{slug} was given to {before} and to {key}"));
        }
    }

    /// Notes the slugs that all got who wanted a name: one has it.
    pub(super) fn note_race(&mut self, name: &str, slugs: &[String]) {
        let winners = slugs.iter().filter(|slug| *slug == name).count();
        if winners != 1 {
            self.fault(format!("{name} has {winners} winners: {slugs:?}"));
        }
        self.raced += 1;
    }

    /// Notes the version that a look has shown, before which one was acknowledged.
    pub(super) fn note_version(&mut self, before: u64, shown: Option<u64>) {
        let Versions { sent, unknown, .. } = &self.versions;
        let is_right = |shown: u64| (before..=*sent).contains(&shown) || unknown.contains(&shown);
        if !shown.is_some_and(is_right) {
            let fault = format!("version {shown:?} after {before}: {:?}", self.versions);
            self.fault(fault);
        }
    }

    /// Notes the answer to a request with a key. `ended` says of a key that was revoked whether even a node that was cut off must know.
    pub(super) fn note_key(&mut self, answer: Option<&Answer>, ended: Option<bool>) {
        let Some(answer) = answer else { return };
        let is_right = match (answer.status, ended) {
            (503, _) => true,
            (200, None) => true,
            (200, Some(is_late)) => !is_late,
            (401, ended) => ended.is_some(),
            _ => false,
        };
        if !is_right {
            let fault = format!("a key, revoked and known to be: {ended:?}: {answer:?}");
            self.fault(fault);
        }
    }

    /// The first number of a writer's that a read asks for, and those numbers from there on that were acknowledged.
    pub(super) fn expected(&self, writer: u64) -> (u64, Vec<u64>) {
        let all = (writer, 0)..=(writer, u64::MAX);
        let last = self.rows.range(all).next_back();
        let first = last.map_or(0, |((_, number), _)| number.saturating_sub(WINDOW));
        let asked = self.rows.range((writer, first)..=(writer, u64::MAX));
        let acknowledged = asked.filter(|(_, outcome)| **outcome == Outcome::Acknowledged);
        let numbers = acknowledged.map(|((_, number), _)| *number).collect();
        (first, numbers)
    }

    /// Notes the numbers of a writer's that a read has shown, which must include those that were expected.
    pub(super) fn note_read(&mut self, writer: u64, expected: &[u64], found: &[u64]) {
        let numbers: BTreeSet<u64> = found.iter().copied().collect();
        if numbers.len() != found.len() {
            self.fault(format!(
                "rows of writer {writer} are there twice: {found:?}"
            ));
        }
        let missing: Vec<_> = expected
            .iter()
            .filter(|it| !numbers.contains(*it))
            .collect();
        if !missing.is_empty() {
            self.fault(format!(
                "a read lacks rows of writer {writer} that were acknowledged before: {missing:?}"
            ));
        }
        self.shown
            .extend(numbers.into_iter().map(|number| (writer, number)));
    }

    /// Compares with the rows that there are at the end, with how often each is there.
    pub(super) fn compare_rows(&mut self, found: &BTreeMap<Entry, usize>) {
        let mut wrong = Vec::new();
        for (entry, outcome) in &self.rows {
            match (outcome, found.contains_key(entry)) {
                (Outcome::Acknowledged, false) => wrong.push(format!("{entry:?} is lost")),
                (Outcome::Refused, true) => {
                    wrong.push(format!("{entry:?} was refused and is there"));
                }
                _ => {}
            }
        }
        for entry in &self.shown {
            if !found.contains_key(entry) {
                wrong.push(format!("{entry:?} was shown and is gone"));
            }
        }
        for (entry, times) in found {
            if *times != 1 || !self.rows.contains_key(entry) {
                wrong.push(format!("{entry:?} is there {times} times"));
            }
        }
        for what in wrong {
            self.fault(what);
        }
    }
}

#[test]
fn a_record_finds_what_is_wrong() {
    let mut record = Record::default();
    for (number, outcome) in [
        (0, Outcome::Acknowledged),
        (1, Outcome::Unknown),
        (2, Outcome::Refused),
    ] {
        record.rows.insert((1, number), outcome);
    }
    let (first, expected) = record.expected(1);
    assert_eq!((first, expected.as_slice()), (0, &[0][..]));
    record.note_read(1, &expected, &[0]);
    let found = |numbers: &[u64]| -> BTreeMap<Entry, usize> {
        numbers.iter().map(|number| ((1, *number), 1)).collect()
    };
    record.compare_rows(&found(&[0]));
    record.compare_rows(&found(&[0, 1]));
    assert!(record.faults().is_empty(), "{:?}", record.faults());
    record.note_read(1, &expected, &[1]);
    assert_eq!(record.faults().len(), 1, "it lacks what was acknowledged");
    record.note_read(1, &expected, &[0, 0]);
    assert_eq!(record.faults().len(), 2, "one is there twice");
    record.compare_rows(&found(&[0, 1, 2]));
    assert_eq!(record.faults().len(), 3, "one was refused");
    record.compare_rows(&found(&[0]));
    assert_eq!(record.faults().len(), 4, "one was shown");
    record.compare_rows(&found(&[1]));
    // It was shown, too.
    assert_eq!(record.faults().len(), 6, "one was acknowledged");
    record.compare_rows(&found(&[0, 1, 7]));
    assert_eq!(record.faults().len(), 7, "nobody has sent one");
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn answer(status: u16, body: &str, tag: &'static str) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert("etag", HeaderValue::from_static(tag));
        Answer {
            status,
            headers,
            body: body.as_bytes().to_vec().into(),
        }
    }

    #[test]
    fn a_page_that_differs_or_is_gone_or_comes_back_is_found() {
        use PageState::{Gone, Leaving, Published, Sent};
        let (page, other) = (answer(200, "of p", "a"), answer(200, "of q", "a"));
        let (renamed, gone) = (answer(200, "of p", "b"), answer(404, "", "a"));
        let (refused, failed) = (answer(503, "", "a"), answer(500, "", "a"));
        for (before, now, seen, is_right) in [
            (Published, Published, &page, true),
            (Published, Published, &refused, true),
            (Published, Leaving, &gone, true),
            (Leaving, Leaving, &page, true),
            (Gone, Gone, &gone, true),
            (Published, Published, &other, false),
            (Published, Published, &renamed, false),
            (Published, Published, &gone, false),
            (Gone, Gone, &page, false),
            (Published, Published, &failed, false),
        ] {
            let mut record = Record::default();
            record.turn_page("p", Sent);
            record.turn_page("p", Published);
            record.note_view("p", Published, &page);
            record.turn_page("p", now);
            record.note_view("p", before, seen);
            let faults = record.faults();
            assert_eq!(faults.is_empty(), is_right, "{before:?} {seen:?}");
        }
    }

    #[test]
    fn a_slug_for_two_and_a_name_without_a_winner_are_found() {
        let slugs = |all: [&str; 2]| all.map(str::to_owned);
        let mut record = Record::default();
        record.note_slug("a", "one");
        record.note_slug("a", "one");
        record.note_race("a", &slugs(["a-2", "a"]));
        assert!(record.faults().is_empty(), "{:?}", record.faults());
        record.note_slug("a", "two");
        assert_eq!(record.faults().len(), 1);
        record.note_race("a", &slugs(["a", "a"]));
        assert_eq!(record.faults().len(), 2);
        record.note_race("a", &slugs(["a-2", "a-3"]));
        assert_eq!(record.faults().len(), 3);
    }

    #[test]
    fn a_version_that_is_too_old_is_found() {
        for (before, shown, is_right) in [
            (4, Some(4), true),
            (4, Some(5), true),
            (4, Some(2), true),
            (4, Some(3), false),
            (4, Some(6), false),
            (4, None, false),
        ] {
            let mut record = Record::default();
            record.versions.sent = 5;
            record.versions.unknown.insert(2);
            record.note_version(before, shown);
            assert_eq!(record.faults().is_empty(), is_right, "{shown:?}");
        }
    }

    #[test]
    fn a_key_that_is_taken_too_late_or_refused_too_early_is_found() {
        for (status, ended, is_right) in [
            (200, None, true),
            (503, None, true),
            (200, Some(false), true),
            (401, Some(false), true),
            (503, Some(true), true),
            (401, None, false),
            (200, Some(true), false),
            (500, Some(false), false),
        ] {
            let mut record = Record::default();
            record.note_key(Some(&answer(status, "", "a")), ended);
            let faults = record.faults();
            assert_eq!(faults.is_empty(), is_right, "{status} {ended:?}");
        }
    }
}
