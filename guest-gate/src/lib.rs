//! The gate guest: judges SQL before SQLite runs it. This file has only the component's export.

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

/// The component's side of `svc:gate`. Absent from native builds, whose linkers reject the names of its exports.
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

    struct GateComponent;

    impl Guest for GateComponent {
        fn check(sql: String, purpose: Purpose) -> Result<Vec<Statement>, Refusal> {
            let purpose = match purpose {
                Purpose::Action => statement::SqlPurpose::Action,
                Purpose::Query => statement::SqlPurpose::Query,
                Purpose::Schema => statement::SqlPurpose::Schema,
                Purpose::Migration => statement::SqlPurpose::Migration,
            };
            match statement::check(&sql, purpose) {
                Ok(statements) => Ok(statements.into_iter().map(to_wit_statement).collect()),
                Err(refusal) => Err(to_wit_refusal(refusal)),
            }
        }
    }

    fn to_wit_statement(statement: statement::AllowedStatement) -> Statement {
        Statement {
            kind: match statement.kind {
                statement::StatementKind::Read => Kind::Read,
                statement::StatementKind::Write => Kind::Write,
                statement::StatementKind::Migration => Kind::Migration,
            },
            binds: statement.binds,
            returns_rows: statement.returns_rows,
            tables: statement.tables.into_iter().map(to_wit_table).collect(),
            view: statement.view,
            parts: statement.parts,
            start: statement.start,
            end: statement.end,
        }
    }

    fn to_wit_table(table: statement::NamedTable) -> Table {
        Table {
            name: table.name,
            times: table.times,
        }
    }

    fn to_wit_refusal(refusal: statement::SqlRefusal) -> Refusal {
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

    export!(GateComponent);
}
