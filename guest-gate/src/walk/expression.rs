//! Walk through expressions.

use sqlite3_parser::ast::{
    Expr, FrameBound, FrameClause, FunctionCallOrder, FunctionTail, LikeOperator, Literal, Over,
    SortedColumn, Type, TypeSize, Window,
};
use sqlite3_parser::dialect::TokenType;

use super::Walk;
use crate::functions;
use crate::names::{self, Use};

impl<'b> Walk<'_, 'b> {
    pub(super) fn expression(&mut self, expr: &'b Expr<'b>, depth: usize) {
        let below = depth + 1;
        match expr {
            Expr::Between {
                lhs,
                not: _,
                start,
                end,
            } => self.exprs([*lhs, *start, *end], below),
            Expr::Binary(left, _, right) => self.exprs([*left, *right], below),
            Expr::Case {
                base,
                when_then_pairs,
                else_expr,
            } => {
                self.exprs(base.iter().chain(else_expr.iter()).copied(), below);
                for (when, then) in *when_then_pairs {
                    self.exprs([when, then], below);
                }
            }
            Expr::Cast { expr, type_name } => {
                self.expr(expr, below);
                self.type_name(type_name.as_ref(), below);
            }
            Expr::Collate(expr, collation) => {
                self.expr(expr, below);
                self.harmless(collation);
            }
            Expr::DoublyQualified(schema, table, column) => {
                self.schema(schema);
                self.harmless_all([table, column]);
            }
            Expr::Exists(select) | Expr::Subquery(select) => self.later(select, below),
            Expr::FunctionCall {
                name,
                distinctness: _,
                args,
                order_by,
                filter_over,
            } => {
                self.function(name.0);
                if self.stored {
                    self.stored_call(name.0, args.unwrap_or_default());
                }
                self.exprs(args.iter().copied().flatten(), below);
                if let Some(FunctionCallOrder::SortList(columns)) = order_by {
                    self.sorted(columns, below);
                }
                self.tail(filter_over.as_ref(), below);
            }
            Expr::FunctionCallStar { name, filter_over } => {
                self.function(name.0);
                self.tail(filter_over.as_ref(), below);
            }
            Expr::Id(id) => self.harmless(id.0),
            Expr::InList { lhs, not: _, rhs } => {
                self.expr(lhs, below);
                self.exprs(rhs.iter().copied().flatten(), below);
            }
            Expr::InSelect { lhs, not: _, rhs } => {
                self.expr(lhs, below);
                self.later(rhs, below);
            }
            Expr::InTable {
                lhs,
                not: _,
                rhs,
                args,
            } => {
                self.expr(lhs, below);
                match args {
                    Some(args) => {
                        self.call(rhs);
                        self.exprs(*args, below);
                    }
                    None => self.read(rhs),
                }
            }
            Expr::IsNull(expr) | Expr::NotNull(expr) | Expr::Unary(_, expr) => {
                self.expr(expr, below);
            }
            Expr::Like {
                lhs,
                not: _,
                op,
                rhs,
                escape,
            } => {
                self.like(*op);
                self.exprs([*lhs, *rhs], below);
                self.exprs(escape.iter().copied(), below);
            }
            Expr::Literal(literal) => self.literal(literal),
            Expr::Name(name) => self.harmless(name.0),
            // SQLite's tree has no node for parentheses around one expression.
            Expr::Parenthesized(exprs) => {
                self.exprs(exprs, if exprs.len() == 1 { depth } else { below });
            }
            Expr::Qualified(table, column) => self.harmless_all([table, column]),
            Expr::Raise(_, message) => {
                self.exprs(message.iter().copied(), below);
                self.refuse_where(
                    |tokens, index| tokens[index].is(TokenType::TK_RAISE),
                    "RAISE is for triggers, which are not allowed.",
                );
            }
            Expr::Variable(name) => self.harmless(name),
        }
    }

    fn function(&mut self, name: &str) {
        let function = self.named(name);
        if let Some(reason) = functions::fault(&function.name) {
            self.refuse(function.token, reason);
        }
    }

    /// Checks the call of a table-valued function.
    pub(super) fn call(&mut self, name: &'b sqlite3_parser::ast::QualifiedName<'b>) {
        self.reads.function();
        let function = self.object(name, Use::Read);
        if let Some(reason) = names::call_fault(&function.name) {
            self.refuse(function.token, reason);
        }
    }

    fn like(&mut self, operator: LikeOperator) {
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

    fn literal(&mut self, literal: &Literal<'b>) {
        match literal {
            Literal::String(text) | Literal::Keyword(text) => self.harmless(text),
            Literal::Numeric(_)
            | Literal::Blob(_)
            | Literal::Null
            | Literal::CurrentDate
            | Literal::CurrentTime
            | Literal::CurrentTimestamp => {}
        }
    }

    pub(super) fn type_name(&mut self, name: Option<&'b Type<'b>>, depth: usize) {
        let Some(Type { name, size }) = name else {
            return;
        };
        self.harmless(name);
        match size {
            Some(TypeSize::MaxSize(one)) => self.expr(one, depth),
            Some(TypeSize::TypeSize(one, two)) => self.exprs([*one, *two], depth),
            None => {}
        }
    }

    pub(super) fn sorted(&mut self, columns: &'b [SortedColumn<'b>], depth: usize) {
        self.exprs(columns.iter().map(|column| &column.expr), depth);
    }

    fn tail(&mut self, tail: Option<&FunctionTail<'b>>, depth: usize) {
        let Some(FunctionTail {
            filter_clause,
            over_clause,
        }) = tail
        else {
            return;
        };
        self.exprs(filter_clause.iter().copied(), depth);
        match over_clause {
            Some(Over::Window(window)) => self.window(window, depth),
            Some(Over::Name(name)) => self.harmless(name.0),
            None => {}
        }
    }

    pub(super) fn window(&mut self, window: &'b Window<'b>, depth: usize) {
        let Window {
            base,
            partition_by,
            order_by,
            frame_clause,
        } = window;
        self.harmless_all(base);
        self.exprs(partition_by.iter().copied().flatten(), depth);
        self.sorted(order_by.unwrap_or_default(), depth);
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
                        self.expr(expr, depth);
                    }
                    FrameBound::CurrentRow
                    | FrameBound::UnboundedFollowing
                    | FrameBound::UnboundedPreceding => {}
                }
            }
        }
    }
}
