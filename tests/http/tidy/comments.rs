//! Words: how comments begin.

use super::*;

/// How a comment does not begin: with a word that stands for a noun instead of one, or with a comparison to its neighbour.
const OPENINGS: [&str; 9] = [
    "What ",
    "Who ",
    "Whose ",
    "Whom ",
    "Its ",
    "Their ",
    "The same ",
    "The same,",
    "Likewise",
];

/// The faults in the doc comments of a source, each with its line.
fn faulty_openings(text: &str) -> Vec<(usize, String)> {
    let comment = |line: &str| {
        let line = line.trim_start();
        let text = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))?;
        Some(text.trim().to_owned())
    };
    let lines: Vec<_> = text.lines().map(comment).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let begins = at == 0 || lines[at - 1].is_none();
        let Some(line) = line.as_ref().filter(|_| begins) else {
            continue;
        };
        let alone = lines.get(at + 1).is_none_or(Option::is_none);
        let is_word = alone && !line.contains(' ');
        if is_word || OPENINGS.iter().any(|opening| line.starts_with(opening)) {
            found.push((at + 1, line.clone()));
        }
    }
    found
}

#[test]
fn comments_begin_with_a_noun_or_a_verb() {
    let sources = sources(".rs");
    let found = sources.iter().flat_map(|(path, text)| {
        let riddles = faulty_openings(text).into_iter();
        riddles.map(move |(line, comment)| format!("{path}:{line}: {comment}"))
    });
    assert_none(
        &found.collect::<Vec<_>>(),
        "say what it is, or what it does",
    );
}

#[test]
fn riddles_are_found() {
    for (text, faults) in [
        ("/// Returns the writer to the queue.\nfn a() {}", 0),
        ("/// What it is.\nfn a() {}", 1),
        (
            "    /// Its name.\n    name: String,\n    /// Whether it is open.\n    open: bool,",
            1,
        ),
        ("/// Name.\nname: String,", 1),
        (
            "/// The same for a key.\n///\n/// What follows may begin so.\nfn a() {}",
            1,
        ),
        ("//! Who calls.\n\nuse a;", 1),
    ] {
        assert_eq!(faulty_openings(text).len(), faults, "{text}");
    }
}
