//! Types of arguments, as advice to agents: those of the columns that binds are written to or compared with.
//!
//! Only what the text of a statement shows for certain counts: a bind that is all of a value of `INSERT … VALUES` or of an assignment
//! of `UPDATE`, and one that is compared with a column where the statement has one table. Any scalar is taken, whatever is advised.

use std::collections::HashMap;

use super::sanitize::strip_invisible;
use serde_json::{Value, json};
use svc_database::{Column, Schema};

/// Longest declared type that is told, in bytes.
const MAX_TYPE_BYTES: usize = 40;

/// Part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Name or keyword, in lower case; a quoted one is no keyword.
    Word { text: String, is_quoted: bool },
    /// Bind, without its colon.
    Bind(String),
    /// Operator or punctuation.
    Mark(&'static str),
    /// Text, number or anything else.
    Other,
}

/// Marks, longer ones first.
const MARKS: [&str; 15] = [
    "==", "<=", ">=", "<>", "!=", "=", "<", ">", "(", ")", ",", ".", ";", "*", "+",
];
/// Operators that compare a column with a value.
const COMPARISONS: [&str; 8] = ["==", "<=", ">=", "<>", "!=", "=", "<", ">"];

/// Binds of a statement, with the columns that they are for.
#[derive(Debug, Default)]
pub(super) struct ArgumentTypes<'s>(HashMap<String, Option<&'s Column>>);

impl<'s> ArgumentTypes<'s> {
    /// Reads a statement that the gate has allowed.
    pub(super) fn of(sql: &str, schema: &'s Schema) -> Self {
        let tokens = tokenize(sql);
        let mut found = Self::default();
        if let Some((columns, at)) = target(&tokens, schema) {
            found.read_values(&tokens, columns, at);
            found.read_assignments(&tokens, columns);
            if has_one_table(&tokens) {
                found.read_comparisons(&tokens, columns);
            }
        }
        found
    }

    /// Returns the schema of an argument.
    pub(super) fn schema_of(&self, bind: &str) -> Value {
        let any = || json!({ "type": ["string", "number", "boolean", "null"] });
        let column = self.0.get(bind).copied().flatten();
        let Some((column, kind)) = column.and_then(|one| Some((one, json_type(&one.declared)?)))
        else {
            return any();
        };
        let takes_null = !column.not_null && !column.primary_key;
        let kind = match takes_null {
            true => json!([kind, "null"]),
            false => json!(kind),
        };
        let declared = strip_invisible(&column.declared);
        match declared.len() <= MAX_TYPE_BYTES {
            true => json!({ "type": kind, "description": declared }),
            false => json!({ "type": kind }),
        }
    }

    /// Notes the column of a bind. One that is for columns of two types is for none.
    fn note(&mut self, bind: &str, column: &'s Column) {
        let known = self.0.entry(bind.to_owned()).or_insert(Some(column));
        if known.is_some_and(|known| known.declared != column.declared) {
            *known = None;
        }
    }

    /// Reads the lists of `INSERT … VALUES`, which begins with the names of its columns at `at`.
    fn read_values(&mut self, tokens: &[Token], columns: &'s [Column], at: usize) {
        let (mut named, mut at) = (columns.iter().map(Some).collect::<Vec<_>>(), at);
        if tokens.get(at) == Some(&Token::Mark("(")) {
            let end = tokens[at..]
                .iter()
                .position(|token| *token == Token::Mark(")"));
            let Some(end) = end.map(|end| at + end) else {
                return;
            };
            let list = tokens[at + 1..end].split(|token| *token == Token::Mark(","));
            named = list.map(|name| find_column(columns, name)).collect();
            at = end + 1;
        }
        if !tokens
            .get(at)
            .is_some_and(|token| is_keyword(token, "values"))
        {
            return;
        }
        let (mut depth, mut place, mut value) = (0, 0, Vec::new());
        for token in &tokens[at + 1..] {
            match (token, depth) {
                (Token::Mark("("), _) => {
                    depth += 1;
                    (place, value) = if depth == 1 {
                        (0, Vec::new())
                    } else {
                        (place, value)
                    };
                }
                (Token::Mark("," | ")"), 1) => {
                    if let ([Token::Bind(bind)], Some(Some(column))) =
                        (&value[..], named.get(place))
                    {
                        self.note(bind, column);
                    }
                    depth -= i32::from(*token == Token::Mark(")"));
                    (place, value) = (place + 1, Vec::new());
                }
                (Token::Mark(")"), _) => depth -= 1,
                (Token::Mark(","), 0) => {}
                (_, 0) => return,
                (token, _) => value.push(token.clone()),
            }
        }
    }

    /// Reads the assignments of `UPDATE` and `DO UPDATE`.
    fn read_assignments(&mut self, tokens: &[Token], columns: &'s [Column]) {
        for at in 1..tokens.len() {
            let [before, name, Token::Mark("="), Token::Bind(bind), ..] = &tokens[at - 1..] else {
                continue;
            };
            let begins = is_keyword(before, "set") || *before == Token::Mark(",");
            let ends = tokens.get(at + 3).is_none_or(|next| {
                let words = ["where", "returning", "from"];
                matches!(next, Token::Mark("," | ";"))
                    || words.iter().any(|word| is_keyword(next, word))
            });
            if let (true, true, Some(column)) = (
                begins,
                ends,
                find_column(columns, std::slice::from_ref(name)),
            ) {
                self.note(bind, column);
            }
        }
    }

    /// Reads the comparisons of a statement with one table.
    fn read_comparisons(&mut self, tokens: &[Token], columns: &'s [Column]) {
        for (at, token) in tokens.iter().enumerate() {
            let Token::Bind(bind) = token else { continue };
            let compares = at.checked_sub(1).is_some_and(
                |before| matches!(&tokens[before], Token::Mark(mark) if COMPARISONS.contains(mark)),
            );
            if !compares || at < 2 {
                continue;
            }
            // A column may be written with its table before it.
            let name = match at.checked_sub(3).map(|dot| &tokens[dot]) {
                Some(Token::Mark(".")) => at.checked_sub(4),
                _ => at.checked_sub(2),
            };
            let before = name
                .and_then(|name| name.checked_sub(1))
                .map(|before| &tokens[before]);
            let begins = before.is_some_and(|before| {
                let words = ["where", "and", "or", "not"];
                *before == Token::Mark("(") || words.iter().any(|word| is_keyword(before, word))
            });
            let ends = tokens.get(at + 1).is_none_or(|next| {
                let words = ["and", "or", "order", "group", "limit", "returning"];
                matches!(next, Token::Mark(")" | ";"))
                    || words.iter().any(|word| is_keyword(next, word))
            });
            if let (true, true, Some(column)) =
                (begins, ends, find_column(columns, &tokens[at - 2..at - 1]))
            {
                self.note(bind, column);
            }
        }
    }
}

/// Returns the columns of the table that a statement is about, and the place behind the table's name.
fn target<'s>(tokens: &[Token], schema: &'s Schema) -> Option<(&'s [Column], usize)> {
    let word = match tokens.first()? {
        Token::Word {
            text,
            is_quoted: false,
        } => text.as_str(),
        _ => return None,
    };
    let before = match word {
        "insert" | "replace" => "into",
        "update" => "update",
        "delete" | "select" => "from",
        _ => return None,
    };
    let mut at = tokens.iter().position(|token| is_keyword(token, before))? + 1;
    if word == "update" && tokens.get(at).is_some_and(|token| is_keyword(token, "or")) {
        at += 2;
    }
    if tokens.get(at + 1) == Some(&Token::Mark(".")) {
        at += 2;
    }
    let Token::Word { text, .. } = tokens.get(at)? else {
        return None;
    };
    let mut tables = schema.tables.iter();
    let table = tables.find(|table| table.name.eq_ignore_ascii_case(text))?;
    Some((table.columns.as_slice(), at + 1))
}

/// Whether a statement names no more than one table, so that a column is that table's.
fn has_one_table(tokens: &[Token]) -> bool {
    let count = |word: &str| {
        tokens
            .iter()
            .filter(|token| is_keyword(token, word))
            .count()
    };
    let begins_with = |word: &str| tokens.first().is_some_and(|first| is_keyword(first, word));
    let froms = count("from");
    if count("join") > 0 || count("select") > usize::from(begins_with("select")) || froms > 1 {
        return false;
    }
    // Several tables may stand in a list.
    let from = tokens.iter().position(|token| is_keyword(token, "from"));
    let list = tokens.iter().skip(from.unwrap_or(tokens.len()));
    let mut list = list.take_while(|token| {
        let ends = ["where", "group", "order", "limit", "returning"];
        !ends.iter().any(|word| is_keyword(token, word))
    });
    (froms == 0 || !begins_with("update")) && !list.any(|token| *token == Token::Mark(","))
}

fn is_keyword(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word { text, is_quoted: false } if text == word)
}

fn find_column<'s>(columns: &'s [Column], name: &[Token]) -> Option<&'s Column> {
    let [Token::Word { text, .. }] = name else {
        return None;
    };
    columns
        .iter()
        .find(|column| column.name.eq_ignore_ascii_case(text))
}

/// Returns the type in JSON of a declared type, by the rules of SQLite; `None` where it says nothing about what is written.
fn json_type(declared: &str) -> Option<&'static str> {
    let declared = declared.to_ascii_uppercase();
    let has = |part: &str| declared.contains(part);
    match () {
        () if has("INT") => Some("integer"),
        () if has("CHAR") || has("CLOB") || has("TEXT") => Some("string"),
        () if has("REAL") || has("FLOA") || has("DOUB") || has("NUM") || has("DEC") => {
            Some("number")
        }
        () if has("BOOL") => Some("boolean"),
        () => None,
    }
}

fn tokenize(sql: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let name = |text: &str| text.find(|c: char| !is_name(c)).unwrap_or(text.len());
        let until = |end: &str| {
            rest[1..]
                .find(end)
                .map_or(rest.len(), |at| 1 + at + end.len())
        };
        let (token, length) = match first {
            c if c.is_whitespace() => (None, c.len_utf8()),
            '-' if rest.starts_with("--") => (None, until("\n")),
            '/' if rest.starts_with("/*") => (None, until("*/")),
            '"' | '`' | '[' => {
                let end = until(if first == '[' { "]" } else { &rest[..1] });
                let text = rest[1..end]
                    .trim_end_matches(['"', '`', ']'])
                    .to_lowercase();
                (
                    Some(Token::Word {
                        text,
                        is_quoted: true,
                    }),
                    end,
                )
            }
            '\'' => (Some(Token::Other), until("'")),
            ':' => {
                let length = name(&rest[1..]);
                (Some(Token::Bind(rest[1..=length].to_owned())), 1 + length)
            }
            c if c.is_ascii_digit() => (Some(Token::Other), name(rest).max(1)),
            c if is_name(c) => {
                let text = rest[..name(rest)].to_lowercase();
                let length = name(rest);
                (
                    Some(Token::Word {
                        text,
                        is_quoted: false,
                    }),
                    length,
                )
            }
            c => match MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
                Some(mark) => (Some(Token::Mark(mark)), mark.len()),
                None => (Some(Token::Other), c.len_utf8()),
            },
        };
        tokens.extend(token);
        rest = &rest[length..];
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_database::Table;

    fn schema() -> Schema {
        let column = |(name, declared, not_null): (&str, &str, bool)| Column {
            name: name.to_owned(),
            declared: declared.to_owned(),
            not_null,
            default: None,
            primary_key: name == "id",
        };
        let table = |name: &str, columns: &[(&str, &str, bool)]| Table {
            name: name.to_owned(),
            columns: columns.iter().copied().map(column).collect(),
        };
        Schema {
            tables: vec![
                table(
                    "t",
                    &[
                        ("id", "INTEGER", false),
                        ("n", "INT", true),
                        ("x", "REAL", false),
                        ("s", "TEXT", true),
                        ("day", "DATE", false),
                        ("odd name", "VARCHAR(9)", false),
                    ],
                ),
                table("u", &[("n", "TEXT", false)]),
            ],
            indexes: Vec::new(),
            views: Vec::new(),
        }
    }

    /// Types of the binds of a statement, in the order of their names.
    fn types(sql: &str) -> String {
        let schema = schema();
        let found = ArgumentTypes::of(sql, &schema);
        let binds: std::collections::BTreeSet<String> = tokenize(sql)
            .into_iter()
            .filter_map(|token| match token {
                Token::Bind(bind) => Some(bind),
                _ => None,
            })
            .collect();
        let told = binds.iter().map(|bind| {
            let one = &found.schema_of(bind)["type"];
            let kinds = one.as_array().map_or(1, Vec::len);
            let first = one.get(0).unwrap_or(one).as_str().unwrap();
            match kinds {
                1 => format!("{bind} {first}"),
                2 => format!("{bind} {first}?"),
                _ => format!("{bind} any"),
            }
        });
        told.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_is_certain_is_advised_and_nothing_else() {
        for (sql, expected) in [
            (
                "INSERT INTO t (n, s, x) VALUES (:a, :b, :c) RETURNING id",
                "a integer, b string, c number?",
            ),
            (
                "INSERT OR IGNORE INTO t VALUES (:a, :b, :c, :d, :e, :f)",
                "a integer, b integer, c number?, d string, e any, f string?",
            ),
            (
                "INSERT INTO t (n, s) VALUES (:a + 1, upper(:b)), (:c, trim(:d, 'x'))",
                "a any, b any, c integer, d any",
            ),
            (
                "INSERT INTO t (\"odd name\", [n]) VALUES (:a, :b) ON CONFLICT (id) DO UPDATE SET s = :c WHERE n > :d",
                "a string?, b integer, c string, d integer",
            ),
            ("INSERT INTO t (n) SELECT n FROM u WHERE n = :a", "a any"),
            (
                "UPDATE t SET n = :n, s = :s WHERE id = :id",
                "id integer, n integer, s string",
            ),
            (
                "UPDATE t SET n = :n + 1, s = lower(:s) WHERE n + 1 = :m",
                "m any, n any, s any",
            ),
            (
                "DELETE FROM t WHERE t.id = :id AND (s = :s OR x >= :x)",
                "id integer, s string, x number?",
            ),
            (
                "SELECT * FROM t WHERE n = :n AND s LIKE :p ORDER BY id LIMIT :l",
                "l any, n integer, p any",
            ),
            ("SELECT * FROM t WHERE n = :n AND s = :n", "n any"),
            ("SELECT * FROM t JOIN u ON t.n = u.n WHERE n = :n", "n any"),
            ("SELECT * FROM t, u WHERE t.n = :n", "n any"),
            (
                "SELECT * FROM t WHERE n IN (SELECT n FROM u WHERE n = :n)",
                "n any",
            ),
            (
                "WITH t AS (SELECT 1 AS n) SELECT * FROM t WHERE n = :n",
                "n any",
            ),
            ("SELECT :a AS a -- n = :b\n", "a any"),
            ("SELECT 'n = :x' AS a FROM none WHERE n = :n", "n any"),
        ] {
            assert_eq!(types(sql), expected, "{sql}");
        }
    }
}
