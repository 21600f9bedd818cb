//! How to go on: what SQLite has for the functions and words of other databases.

use crate::position::quote_excerpt;
use crate::token::Token;

/// Functions of other databases, in lower case, with what to write instead.
const FUNCTION_HINTS: &[(&[&str], &str)] = &[
    (
        &[
            "now",
            "getdate",
            "sysdate",
            "localtimestamp",
            "current_datetime",
            "clock_timestamp",
        ],
        "write CURRENT_TIMESTAMP, or datetime('now')",
    ),
    (&["curdate", "today"], "write CURRENT_DATE, or date('now')"),
    (&["curtime"], "write CURRENT_TIME, or time('now')"),
    (&["unix_timestamp"], "write unixepoch('now')"),
    (
        &["to_timestamp", "from_unixtime"],
        "write datetime(seconds, 'unixepoch')",
    ),
    (
        &[
            "date_format",
            "to_char",
            "time_format",
            "extract",
            "date_part",
            "year",
            "month",
            "day",
            "hour",
            "minute",
            "second",
            "weekday",
            "dayofweek",
        ],
        "write strftime(format, time), as strftime('%Y-%m', created_at)",
    ),
    (
        &["date_trunc"],
        "write date(time, 'start of month'), 'start of year' or 'start of day'",
    ),
    (
        &[
            "date_add",
            "date_sub",
            "dateadd",
            "adddate",
            "subdate",
            "make_interval",
            "interval",
        ],
        "write datetime(time, '+1 day'), with any number of hours, days, months or years",
    ),
    (
        &["datediff", "date_diff", "timestampdiff", "age"],
        "write julianday(later) - julianday(earlier) for days, or unixepoch(later) - unixepoch(earlier) for seconds",
    ),
    (
        &["ilike"],
        "write LIKE, which ignores the case of ASCII letters, or compare lower(a) with lower(b)",
    ),
    (&["left"], "write substr(text, 1, length)"),
    (&["right"], "write substr(text, -length)"),
    (&["mid"], "write substr(text, start, length)"),
    (
        &["char_length", "character_length", "len"],
        "write length(text)",
    ),
    (&["lcase"], "write lower(text)"),
    (&["ucase"], "write upper(text)"),
    (
        &["lpad", "rpad", "to_number"],
        "write printf('%05d', number) or printf('%-10s', text)",
    ),
    (
        &["position", "strpos", "charindex", "locate"],
        "write instr(text, part)",
    ),
    (
        &[
            "regexp",
            "regexp_like",
            "regexp_replace",
            "regexp_matches",
            "regexp_match",
            "regexp_substr",
            "similar_to",
        ],
        "write LIKE or GLOB, or replace(text, old, new)",
    ),
    (
        &["split_part", "substring_index", "string_to_array", "unnest"],
        "keep lists as JSON, and read them with json_each(list)",
    ),
    (&["nvl", "isnull"], "write ifnull(a, b) or coalesce(a, b)"),
    (&["decode"], "write CASE a WHEN b THEN c END"),
    (&["greatest"], "write max(a, b)"),
    (&["least"], "write min(a, b)"),
    (&["rand"], "write random()"),
    (
        &[
            "gen_random_uuid",
            "uuid_generate_v4",
            "newid",
            "uuidv4",
            "uuidv7",
        ],
        "write uuid()",
    ),
    (
        &[
            "array_agg",
            "json_agg",
            "jsonb_agg",
            "json_arrayagg",
            "collect_list",
        ],
        "write json_group_array(value)",
    ),
    (
        &["json_object_agg", "jsonb_object_agg", "json_objectagg"],
        "write json_group_object(name, value)",
    ),
    (
        &[
            "json_build_object",
            "jsonb_build_object",
            "row_to_json",
            "to_json",
            "to_jsonb",
        ],
        "write json_object(name, value)",
    ),
    (
        &["json_build_array", "jsonb_build_array"],
        "write json_array(values)",
    ),
    (&["json_unquote", "json_value"], "write json ->> '$.path'"),
    (&["bool_or", "bit_or"], "write max(condition)"),
    (&["bool_and", "every", "bit_and"], "write min(condition)"),
    (
        &[
            "last_insert_id",
            "lastval",
            "currval",
            "scope_identity",
            "identity",
        ],
        "write INSERT … RETURNING with the key's column",
    ),
    (
        &["nextval", "setval"],
        "declare the key INTEGER PRIMARY KEY, which counts by itself",
    ),
    (
        &["row_count", "found_rows"],
        "read rows_affected in the answer, or write count(*)",
    ),
    (
        &["convert", "to_date", "try_cast", "safe_cast"],
        "write CAST(value AS type), or date(text)",
    ),
    (
        &["generate_series", "range"],
        "write WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT i FROM n",
    ),
    (
        &[
            "match",
            "matchinfo",
            "highlight",
            "snippet",
            "bm25",
            "to_tsvector",
            "to_tsquery",
            "fts5",
        ],
        "there is no full-text search: search with LIKE '%word%'",
    ),
    (
        &["md5", "sha1", "sha256", "sha2", "crypt", "digest"],
        "compute it before the call, and send it as a param",
    ),
    (
        &["current_user", "session_user", "auth"],
        "read the signed-in visitor by :svc_user_id",
    ),
];

/// Names what replaces a function that SQL here has not got.
pub(crate) fn function_hint(name: &str) -> Option<&'static str> {
    let known = FUNCTION_HINTS
        .iter()
        .find(|(names, _)| names.contains(&name));
    known.map(|(_, instead)| *instead)
}

/// Names what replaces words of other databases, where the grammar stumbles over them at `near`.
pub(crate) fn syntax_hint(sql: &str, tokens: &[Token], near: usize) -> Option<(usize, String)> {
    // The grammar may take the first word for an alias and stumble over the next.
    let is = |index: usize, word: &str| {
        tokens
            .get(index)
            .is_some_and(|token| token.text(sql).eq_ignore_ascii_case(word))
    };
    let at = [Some(near), near.checked_sub(1)].into_iter().flatten();
    for index in at {
        let hint = if is(index, "for")
            && ["update", "share", "no", "key"]
                .iter()
                .any(|word| is(index + 1, word))
        {
            "a transaction locks the whole database, so a row needs no lock: leave it out"
        } else if is(index, "ilike") {
            "write LIKE, which ignores the case of ASCII letters"
        } else if is(index, "similar") && is(index + 1, "to") {
            "write LIKE or GLOB"
        } else if is(index, "interval") {
            "write datetime(time, '+1 day')"
        } else if is(index, "top") && index > 0 && is(index - 1, "select") {
            "write LIMIT at the end of the SELECT"
        } else if is(index, "fetch") && (is(index + 1, "first") || is(index + 1, "next")) {
            "write LIMIT"
        } else if is(index, "on") && is(index + 1, "duplicate") {
            "write ON CONFLICT (column) DO UPDATE SET column = excluded.column"
        } else if is(index, "auto_increment")
            || (is(index, "identity") && index > 0 && is(index - 1, "as"))
        {
            "declare the key INTEGER PRIMARY KEY, which counts by itself"
        } else if is(index, "enum") {
            "write TEXT CHECK (column IN ('a', 'b'))"
        } else {
            continue;
        };
        let token = tokens.get(index)?;
        return Some((
            token.start,
            format!(
                "{} is not SQLite's: {hint}.",
                quote_excerpt(token.text(sql))
            ),
        ));
    }
    None
}

/// How to go on without a kind of thing that no script makes; `what` is the word behind CREATE.
pub(crate) fn creation_hint(what: &str) -> Option<&'static str> {
    Some(match what {
        "TRIGGER" => {
            "there are no triggers: send actions together as one batch, which is one transaction, or use DEFAULT, CHECK, a generated column or ON DELETE CASCADE"
        }
        "VIRTUAL" => {
            "there are no virtual tables, and so no full-text search: search with LIKE '%word%', or keep the words in a table of their own with an index"
        }
        "SEQUENCE" => "declare the key INTEGER PRIMARY KEY, which counts by itself",
        "TYPE" | "DOMAIN" => "write TEXT CHECK (column IN ('a', 'b'))",
        "FUNCTION" | "PROCEDURE" => "write an action for it",
        "MATERIALIZED" => "write CREATE VIEW, or a table that INSERT … SELECT fills",
        "OR" => "nothing that is there is replaced: choose a new name",
        "EXTENSION" | "SCHEMA" | "DATABASE" | "USER" | "ROLE" | "POLICY" => {
            "leave it out: a backend has one database, and actions say who may do what"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_function_that_is_there_has_a_hint() {
        for (names, _) in FUNCTION_HINTS {
            for name in *names {
                assert!(
                    !crate::functions::ALLOWED_FUNCTIONS.contains(name),
                    "{name}"
                );
                assert_eq!(*name, name.to_lowercase());
            }
        }
    }
}
