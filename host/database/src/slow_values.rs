//! Operators, and values that are slow for one function or another.

use super::limits::VALUE_BYTES;
use super::values::Value;

/// Operators and keywords of two values, which calls cannot name.
pub(super) const OPERATORS: &[&str] = &[
    "{A} || {B}",
    "{A} + {B}",
    "{A} - {B}",
    "{A} * {B}",
    "{A} / {B}",
    "{A} % {B}",
    "{A} & {B}",
    "{A} | {B}",
    "{A} << {B}",
    "{A} >> {B}",
    "{A} < {B}",
    "{A} = {B}",
    "{A} IS {B}",
    "{A} IS NOT DISTINCT FROM {B}",
    "{A} COLLATE NOCASE = {B}",
    "{A} COLLATE NOCASE < {B}",
    "{A} COLLATE RTRIM = {B}",
    "{A} LIKE {B}",
    "{A} LIKE {B} ESCAPE '!'",
    "{A} GLOB {B}",
    "{A} BETWEEN {B} AND {B}",
    "{A} IN ({B}, {B}, 'c')",
    "{A} AND {B}",
    "{A} OR {B}",
    "{A} -> {B}",
    "{A} ->> {B}",
    "-{A}",
    "~{A}",
    "NOT {A}",
    "{A} ISNULL",
    "CAST({A} AS INTEGER)",
    "CAST({A} AS REAL)",
    "CAST({A} AS NUMERIC)",
    "CAST({A} AS TEXT)",
    "CAST({A} AS BLOB)",
    "CASE {A} WHEN {B} THEN {A} ELSE {B} END",
    "(SELECT max(key) FROM json_each({A}))",
    "(SELECT max(length(fullkey || path)) FROM json_tree({A}))",
    "(SELECT count(*) FROM json_each({A}, {B}))",
];

/// Values that are slow for one function or another.
pub(super) fn slow_values() -> Vec<Value> {
    let most = usize::try_from(VALUE_BYTES).unwrap() - 16;
    let many = |piece: &str| piece.repeat(most / piece.len());
    let json = |piece: &str| format!("[{}1]", piece.repeat((most - 8) / piece.len()));
    let members: Vec<String> = (0..18_000).map(|n| format!("\"{n:x}\":{n}")).collect();
    let nested = format!(
        "{}{}1{}",
        "[".repeat(990),
        "1,".repeat(most / 2 - 2000),
        "]".repeat(990)
    );
    let texts = [
        many("a"),
        "!".repeat(most / 2),
        many("1"),
        format!("0.{}", many("7")[16..].to_owned()),
        many(" "),
        many("'"),
        many("é"),
        many("4a"),
        json("1,"),
        json("0xf,"),
        nested,
        format!("{{{}}}", members.join(",")),
        format!("\"{}\"", "\\u0041".repeat(most / 6 - 1)),
        many("%f"),
        many("%J"),
        many("%.*c"),
        many("\\u0061"),
        format!("${}", "[0]".repeat(most / 3 - 1)),
        format!("2026-01-01{}", &many(" ")[16..]),
        format!("%a{}b", "_a".repeat(490)),
        format!("*{}c", "[a-b]".repeat(190)),
        "aab".to_owned(),
        "$".to_owned(),
    ];
    let texts = texts.into_iter().map(Value::Text);
    let others = [
        Value::Blob(vec![0xFF; most]),
        Value::Integer(100_000),
        Value::Real(1e300),
        Value::Null,
    ];
    texts.chain(others).collect()
}
