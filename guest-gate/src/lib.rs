//! The gate guest: judges SQL before SQLite sees it. This file is the component's export and nothing else.

mod class;
pub mod functions;
mod hints;
pub mod names;
pub mod params;
pub mod parse;
pub mod position;
pub mod statement;
mod token;
mod walk;

/// The component's side of `svc:gate`. Absent from native builds, whose linkers cannot spell its exports' names.
#[cfg(target_family = "wasm")]
mod component {
    #![allow(
        unreachable_pub,
        unsafe_code,
        reason = "generated: the interface is documented in wit/gate"
    )]

    use crate::statement;

    wit_bindgen::generate!({ path: "../wit/gate", world: "gate" });

    use exports::svc::gate::judge::{Guest, Purpose, Refusal, Statement};
    use svc::gate::types::{Kind, Place, Table};

    struct Gate;

    impl Guest for Gate {
        fn check(sql: String, purpose: Purpose) -> Result<Vec<Statement>, Refusal> {
            let purpose = match purpose {
                Purpose::Action => statement::Purpose::Action,
                Purpose::Query => statement::Purpose::Query,
                Purpose::Schema => statement::Purpose::Schema,
                Purpose::Migration => statement::Purpose::Migration,
            };
            match statement::check(&sql, purpose) {
                Ok(statements) => Ok(statements.into_iter().map(allowed).collect()),
                Err(refusal) => Err(refused(refusal)),
            }
        }
    }

    fn allowed(statement: statement::Statement) -> Statement {
        Statement {
            kind: match statement.kind {
                statement::StatementKind::Read => Kind::Read,
                statement::StatementKind::Write => Kind::Write,
                statement::StatementKind::Migration => Kind::Migration,
            },
            binds: statement.binds,
            returns_rows: statement.returns_rows,
            tables: statement.tables.into_iter().map(table).collect(),
            view: statement.view,
            parts: statement.parts,
            start: statement.start,
            end: statement.end,
        }
    }

    fn table(table: statement::Table) -> Table {
        Table {
            name: table.name,
            times: table.times,
        }
    }

    fn refused(refusal: statement::Refusal) -> Refusal {
        Refusal {
            reason: refusal.reason,
            statement: refusal.statement,
            place: Place {
                line: refusal.position.line,
                column: refusal.position.column,
                offset: refusal.position.offset,
            },
        }
    }

    export!(Gate);
}
