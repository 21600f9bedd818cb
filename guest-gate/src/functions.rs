//! The functions that SQL may call.

/// The functions, in lower case and sorted: those of SQLite's build and [`ADDED_FUNCTIONS`] that depend on nothing but their arguments, the clock and chance,
/// and that reach nothing outside the statement.
///
/// Left out on purpose: `last_insert_rowid`, `changes` and `total_changes` (a shared writer would show another's),
/// `load_extension`, `fts3_tokenizer`, `subtype`, all of `sqlite_…`, and what only the full-text and R-tree tables use.
pub const ALLOWED_FUNCTIONS: &[&str] = &[
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "avg",
    "ceil",
    "ceiling",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "cos",
    "cosh",
    "count",
    "cume_dist",
    "date",
    "datetime",
    "degrees",
    "dense_rank",
    "exp",
    "first_value",
    "floor",
    "format",
    "glob",
    "group_concat",
    "hex",
    "if",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_insert",
    "json_array_length",
    "json_error_position",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_insert",
    "json_object",
    "json_patch",
    "json_pretty",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_type",
    "json_valid",
    "jsonb",
    "jsonb_array",
    "jsonb_array_insert",
    "jsonb_extract",
    "jsonb_group_array",
    "jsonb_group_object",
    "jsonb_insert",
    "jsonb_object",
    "jsonb_patch",
    "jsonb_remove",
    "jsonb_replace",
    "jsonb_set",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "likelihood",
    "likely",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "max",
    "median",
    "min",
    "mod",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "percentile",
    "percentile_cont",
    "percentile_disc",
    "pi",
    "pow",
    "power",
    "printf",
    "quote",
    "radians",
    "random",
    "randomblob",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "sin",
    "sinh",
    "soundex",
    "sqrt",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "sum",
    "tan",
    "tanh",
    "time",
    "timediff",
    "total",
    "trim",
    "trunc",
    "typeof",
    "unhex",
    "unicode",
    "unistr",
    "unixepoch",
    "unlikely",
    "upper",
    "uuid",
    "zeroblob",
];

/// The functions that the host adds to those of SQLite's build, sorted.
pub const ADDED_FUNCTIONS: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "ceiling",
    "cos",
    "cosh",
    "degrees",
    "exp",
    "floor",
    "ln",
    "log",
    "log10",
    "log2",
    "median",
    "mod",
    "percentile",
    "percentile_cont",
    "percentile_disc",
    "pi",
    "pow",
    "power",
    "radians",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "uuid",
];

/// Functions that SQLite calls on its own for operators and keywords: an authorizer meets these names, a statement
/// cannot spell them as calls.
pub const IMPLICIT_FUNCTIONS: &[&str] = &[
    "->",
    "->>",
    "current_date",
    "current_time",
    "current_timestamp",
];

/// The table-valued functions, sorted: they stand in a FROM clause, with arguments or without.
pub const TABLE_VALUED_FUNCTIONS: &[&str] = &["json_each", "json_tree", "jsonb_each", "jsonb_tree"];

/// Describes the fault in calling the function of this name, in lower case.
pub(crate) fn function_fault(name: &str) -> Option<String> {
    if ALLOWED_FUNCTIONS.binary_search(&name).is_ok() {
        return None;
    }
    let shown = crate::position::quote_excerpt(name);
    Some(match name {
        "last_insert_rowid" => format!(
            "The function {shown} is not available, as the database is shared: write INSERT … RETURNING with the key's column."
        ),
        "changes" | "total_changes" => format!(
            "The function {shown} is not available, as the database is shared: read rows_affected in the answer."
        ),
        _ if TABLE_VALUED_FUNCTIONS.binary_search(&name).is_ok() => {
            format!("The function {shown} makes a table: write it behind FROM.")
        }
        _ => match crate::hints::function_hint(name) {
            Some(instead) => format!("The function {shown} is not available here: {instead}."),
            None => format!(
                "The function {shown} is not available here: /llms.txt lists those that are."
            ),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_in_lower_case() {
        for list in [
            ALLOWED_FUNCTIONS,
            ADDED_FUNCTIONS,
            IMPLICIT_FUNCTIONS,
            TABLE_VALUED_FUNCTIONS,
        ] {
            assert!(list.is_sorted());
            assert!(list.iter().all(|name| *name == name.to_lowercase()));
        }
        assert!(
            ADDED_FUNCTIONS
                .iter()
                .all(|name| ALLOWED_FUNCTIONS.contains(name))
        );
    }
}
