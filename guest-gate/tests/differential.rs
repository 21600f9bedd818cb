//! Random texts: the gate never panics, and what it allows is for SQLite what the gate says it is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

mod support;

use std::cell::RefCell;
use std::sync::LazyLock;

use proptest::prelude::*;
use support::agreement::{PURPOSES, Watched};
use support::pieces;

/// Pieces of random texts, besides the corpus.
const SOUP: &[&str] = &[
    "svc_secret",
    "\"SVC_secret\"",
    "[svc_secret]",
    "`svc_secret`",
    "'svc_secret'",
    "svc_payments",
    "svc_files",
    "main.",
    "temp.",
    "sqlite_schema",
    "sqlite_master",
    "pragma_table_list",
    "dbstat",
    "json_each",
    "json_each('[1]')",
    "fts3tokenize",
    "load_extension('x')",
    "changes()",
    "last_insert_rowid()",
    "sqlite_version()",
    "abs(1)",
    "count(*)",
    "->>",
    "->",
    "(",
    ")",
    ",",
    ";",
    ".",
    "*",
    "=",
    "-",
    "--",
    "/*",
    "*/",
    "\n",
    "'",
    "\"",
    "[",
    "]",
    "`",
    ":a",
    ":svc_user_id",
    ":svc_x",
    ":svc_file",
    ":svc_file_name",
    "?",
    "?1",
    "@a",
    "$a",
    "$a::b(c)",
    ":a(b)",
    "x'00'",
    "1",
    "1.5",
    "0x1F",
    "1_0",
    "'text'",
    "users",
    "posts",
    "kv",
    "name",
    "id",
    "SELECT",
    "FROM",
    "WHERE",
    "WITH",
    "RECURSIVE",
    "AS",
    "INSERT",
    "INTO",
    "VALUES",
    "UPDATE",
    "SET",
    "DELETE",
    "RETURNING",
    "ON",
    "CONFLICT",
    "DO",
    "NOTHING",
    "UNION",
    "ALL",
    "ORDER",
    "BY",
    "LIMIT",
    "GROUP",
    "HAVING",
    "IN",
    "EXISTS",
    "NOT",
    "CASE",
    "WHEN",
    "THEN",
    "END",
    "CAST",
    "COLLATE",
    "NOCASE",
    "JOIN",
    "LEFT",
    "USING",
    "INDEXED",
    "WINDOW",
    "OVER",
    "FILTER",
    "PRAGMA",
    "ATTACH",
    "DROP",
    "TABLE",
    "CREATE",
    "TEMP",
    "VIEW",
    "TRIGGER",
    "INDEX",
    "ALTER",
    "REPLACE",
    "OR",
    "ROLLBACK",
    "MATCH",
    "REGEXP",
    "RAISE(IGNORE)",
    "EXPLAIN",
    "VACUUM",
    "BEGIN",
    "COMMIT",
    "NULL",
    "IS",
    "DISTINCT",
    "MATERIALIZED",
    "\u{feff}",
    "é",
    "\u{b}",
    "\0",
    "DEFAULT",
];

static PIECES: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let all = pieces("accepted").into_iter().chain(pieces("refused"));
    all.filter(|piece| piece.sql.len() < 2_000)
        .map(|piece| words(&piece.sql))
        .collect()
});

/// The text in rough pieces: words, numbers, runs of space, single signs.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let class = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 0,
        c if c.is_whitespace() => 1,
        _ => 2,
    };
    for c in text.chars() {
        match words.last_mut() {
            Some(last) if class(c) < 2 && last.chars().all(|d| class(d) == class(c)) => {
                last.push(c);
            }
            _ => words.push(c.to_string()),
        }
    }
    words
}

/// One change of a text: what to do, where, with which word of the soup or of another piece.
type Change = (
    u8,
    prop::sample::Index,
    prop::sample::Index,
    prop::sample::Index,
);

fn changed(base: &[String], changes: &[Change]) -> String {
    let mut words = base.to_vec();
    for (kind, place, other, word) in changes {
        if words.is_empty() {
            break;
        }
        let at = place.index(words.len());
        match kind % 6 {
            0 => drop(words.remove(at)),
            1 => words.insert(at, format!(" {} ", word.get(SOUP))),
            2 => words[at] = (*word.get(SOUP)).to_owned(),
            3 => {
                let to = other.index(words.len());
                words.swap(at, to);
            }
            4 => {
                let from = other.get(PIECES.as_slice());
                if !from.is_empty() {
                    words[at] = word.get(from).clone();
                }
            }
            _ => words.truncate(at + 1),
        }
    }
    words.concat()
}

fn mutated() -> impl Strategy<Value = String> {
    let index = any::<prop::sample::Index>;
    let change = (any::<u8>(), index(), index(), index());
    (
        any::<prop::sample::Index>(),
        prop::collection::vec(change, 0..4),
    )
        .prop_map(|(base, changes)| changed(base.get(PIECES.as_slice()).as_slice(), &changes))
}

fn soup() -> impl Strategy<Value = String> {
    let word = (
        prop::sample::select(SOUP),
        prop::sample::select(&["", " ", " ", " ", "\n", "/**/"][..]),
    );
    prop::collection::vec(word, 0..30).prop_map(|words| {
        words
            .into_iter()
            .map(|(word, space)| word.to_owned() + space)
            .collect()
    })
}

thread_local! {
    static WATCHED: RefCell<Watched> = RefCell::new(Watched::new(support::example()));
}

fn agree(sql: &str) -> Result<(), TestCaseError> {
    WATCHED.with_borrow_mut(|watched| {
        for purpose in PURPOSES {
            watched.agree(sql, purpose).map_err(TestCaseError::fail)?;
        }
        Ok(())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_judged(sql in any::<String>()) {
        agree(&sql)?;
    }

    #[test]
    fn any_words_are_judged(sql in soup()) {
        agree(&sql)?;
    }

    #[test]
    fn changed_statements_are_judged(sql in mutated()) {
        agree(&sql)?;
    }
}
