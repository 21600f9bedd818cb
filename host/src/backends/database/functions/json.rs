//! `json_patch` in linear time, where SQLite's own looks for each member among all others, and `json_pretty` that ends with the
//! longest value, where SQLite's own goes on for gigabytes of indents. SQLite reads the JSON, and writes JSONB.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use rusqlite::functions::{Context, FunctionFlags, SubType};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, Result};

use super::super::meter::{Deadline, Work};
use super::super::walls::VALUE_BYTES;
use super::text::{Plain, to_zero};
use super::{PURE, Text, failed, too_big};

/// How deep SQLite lets JSON nest.
const DEPTH: usize = 1000;
/// How deep objects may nest in what is patched, for each takes its share of the thread's stack.
const OBJECTS: usize = 200;
/// What SQLite marks JSON with.
const MARK: SubType = Some('J' as u32);

/// Puts `json_patch`, `jsonb_patch` and `json_pretty` in the place of SQLite's.
pub(super) fn register(connection: &Connection, deadline: &Deadline, plain: &Plain) -> Result<()> {
    let (looked_at, plain_json) = (deadline.clone(), plain.clone());
    let flags = PURE.union(FunctionFlags::SQLITE_RESULT_SUBTYPE);
    connection.create_scalar_function("json_patch", 2, flags, move |c| {
        let patched = patched(c, &plain_json, looked_at.work()?)?;
        let mark = patched.as_ref().and(MARK);
        Ok((patched.map(Text), mark))
    })?;
    let (looked_at, plain_json) = (deadline.clone(), plain.clone());
    connection.create_scalar_function("jsonb_patch", 2, PURE, move |c| {
        match patched(c, &plain_json, looked_at.work()?)? {
            Some(json) => plain_json.ask::<Option<Vec<u8>>>("SELECT jsonb(?1)", Text(json)),
            None => Ok(None),
        }
    })?;
    for arguments in [1, 2] {
        let (deadline, plain) = (deadline.clone(), plain.clone());
        connection.create_scalar_function("json_pretty", arguments, PURE, move |c| {
            pretty(c, &plain, deadline.work()?)
        })?;
    }
    Ok(())
}

/// An argument as JSON without spaces, as SQLite writes it.
fn json(context: &Context<'_>, index: usize, plain: &Plain) -> Result<Option<Vec<u8>>> {
    plain.ask(
        "SELECT CAST(json(?1) AS BLOB)",
        ToSqlOutput::Borrowed(context.get_raw(index)),
    )
}

fn patched(context: &Context<'_>, plain: &Plain, mut work: Work<'_>) -> Result<Option<Vec<u8>>> {
    let Some(target) = json(context, 0, plain)? else {
        return Ok(None);
    };
    let Some(patch) = json(context, 1, plain)? else {
        return Ok(None);
    };
    let patch = Reader::new(&patch).value(&mut work)?;
    let mut target = Reader::new(&target).value(&mut work)?;
    target.merge(&patch, &mut work)?;
    let mut out = Vec::new();
    target.write(&mut out, &mut work)?;
    Ok(Some(out))
}

/// A value of JSON.
enum Json<'t> {
    /// Anything but an object, as it is written.
    Other(&'t [u8]),
    Object(Object<'t>),
}

#[derive(Default)]
struct Object<'t> {
    /// Labels as they are written, with their values; `None` where a patch took one away.
    members: Vec<Option<(&'t [u8], Json<'t>)>>,
    /// Where the members of a label are, once somebody looks for them.
    places: Option<HashMap<Cow<'t, [u8]>, VecDeque<usize>>>,
}

impl<'t> Json<'t> {
    /// Merges a patch into it, as RFC 7396 says. Of members with one label, the first is meant.
    fn merge(&mut self, patch: &Json<'t>, work: &mut Work<'_>) -> Result<()> {
        let patch = match patch {
            Self::Other(value) => {
                *self = Self::Other(value);
                return Ok(());
            }
            Self::Object(patch) => patch,
        };
        if matches!(self, Self::Other(_)) {
            *self = Self::Object(Object::default());
        }
        let Self::Object(target) = self else {
            return Ok(());
        };
        for (label, value) in patch.members.iter().flatten() {
            work.spend(64 + label.len())?;
            let known = target.first(label, work)?;
            match (known, value) {
                (Some(place), Self::Other(b"null")) => {
                    target.members[place] = None;
                    target
                        .places(work)?
                        .entry(plain_label(label))
                        .and_modify(|places| {
                            places.pop_front();
                        });
                }
                (None, Self::Other(b"null")) => {}
                (Some(place), value) => {
                    if let Some((_, old)) = &mut target.members[place] {
                        old.merge(value, work)?;
                    }
                }
                (None, value) => {
                    let mut new = Self::Object(Object::default());
                    new.merge(value, work)?;
                    let place = target.members.len();
                    target.members.push(Some((label, new)));
                    let places = target.places(work)?.entry(plain_label(label));
                    places.or_default().push_back(place);
                }
            }
        }
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>, work: &mut Work<'_>) -> Result<()> {
        let object = match self {
            Self::Other(value) => {
                work.spend(value.len())?;
                out.extend_from_slice(value);
                return Ok(());
            }
            Self::Object(object) => object,
        };
        out.push(b'{');
        for (number, (label, value)) in object.members.iter().flatten().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            work.spend(label.len())?;
            out.extend_from_slice(label);
            out.push(b':');
            value.write(out, work)?;
        }
        out.push(b'}');
        Ok(())
    }
}

impl<'t> Object<'t> {
    fn places(
        &mut self,
        work: &mut Work<'_>,
    ) -> Result<&mut HashMap<Cow<'t, [u8]>, VecDeque<usize>>> {
        if self.places.is_none() {
            let mut places = HashMap::<_, VecDeque<usize>>::new();
            for (place, member) in self.members.iter().enumerate() {
                if let Some((label, _)) = member {
                    work.spend(64 + label.len())?;
                    places
                        .entry(plain_label(label))
                        .or_default()
                        .push_back(place);
                }
            }
            self.places = Some(places);
        }
        Ok(self.places.get_or_insert_default())
    }

    /// Where the first member of a label is.
    fn first(&mut self, label: &'t [u8], work: &mut Work<'_>) -> Result<Option<usize>> {
        let places = self.places(work)?.get(&plain_label(label));
        Ok(places.and_then(|places| places.front().copied()))
    }
}

/// A label without quotes and escapes, surrogates as bytes of their own.
fn plain_label(written: &[u8]) -> Cow<'_, [u8]> {
    let inner = written.get(1..written.len().saturating_sub(1));
    let inner = inner.unwrap_or_default();
    if memchr::memchr(b'\\', inner).is_none() {
        return Cow::Borrowed(inner);
    }
    let (mut out, mut rest) = (Vec::with_capacity(inner.len()), inner);
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        let Some((escape, after)) = rest.split_first() else {
            break;
        };
        rest = after;
        match escape {
            b'u' => {
                let mut code = hex4(&mut rest);
                let mut low = rest.strip_prefix(b"\\u").unwrap_or_default();
                if code & 0xFC00 == 0xD800 && low.len() >= 4 {
                    let half = hex4(&mut low);
                    if half & 0xFC00 == 0xDC00 {
                        code = ((code & 0x3FF) << 10) + (half & 0x3FF) + 0x1_0000;
                        rest = low;
                    }
                }
                push_character(&mut out, code);
            }
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            other => out.push(*other),
        }
    }
    Cow::Owned(out)
}

fn hex4(rest: &mut &[u8]) -> u32 {
    let (digits, after) = rest.split_at(rest.len().min(4));
    *rest = after;
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0);
    digits.iter().fold(0, |code, byte| code * 16 + digit(byte))
}

/// Writes a character as UTF-8 would, whatever its number.
fn push_character(out: &mut Vec<u8>, code: u32) {
    let byte = |shift: u32| (code >> shift & 0x3F) as u8 | 0x80;
    match code {
        0..0x80 => out.push(code as u8),
        0x80..0x800 => out.extend([(code >> 6) as u8 | 0xC0, byte(0)]),
        0x800..0x1_0000 => out.extend([(code >> 12) as u8 | 0xE0, byte(6), byte(0)]),
        _ => out.extend([(code >> 18) as u8 | 0xF0, byte(12), byte(6), byte(0)]),
    }
}

/// Reads JSON that SQLite wrote.
struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    /// How many objects are open.
    open: usize,
}

impl<'t> Reader<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            at: 0,
            open: 0,
        }
    }

    fn peek(&self) -> Result<u8> {
        let byte = self.text.get(self.at).copied();
        byte.ok_or_else(|| failed("malformed JSON"))
    }

    fn value(&mut self, work: &mut Work<'_>) -> Result<Json<'t>> {
        let start = self.at;
        if self.peek()? != b'{' {
            self.skip(work)?;
            return Ok(Json::Other(&self.text[start..self.at]));
        }
        self.open += 1;
        if self.open > OBJECTS {
            return Err(failed(&format!(
                "json_patch() takes objects that nest no deeper than {OBJECTS}"
            )));
        }
        let mut object = Object::default();
        self.at += 1;
        while self.peek()? != b'}' {
            if self.peek()? == b',' {
                self.at += 1;
            }
            let label = self.at;
            self.skip(work)?;
            let label = &self.text[label..self.at];
            // The colon.
            self.at += 1;
            object.members.push(Some((label, self.value(work)?)));
        }
        self.at += 1;
        self.open -= 1;
        Ok(Json::Object(object))
    }

    /// Goes behind a value of any kind.
    fn skip(&mut self, work: &mut Work<'_>) -> Result<()> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.skip_string()?,
                b'[' | b'{' => {
                    depth += 1;
                    self.at += 1;
                }
                b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                _ => {
                    let rest = self.text[self.at..].iter();
                    self.at += rest.take_while(|byte| !b",:]}".contains(byte)).count();
                }
            }
            if depth == 0 {
                return work.spend(self.at - start);
            }
        }
    }

    fn skip_string(&mut self) -> Result<()> {
        self.at += 1;
        while self.peek()? != b'"' {
            self.at += if self.peek()? == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        Ok(())
    }
}

fn pretty(context: &Context<'_>, plain: &Plain, mut work: Work<'_>) -> Result<Option<Text>> {
    let Some(json) = json(context, 0, plain)? else {
        return Ok(None);
    };
    let indent = if context.len() > 1 {
        plain.text(context.get_raw(1))?
    } else {
        None
    };
    let mut printer = Printer {
        out: Vec::with_capacity(json.len()),
        indent: indent.as_deref().map_or(b"    ".as_slice(), to_zero),
        depth: 0,
    };
    let mut reader = Reader::new(&json);
    while reader.at < json.len() {
        work.spend(16)?;
        printer.print(&mut reader, &mut work)?;
    }
    Ok(Some(Text(printer.out)))
}

/// Writes JSON on lines of their own.
struct Printer<'i> {
    out: Vec<u8>,
    indent: &'i [u8],
    depth: usize,
}

impl Printer<'_> {
    /// Writes the next part of what is read.
    fn print(&mut self, reader: &mut Reader<'_>, work: &mut Work<'_>) -> Result<()> {
        let byte = reader.peek()?;
        match byte {
            b'[' | b'{' => {
                self.out.push(byte);
                reader.at += 1;
                if matches!(reader.peek()?, b']' | b'}') {
                    self.out.push(reader.peek()?);
                    reader.at += 1;
                    return Ok(());
                }
                self.depth += 1;
                if self.depth >= DEPTH {
                    return Err(failed("JSON nested too deep"));
                }
                self.begin_line(work)
            }
            b']' | b'}' => {
                reader.at += 1;
                self.depth = self.depth.saturating_sub(1);
                self.begin_line(work)?;
                self.out.push(byte);
                Ok(())
            }
            b',' => {
                reader.at += 1;
                self.out.push(b',');
                self.begin_line(work)
            }
            b':' => {
                reader.at += 1;
                self.out.extend_from_slice(b": ");
                Ok(())
            }
            _ => {
                let start = reader.at;
                reader.skip(work)?;
                self.out.extend_from_slice(&reader.text[start..reader.at]);
                Ok(())
            }
        }
    }

    fn begin_line(&mut self, work: &mut Work<'_>) -> Result<()> {
        self.out.push(b'\n');
        let indents = self.indent.len().saturating_mul(self.depth);
        let most = usize::try_from(VALUE_BYTES).unwrap_or(usize::MAX);
        if self.out.len().saturating_add(indents) > most {
            return Err(too_big());
        }
        work.spend(indents)?;
        for _ in 0..self.depth {
            self.out.extend_from_slice(self.indent);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{agree, agree_on, answer};
    use proptest::prelude::*;

    #[test]
    fn they_answer_as_sqlite_does() {
        agree(&[
            r#"json_patch('{"a":1}', '{"a":2,"b":{"c":null,"d":[1, 2]}}')"#,
            r#"json_patch('{"a":1,"a":2}', '{"a":null}')"#,
            r#"json_patch('{"a":1}', '{"a":null,"a":3}')"#,
            r#"json_patch('{"\u0061":1}', '{"a":2}')"#,
            r#"json_patch('{"a":1}', '{"\u0061":2}')"#,
            r#"json_patch('{"\ud83d\ude00":1}', '{"😀":2}')"#,
            r#"json_patch('{"\ud83d":1}', '{"\ud83d":2}')"#,
            r#"json_patch('{"a\"b":1}', '{"a\u0022b":2}')"#,
            r#"json_patch('{"a":{"b":1}}', '{"a":[{"b":null}]}')"#,
            "json_patch('[1]', '{\"a\":1}')",
            "json_patch('{}', '5')",
            "json_patch('{}', 'null')",
            "json_patch(NULL, '{}')",
            "json_patch('{}', NULL)",
            "json_patch('{', '{}')",
            "json_patch('{}', '[')",
            "json_patch('{a: +1, b: 0xff}', '{c: ''x'', d: .5}')",
            "json_patch(jsonb('{\"a\":1}'), jsonb('{\"b\":2}'))",
            "json_array(json_patch('{}', '{\"a\":1}'))",
            "json(jsonb_patch('{\"a\":1}', '{\"b\":[2]}'))",
            "typeof(jsonb_patch('{}', '{}'))",
            "json_pretty('{\"a\":[1,{},[],{\"b\":null}]}')",
            "json_pretty('[1,[2]]', '-')",
            "json_pretty('[1,[2]]', '')",
            "json_pretty('[1,[2]]', NULL)",
            "json_pretty('[1]', 7)",
            "json_pretty('5')",
            "json_pretty('\"a,b:[]{}\\\"\"')",
            "json_pretty(NULL)",
            "json_pretty('[')",
            "json_array(json_pretty('[]'))",
            "json_pretty('{\"a,:\":\"[\"}')",
        ]);
    }

    #[test]
    fn they_nest_as_deep_as_sqlite_does() {
        for depth in [998, 999, 1000, 1001] {
            let array = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
            let object = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
            agree(&[
                &format!("length(json_pretty('{array}', ''))"),
                &format!("length(json_pretty('{object}', ''))"),
                &format!("length(json_patch('{array}', '{array}'))"),
            ]);
        }
        let nested = |depth: usize| {
            let object = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
            format!("length(json_patch('{object}', '{object}'))")
        };
        agree(&[&nested(super::OBJECTS)]);
        assert!(answer(&nested(super::OBJECTS + 1)).contains("no deeper than"));
    }

    /// JSON of few labels, so that they meet.
    fn any_json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("1".to_owned()),
            Just(" -2.5e3 ".to_owned()),
            Just("\"x\\\\\"".to_owned()),
            Just("[]".to_owned()),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let label = prop::sample::select(&["a", "b", "\\u0061", "\\n", "é"][..]);
            let member =
                (label, inner.clone()).prop_map(|(label, value)| format!("\"{label}\": {value}"));
            prop_oneof![
                prop::collection::vec(inner, 0..4)
                    .prop_map(|values| format!("[{}]", values.join(","))),
                prop::collection::vec(member, 0..5)
                    .prop_map(|members| format!("{{{}}}", members.join(" ,"))),
            ]
        })
    }

    proptest! {
        #[test]
        fn they_answer_any_json_as_sqlite_does(a in any_json(), b in any_json()) {
            let forms = ["json_patch(?1, ?2)", "json(jsonb_patch(?1, ?2))", "json_pretty(?1)", "json_pretty(?2, '->')"];
            agree_on(&forms, &[a.into(), b.into()])?;
        }
    }
}
