//! Record of a run: what clients were told, what they have read, and what is wrong.

use std::collections::{BTreeMap, BTreeSet};

/// Writer of a row, and its number among those of the writer.
pub(super) type Entry = (u64, u64);

/// Most numbers that a read asks for.
const WINDOW: u64 = 400;

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

#[derive(Debug, Default)]
pub(super) struct Record {
    /// Rows that were sent.
    pub(super) rows: BTreeMap<Entry, Outcome>,
    /// Rows that were shown.
    pub(super) shown: BTreeSet<Entry>,
    /// Pages that were published, by their names: whether that was acknowledged.
    pub(super) pages: BTreeMap<String, bool>,
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

    /// Numbers of rows that were acknowledged, of rows that were shown, of pages, and of one-time pages that were asked for.
    pub(super) fn progress(&self) -> [usize; 4] {
        let rows = self.rows.values();
        let rows = rows.filter(|outcome| **outcome == Outcome::Acknowledged);
        let pages = self.pages.values().filter(|is_there| **is_there);
        [
            rows.count(),
            self.shown.len(),
            pages.count(),
            self.readers.len(),
        ]
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
