//! `json_patch` in linear time, where SQLite's own searches all members for each one, and `json_pretty` with a bound on its
//! result, where SQLite's own writes gigabytes of indents. SQLite itself parses the JSON and writes JSONB.

use rusqlite::functions::{Context, FunctionFlags, SubType};
use rusqlite::{Connection, Result};

use super::json_merge::JsonValue;
use super::json_pretty::pretty;
use super::json_reader::{JsonReader, json_argument};
use super::text::PlainSqliteConnection;
use super::{ByteText, DETERMINISTIC_FLAGS};
use crate::meter::{FunctionWorkMeter, StatementDeadline};

/// Subtype with which SQLite marks JSON.
const JSON_SUBTYPE: SubType = Some('J' as u32);

/// Replaces SQLite's `json_patch`, `jsonb_patch` and `json_pretty`.
pub(super) fn register(
    connection: &Connection,
    deadline: &StatementDeadline,
    sqlite: &PlainSqliteConnection,
) -> Result<()> {
    let (statement_deadline, plain_json) = (deadline.clone(), sqlite.clone());
    let flags = DETERMINISTIC_FLAGS.union(FunctionFlags::SQLITE_RESULT_SUBTYPE);
    connection.create_scalar_function("json_patch", 2, flags, move |c| {
        let patched = patch(c, &plain_json, statement_deadline.begin_work()?)?;
        let mark = patched.as_ref().and(JSON_SUBTYPE);
        Ok((patched.map(ByteText), mark))
    })?;
    let (statement_deadline, plain_json) = (deadline.clone(), sqlite.clone());
    connection.create_scalar_function(
        "jsonb_patch",
        2,
        DETERMINISTIC_FLAGS,
        move |c| match patch(c, &plain_json, statement_deadline.begin_work()?)? {
            Some(json) => {
                plain_json.evaluate::<Option<Vec<u8>>>("SELECT jsonb(?1)", ByteText(json))
            }
            None => Ok(None),
        },
    )?;
    for arguments in [1, 2] {
        let (deadline, sqlite) = (deadline.clone(), sqlite.clone());
        connection.create_scalar_function(
            "json_pretty",
            arguments,
            DETERMINISTIC_FLAGS,
            move |c| pretty(c, &sqlite, deadline.begin_work()?),
        )?;
    }
    Ok(())
}

fn patch(
    context: &Context<'_>,
    sqlite: &PlainSqliteConnection,
    mut work: FunctionWorkMeter<'_>,
) -> Result<Option<Vec<u8>>> {
    let Some(target) = json_argument(context, 0, sqlite)? else {
        return Ok(None);
    };
    let Some(patch) = json_argument(context, 1, sqlite)? else {
        return Ok(None);
    };
    let patch = JsonValue::read(&mut JsonReader::new(&patch), 0, &mut work)?;
    let mut target = JsonValue::read(&mut JsonReader::new(&target), 0, &mut work)?;
    target.merge(&patch, &mut work)?;
    let mut out = Vec::new();
    target.write(&mut out, &mut work)?;
    Ok(Some(out))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answer, assert_like_sqlite, compare_with_sqlite};
    use proptest::prelude::*;

    #[test]
    fn they_answer_as_sqlite_does() {
        assert_like_sqlite(&[
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
            assert_like_sqlite(&[
                &format!("length(json_pretty('{array}', ''))"),
                &format!("length(json_pretty('{object}', ''))"),
                &format!("length(json_patch('{array}', '{array}'))"),
            ]);
        }
        let nested = |depth: usize| {
            let object = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
            format!("length(json_patch('{object}', '{object}'))")
        };
        assert_like_sqlite(&[&nested(super::super::json_merge::MAX_OBJECT_DEPTH)]);
        assert!(
            answer(&nested(super::super::json_merge::MAX_OBJECT_DEPTH + 1))
                .contains("no deeper than")
        );
    }

    /// Generates JSON with few labels, so that objects share them.
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
            compare_with_sqlite(&forms, &[a.into(), b.into()])?;
        }
    }
}
