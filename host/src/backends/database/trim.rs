//! The trim family, in time linear in the value: SQLite's own is quadratic, and no deadline interrupts a function.

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
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
    for (name, left, right) in [
        ("trim", true, true),
        ("ltrim", true, false),
        ("rtrim", false, true),
    ] {
        for arguments in [1, 2] {
            let sides = Sides { left, right };
            connection
                .create_scalar_function(name, arguments, flags, move |c| trimmed(c, sides))?;
        }
    }
    Ok(())
}

fn trimmed(context: &Context<'_>, sides: Sides) -> Result<Option<String>> {
    let Some(text) = text(context.get_raw(0)) else {
        return Ok(None);
    };
    let set = match (context.len() > 1).then(|| self::text(context.get_raw(1))) {
        Some(Some(set)) => set,
        Some(None) => return Ok(None),
        None => " ".to_owned(),
    };
    let set = Set::of(&set);
    let mut rest = text.as_str();
    if sides.left {
        rest = rest.trim_start_matches(|c| set.has(c));
    }
    if sides.right {
        rest = rest.trim_end_matches(|c| set.has(c));
    }
    Ok(Some(rest.to_owned()))
}

/// A value as SQLite makes text of it; `None` for NULL.
fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(integer) => Some(integer.to_string()),
        ValueRef::Real(real) => Some(real_text(real)),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

/// A real number with at least one digit after the point, as in SQLite.
fn real_text(real: f64) -> String {
    format!("{real:?}")
}

/// Characters, sorted, so that looking for one takes the logarithm of their number.
struct Set(Vec<char>);

impl Set {
    fn of(text: &str) -> Self {
        let mut characters: Vec<char> = text.chars().collect();
        characters.sort_unstable();
        characters.dedup();
        Self(characters)
    }

    fn has(&self, character: char) -> bool {
        self.0.binary_search(&character).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_trims_as_sqlite_does() {
        let (ours, theirs) = (
            Connection::open_in_memory().unwrap(),
            Connection::open_in_memory().unwrap(),
        );
        register(&ours).unwrap();
        for expression in [
            "trim('  a b ')",
            "ltrim('  a ')",
            "rtrim('  a ')",
            "trim('xyaxyx', 'yx')",
            "rtrim('añññ', 'ñ')",
            "ltrim('ñña', 'ñx')",
            "trim(NULL)",
            "trim('a', NULL)",
            "trim('')",
            "trim('aaa', 'a')",
            "trim('a', '')",
            "trim(120, '0')",
            "trim(1.5, '5')",
            "typeof(trim(x'2061'))",
            "trim('\t a')",
        ] {
            let sql = format!("SELECT {expression}");
            let value = |c: &Connection| {
                c.query_row(&sql, [], |row| row.get::<_, rusqlite::types::Value>(0))
                    .unwrap()
            };
            assert_eq!(value(&ours), value(&theirs), "{expression}");
        }
    }
}
