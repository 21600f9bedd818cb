//! The trim family, in time linear in the value: SQLite's own is quadratic, and no deadline interrupts a function.
//!
//! It answers byte for byte what SQLite's does, whatever the bytes: indexes are made of its answers, and a database that
//! is exported is read with SQLite's own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Result};

#[derive(Clone, Copy)]
struct Sides {
    left: bool,
    right: bool,
}

/// Puts `trim`, `ltrim` and `rtrim` in the place of SQLite's.
pub(super) fn register(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    let reals = Reals::default();
    for (name, left, right) in [
        ("trim", true, true),
        ("ltrim", true, false),
        ("rtrim", false, true),
    ] {
        for arguments in [1, 2] {
            let (sides, reals) = (Sides { left, right }, reals.clone());
            connection.create_scalar_function(name, arguments, flags, move |c| {
                trimmed(c, sides, &reals)
            })?;
        }
    }
    Ok(())
}

/// Text of any bytes, which SQLite makes of blobs.
struct Text(Vec<u8>);

impl ToSql for Text {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(&self.0)))
    }
}

fn trimmed(context: &Context<'_>, sides: Sides, reals: &Reals) -> Result<Option<Text>> {
    let Some(text) = text(context.get_raw(0), reals)? else {
        return Ok(None);
    };
    let set = match (context.len() > 1).then(|| self::text(context.get_raw(1), reals)) {
        Some(set) => match set? {
            Some(set) => set,
            None => return Ok(None),
        },
        None => b" ".to_vec(),
    };
    let set = Set::of(&set);
    let mut rest = text.as_slice();
    if sides.left {
        rest = set.trim_start(rest);
    }
    if sides.right {
        rest = set.trim_end(rest);
    }
    Ok(Some(Text(rest.to_vec())))
}

/// A value as SQLite makes text of it; `None` for NULL.
fn text(value: ValueRef<'_>, reals: &Reals) -> Result<Option<Vec<u8>>> {
    Ok(match value {
        ValueRef::Null => None,
        ValueRef::Integer(integer) => Some(integer.to_string().into_bytes()),
        ValueRef::Real(real) => Some(reals.text(real)?),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes.to_vec()),
    })
}

/// SQLite's own way to write numbers, on a connection that is opened for the first of them.
#[derive(Clone, Default)]
struct Reals(Arc<Mutex<Option<Connection>>>);

impl Reals {
    fn text(&self, real: f64) -> Result<Vec<u8>> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match &mut *connection {
            Some(connection) => connection,
            none => none.insert(Connection::open_in_memory()?),
        };
        connection
            .prepare_cached("SELECT CAST(?1 AS TEXT)")?
            .query_row([real], |row| row.get::<_, String>(0))
            .map(String::into_bytes)
    }
}

fn is_lead(byte: u8) -> bool {
    byte >= 0xC0
}

fn continues(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// A set of characters, as SQLite cuts text into them: a byte, and behind one that leads all that continue it. Where
/// several fit, the one that is named first is taken.
struct Set {
    /// By node and byte, the node that follows. The root is node 0.
    next: HashMap<(usize, u8), usize>,
    /// By node, the place of the character that ends there.
    ends: Vec<Option<usize>>,
}

impl Set {
    fn of(text: &[u8]) -> Self {
        let mut set = Self {
            next: HashMap::new(),
            ends: vec![None],
        };
        // A zero ends a set.
        let mut rest = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut place = 0;
        while let Some((character, others)) = rest.split_at_checked(first_character(rest)) {
            if character.is_empty() {
                break;
            }
            set.insert(character, place);
            (rest, place) = (others, place + 1);
        }
        set
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

    /// Along `bytes`, the place of the character that ends at each.
    fn along(&self, bytes: &[u8]) -> Vec<Option<usize>> {
        let mut node = 0;
        let steps = bytes.iter().map_while(|byte| {
            node = *self.next.get(&(node, *byte))?;
            Some(self.ends[node])
        });
        steps.collect()
    }

    /// The place of a character of one byte.
    fn single(&self, byte: u8) -> Option<usize> {
        self.ends[*self.next.get(&(0, byte))?]
    }

    fn trim_start<'t>(&self, mut text: &'t [u8]) -> &'t [u8] {
        while !text.is_empty() {
            let along = self.along(&text[..first_character(text)]);
            let fitting = along.iter().zip(1..);
            let first = fitting
                .filter_map(|(place, length)| Some(((*place)?, length)))
                .min();
            match first {
                Some((_, length)) => text = &text[length..],
                None => break,
            }
        }
        text
    }

    fn trim_end<'t>(&self, mut text: &'t [u8]) -> &'t [u8] {
        while let Some(last) = text.iter().rposition(|byte| !continues(*byte)) {
            let start = if is_lead(text[last]) { last } else { last + 1 };
            let (before, mut group) = text.split_at(start);
            // What continues nothing, and a byte that is no lead, fit by themselves alone.
            let along = if group.first().copied().is_some_and(is_lead) {
                self.along(group)
            } else {
                Vec::new()
            };
            while let Some((end, shorter)) = group.split_last() {
                let whole = along.get(group.len() - 1).copied().flatten();
                match (whole, self.single(*end)) {
                    (Some(whole), single) if single.is_none_or(|single| whole <= single) => {
                        group = &[];
                    }
                    (_, Some(_)) => group = shorter,
                    _ => return &text[..start + group.len()],
                }
            }
            text = match before.split_last() {
                Some((end, shorter)) if start > last => match self.single(*end) {
                    Some(_) => shorter,
                    None => return before,
                },
                _ => before,
            };
        }
        let kept = text.iter().rposition(|byte| self.single(*byte).is_none());
        &text[..kept.map_or(0, |last| last + 1)]
    }
}

/// The length of the character that `text` begins with.
fn first_character(text: &[u8]) -> usize {
    match text.split_first() {
        Some((first, rest)) if is_lead(*first) => {
            1 + rest.iter().take_while(|byte| continues(**byte)).count()
        }
        Some(_) => 1,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::types::Value;

    use super::*;

    fn both() -> [Connection; 2] {
        let connections = [(); 2].map(|()| Connection::open_in_memory().unwrap());
        register(&connections[0]).unwrap();
        connections
    }

    /// What an expression answers: its type and its bytes.
    fn answers(connections: &[Connection; 2], expression: &str, values: &[Value]) -> [String; 2] {
        let sql = format!("SELECT typeof({expression}) || ' ' || hex({expression})");
        connections.each_ref().map(|c| {
            let values = rusqlite::params_from_iter(values);
            let mut statement = c.prepare_cached(&sql).unwrap();
            statement.query_row(values, |row| row.get(0)).unwrap()
        })
    }

    #[test]
    fn it_trims_as_sqlite_does() {
        let connections = both();
        for expression in [
            "trim('  a b ')",
            "ltrim('  a ')",
            "rtrim('  a ')",
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
        ] {
            let [ours, theirs] = answers(&connections, expression, &[]);
            assert_eq!(ours, theirs, "{expression}");
        }
    }

    proptest! {
        #[test]
        fn it_trims_any_bytes_as_sqlite_does(
            value in prop::collection::vec(prop::sample::select(&[b' ', b'x', 0, 0x80, 0xA4, 0xC3, 0xFF][..]), 0..9),
            set in prop::collection::vec(prop::sample::select(&[b' ', b'x', 0, 0x80, 0xA4, 0xC3, 0xFF][..]), 0..9),
            real in any::<f64>(),
        ) {
            let connections = both();
            let values = [Value::Blob(value), Value::Blob(set)];
            for name in ["trim", "ltrim", "rtrim"] {
                for arguments in ["(?1, ?2)", "(CAST(?1 AS TEXT), ?2)"] {
                    let [ours, theirs] = answers(&connections, &format!("{name}{arguments}"), &values);
                    prop_assert_eq!(ours, theirs);
                }
            }
            let [ours, theirs] = answers(&connections, "rtrim(?1, '0')", &[Value::Real(real)]);
            prop_assert_eq!(ours, theirs);
        }
    }
}
