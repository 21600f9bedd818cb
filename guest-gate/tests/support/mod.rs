//! The corpus of SQL, and databases to hold verdicts against.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

pub(crate) mod agreement;

use std::fs;
use std::path::{Path, PathBuf};

use guest_gate::statement::{AllowedStatement, SqlPurpose};
use rusqlite::Connection;

/// A piece of SQL of the corpus.
pub(crate) struct Piece {
    pub(crate) file: String,
    pub(crate) purpose: SqlPurpose,
    pub(crate) sql: String,
    /// Line and column of the place that a refusal names.
    pub(crate) at: Option<(u32, u32)>,
    /// Text that the reason contains.
    pub(crate) says: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/sql")
}

/// The pieces of a folder of the corpus.
pub(crate) fn pieces(kind: &str) -> Vec<Piece> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder().join(kind))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().flat_map(|file| of_file(file)).collect()
}

fn of_file(file: &Path) -> Vec<Piece> {
    let text = fs::read_to_string(file).unwrap();
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    text.split("\n-- ----\n")
        .map(|piece| parsed(piece, name.clone()))
        .collect()
}

fn parsed(piece: &str, file: String) -> Piece {
    let mut rest = piece;
    let mut header = |name: &str| {
        let line = rest.split('\n').next()?;
        let value = line.strip_prefix("-- ")?.strip_prefix(name)?;
        rest = rest.get(line.len() + 1..).unwrap_or("");
        Some(value.trim_start_matches(':').trim().to_owned())
    };
    let purpose = match header("purpose:").as_deref() {
        None | Some("action") => SqlPurpose::Action,
        Some("query") => SqlPurpose::Query,
        Some("schema") => SqlPurpose::Schema,
        Some("migration") => SqlPurpose::Migration,
        Some(other) => panic!("{file}: no purpose {other}"),
    };
    let at = header("at:").map(|at| {
        let (line, column) = at.split_once(':').unwrap();
        (line.parse().unwrap(), column.parse().unwrap())
    });
    let says = header("says:");
    let escapes = header("escapes").is_some();
    let sql = if escapes {
        unescaped(rest)
    } else {
        rest.to_owned()
    };
    Piece {
        file,
        purpose,
        sql,
        at,
        says,
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (escaped, length) = match rest.as_bytes()[at + 1] {
            b'0' => ('\0', 2),
            b't' => ('\t', 2),
            b'v' => ('\u{b}', 2),
            b'u' => {
                let code = u32::from_str_radix(&rest[at + 2..at + 6], 16).unwrap();
                (char::from_u32(code).unwrap(), 6)
            }
            other => panic!("no escape {other}"),
        };
        out.push(escaped);
        rest = &rest[at + length..];
    }
    out + rest
}

/// An empty database in memory.
pub(crate) fn empty() -> Connection {
    Connection::open_in_memory().unwrap()
}

/// A database made of the example schema.
pub(crate) fn example() -> Connection {
    let database = empty();
    let schema = fs::read_to_string(folder().join("schema.sql")).unwrap();
    database.execute_batch(&schema).unwrap();
    agreement::add_functions(&database);
    database
}

/// The text of an allowed statement.
pub(crate) fn text<'s>(sql: &'s str, statement: &AllowedStatement) -> &'s str {
    &sql[statement.start as usize..statement.end as usize]
}
