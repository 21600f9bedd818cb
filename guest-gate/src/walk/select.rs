//! Walk through selects and their FROM clauses.

use sqlite3_parser::ast::{
    As, CommonTableExpr, FromClause, Indexed, IndexedColumn, JoinConstraint, JoinedSelectTable,
    Limit, OneSelect, ResultColumn, Select, SelectBody, SelectTable, With,
};

use super::{SyntaxTreeWalk, WalkTask};
use crate::names::NameUse;

impl<'b> SyntaxTreeWalk<'_, 'b> {
    pub(super) fn walk_select(&mut self, select: &'b Select<'b>, depth: usize) {
        let Select {
            with,
            body: SelectBody { select, compounds },
            order_by,
            limit,
        } = select;
        self.walk_with_clause(with.as_ref(), depth);
        self.walk_one_select(select, depth);
        for compound in compounds.iter().flatten() {
            self.walk_one_select(&compound.select, depth);
        }
        self.walk_sorted_columns(order_by.unwrap_or_default(), depth);
        self.walk_limit(*limit, depth);
    }

    /// Opens the scope of a WITH. It closes when all tasks added from here on are done.
    pub(super) fn walk_with_clause(&mut self, with: Option<&'b With<'b>>, depth: usize) {
        let Some(With { recursive: _, ctes }) = with else {
            return;
        };
        self.tasks.push(WalkTask::LeaveScope);
        let mut names = Vec::with_capacity(ctes.len());
        for CommonTableExpr {
            tbl_name,
            columns,
            materialized: _,
            select,
        } in *ctes
        {
            let (within, body) = (self.reads.current_body(), self.reads.add_body());
            names.push((
                self.check_plain_object(tbl_name, NameUse::Create).name,
                body,
            ));
            self.mark_columns(columns.unwrap_or_default());
            // The last task that is pushed is done first.
            self.tasks.push(WalkTask::EnterBody(within));
            self.push_select(select, depth);
            self.tasks.push(WalkTask::EnterBody(body));
        }
        self.scopes.push(names);
    }

    fn walk_one_select(&mut self, select: &'b OneSelect<'b>, depth: usize) {
        match select {
            OneSelect::Select {
                distinctness: _,
                columns,
                from,
                where_clause,
                group_by,
                having,
                window_clause,
            } => {
                self.walk_results(columns, depth);
                self.walk_from_clause(from.as_ref(), depth);
                self.push_expressions(where_clause.iter().chain(having.iter()).copied(), depth);
                self.push_expressions(group_by.iter().copied().flatten(), depth);
                for window in window_clause.iter().copied().flatten() {
                    self.mark_harmless_name(window.name.0);
                    self.walk_window(&window.window, depth);
                }
            }
            OneSelect::Values(rows) => {
                for row in rows {
                    self.push_expressions(row, depth);
                }
            }
        }
    }

    pub(super) fn walk_results(&mut self, columns: &'b [ResultColumn<'b>], depth: usize) {
        for column in columns {
            match column {
                ResultColumn::Expr(expr, alias) => {
                    self.push_expression(expr, depth);
                    self.mark_alias(alias.as_ref());
                }
                ResultColumn::Star => {}
                ResultColumn::TableStar(table) => self.mark_harmless_name(table.0),
            }
        }
    }

    fn mark_alias(&mut self, alias: Option<&'b As<'b>>) {
        match alias {
            Some(As::As(name) | As::Elided(name)) => self.mark_harmless_name(name.0),
            None => {}
        }
    }

    /// Walks through a FROM clause. The recursion is as deep as parentheses are nested.
    pub(super) fn walk_from_clause(&mut self, from: Option<&'b FromClause<'b>>, depth: usize) {
        let Some(from) = from else {
            return;
        };
        if let Some(table) = from.select {
            self.walk_source(table, depth);
        }
        for JoinedSelectTable {
            operator: _,
            table,
            constraint,
        } in from.joins.iter().flatten()
        {
            self.walk_source(table, depth);
            match constraint {
                Some(JoinConstraint::On(expr)) => self.push_expression(expr, depth),
                Some(JoinConstraint::Using(columns)) => self.mark_harmless_names(columns.iter()),
                None => {}
            }
        }
    }

    fn walk_source(&mut self, table: &'b SelectTable<'b>, depth: usize) {
        match table {
            SelectTable::Table(name, alias, indexed) => {
                self.check_read(name);
                self.mark_alias(alias.as_ref());
                self.check_indexed(indexed.as_ref());
            }
            SelectTable::TableCall(name, args, alias) => {
                self.check_table_call(name);
                self.push_expressions(args.iter().copied().flatten(), depth);
                self.mark_alias(alias.as_ref());
            }
            SelectTable::Select(select, alias) => {
                self.push_select(select, depth);
                self.mark_alias(alias.as_ref());
            }
            SelectTable::Sub(from, alias) => {
                self.walk_from_clause(Some(from), depth);
                self.mark_alias(alias.as_ref());
            }
        }
    }

    pub(super) fn check_indexed(&mut self, indexed: Option<&'b Indexed<'b>>) {
        match indexed {
            Some(Indexed::IndexedBy(index)) => drop(self.check_plain_object(index, NameUse::Index)),
            Some(Indexed::NotIndexed) | None => {}
        }
    }

    pub(super) fn mark_columns(&mut self, columns: &'b [IndexedColumn<'b>]) {
        for IndexedColumn {
            col_name,
            collation_name,
            order: _,
        } in columns
        {
            self.mark_harmless_name(col_name.0);
            self.mark_harmless_names(collation_name);
        }
    }

    fn walk_limit(&mut self, limit: Option<&'b Limit<'b>>, depth: usize) {
        if let Some(Limit { expr, offset }) = limit {
            self.push_expression(expr, depth);
            self.push_expressions(offset, depth);
        }
    }
}
