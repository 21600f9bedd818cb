//! Advice for what SQLite cannot do in a script: which statement to write instead.

/// Fragments of SQLite's messages, each with the advice for it.
const MESSAGE_ADVICE: &[(&str, &str)] = &[
    (
        "cannot add a unique column",
        "add the column without UNIQUE, then write CREATE UNIQUE INDEX name ON table (column)",
    ),
    (
        "cannot add a primary key column",
        "a table gets its primary key when it is made: make a new table, and fill it with INSERT … SELECT",
    ),
    (
        "cannot add a not null column with default value null",
        "there are rows already: write NOT NULL DEFAULT with a constant behind it",
    ),
    (
        "cannot add a column with non-constant default",
        "there are rows already, which would all get one value: leave the DEFAULT out, or make it a constant, and give new rows theirs in the INSERT, as VALUES (…, CURRENT_TIMESTAMP)",
    ),
    (
        "cannot add a references column with non-null default value",
        "leave the DEFAULT out",
    ),
    (
        "cannot add a stored column",
        "write VIRTUAL instead of STORED",
    ),
    (
        "non-deterministic functions prohibited",
        "what a table or an index keeps must be the same whenever it is computed",
    ),
];

/// Appends advice to a message of SQLite, if there is any for it.
pub(super) fn with_advice(reason: String) -> String {
    let lower = reason.to_ascii_lowercase();
    let known = MESSAGE_ADVICE.iter().find(|(says, _)| lower.contains(says));
    match known {
        Some((_, advice)) => format!("{reason}: {advice}"),
        None => reason,
    }
}
