//! Columns of statements' rows, with the types that their tables declare: advice for programs that call the statements.

use std::ffi::CStr;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Statement;
use serde::Serialize;
use utoipa::ToSchema;

use super::authorizer::AuthorizerRole;
use super::connection::TenantConnection;
use super::error::{StatementRunError, internal_error};
use super::schema::{NamedView, read_named_views};
use super::sql_tokens::{SqlWord, tokenize};
use svc_base::Stopwatch;

/// Keywords that join several queries to one result, whose rows are not those of the first alone.
const COMPOUNDS: &[&str] = &["union", "intersect", "except"];
/// Keywords of joins that add rows of NULLs.
const OUTER_JOINS: &[&str] = &["left", "right", "full", "outer"];
/// Functions that make one row of all, of none as well: beside them a column without GROUP BY may be NULL.
const AGGREGATES: &[&str] = &[
    "avg",
    "count",
    "group_concat",
    "json_group_array",
    "json_group_object",
    "jsonb_group_array",
    "jsonb_group_object",
    "max",
    "median",
    "min",
    "percentile",
    "percentile_cont",
    "percentile_disc",
    "string_agg",
    "sum",
    "total",
];

/// A column of a statement's rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ResultColumn {
    /// Name of the column in the answer.
    name: String,
    /// Type that the table's column declares; null for an expression, and where several queries are joined to one result.
    #[serde(rename = "type")]
    declared: Option<String>,
    /// Whether it is certainly never NULL.
    not_null: bool,
}

/// A statement whose columns are asked for.
#[derive(Clone, Debug)]
pub struct DescribedStatement {
    /// One statement, without anything after it.
    pub sql: Arc<str>,
    /// Whether the statement changes rows.
    pub writes: bool,
}

/// How much the columns of tables tell of a result's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OriginCertainty {
    /// Whether each value comes from the column that SQLite names.
    declared: bool,
    /// Whether a column that refuses NULL has none in the result either.
    not_null: bool,
}

/// Describes the columns of statements against the present schema, all within `budget`. `None` for one that SQLite refuses.
pub(super) fn describe(
    handle: &TenantConnection,
    statements: &[DescribedStatement],
    budget: Duration,
) -> Result<Vec<Option<Vec<ResultColumn>>>, StatementRunError> {
    let watch = Stopwatch::start();
    // SQLite prepares by the schema that the connection has loaded, which may be out of date.
    handle.refresh_schema().map_err(internal_error)?;
    let views = read_named_views(&handle.connection).map_err(internal_error)?;
    let each = statements.iter().map(|statement| {
        let left = budget.saturating_sub(watch.elapsed());
        if left.is_zero() {
            return Err(StatementRunError::Timeout);
        }
        match describe_one(handle, statement, &views, left) {
            Ok(columns) => Ok(Some(columns)),
            Err(StatementRunError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    });
    each.collect()
}

fn describe_one(
    handle: &TenantConnection,
    described: &DescribedStatement,
    views: &[NamedView],
    budget: Duration,
) -> Result<Vec<ResultColumn>, StatementRunError> {
    let role = match described.writes {
        true => AuthorizerRole::Write,
        false => AuthorizerRole::Read,
    };
    let certainty = OriginCertainty::of(&described.sql, views);
    handle.run_as_tenant(role, budget, |connection| {
        let statement = connection.prepare(&described.sql)?;
        let columns =
            (0..statement.column_count()).map(|index| column(&statement, index, certainty));
        Ok(columns.collect::<rusqlite::Result<_>>()?)
    })
}

fn column(
    statement: &Statement<'_>,
    index: usize,
    certainty: OriginCertainty,
) -> rusqlite::Result<ResultColumn> {
    let name = statement.column_name(index)?.to_owned();
    let origin = match certainty.declared {
        // SQLite knows no table of functions such as `json_each`.
        true => statement.column_metadata(index).ok().flatten(),
        false => None,
    };
    let (declared, not_null) = match origin {
        Some((_, _, _, declared, _, not_null, is_key, _)) => (declared, not_null || is_key),
        None => (None, false),
    };
    let declared = declared.map(CStr::to_string_lossy);
    Ok(ResultColumn {
        name,
        declared: declared.filter(|text| !text.is_empty()).map(Into::into),
        not_null: not_null && certainty.not_null,
    })
}

impl OriginCertainty {
    /// Judges a statement by its words. In doubt a column has no type, or may be NULL.
    fn of(sql: &str, views: &[NamedView]) -> Self {
        let words = tokenize(sql);
        let of_views = match views
            .iter()
            .any(|view| words.iter().any(|word| word.name == view.name))
        {
            // Views may read each other.
            true => views.iter().flat_map(|view| tokenize(&view.sql)).collect(),
            false => Vec::new(),
        };
        let is_select = words
            .first()
            .is_some_and(|word| word.is_keyword(&["select", "with"]));
        let has = |words: &[SqlWord], keywords| words.iter().any(|word| word.is_keyword(keywords));
        if !is_select || has_top(&words, "returning").is_some() {
            // The columns are those of the changed table.
            let list = has_top(&words, "returning").map_or(&words[..0], |at| &words[at..]);
            return Self {
                declared: true,
                not_null: !has(list, &["select"]),
            };
        }
        let declared = !has(&words, COMPOUNDS) && !has(&of_views, COMPOUNDS);
        // What stands after WHERE chooses rows, and makes none.
        let head = &words[..has_top(&words, "where").unwrap_or(words.len())];
        let selects = head
            .iter()
            .filter(|word| word.is_keyword(&["select"]))
            .count();
        let is_aggregate = has(&words, AGGREGATES) && has_top(&words, "group").is_none();
        Self {
            declared,
            not_null: declared
                && of_views.is_empty()
                && selects == 1
                && !has(&words, OUTER_JOINS)
                && !is_aggregate,
        }
    }
}

/// Returns the place of a keyword outside of parentheses.
fn has_top(words: &[SqlWord], keyword: &str) -> Option<usize> {
    words
        .iter()
        .position(|word| word.depth == 0 && word.is_keyword(&[keyword]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_certain_is_not_said() {
        let views = [NamedView {
            name: "recent".to_owned(),
            sql: "CREATE VIEW recent AS SELECT id FROM a UNION SELECT 1".to_owned(),
        }];
        for (sql, declared, not_null) in [
            ("SELECT id, text FROM a ORDER BY id", true, true),
            (
                "SELECT id FROM a JOIN b ON a.id = b.a WHERE b.id IN (SELECT 1)",
                true,
                true,
            ),
            ("SELECT \"left\" FROM a", true, true),
            ("SELECT id, 'union' FROM a -- left join", true, true),
            ("SELECT id, count(*) AS n FROM a GROUP BY id", true, true),
            ("SELECT id, count(*) AS n FROM a", true, false),
            ("SELECT id FROM a ORDER BY count(*)", true, false),
            ("SELECT b.id FROM a LEFT JOIN b ON true", true, false),
            ("SELECT a.id FROM a full join b", true, false),
            ("SELECT (SELECT id FROM a) AS id", true, false),
            ("SELECT id FROM (SELECT id FROM a)", true, false),
            ("WITH t AS (SELECT 1) SELECT id FROM a, t", true, false),
            ("SELECT id FROM a UNION ALL SELECT NULL", false, false),
            ("SELECT id FROM recent", false, false),
            (
                "INSERT INTO a SELECT 1 UNION SELECT 2 RETURNING id",
                true,
                true,
            ),
            (
                "WITH t AS (SELECT 1) INSERT INTO a SELECT * FROM t RETURNING id",
                true,
                true,
            ),
            (
                "UPDATE a SET id = 1 RETURNING (SELECT id FROM a)",
                true,
                false,
            ),
            ("DELETE FROM a", true, true),
        ] {
            let expected = OriginCertainty { declared, not_null };
            assert_eq!(OriginCertainty::of(sql, &views), expected, "{sql}");
        }
    }
}
