//! `unhex` in time linear in its arguments: SQLite's own looks for each character in all that may be ignored.

use std::collections::HashSet;

use rusqlite::functions::Context;
use rusqlite::{Connection, Result};

use super::PURE;
use super::text::{PlainSqlite, read, to_zero};
use crate::meter::{Deadline, WorkBudget};

/// Puts `unhex` in the place of SQLite's.
pub(super) fn register(
    connection: &Connection,
    deadline: &Deadline,
    plain: &PlainSqlite,
) -> Result<()> {
    for arguments in [1, 2] {
        let (deadline, plain) = (deadline.clone(), plain.clone());
        connection.create_scalar_function("unhex", arguments, PURE, move |c| {
            unhexed(c, &plain, deadline.work()?)
        })?;
    }
    Ok(())
}

fn unhexed(
    context: &Context<'_>,
    plain: &PlainSqlite,
    mut work: WorkBudget<'_>,
) -> Result<Option<Vec<u8>>> {
    let text = plain.text(context.get_raw(0))?;
    let ignored = if context.len() > 1 {
        plain.text(context.get_raw(1))?
    } else {
        Some(b"".as_slice().into())
    };
    let (Some(text), Some(ignored)) = (text, ignored) else {
        return Ok(None);
    };
    let (text, mut at) = (to_zero(&text), 0);
    let mut set = None;
    let mut bytes = Vec::with_capacity(text.len() / 2);
    while let Some(first) = text.get(at) {
        work.spend(2)?;
        let Some(high) = digit(*first) else {
            let set = match &mut set {
                Some(set) => set,
                none => none.insert(characters(&ignored, &mut work)?),
            };
            if !set.contains(&read(text, &mut at)) {
                return Ok(None);
            }
            continue;
        };
        let Some(low) = text.get(at + 1).copied().and_then(digit) else {
            return Ok(None);
        };
        bytes.push(high << 4 | low);
        at += 2;
    }
    Ok(Some(bytes))
}

fn characters(text: &[u8], work: &mut WorkBudget<'_>) -> Result<HashSet<u32>> {
    let (mut set, mut at) = (HashSet::new(), 0);
    while at < text.len() {
        work.spend(8)?;
        set.insert(read(text, &mut at));
    }
    Ok(set)
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{agree, text};
    use proptest::prelude::*;

    #[test]
    fn it_answers_as_sqlite_does() {
        agree(&[
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
            super::super::tests::agree_on(&["unhex(?1)", "unhex(?1, ?2)"], &[a, b])?;
        }
    }
}
