//! `trim`, `ltrim` and `rtrim` in linear time: SQLite's own are quadratic.

use std::collections::HashMap;

use rusqlite::functions::Context;
use rusqlite::{Connection, Result};

use super::text::{PlainSqliteConnection, is_continuation, is_lead};
use super::{ByteText, DETERMINISTIC_FLAGS};
use crate::meter::{FunctionWorkMeter, StatementDeadline};

#[derive(Clone, Copy)]
struct TrimSides {
    left: bool,
    right: bool,
}

/// Replaces SQLite's `trim`, `ltrim` and `rtrim`.
pub(super) fn register(
    connection: &Connection,
    deadline: &StatementDeadline,
    sqlite: &PlainSqliteConnection,
) -> Result<()> {
    for (name, left, right) in [
        ("trim", true, true),
        ("ltrim", true, false),
        ("rtrim", false, true),
    ] {
        for arguments in [1, 2] {
            let sides = TrimSides { left, right };
            let (deadline, sqlite) = (deadline.clone(), sqlite.clone());
            connection.create_scalar_function(name, arguments, DETERMINISTIC_FLAGS, move |c| {
                trim(c, sides, &sqlite, deadline.begin_work()?)
            })?;
        }
    }
    Ok(())
}

fn trim(
    context: &Context<'_>,
    sides: TrimSides,
    sqlite: &PlainSqliteConnection,
    mut work: FunctionWorkMeter<'_>,
) -> Result<Option<ByteText>> {
    let Some(text) = sqlite.text(context.get_raw(0))? else {
        return Ok(None);
    };
    let mut rest = &*text;
    if context.len() == 1 {
        let spaces = |byte: &u8| *byte == b' ';
        if sides.left {
            let kept = rest.iter().position(|byte| !spaces(byte));
            rest = &rest[kept.unwrap_or(rest.len())..];
        }
        if sides.right {
            let kept = rest.iter().rposition(|byte| !spaces(byte));
            rest = &rest[..kept.map_or(0, |last| last + 1)];
        }
        return Ok(Some(ByteText(rest.to_vec())));
    }
    let Some(set) = sqlite.text(context.get_raw(1))? else {
        return Ok(None);
    };
    let set = CharacterSet::of(&set, &mut work)?;
    if sides.left {
        rest = set.trim_start(rest, &mut work)?;
    }
    if sides.right {
        rest = set.trim_end(rest, &mut work)?;
    }
    Ok(Some(ByteText(rest.to_vec())))
}

/// A set of characters, split as SQLite splits text: a byte, and after a lead byte all its continuations. If several match, the
/// one named first is taken.
struct CharacterSet {
    /// Next node by node and byte; the root is node 0.
    next: HashMap<(usize, u8), usize>,
    /// Rank of the character that ends at each node.
    ends: Vec<Option<usize>>,
}

impl CharacterSet {
    fn of(text: &[u8], work: &mut FunctionWorkMeter<'_>) -> Result<Self> {
        let mut set = Self {
            next: HashMap::new(),
            ends: vec![None],
        };
        // A zero byte ends the set.
        let mut rest = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut place = 0;
        while let Some((character, others)) = rest.split_at_checked(first_character_length(rest)) {
            if character.is_empty() {
                break;
            }
            work.spend(8 * character.len())?;
            set.insert(character, place);
            (rest, place) = (others, place + 1);
        }
        Ok(set)
    }

    fn insert(&mut self, character: &[u8], place: usize) {
        let mut node = 0;
        for byte in character {
            let new = self.ends.len();
            node = *self.next.entry((node, *byte)).or_insert(new);
            if node == new {
                self.ends.push(None);
            }
        }
        self.ends[node].get_or_insert(place);
    }

    /// Rank of the character that ends at each position of `bytes`.
    fn match_ends(&self, bytes: &[u8]) -> Vec<Option<usize>> {
        let mut node = 0;
        let steps = bytes.iter().map_while(|byte| {
            node = *self.next.get(&(node, *byte))?;
            Some(self.ends[node])
        });
        steps.collect()
    }

    /// Rank of a character of one byte.
    fn single(&self, byte: u8) -> Option<usize> {
        self.ends[*self.next.get(&(0, byte))?]
    }

    fn trim_start<'t>(
        &self,
        mut text: &'t [u8],
        work: &mut FunctionWorkMeter<'_>,
    ) -> Result<&'t [u8]> {
        while !text.is_empty() {
            work.spend(8 * first_character_length(text))?;
            let match_ends = self.match_ends(&text[..first_character_length(text)]);
            let fitting = match_ends.iter().zip(1..);
            let first = fitting
                .filter_map(|(place, length)| Some(((*place)?, length)))
                .min();
            match first {
                Some((_, length)) => text = &text[length..],
                None => break,
            }
        }
        Ok(text)
    }

    fn trim_end<'t>(
        &self,
        mut text: &'t [u8],
        work: &mut FunctionWorkMeter<'_>,
    ) -> Result<&'t [u8]> {
        while let Some(last) = text.iter().rposition(|byte| !is_continuation(*byte)) {
            let start = if is_lead(text[last]) { last } else { last + 1 };
            let (before, mut group) = text.split_at(start);
            work.spend(8 * (text.len() - last))?;
            // Continuations without a lead byte, and bytes that are no lead, match only by themselves.
            let match_ends = if group.first().copied().is_some_and(is_lead) {
                self.match_ends(group)
            } else {
                Vec::new()
            };
            while let Some((end, shorter)) = group.split_last() {
                let whole = match_ends.get(group.len() - 1).copied().flatten();
                match (whole, self.single(*end)) {
                    (Some(whole), single) if single.is_none_or(|single| whole <= single) => {
                        group = &[];
                    }
                    (_, Some(_)) => group = shorter,
                    _ => return Ok(&text[..start + group.len()]),
                }
            }
            text = match before.split_last() {
                Some((end, shorter)) if start > last => match self.single(*end) {
                    Some(_) => shorter,
                    None => return Ok(before),
                },
                _ => before,
            };
        }
        let kept = text.iter().rposition(|byte| self.single(*byte).is_none());
        Ok(&text[..kept.map_or(0, |last| last + 1)])
    }
}

/// Length of the first character of `text`, in bytes.
fn first_character_length(text: &[u8]) -> usize {
    match text.split_first() {
        Some((first, rest)) if is_lead(*first) => {
            1 + rest
                .iter()
                .take_while(|byte| is_continuation(**byte))
                .count()
        }
        Some(_) => 1,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_like_sqlite, compare_with_sqlite, text};
    use proptest::prelude::*;

    #[test]
    fn it_trims_as_sqlite_does() {
        assert_like_sqlite(&[
            "trim('  a b ')",
            "ltrim('  a ')",
            "rtrim('  a ')",
            "rtrim('   ')",
            "trim('xyaxyx', 'yx')",
            "rtrim('añññ', 'ñ')",
            "ltrim('ñña', 'ñx')",
            "trim(NULL)",
            "trim('a', NULL)",
            "trim(NULL, 'a')",
            "trim('')",
            "trim(x'')",
            "trim('a', x'')",
            "trim('aaa', 'a')",
            "trim('a', '')",
            "trim(120, '0')",
            "trim(1.5, '5')",
            "trim('1.5', 1.5)",
            "trim(x'2061')",
            "trim('\t a')",
            "trim('a' || char(0) || ' ')",
            "trim('a ', 'a' || char(0) || ' ')",
            "trim(9e999)",
        ]);
    }

    proptest! {
        #[test]
        fn it_trims_any_bytes_as_sqlite_does(
            value in text(b" x\0\x80\xA4\xC3\xFF"),
            set in text(b" x\0\x80\xA4\xC3\xFF"),
            real in any::<f64>(),
        ) {
            for name in ["trim", "ltrim", "rtrim"] {
                let forms = [format!("{name}(?1)"), format!("{name}(?1, ?2)"), format!("{name}(CAST(?1 AS TEXT), ?2)")];
                compare_with_sqlite(&forms.each_ref().map(String::as_str), &[value.clone(), set.clone()])?;
            }
            compare_with_sqlite(&["rtrim(?1, '0')"], &[real.into()])?;
        }
    }
}
