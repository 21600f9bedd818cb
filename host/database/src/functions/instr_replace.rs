//! `instr` and `replace` in linear time: SQLite's own compare all of what they look for at every place.

use memchr::memmem;
use rusqlite::functions::Context;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};

use super::text::{PlainSqlite, continues};
use super::{PURE, Text, too_big};
use crate::limits::VALUE_BYTES;
use crate::meter::{Deadline, WorkBudget};

/// Puts `instr` and `replace` in the place of SQLite's.
pub(super) fn register(
    connection: &Connection,
    deadline: &Deadline,
    plain: &PlainSqlite,
) -> Result<()> {
    let (looked_at, texts) = (deadline.clone(), plain.clone());
    connection.create_scalar_function("instr", 2, PURE, move |c| {
        looked_at.look()?;
        place(c, &texts)
    })?;
    let (looked_at, texts) = (deadline.clone(), plain.clone());
    connection.create_scalar_function("replace", 3, PURE, move |c| {
        replaced(c, &texts, looked_at.work()?)
    })
}

fn place(context: &Context<'_>, plain: &PlainSqlite) -> Result<Option<i64>> {
    let (within, wanted) = (context.get_raw(0), context.get_raw(1));
    let of_bytes = matches!((within, wanted), (ValueRef::Blob(_), ValueRef::Blob(_)));
    let (Some(within), Some(wanted)) = (plain.text(within)?, plain.text(wanted)?) else {
        return Ok(None);
    };
    let Some(first) = wanted.first() else {
        return Ok(Some(1));
    };
    // In text, characters begin at the first byte, and at each that continues none.
    let found = if !of_bytes && continues(*first) {
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
        passed.filter(|byte| !continues(**byte)).count()
    };
    Ok(i64::try_from(passed).ok().map(|passed| passed + 1))
}

fn replaced(
    context: &Context<'_>,
    plain: &PlainSqlite,
    mut work: WorkBudget<'_>,
) -> Result<Option<Text>> {
    let Some(text) = plain.text(context.get_raw(0))? else {
        return Ok(None);
    };
    let Some(wanted) = plain.text(context.get_raw(1))? else {
        return Ok(None);
    };
    if wanted.first().is_none_or(|first| *first == 0) {
        return Ok(Some(Text(text.into_owned())));
    }
    let Some(instead) = plain.text(context.get_raw(2))? else {
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
    Ok(Some(Text(out)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{agree, agree_on, text};
    use proptest::prelude::*;

    #[test]
    fn they_answer_as_sqlite_does() {
        agree(&[
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
            agree_on(
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
