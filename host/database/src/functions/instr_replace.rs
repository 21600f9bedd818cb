//! `instr` and `replace` in linear time: SQLite's own compare the whole pattern at every position.

use memchr::memmem;
use rusqlite::functions::Context;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};

use super::text::{PlainSqliteConnection, is_continuation};
use super::{ByteText, DETERMINISTIC_FLAGS, too_big};
use crate::limits::VALUE_BYTES;
use crate::meter::{FunctionWorkMeter, StatementDeadline};

/// Replaces SQLite's `instr` and `replace`.
pub(super) fn register(
    connection: &Connection,
    deadline: &StatementDeadline,
    sqlite: &PlainSqliteConnection,
) -> Result<()> {
    let (statement_deadline, texts) = (deadline.clone(), sqlite.clone());
    connection.create_scalar_function("instr", 2, DETERMINISTIC_FLAGS, move |c| {
        statement_deadline.check()?;
        instr(c, &texts)
    })?;
    let (statement_deadline, texts) = (deadline.clone(), sqlite.clone());
    connection.create_scalar_function("replace", 3, DETERMINISTIC_FLAGS, move |c| {
        replace(c, &texts, statement_deadline.begin_work()?)
    })
}

fn instr(context: &Context<'_>, sqlite: &PlainSqliteConnection) -> Result<Option<i64>> {
    let (within, wanted) = (context.get_raw(0), context.get_raw(1));
    let of_bytes = matches!((within, wanted), (ValueRef::Blob(_), ValueRef::Blob(_)));
    let (Some(within), Some(wanted)) = (sqlite.text(within)?, sqlite.text(wanted)?) else {
        return Ok(None);
    };
    let Some(first) = wanted.first() else {
        return Ok(Some(1));
    };
    // In text, a character starts at the first byte, and at each byte that is no continuation.
    let found = if !of_bytes && is_continuation(*first) {
        within.starts_with(&wanted).then_some(0)
    } else {
        memmem::find(&within, &wanted)
    };
    let Some(found) = found else {
        return Ok(Some(0));
    };
    let passed = if of_bytes {
        found
    } else {
        let passed = within.iter().skip(1).take(found);
        passed.filter(|byte| !is_continuation(**byte)).count()
    };
    Ok(i64::try_from(passed).ok().map(|passed| passed + 1))
}

fn replace(
    context: &Context<'_>,
    sqlite: &PlainSqliteConnection,
    mut work: FunctionWorkMeter<'_>,
) -> Result<Option<ByteText>> {
    let Some(text) = sqlite.text(context.get_raw(0))? else {
        return Ok(None);
    };
    let Some(wanted) = sqlite.text(context.get_raw(1))? else {
        return Ok(None);
    };
    if wanted.first().is_none_or(|first| *first == 0) {
        return Ok(Some(ByteText(text.into_owned())));
    }
    let Some(instead) = sqlite.text(context.get_raw(2))? else {
        return Ok(None);
    };
    let most = usize::try_from(VALUE_BYTES).unwrap_or(usize::MAX);
    let (mut out, mut copied) = (Vec::with_capacity(text.len()), 0);
    for found in memmem::find_iter(&text, &*wanted) {
        work.spend(found - copied + instead.len() + 1)?;
        out.extend_from_slice(&text[copied..found]);
        out.extend_from_slice(&instead);
        copied = found + wanted.len();
        if out.len() > most {
            return Err(too_big());
        }
    }
    out.extend_from_slice(&text[copied..]);
    Ok(Some(ByteText(out)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_like_sqlite, compare_with_sqlite, text};
    use proptest::prelude::*;

    #[test]
    fn they_answer_as_sqlite_does() {
        assert_like_sqlite(&[
            "instr('añb', 'b')",
            "instr('', '')",
            "instr('', 'a')",
            "instr('a', '')",
            "instr(NULL, 'a')",
            "instr('a', NULL)",
            "instr(x'c3b1', x'b1')",
            "instr('ñ', x'b1')",
            "instr(x'c3b1', 'ñ')",
            "instr(1234, 34)",
            "instr(1.5, '.5')",
            "instr('a' || char(0) || 'b', 'b')",
            "replace('aXbX', 'X', 'yy')",
            "replace('aaa', 'aa', 'b')",
            "replace('a', '', 'b')",
            "replace('a', '', NULL)",
            "replace(NULL, 'a', 'b')",
            "replace('a', NULL, 'b')",
            "replace('a', 'a', NULL)",
            "replace('ab', char(0) || 'b', 'c')",
            "replace('a' || char(0) || 'b', 'b', 'c')",
            "replace(x'6162', 'a', 1)",
            "replace(1.5, '.', ',')",
        ]);
    }

    proptest! {
        #[test]
        fn they_answer_any_bytes_as_sqlite_does(
            a in text(b"aab\xC3\xA9\xFF\x80\0"),
            b in text(b"ab\xC3\xA9\xFF\x80\0"),
            c in text(b"ab\0"),
        ) {
            compare_with_sqlite(
                &[
                    "instr(?1, ?2)",
                    "instr(CAST(?1 AS TEXT), ?2)",
                    "instr(CAST(?1 AS TEXT), CAST(?2 AS TEXT))",
                    "replace(?1, ?2, ?3)",
                ],
                &[a, b, c],
            )?;
        }
    }
}
