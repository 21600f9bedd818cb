//! Scans SQL for names, to find the position that an error of SQLite refers to. SQLite gives a position for some errors and a name
//! for most.

/// A name or keyword in SQL.
#[derive(Debug)]
pub(super) struct SqlWord {
    /// Byte offset of the token.
    start: usize,
    /// Text in lower case, without quotes.
    pub(super) name: String,
    /// Whether the token is written without quotes, so that it may be a keyword.
    is_unquoted: bool,
    /// Byte before the token, without white space.
    before: u8,
    /// Number of parentheses that are open around the token.
    pub(super) depth: usize,
}

impl SqlWord {
    /// Whether the token may be one of these keywords.
    pub(super) fn is_keyword(&self, keywords: &[&str]) -> bool {
        self.is_unquoted && keywords.contains(&self.name.as_str())
    }
}

/// Keywords that a table's name may follow.
const TABLE_KEYWORDS: &[&str] = &[
    "from", "join", "into", "update", "table", "view", "index", "exists", "on", "in",
];

/// Returns the byte offset that an error of SQLite refers to, if it is certain.
pub(super) fn find_error_offset(sql: &str, reason: &str) -> Option<usize> {
    let after = |start: &str| reason.strip_prefix(start);
    if let Some(name) = after("no such table: ") {
        return table_offset(sql, name);
    }
    if let Some((_, column)) =
        after("table ").and_then(|rest| rest.split_once(" has no column named "))
    {
        return unique_name_offset(sql, column);
    }
    let named = ["cannot modify ", "table ", "view ", "index "];
    let rests = named.iter().filter_map(|start| after(start));
    for rest in rests {
        let name = [" because it is a view", " already exists"];
        if let Some(name) = name.iter().find_map(|end| rest.strip_suffix(end)) {
            return table_offset(sql, name);
        }
    }
    if let Some(name) = after("duplicate column name: ") {
        return second_column_offset(sql, name);
    }
    if reason.contains(" values for ") && reason.ends_with(" columns") {
        return unique_name_offset(sql, "values");
    }
    None
}

/// Returns the offset of the second result column that has this name.
pub(super) fn second_column_offset(sql: &str, name: &str) -> Option<usize> {
    let words = tokenize(sql);
    // A CTE may use the names as well.
    if words.first().is_some_and(|first| first.name == "with") {
        return None;
    }
    let name = normalize_name(name);
    let mut named = words.iter().filter(|word| word.name == name);
    let twice = named.nth(1).or_else(|| find_star(&words));
    twice.map(|word| word.start)
}

/// Finds the `*` that stands for columns.
fn find_star(words: &[SqlWord]) -> Option<&SqlWord> {
    let stands = |at: &usize| {
        let first = at.checked_sub(1).is_some_and(|before| {
            let word = words[before].name.as_str();
            matches!(word, "select" | "distinct" | "all" | "returning")
        });
        // After a word it may be a multiplication, and after a parenthesis it is `count(*)`.
        let place = words[*at].before;
        matches!(place, b',' | b'.') || (first && place != b'(')
    };
    let mut stars = (0..words.len()).filter(|at| words[*at].name == "*");
    stars.find(stands).map(|at| &words[at])
}

/// Whether a statement changes the schema, and not rows.
pub(super) fn changes_schema(sql: &str) -> bool {
    let words = tokenize(sql);
    let verb = words.first();
    verb.is_some_and(|verb| verb.is_unquoted && matches!(verb.name.as_str(), "create" | "alter"))
}

/// Returns the name of the table or view that a statement creates or alters, in lower case.
pub(super) fn created_name(sql: &str) -> Option<String> {
    let words = tokenize(sql);
    let verb = words.first()?;
    if !verb.is_unquoted || !matches!(verb.name.as_str(), "create" | "alter") {
        return None;
    }
    let kind = words
        .iter()
        .position(|word| word.is_unquoted && matches!(word.name.as_str(), "table" | "view"))?;
    let mut rest = words.iter().skip(kind + 1).skip_while(|word| {
        word.is_unquoted && matches!(word.name.as_str(), "if" | "not" | "exists")
    });
    let first = rest.next()?;
    match rest.next() {
        Some(second) if second.before == b'.' => Some(second.name.clone()),
        _ => Some(first.name.clone()),
    }
}

/// Returns the offset of a table's name, if it occurs once, or once after a keyword for tables.
fn table_offset(sql: &str, name: &str) -> Option<usize> {
    let name = normalize_name(name.strip_prefix("main.").unwrap_or(name));
    let words = tokenize(sql);
    let found: Vec<usize> = (0..words.len())
        .filter(|at| words[*at].name == name)
        .collect();
    if let [only] = found[..] {
        return Some(words[only].start);
    }
    let is_table = |at: &&usize| {
        let before = at.checked_sub(1).map(|before| &words[before]);
        before.is_some_and(|word| word.is_unquoted && TABLE_KEYWORDS.contains(&word.name.as_str()))
    };
    found.iter().find(is_table).map(|at| words[*at].start)
}

/// Returns the offset of a name that occurs once.
fn unique_name_offset(sql: &str, name: &str) -> Option<usize> {
    let name = normalize_name(name);
    let words = tokenize(sql);
    let mut found = words.iter().filter(|word| word.name == name);
    found
        .next()
        .filter(|_| found.next().is_none())
        .map(|word| word.start)
}

fn normalize_name(name: &str) -> String {
    name.trim_matches('"').to_ascii_lowercase()
}

/// Lists the names and keywords of SQL in their order, without strings, comments and numbers.
pub(super) fn tokenize(sql: &str) -> Vec<SqlWord> {
    let bytes = sql.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut before, mut depth) = (0, b' ', 0_usize);
    while let Some(byte) = bytes.get(at) {
        let rest = &sql.as_bytes()[at..];
        let (length, word) = match byte {
            b'-' if rest.starts_with(b"--") => (length_until(rest, b"\n"), None),
            b'/' if rest.starts_with(b"/*") => (2 + length_until(&rest[2..], b"*/"), None),
            b'\'' => (quoted_length(rest, b'\''), None),
            b'"' | b'`' => {
                let length = quoted_length(rest, *byte);
                (length, Some((unquote(sql, at, length), false)))
            }
            b'[' => {
                let length = length_until(rest, b"]");
                (length, Some((unquote(sql, at, length), false)))
            }
            first if is_name_start(*first) => {
                let length = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
                let text = sql.get(at..at + length).unwrap_or_default();
                (length, Some((text.to_ascii_lowercase(), true)))
            }
            // A number or a bind; the characters after it are part of it.
            b'0'..=b'9' | b':' | b'@' | b'?' | b'$' => (
                1 + rest[1..]
                    .iter()
                    .take_while(|byte| is_name_byte(**byte))
                    .count(),
                None,
            ),
            b'*' => (1, Some(("*".to_owned(), true))),
            _ => (1, None),
        };
        if let Some((name, is_unquoted)) = word {
            found.push(SqlWord {
                start: at,
                name,
                is_unquoted,
                before,
                depth,
            });
        }
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = *byte;
        }
        at += length.max(1);
    }
    found
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_name_byte(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// Length up to the end of the text `end`.
fn length_until(bytes: &[u8], end: &[u8]) -> usize {
    let place = bytes.windows(end.len()).position(|window| window == end);
    place.map_or(bytes.len(), |place| place + end.len())
}

/// Length of a quoted text, in which quotes are doubled.
fn quoted_length(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        if *byte == quote {
            if bytes.get(at) != Some(&quote) {
                return at;
            }
            at += 1;
        }
    }
    bytes.len()
}

fn unquote(sql: &str, at: usize, length: usize) -> String {
    let inner = sql.get(at + 1..(at + length).saturating_sub(1));
    inner
        .unwrap_or_default()
        .replace("\"\"", "\"")
        .to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sqlite_names_is_found_where_it_is_certain() {
        for (sql, reason, at) in [
            ("SELECT * FROM nots", "no such table: nots", Some(14)),
            (
                "SELECT 'nots', -- nots\n 1 FROM main.\"Nots\"",
                "no such table: main.nots",
                Some(36),
            ),
            (
                "SELECT 1 AS nots, [nots] FROM nots",
                "no such table: nots",
                Some(30),
            ),
            ("SELECT nots.a FROM a, nots", "no such table: nots", None),
            ("SELECT * FROM v", "no such table: main.hidden", None),
            (
                "INSERT INTO t (a, b) VALUES (:b, :a)",
                "table t has no column named b",
                Some(18),
            ),
            (
                "INSERT INTO t (b) SELECT b FROM u",
                "table t has no column named b",
                None,
            ),
            (
                "INSERT INTO seen (a) VALUES (1)",
                "cannot modify seen because it is a view",
                Some(12),
            ),
            (
                "INSERT INTO t (a) VALUES (1, 2)",
                "2 values for 1 columns",
                Some(18),
            ),
            (
                "CREATE TABLE IF NOT EXISTS \"a b\" (x)",
                "table \"a b\" already exists",
                Some(27),
            ),
            (
                "CREATE TABLE t (a, b, A)",
                "duplicate column name: A",
                Some(22),
            ),
            ("SELECT 1", "malformed JSON", None),
        ] {
            assert_eq!(find_error_offset(sql, reason), at, "{sql}: {reason}");
        }
    }

    #[test]
    fn two_columns_of_one_name_are_found_where_the_second_comes_from() {
        for (sql, at) in [
            ("SELECT a.x, b.x FROM a, b", Some(14)),
            ("SELECT x, y AS x FROM a", Some(15)),
            ("SELECT count(*) AS n, 2 * 3 AS m, * FROM a", Some(34)),
            ("SELECT a.*, b.* FROM a, b", Some(9)),
            ("INSERT INTO a VALUES (1) RETURNING *", Some(35)),
            ("WITH c AS (SELECT x FROM a) SELECT x, x FROM c", None),
            ("SELECT 1", None),
        ] {
            assert_eq!(second_column_offset(sql, "x"), at, "{sql}");
        }
    }

    #[test]
    fn what_a_statement_makes_is_known() {
        for (sql, name) in [
            ("CREATE TABLE t (a)", Some("t")),
            (
                "create table if not exists main . \"My T\" (a)",
                Some("my t"),
            ),
            ("/* table x */ ALTER TABLE [t] ADD COLUMN b", Some("t")),
            ("CREATE VIEW IF NOT EXISTS v AS SELECT 1", Some("v")),
            ("CREATE UNIQUE INDEX i ON t (a)", None),
            ("INSERT INTO t SELECT * FROM u", None),
            ("", None),
        ] {
            assert_eq!(created_name(sql).as_deref(), name, "{sql}");
        }
    }
}
