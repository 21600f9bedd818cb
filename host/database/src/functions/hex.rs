//! `unhex` in time linear in its arguments: SQLite's own searches all ignored characters for each character.

use std::collections::HashSet;

use rusqlite::functions::Context;
use rusqlite::{Connection, Result};

use super::DETERMINISTIC_FLAGS;
use super::text::{PlainSqliteConnection, read_character, until_nul};
use crate::meter::{FunctionWorkMeter, StatementDeadline};

/// Replaces SQLite's `unhex`.
pub(super) fn register(
    connection: &Connection,
    deadline: &StatementDeadline,
    sqlite: &PlainSqliteConnection,
) -> Result<()> {
    for arguments in [1, 2] {
        let (deadline, sqlite) = (deadline.clone(), sqlite.clone());
        connection.create_scalar_function("unhex", arguments, DETERMINISTIC_FLAGS, move |c| {
            unhex(c, &sqlite, deadline.begin_work()?)
        })?;
    }
    Ok(())
}

fn unhex(
    context: &Context<'_>,
    sqlite: &PlainSqliteConnection,
    mut work: FunctionWorkMeter<'_>,
) -> Result<Option<Vec<u8>>> {
    let text = sqlite.text(context.get_raw(0))?;
    let ignored = if context.len() > 1 {
        sqlite.text(context.get_raw(1))?
    } else {
        Some(b"".as_slice().into())
    };
    let (Some(text), Some(ignored)) = (text, ignored) else {
        return Ok(None);
    };
    let (text, mut at) = (until_nul(&text), 0);
    let mut set = None;
    let mut bytes = Vec::with_capacity(text.len() / 2);
    while let Some(first) = text.get(at) {
        work.spend(2)?;
        let Some(high) = hex_digit(*first) else {
            let set = match &mut set {
                Some(set) => set,
                none => none.insert(character_set(&ignored, &mut work)?),
            };
            if !set.contains(&read_character(text, &mut at)) {
                return Ok(None);
            }
            continue;
        };
        let Some(low) = text.get(at + 1).copied().and_then(hex_digit) else {
            return Ok(None);
        };
        bytes.push(high << 4 | low);
        at += 2;
    }
    Ok(Some(bytes))
}

fn character_set(text: &[u8], work: &mut FunctionWorkMeter<'_>) -> Result<HashSet<u32>> {
    let (mut set, mut at) = (HashSet::new(), 0);
    while at < text.len() {
        work.spend(8)?;
        set.insert(read_character(text, &mut at));
    }
    Ok(set)
}

fn hex_digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_like_sqlite, text};
    use proptest::prelude::*;

    #[test]
    fn it_answers_as_sqlite_does() {
        assert_like_sqlite(&[
            "unhex('')",
            "unhex('4a4B')",
            "unhex('4')",
            "unhex('4g')",
            "unhex(NULL)",
            "unhex('41', NULL)",
            "unhex(NULL, '-')",
            "unhex('41-42', '-')",
            "unhex('4-1', '-')",
            "unhex('--41--', '-')",
            "unhex('41é42', 'é')",
            "unhex('41é42', 'è')",
            "unhex('41 42', ' ' || char(0))",
            "unhex('41' || char(0) || '42')",
            "unhex(4142)",
            "unhex(41.5, '.')",
            "unhex(x'34312d', x'2d')",
            "unhex('41a', 'a')",
        ]);
    }

    proptest! {
        #[test]
        fn it_answers_any_bytes_as_sqlite_does(a in text(b"4aA-g\xC3\xA9\xFF\0"), b in text(b"-g\xC3\xA9\xFF\0")) {
            super::super::tests::compare_with_sqlite(&["unhex(?1)", "unhex(?1, ?2)"], &[a, b])?;
        }
    }
}
