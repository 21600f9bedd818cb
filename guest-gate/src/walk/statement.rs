//! Walk through statements, with a second check of their class, after that of the first words.

use sqlite3_parser::ast::{
    AlterTableBody, InsertBody, ResolveType, ResultColumn, Set, SortedColumn, Stmt, Upsert,
    UpsertDo, UpsertIndex,
};
use sqlite3_parser::dialect::TokenType::{self, *};

use super::{Found, Walk};
use crate::names::Use;
use crate::statement::{Kind, Purpose};

/// Depth outside of expressions.
const TOP: usize = 1;

impl<'b> Walk<'_, 'b> {
    pub(super) fn statement(&mut self, statement: &'b Stmt<'b>) -> Found {
        let mut found = Found {
            kind: Kind::Read,
            returns_rows: false,
            makes_table: false,
            tables: Vec::new(),
            view: None,
            parts: 0,
        };
        match statement {
            Stmt::Select(select) => {
                self.only_in_calls("SELECT");
                self.later(select, TOP);
                found.returns_rows = true;
            }
            Stmt::Insert { .. } => {
                found.kind = Kind::Write;
                found.returns_rows = self.insert(statement);
            }
            Stmt::Update { .. } => {
                self.only_in_calls("UPDATE");
                found.kind = Kind::Write;
                found.returns_rows = self.update(statement);
            }
            Stmt::Delete { .. } => {
                self.only_in_calls("DELETE");
                found.kind = Kind::Write;
                found.returns_rows = self.delete(statement);
            }
            Stmt::CreateTable {
                temporary,
                if_not_exists: _,
                tbl_name,
                body,
            } => {
                self.definition(&mut found, *temporary);
                found.makes_table = true;
                self.table(tbl_name, Use::Make);
                self.table_body(body);
            }
            Stmt::CreateIndex {
                unique: _,
                if_not_exists: _,
                idx_name,
                tbl_name,
                columns,
                where_clause,
            } => {
                self.definition(&mut found, false);
                self.object(idx_name, Use::Make);
                self.plain_table(tbl_name, Use::Build);
                let columns = columns.iter().map(|column| &column.expr);
                for expr in columns.chain(where_clause.iter()) {
                    self.stored(expr, TOP);
                }
            }
            Stmt::CreateView {
                temporary,
                if_not_exists: _,
                view_name,
                columns,
                select,
            } => {
                self.definition(&mut found, *temporary);
                found.view = Some(self.table(view_name, Use::Make));
                self.columns(columns.unwrap_or_default());
                self.later(select, TOP);
            }
            Stmt::AlterTable(table, body) => {
                self.definition(&mut found, false);
                self.table(table, Use::Build);
                self.alter(body);
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

    fn in_script(&self) -> bool {
        matches!(self.purpose, Purpose::Schema | Purpose::Migration)
    }

    /// Refuses a statement that is no seed in a script; its verb may stand behind a WITH.
    fn only_in_calls(&mut self, verb: &str) {
        if self.in_script() {
            let sql = self.sql;
            self.refuse_outside(
                |token| token.text(sql).eq_ignore_ascii_case(verb),
                format!(
                    "{verb} is not allowed in a script, which only adds: seed rows with INSERT."
                ),
            );
        }
    }

    fn insert(&mut self, statement: &'b Stmt<'b>) -> bool {
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
        self.with(with.as_ref(), TOP);
        self.table(tbl_name, Use::Write);
        if let Some(columns) = columns {
            self.harmless_all(columns.iter());
        }
        match body {
            InsertBody::Select(select, upsert) => {
                self.later(select, TOP);
                self.upsert(*upsert);
            }
            InsertBody::DefaultValues => {}
        }
        if self.in_script() {
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
        self.returning(*returning)
    }

    fn upsert(&mut self, mut upsert: Option<&'b Upsert<'b>>) {
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
                self.sorted(targets, TOP);
                self.exprs(where_clause, TOP);
            }
            match do_clause {
                UpsertDo::Set { sets, where_clause } => {
                    self.sets(sets);
                    self.exprs(where_clause, TOP);
                    if self.in_script() {
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

    fn update(&mut self, statement: &'b Stmt<'b>) -> bool {
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
        self.with(with.as_ref(), TOP);
        self.table(tbl_name, Use::Write);
        self.indexed(indexed.as_ref());
        self.sets(sets);
        self.from(from.as_ref(), TOP);
        self.exprs(where_clause, TOP);
        self.some_rows("UPDATE", *order_by, limit.is_some());
        self.returning(*returning)
    }

    fn delete(&mut self, statement: &'b Stmt<'b>) -> bool {
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
        self.with(with.as_ref(), TOP);
        self.table(tbl_name, Use::Write);
        self.indexed(indexed.as_ref());
        self.exprs(where_clause, TOP);
        self.some_rows("DELETE", *order_by, limit.is_some());
        self.returning(*returning)
    }

    /// Refuses clauses that the parser accepts and SQLite does not.
    fn some_rows(&mut self, verb: &str, order: Option<&'b [SortedColumn<'b>]>, limit: bool) {
        if order.is_some() || limit {
            let reason = format!(
                "{verb} takes neither ORDER BY nor LIMIT: choose the rows with WHERE rowid IN (SELECT … LIMIT …)."
            );
            self.refuse_outside(|token| token.is(TK_ORDER) || token.is(TK_LIMIT), reason);
        }
    }

    fn sets(&mut self, sets: &'b [Set<'b>]) {
        for Set { col_names, expr } in sets {
            self.harmless_all(col_names.iter());
            self.expr(expr, TOP);
        }
    }

    fn returning(&mut self, columns: Option<&'b [ResultColumn<'b>]>) -> bool {
        self.results(columns.unwrap_or_default(), TOP);
        columns.is_some()
    }

    /// Checks the rules that all definitions share.
    fn definition(&mut self, found: &mut Found, temporary: bool) {
        found.kind = Kind::Migration;
        if !self.in_script() {
            self.refuse(0, "A schema is changed by a migration alone.");
        }
        if temporary {
            self.refuse(
                1,
                "TEMP is not allowed: nothing outlives a call but the database.",
            );
        }
    }

    fn alter(&mut self, body: &'b AlterTableBody<'b>) {
        match body {
            AlterTableBody::AddColumn(column) => {
                if self.purpose == Purpose::Schema {
                    self.refuse(0, "A schema makes its tables whole: leave ALTER TABLE out.");
                }
                self.column(column);
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
