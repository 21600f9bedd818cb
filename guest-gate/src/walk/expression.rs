//! Walk through expressions.

use sqlite3_parser::ast::{
    Expr, FrameBound, FrameClause, FunctionCallOrder, FunctionTail, LikeOperator, Literal, Over,
    SortedColumn, Type, TypeSize, Window,
};
use sqlite3_parser::dialect::TokenType;

use super::SyntaxTreeWalk;
use crate::functions;
use crate::names::{self, NameUse};

impl<'b> SyntaxTreeWalk<'_, 'b> {
    pub(super) fn walk_expression(&mut self, expr: &'b Expr<'b>, depth: usize) {
        let below = depth + 1;
        match expr {
            Expr::Between {
                lhs,
                not: _,
                start,
                end,
            } => self.push_expressions([*lhs, *start, *end], below),
            Expr::Binary(left, _, right) => self.push_expressions([*left, *right], below),
            Expr::Case {
                base,
                when_then_pairs,
                else_expr,
            } => {
                self.push_expressions(base.iter().chain(else_expr.iter()).copied(), below);
                for (when, then) in *when_then_pairs {
                    self.push_expressions([when, then], below);
                }
            }
            Expr::Cast { expr, type_name } => {
                self.push_expression(expr, below);
                self.walk_type_name(type_name.as_ref(), below);
            }
            Expr::Collate(expr, collation) => {
                self.push_expression(expr, below);
                self.mark_harmless_name(collation);
            }
            Expr::DoublyQualified(schema, table, column) => {
                self.check_schema(schema);
                self.mark_harmless_names([table, column]);
            }
            Expr::Exists(select) | Expr::Subquery(select) => self.push_select(select, below),
            Expr::FunctionCall {
                name,
                distinctness: _,
                args,
                order_by,
                filter_over,
            } => {
                self.check_function(name.0);
                if self.stored {
                    self.check_stored_call(name.0, args.unwrap_or_default());
                }
                self.push_expressions(args.iter().copied().flatten(), below);
                if let Some(FunctionCallOrder::SortList(columns)) = order_by {
                    self.walk_sorted_columns(columns, below);
                }
                self.walk_function_tail(filter_over.as_ref(), below);
            }
            Expr::FunctionCallStar { name, filter_over } => {
                self.check_function(name.0);
                self.walk_function_tail(filter_over.as_ref(), below);
            }
            Expr::Id(id) => self.mark_harmless_name(id.0),
            Expr::InList { lhs, not: _, rhs } => {
                self.push_expression(lhs, below);
                self.push_expressions(rhs.iter().copied().flatten(), below);
            }
            Expr::InSelect { lhs, not: _, rhs } => {
                self.push_expression(lhs, below);
                self.push_select(rhs, below);
            }
            Expr::InTable {
                lhs,
                not: _,
                rhs,
                args,
            } => {
                self.push_expression(lhs, below);
                match args {
                    Some(args) => {
                        self.check_table_call(rhs);
                        self.push_expressions(*args, below);
                    }
                    None => self.check_read(rhs),
                }
            }
            Expr::IsNull(expr) | Expr::NotNull(expr) | Expr::Unary(_, expr) => {
                self.push_expression(expr, below);
            }
            Expr::Like {
                lhs,
                not: _,
                op,
                rhs,
                escape,
            } => {
                self.check_like(*op);
                self.push_expressions([*lhs, *rhs], below);
                self.push_expressions(escape.iter().copied(), below);
            }
            Expr::Literal(literal) => self.mark_literal(literal),
            Expr::Name(name) => self.mark_harmless_name(name.0),
            // SQLite's tree has no node for parentheses around one expression.
            Expr::Parenthesized(exprs) => {
                self.push_expressions(exprs, if exprs.len() == 1 { depth } else { below });
            }
            Expr::Qualified(table, column) => self.mark_harmless_names([table, column]),
            Expr::Raise(_, message) => {
                self.push_expressions(message.iter().copied(), below);
                self.refuse_where(
                    |tokens, index| tokens[index].is(TokenType::TK_RAISE),
                    "RAISE is for triggers, which are not allowed.",
                );
            }
            Expr::Variable(name) => self.mark_harmless_name(name),
        }
    }

    fn check_function(&mut self, name: &str) {
        let function = self.resolve_name(name);
        if let Some(reason) = functions::function_fault(&function.name) {
            self.refuse(function.token, reason);
        }
    }

    /// Checks the call of a table-valued function.
    pub(super) fn check_table_call(&mut self, name: &'b sqlite3_parser::ast::QualifiedName<'b>) {
        self.reads.add_function();
        let function = self.check_object(name, NameUse::Read);
        if let Some(reason) = names::table_function_fault(&function.name) {
            self.refuse(function.token, reason);
        }
    }

    fn check_like(&mut self, operator: LikeOperator) {
        match operator {
            LikeOperator::Glob | LikeOperator::Like => {}
            LikeOperator::Match => self.refuse_where(
                |tokens, index| tokens[index].is(TokenType::TK_MATCH),
                "MATCH needs a full-text table, of which there are none: use LIKE or GLOB.",
            ),
            LikeOperator::Regexp => {
                let sql = self.sql;
                self.refuse_where(
                    |tokens, index| tokens[index].text(sql).eq_ignore_ascii_case("regexp"),
                    "REGEXP is not available: use LIKE or GLOB.",
                );
            }
        }
    }

    fn mark_literal(&mut self, literal: &Literal<'b>) {
        match literal {
            Literal::String(text) | Literal::Keyword(text) => self.mark_harmless_name(text),
            Literal::Numeric(_)
            | Literal::Blob(_)
            | Literal::Null
            | Literal::CurrentDate
            | Literal::CurrentTime
            | Literal::CurrentTimestamp => {}
        }
    }

    pub(super) fn walk_type_name(&mut self, name: Option<&'b Type<'b>>, depth: usize) {
        let Some(Type { name, size }) = name else {
            return;
        };
        self.mark_harmless_name(name);
        match size {
            Some(TypeSize::MaxSize(one)) => self.push_expression(one, depth),
            Some(TypeSize::TypeSize(one, two)) => self.push_expressions([*one, *two], depth),
            None => {}
        }
    }

    pub(super) fn walk_sorted_columns(&mut self, columns: &'b [SortedColumn<'b>], depth: usize) {
        self.push_expressions(columns.iter().map(|column| &column.expr), depth);
    }

    fn walk_function_tail(&mut self, tail: Option<&FunctionTail<'b>>, depth: usize) {
        let Some(FunctionTail {
            filter_clause,
            over_clause,
        }) = tail
        else {
            return;
        };
        self.push_expressions(filter_clause.iter().copied(), depth);
        match over_clause {
            Some(Over::Window(window)) => self.walk_window(window, depth),
            Some(Over::Name(name)) => self.mark_harmless_name(name.0),
            None => {}
        }
    }

    pub(super) fn walk_window(&mut self, window: &'b Window<'b>, depth: usize) {
        let Window {
            base,
            partition_by,
            order_by,
            frame_clause,
        } = window;
        self.mark_harmless_names(base);
        self.push_expressions(partition_by.iter().copied().flatten(), depth);
        self.walk_sorted_columns(order_by.unwrap_or_default(), depth);
        if let Some(FrameClause {
            mode: _,
            start,
            end,
            exclude: _,
        }) = frame_clause
        {
            for bound in [Some(start), end.as_ref()].into_iter().flatten() {
                match bound {
                    FrameBound::Following(expr) | FrameBound::Preceding(expr) => {
                        self.push_expression(expr, depth);
                    }
                    FrameBound::CurrentRow
                    | FrameBound::UnboundedFollowing
                    | FrameBound::UnboundedPreceding => {}
                }
            }
        }
    }
}
