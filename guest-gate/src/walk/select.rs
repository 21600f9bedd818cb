//! Walk through selects and their FROM clauses.

use sqlite3_parser::ast::{
    As, CommonTableExpr, FromClause, Indexed, IndexedColumn, JoinConstraint, JoinedSelectTable,
    Limit, OneSelect, ResultColumn, Select, SelectBody, SelectTable, With,
};

use super::{Task, Walk};
use crate::names::Use;

impl<'b> Walk<'_, 'b> {
    pub(super) fn select(&mut self, select: &'b Select<'b>, depth: usize) {
        let Select {
            with,
            body: SelectBody { select, compounds },
            order_by,
            limit,
        } = select;
        self.with(with.as_ref(), depth);
        self.one_select(select, depth);
        for compound in compounds.iter().flatten() {
            self.one_select(&compound.select, depth);
        }
        self.sorted(order_by.unwrap_or_default(), depth);
        self.limit(*limit, depth);
    }

    /// Opens the scope of a WITH. It closes when all tasks added from here on are done.
    pub(super) fn with(&mut self, with: Option<&'b With<'b>>, depth: usize) {
        let Some(With { recursive: _, ctes }) = with else {
            return;
        };
        self.tasks.push(Task::Leave);
        let mut names = Vec::with_capacity(ctes.len());
        for CommonTableExpr {
            tbl_name,
            columns,
            materialized: _,
            select,
        } in *ctes
        {
            let (within, body) = (self.reads.within(), self.reads.body());
            names.push((self.plain_object(tbl_name, Use::Make).name, body));
            self.columns(columns.unwrap_or_default());
            // The last task that is pushed is done first.
            self.tasks.push(Task::Within(within));
            self.later(select, depth);
            self.tasks.push(Task::Within(body));
        }
        self.scopes.push(names);
    }

    fn one_select(&mut self, select: &'b OneSelect<'b>, depth: usize) {
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
                self.results(columns, depth);
                self.from(from.as_ref(), depth);
                self.exprs(where_clause.iter().chain(having.iter()).copied(), depth);
                self.exprs(group_by.iter().copied().flatten(), depth);
                for window in window_clause.iter().copied().flatten() {
                    self.harmless(window.name.0);
                    self.window(&window.window, depth);
                }
            }
            OneSelect::Values(rows) => {
                for row in rows {
                    self.exprs(row, depth);
                }
            }
        }
    }

    pub(super) fn results(&mut self, columns: &'b [ResultColumn<'b>], depth: usize) {
        for column in columns {
            match column {
                ResultColumn::Expr(expr, alias) => {
                    self.expr(expr, depth);
                    self.alias(alias.as_ref());
                }
                ResultColumn::Star => {}
                ResultColumn::TableStar(table) => self.harmless(table.0),
            }
        }
    }

    fn alias(&mut self, alias: Option<&'b As<'b>>) {
        match alias {
            Some(As::As(name) | As::Elided(name)) => self.harmless(name.0),
            None => {}
        }
    }

    /// Walks through a FROM clause. The recursion is as deep as parentheses are nested.
    pub(super) fn from(&mut self, from: Option<&'b FromClause<'b>>, depth: usize) {
        let Some(from) = from else {
            return;
        };
        if let Some(table) = from.select {
            self.source(table, depth);
        }
        for JoinedSelectTable {
            operator: _,
            table,
            constraint,
        } in from.joins.iter().flatten()
        {
            self.source(table, depth);
            match constraint {
                Some(JoinConstraint::On(expr)) => self.expr(expr, depth),
                Some(JoinConstraint::Using(columns)) => self.harmless_all(columns.iter()),
                None => {}
            }
        }
    }

    fn source(&mut self, table: &'b SelectTable<'b>, depth: usize) {
        match table {
            SelectTable::Table(name, alias, indexed) => {
                self.read(name);
                self.alias(alias.as_ref());
                self.indexed(indexed.as_ref());
            }
            SelectTable::TableCall(name, args, alias) => {
                self.call(name);
                self.exprs(args.iter().copied().flatten(), depth);
                self.alias(alias.as_ref());
            }
            SelectTable::Select(select, alias) => {
                self.later(select, depth);
                self.alias(alias.as_ref());
            }
            SelectTable::Sub(from, alias) => {
                self.from(Some(from), depth);
                self.alias(alias.as_ref());
            }
        }
    }

    pub(super) fn indexed(&mut self, indexed: Option<&'b Indexed<'b>>) {
        match indexed {
            Some(Indexed::IndexedBy(index)) => drop(self.plain_object(index, Use::Index)),
            Some(Indexed::NotIndexed) | None => {}
        }
    }

    pub(super) fn columns(&mut self, columns: &'b [IndexedColumn<'b>]) {
        for IndexedColumn {
            col_name,
            collation_name,
            order: _,
        } in columns
        {
            self.harmless(col_name.0);
            self.harmless_all(collation_name);
        }
    }

    fn limit(&mut self, limit: Option<&'b Limit<'b>>, depth: usize) {
        if let Some(Limit { expr, offset }) = limit {
            self.expr(expr, depth);
            self.exprs(offset, depth);
        }
    }
}
