//! Walk through a statement's tree: every name is checked for its use.
//!
//! Expressions and selects wait in a list instead of on the stack, so that deep nesting cannot overflow it. All `match`es are
//! exhaustive: a new kind of statement or expression in the parser does not compile until it is handled here.

mod definition;
mod expression;
mod reads;
mod select;
mod statement;
mod stored;

use sqlite3_parser::ast::{Expr, Name, QualifiedName, Select, Stmt};
use sqlite3_parser::dialect::TokenType;

use crate::names::{self, NameUse};
use crate::parse::{has_placeholder, token_index};
use crate::position::LocatedRefusalReason;
use crate::statement::SqlPurpose;
use crate::token::{Token, TokenKind, unquote};
use reads::{StatementOrCte, TableReadsByBody};

/// SQLite's limit of an expression's depth.
const MAX_EXPRESSION_DEPTH: usize = 1_000;

/// Findings of a walk.
#[derive(Debug)]
pub(crate) struct WalkResult {
    pub(crate) kind: crate::statement::StatementKind,
    pub(crate) returns_rows: bool,
    pub(crate) makes_table: bool,
    /// Tables in order of first appearance, each once.
    pub(crate) tables: Vec<crate::statement::NamedTable>,
    /// The view that the statement creates, in lower case.
    pub(crate) view: Option<String>,
    /// Size of the statement.
    pub(crate) parts: u32,
}

/// A task of the walk.
enum WalkTask<'b> {
    Expr(&'b Expr<'b>, usize),
    Select(&'b Select<'b>, usize),
    /// Closes the scope of the innermost WITH.
    LeaveScope,
    /// Enters this body: the following tasks belong to it.
    EnterBody(StatementOrCte),
    /// Sets whether the following expressions are stored by a table or an index.
    SetStored(bool),
}

struct SyntaxTreeWalk<'s, 'b> {
    sql: &'s str,
    tokens: &'s [Token],
    purpose: SqlPurpose,
    tasks: Vec<WalkTask<'b>>,
    /// Scopes of common table expressions by name, innermost last.
    scopes: Vec<Vec<(String, StatementOrCte)>>,
    /// Whether the walk has visited each token.
    seen: Vec<bool>,
    reads: TableReadsByBody,
    /// Whether the expression is stored by a table or an index.
    stored: bool,
    /// The first fault in the order of the text.
    fault: Option<LocatedRefusalReason>,
}

/// A name of the tree: the index of its token, and its meaning.
struct ResolvedName {
    token: usize,
    name: String,
}

/// Walks through the whole statement.
pub(crate) fn walk<'b>(
    sql: &str,
    tokens: &[Token],
    purpose: SqlPurpose,
    statement: &'b Stmt<'b>,
) -> Result<WalkResult, LocatedRefusalReason> {
    let mut walk = SyntaxTreeWalk {
        sql,
        tokens,
        purpose,
        tasks: Vec::new(),
        scopes: Vec::new(),
        seen: vec![false; tokens.len()],
        reads: TableReadsByBody::default(),
        stored: false,
        fault: None,
    };
    let mut found = walk.walk_statement(statement);
    walk.run_tasks();
    if let Some(fault) = walk.fault {
        return Err(fault);
    }
    // The parser drops some tokens from the tree, and those were not judged. Names of constraints are dropped, too, and harmless.
    let unseen = tokens.iter().enumerate().find(|(index, token)| {
        let names_constraint = index
            .checked_sub(1)
            .is_some_and(|before| tokens[before].is(TokenType::TK_CONSTRAINT));
        !walk.seen[*index] && !names_constraint && has_placeholder(token, sql)
    });
    if let Some((_, token)) = unseen {
        let reason = "This part of the statement is not understood: write it in another way.";
        return Err(LocatedRefusalReason::new(token.start, reason));
    }
    let start = tokens.first().map_or(0, |token| token.start);
    (found.tables, found.parts) = walk
        .reads
        .finish()
        .map_err(|reason| LocatedRefusalReason::new(start, reason))?;
    Ok(found)
}

impl<'b> SyntaxTreeWalk<'_, 'b> {
    fn run_tasks(&mut self) {
        while let Some(task) = self.tasks.pop() {
            match task {
                WalkTask::Expr(expr, depth) => {
                    if depth > MAX_EXPRESSION_DEPTH {
                        let reason = format!(
                            "An expression of this statement is deeper than {MAX_EXPRESSION_DEPTH} levels: shorten its chains of operators."
                        );
                        self.refuse(0, reason);
                        return;
                    }
                    self.reads.count_part();
                    self.walk_expression(expr, depth);
                }
                WalkTask::Select(select, depth) => {
                    self.reads.count_part();
                    self.walk_select(select, depth);
                }
                WalkTask::LeaveScope => drop(self.scopes.pop()),
                WalkTask::EnterBody(body) => self.reads.enter(body),
                WalkTask::SetStored(stored) => self.stored = stored,
            }
        }
    }

    fn push_expression(&mut self, expr: &'b Expr<'b>, depth: usize) {
        self.tasks.push(WalkTask::Expr(expr, depth));
    }

    fn push_expressions(&mut self, exprs: impl IntoIterator<Item = &'b Expr<'b>>, depth: usize) {
        self.tasks
            .extend(exprs.into_iter().map(|expr| WalkTask::Expr(expr, depth)));
    }

    fn push_select(&mut self, select: &'b Select<'b>, depth: usize) {
        self.tasks.push(WalkTask::Select(select, depth));
    }

    /// Refuses the token; the first fault in the text wins.
    fn refuse(&mut self, token: usize, reason: impl Into<String>) {
        let offset = self
            .tokens
            .get(token)
            .or(self.tokens.last())
            .map_or(0, |token| token.start);
        if self
            .fault
            .as_ref()
            .is_none_or(|first| offset < first.offset)
        {
            self.fault = Some(LocatedRefusalReason::new(offset, reason));
        }
    }

    /// Refuses the first token for which `right` holds; `right` gets the tokens and an index.
    fn refuse_where(&mut self, right: impl Fn(&[Token], usize) -> bool, reason: impl Into<String>) {
        let token = (0..self.tokens.len()).find(|index| right(self.tokens, *index));
        self.refuse(token.unwrap_or(0), reason);
    }

    /// Refuses the first token outside of parentheses for which `right` holds.
    fn refuse_outside_parentheses(
        &mut self,
        right: impl Fn(&Token) -> bool,
        reason: impl Into<String>,
    ) {
        let mut open = 0_usize;
        let token = self.tokens.iter().position(|token| {
            match token.kind {
                TokenKind::Open => open += 1,
                TokenKind::Close => open = open.saturating_sub(1),
                _ => {}
            }
            open == 0 && right(token)
        });
        self.refuse(token.unwrap_or(0), reason);
    }

    /// Marks the token of a name as visited, and returns the name's meaning.
    fn resolve_name(&mut self, raw: &str) -> ResolvedName {
        let found = match token_index(raw) {
            Some(token) => Some(token),
            None => self
                .tokens
                .iter()
                .position(|token| token.text(self.sql) == raw),
        };
        let text = found
            .and_then(|token| self.tokens.get(token))
            .map_or(raw, |token| token.text(self.sql));
        let token = found.unwrap_or(0);
        if let Some(seen) = self.seen.get_mut(token) {
            *seen = true;
        }
        ResolvedName {
            token,
            name: unquote(text).to_ascii_lowercase(),
        }
    }

    /// Marks a name that needs no check: a column, an alias, a window, a constraint.
    fn mark_harmless_name(&mut self, raw: &str) {
        for word in raw.split_ascii_whitespace() {
            if let Some(seen) = token_index(word).and_then(|token| self.seen.get_mut(token)) {
                *seen = true;
            }
        }
    }

    fn mark_harmless_names(&mut self, names: impl IntoIterator<Item = &'b Name<'b>>) {
        for name in names {
            self.mark_harmless_name(name.0);
        }
    }

    fn check_schema(&mut self, name: &Name<'b>) {
        let schema = self.resolve_name(name.0);
        if let Some(reason) = names::schema_fault(&schema.name) {
            self.refuse(schema.token, reason);
        }
    }

    /// Checks an object with an optional schema and alias.
    fn check_object(&mut self, name: &QualifiedName<'b>, used: NameUse) -> ResolvedName {
        let QualifiedName {
            db_name,
            name,
            alias,
        } = name;
        if let Some(schema) = db_name {
            self.check_schema(schema);
        }
        if let Some(alias) = alias {
            self.mark_harmless_name(alias.0);
        }
        self.check_plain_object(name, used)
    }

    fn check_plain_object(&mut self, name: &Name<'b>, used: NameUse) -> ResolvedName {
        let named = self.resolve_name(name.0);
        if let Some(reason) = names::name_fault(&named.name, used) {
            self.refuse(named.token, reason);
        }
        named
    }

    /// Checks a table that is written, created or altered; returns its name.
    fn check_table(&mut self, name: &QualifiedName<'b>, used: NameUse) -> String {
        let named = self.check_object(name, used);
        self.reads.add_table(named.token, named.name.clone());
        named.name
    }

    fn check_plain_table(&mut self, name: &Name<'b>, used: NameUse) {
        let named = self.check_plain_object(name, used);
        self.reads.add_table(named.token, named.name);
    }

    /// Checks an object that is read: a table, a view, a common table expression or a table-valued function.
    fn check_read(&mut self, name: &QualifiedName<'b>) {
        let named = self.check_object(name, NameUse::Read);
        let mut commons = self.scopes.iter().rev().flatten();
        let common = match name.db_name {
            Some(_) => None,
            None => commons.find(|(common, _)| *common == named.name),
        };
        if let Some((_, body)) = common {
            self.reads.add_cte(*body);
        } else if crate::functions::TABLE_VALUED_FUNCTIONS.contains(&named.name.as_str()) {
            self.reads.add_function();
        } else {
            self.reads.add_table(named.token, named.name);
        }
    }
}
