//! Walk through the definitions of tables, indexes and views.

use sqlite3_parser::ast::{
    ColumnConstraint, ColumnDefinition, CreateTableBody, ForeignKeyClause, NamedColumnConstraint,
    NamedTableConstraint, RefArg, TableConstraint,
};
use sqlite3_parser::dialect::TokenType;

use super::Walk;
use crate::names::Use;

/// Depth outside of expressions.
const TOP: usize = 1;

impl<'b> Walk<'_, 'b> {
    pub(super) fn table_body(&mut self, body: &'b CreateTableBody<'b>) {
        match body {
            CreateTableBody::ColumnsAndConstraints {
                columns,
                constraints,
                flags: _,
            } => {
                for column in columns {
                    self.column(column);
                }
                for constraint in constraints.iter().copied().flatten() {
                    self.table_constraint(constraint);
                }
            }
            CreateTableBody::AsSelect(select) => {
                self.later(select, TOP);
                self.refuse_where(
                    |tokens, index| tokens[index].is(TokenType::TK_AS),
                    "CREATE TABLE … AS SELECT is not allowed: name the columns, and fill them with INSERT … SELECT.",
                );
            }
        }
    }

    pub(super) fn column(&mut self, column: &'b ColumnDefinition<'b>) {
        let ColumnDefinition {
            col_name,
            col_type,
            constraints,
            flags: _,
        } = column;
        self.harmless(col_name.0);
        self.type_name(col_type.as_ref(), TOP);
        for NamedColumnConstraint { name, constraint } in *constraints {
            self.harmless_all(name);
            match constraint {
                ColumnConstraint::Check(expr) => self.stored(expr, TOP),
                ColumnConstraint::Default(expr) => self.expr(expr, TOP),
                ColumnConstraint::Collate { collation_name } => self.harmless(collation_name.0),
                ColumnConstraint::ForeignKey {
                    clause,
                    defer_clause: _,
                } => self.foreign_key(clause),
                ColumnConstraint::Generated { expr, typ } => {
                    self.stored(expr, TOP);
                    if let Some(kind) = typ {
                        self.harmless(kind.0);
                    }
                }
                ColumnConstraint::PrimaryKey { .. }
                | ColumnConstraint::NotNull { .. }
                | ColumnConstraint::Unique(_)
                | ColumnConstraint::Defer(_) => {}
            }
        }
    }

    fn table_constraint(&mut self, constraint: &'b NamedTableConstraint<'b>) {
        let NamedTableConstraint { name, constraint } = constraint;
        self.harmless_all(name);
        match constraint {
            TableConstraint::PrimaryKey {
                columns,
                auto_increment: _,
                conflict_clause: _,
            }
            | TableConstraint::Unique {
                columns,
                conflict_clause: _,
            } => self.sorted(columns, TOP),
            TableConstraint::Check(expr, _) => self.stored(expr, TOP),
            TableConstraint::ForeignKey {
                columns,
                clause,
                defer_clause: _,
            } => {
                self.columns(columns);
                self.foreign_key(clause);
            }
        }
    }

    fn foreign_key(&mut self, clause: &'b ForeignKeyClause<'b>) {
        let ForeignKeyClause {
            tbl_name,
            columns,
            args,
        } = clause;
        self.plain_table(tbl_name, Use::Build);
        self.columns(columns.unwrap_or_default());
        for arg in *args {
            match arg {
                RefArg::Match(name) => self.harmless(name.0),
                RefArg::OnDelete(_) | RefArg::OnInsert(_) | RefArg::OnUpdate(_) => {}
            }
        }
    }
}
