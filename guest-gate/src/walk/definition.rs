//! Walk through the definitions of tables, indexes and views.

use sqlite3_parser::ast::{
    ColumnConstraint, ColumnDefinition, CreateTableBody, ForeignKeyClause, NamedColumnConstraint,
    NamedTableConstraint, RefArg, TableConstraint,
};
use sqlite3_parser::dialect::TokenType;

use super::SyntaxTreeWalk;
use crate::names::NameUse;

/// Depth outside of expressions.
const OUTSIDE_EXPRESSION_DEPTH: usize = 1;

impl<'b> SyntaxTreeWalk<'_, 'b> {
    pub(super) fn walk_table_body(&mut self, body: &'b CreateTableBody<'b>) {
        match body {
            CreateTableBody::ColumnsAndConstraints {
                columns,
                constraints,
                flags: _,
            } => {
                for column in columns {
                    self.walk_column(column);
                }
                for constraint in constraints.iter().copied().flatten() {
                    self.walk_table_constraint(constraint);
                }
            }
            CreateTableBody::AsSelect(select) => {
                self.push_select(select, OUTSIDE_EXPRESSION_DEPTH);
                self.refuse_where(
                    |tokens, index| tokens[index].is(TokenType::TK_AS),
                    "CREATE TABLE … AS SELECT is not allowed: name the columns, and fill them with INSERT … SELECT.",
                );
            }
        }
    }

    pub(super) fn walk_column(&mut self, column: &'b ColumnDefinition<'b>) {
        let ColumnDefinition {
            col_name,
            col_type,
            constraints,
            flags: _,
        } = column;
        self.mark_harmless_name(col_name.0);
        self.walk_type_name(col_type.as_ref(), OUTSIDE_EXPRESSION_DEPTH);
        for NamedColumnConstraint { name, constraint } in *constraints {
            self.mark_harmless_names(name);
            match constraint {
                ColumnConstraint::Check(expr) => self.walk_stored(expr, OUTSIDE_EXPRESSION_DEPTH),
                ColumnConstraint::Default(expr) => {
                    self.push_expression(expr, OUTSIDE_EXPRESSION_DEPTH);
                }
                ColumnConstraint::Collate { collation_name } => {
                    self.mark_harmless_name(collation_name.0);
                }
                ColumnConstraint::ForeignKey {
                    clause,
                    defer_clause: _,
                } => self.walk_foreign_key(clause),
                ColumnConstraint::Generated { expr, typ } => {
                    self.walk_stored(expr, OUTSIDE_EXPRESSION_DEPTH);
                    if let Some(kind) = typ {
                        self.mark_harmless_name(kind.0);
                    }
                }
                ColumnConstraint::PrimaryKey { .. }
                | ColumnConstraint::NotNull { .. }
                | ColumnConstraint::Unique(_)
                | ColumnConstraint::Defer(_) => {}
            }
        }
    }

    fn walk_table_constraint(&mut self, constraint: &'b NamedTableConstraint<'b>) {
        let NamedTableConstraint { name, constraint } = constraint;
        self.mark_harmless_names(name);
        match constraint {
            TableConstraint::PrimaryKey {
                columns,
                auto_increment: _,
                conflict_clause: _,
            }
            | TableConstraint::Unique {
                columns,
                conflict_clause: _,
            } => self.walk_sorted_columns(columns, OUTSIDE_EXPRESSION_DEPTH),
            TableConstraint::Check(expr, _) => self.walk_stored(expr, OUTSIDE_EXPRESSION_DEPTH),
            TableConstraint::ForeignKey {
                columns,
                clause,
                defer_clause: _,
            } => {
                self.mark_columns(columns);
                self.walk_foreign_key(clause);
            }
        }
    }

    fn walk_foreign_key(&mut self, clause: &'b ForeignKeyClause<'b>) {
        let ForeignKeyClause {
            tbl_name,
            columns,
            args,
        } = clause;
        self.check_plain_table(tbl_name, NameUse::Refer);
        self.mark_columns(columns.unwrap_or_default());
        for arg in *args {
            match arg {
                RefArg::Match(name) => self.mark_harmless_name(name.0),
                RefArg::OnDelete(_) | RefArg::OnInsert(_) | RefArg::OnUpdate(_) => {}
            }
        }
    }
}
