//! Walk through statements. Their class is checked a second time here; the first check is by their first words.

use sqlite3_parser::ast::{
    AlterTableBody, InsertBody, ResolveType, ResultColumn, Set, SortedColumn, Stmt, Upsert,
    UpsertDo, UpsertIndex,
};
use sqlite3_parser::dialect::TokenType::{self, *};

use super::{SyntaxTreeWalk, WalkResult};
use crate::names::NameUse;
use crate::statement::{SqlPurpose, StatementKind};

/// Depth outside of expressions.
const OUTSIDE_EXPRESSION_DEPTH: usize = 1;

impl<'b> SyntaxTreeWalk<'_, 'b> {
    pub(super) fn walk_statement(&mut self, statement: &'b Stmt<'b>) -> WalkResult {
        let mut found = WalkResult {
            kind: StatementKind::Read,
            returns_rows: false,
            makes_table: false,
            tables: Vec::new(),
            view: None,
            parts: 0,
        };
        match statement {
            Stmt::Select(select) => {
                self.refuse_in_script("SELECT");
                self.push_select(select, OUTSIDE_EXPRESSION_DEPTH);
                found.returns_rows = true;
            }
            Stmt::Insert { .. } => {
                found.kind = StatementKind::Write;
                found.returns_rows = self.walk_insert(statement);
            }
            Stmt::Update { .. } => {
                self.refuse_in_script("UPDATE");
                found.kind = StatementKind::Write;
                found.returns_rows = self.walk_update(statement);
            }
            Stmt::Delete { .. } => {
                self.refuse_in_script("DELETE");
                found.kind = StatementKind::Write;
                found.returns_rows = self.walk_delete(statement);
            }
            Stmt::CreateTable {
                temporary,
                if_not_exists: _,
                tbl_name,
                body,
            } => {
                self.check_definition(&mut found, *temporary);
                found.makes_table = true;
                self.check_table(tbl_name, NameUse::Create);
                self.walk_table_body(body);
            }
            Stmt::CreateIndex {
                unique: _,
                if_not_exists: _,
                idx_name,
                tbl_name,
                columns,
                where_clause,
            } => {
                self.check_definition(&mut found, false);
                self.check_object(idx_name, NameUse::Create);
                self.check_plain_table(tbl_name, NameUse::Extend);
                let columns = columns.iter().map(|column| &column.expr);
                for expr in columns.chain(where_clause.iter()) {
                    self.walk_stored(expr, OUTSIDE_EXPRESSION_DEPTH);
                }
            }
            Stmt::CreateView {
                temporary,
                if_not_exists: _,
                view_name,
                columns,
                select,
            } => {
                self.check_definition(&mut found, *temporary);
                found.view = Some(self.check_table(view_name, NameUse::Create));
                self.mark_columns(columns.unwrap_or_default());
                self.push_select(select, OUTSIDE_EXPRESSION_DEPTH);
            }
            Stmt::AlterTable(table, body) => {
                self.check_definition(&mut found, false);
                self.check_table(table, NameUse::Extend);
                self.walk_alter(body);
            }
            Stmt::Analyze(_)
            | Stmt::Attach { .. }
            | Stmt::Begin(..)
            | Stmt::Commit(_)
            | Stmt::CreateTrigger { .. }
            | Stmt::CreateVirtualTable { .. }
            | Stmt::Detach(_)
            | Stmt::DropIndex { .. }
            | Stmt::DropTable { .. }
            | Stmt::DropTrigger { .. }
            | Stmt::DropView { .. }
            | Stmt::Pragma(..)
            | Stmt::Reindex { .. }
            | Stmt::Release(_)
            | Stmt::Rollback { .. }
            | Stmt::Savepoint(_)
            | Stmt::Vacuum(..) => self.refuse(0, "This kind of statement is not allowed here."),
        }
        found
    }

    fn is_script(&self) -> bool {
        matches!(self.purpose, SqlPurpose::Schema | SqlPurpose::Migration)
    }

    /// Refuses a statement that is no seed in a script; its verb may stand behind a WITH.
    fn refuse_in_script(&mut self, verb: &str) {
        if self.is_script() {
            let sql = self.sql;
            self.refuse_outside_parentheses(
                |token| token.text(sql).eq_ignore_ascii_case(verb),
                format!(
                    "{verb} is not allowed in a script, which only adds: seed rows with INSERT."
                ),
            );
        }
    }

    fn walk_insert(&mut self, statement: &'b Stmt<'b>) -> bool {
        let Stmt::Insert {
            with,
            or_conflict,
            tbl_name,
            columns,
            body,
            returning,
        } = statement
        else {
            return false;
        };
        self.walk_with_clause(with.as_ref(), OUTSIDE_EXPRESSION_DEPTH);
        self.check_table(tbl_name, NameUse::Write);
        if let Some(columns) = columns {
            self.mark_harmless_names(columns.iter());
        }
        match body {
            InsertBody::Select(select, upsert) => {
                self.push_select(select, OUTSIDE_EXPRESSION_DEPTH);
                self.walk_upsert(*upsert);
            }
            InsertBody::DefaultValues => {}
        }
        if self.is_script() {
            if *or_conflict == Some(ResolveType::Replace) {
                self.refuse_where(
                    |tokens, index| tokens[index].is(TK_REPLACE),
                    "A seed that replaces rows is not allowed, as a script only adds: write INSERT or INSERT OR IGNORE.",
                );
            }
            if returning.is_some() {
                self.refuse_where(
                    |tokens, index| tokens[index].is(TK_RETURNING),
                    "A script answers no rows: leave RETURNING out.",
                );
            }
        }
        self.walk_returning(*returning)
    }

    fn walk_upsert(&mut self, mut upsert: Option<&'b Upsert<'b>>) {
        while let Some(Upsert {
            index,
            do_clause,
            next,
        }) = upsert
        {
            if let Some(UpsertIndex {
                targets,
                where_clause,
            }) = index
            {
                self.walk_sorted_columns(targets, OUTSIDE_EXPRESSION_DEPTH);
                self.push_expressions(where_clause, OUTSIDE_EXPRESSION_DEPTH);
            }
            match do_clause {
                UpsertDo::Set { sets, where_clause } => {
                    self.walk_assignments(sets);
                    self.push_expressions(where_clause, OUTSIDE_EXPRESSION_DEPTH);
                    if self.is_script() {
                        self.refuse_where(
                            |tokens, index| {
                                tokens[index].is(TK_UPDATE) && index > 0 && tokens[index - 1].is(TK_DO)
                            },
                            "A seed that updates rows is not allowed, as a script only adds: write DO NOTHING.",
                        );
                    }
                }
                UpsertDo::Nothing => {}
            }
            upsert = *next;
        }
    }

    fn walk_update(&mut self, statement: &'b Stmt<'b>) -> bool {
        let Stmt::Update {
            with,
            or_conflict: _,
            tbl_name,
            indexed,
            sets,
            from,
            where_clause,
            returning,
            order_by,
            limit,
        } = statement
        else {
            return false;
        };
        self.walk_with_clause(with.as_ref(), OUTSIDE_EXPRESSION_DEPTH);
        self.check_table(tbl_name, NameUse::Write);
        self.check_indexed(indexed.as_ref());
        self.walk_assignments(sets);
        self.walk_from_clause(from.as_ref(), OUTSIDE_EXPRESSION_DEPTH);
        self.push_expressions(where_clause, OUTSIDE_EXPRESSION_DEPTH);
        self.refuse_row_limits("UPDATE", *order_by, limit.is_some());
        self.walk_returning(*returning)
    }

    fn walk_delete(&mut self, statement: &'b Stmt<'b>) -> bool {
        let Stmt::Delete {
            with,
            tbl_name,
            indexed,
            where_clause,
            returning,
            order_by,
            limit,
        } = statement
        else {
            return false;
        };
        self.walk_with_clause(with.as_ref(), OUTSIDE_EXPRESSION_DEPTH);
        self.check_table(tbl_name, NameUse::Delete);
        self.check_indexed(indexed.as_ref());
        self.push_expressions(where_clause, OUTSIDE_EXPRESSION_DEPTH);
        self.refuse_row_limits("DELETE", *order_by, limit.is_some());
        self.walk_returning(*returning)
    }

    /// Refuses clauses that the parser accepts and SQLite does not.
    fn refuse_row_limits(
        &mut self,
        verb: &str,
        order: Option<&'b [SortedColumn<'b>]>,
        limit: bool,
    ) {
        if order.is_some() || limit {
            let reason = format!(
                "{verb} takes neither ORDER BY nor LIMIT: choose the rows with WHERE rowid IN (SELECT … LIMIT …)."
            );
            self.refuse_outside_parentheses(
                |token| token.is(TK_ORDER) || token.is(TK_LIMIT),
                reason,
            );
        }
    }

    fn walk_assignments(&mut self, sets: &'b [Set<'b>]) {
        for Set { col_names, expr } in sets {
            self.mark_harmless_names(col_names.iter());
            self.push_expression(expr, OUTSIDE_EXPRESSION_DEPTH);
        }
    }

    fn walk_returning(&mut self, columns: Option<&'b [ResultColumn<'b>]>) -> bool {
        self.walk_results(columns.unwrap_or_default(), OUTSIDE_EXPRESSION_DEPTH);
        columns.is_some()
    }

    /// Checks the rules that all definitions share.
    fn check_definition(&mut self, found: &mut WalkResult, temporary: bool) {
        found.kind = StatementKind::Migration;
        if !self.is_script() {
            self.refuse(0, "A schema is changed by a migration alone.");
        }
        if temporary {
            self.refuse(
                1,
                "TEMP is not allowed: nothing outlives a call but the database.",
            );
        }
    }

    fn walk_alter(&mut self, body: &'b AlterTableBody<'b>) {
        match body {
            AlterTableBody::AddColumn(column) => {
                if self.purpose == SqlPurpose::Schema {
                    self.refuse(0, "A schema makes its tables whole: leave ALTER TABLE out.");
                }
                self.walk_column(column);
            }
            AlterTableBody::RenameTo(_)
            | AlterTableBody::DropColumnNotNull(_)
            | AlterTableBody::SetColumnNotNull(..)
            | AlterTableBody::RenameColumn { .. }
            | AlterTableBody::DropColumn(_)
            | AlterTableBody::AddConstraint(_)
            | AlterTableBody::DropConstraint(_) => {
                let forms: [TokenType; 4] = [TK_RENAME, TK_DROP, TK_ALTER, TK_ADD];
                self.refuse_where(
                    |tokens, index| index > 2 && forms.iter().any(|form| tokens[index].is(*form)),
                    "ALTER TABLE may only ADD a COLUMN: make a new table or a view for other changes.",
                );
            }
        }
    }
}
