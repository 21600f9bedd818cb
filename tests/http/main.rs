//! The service over the wire: each subject of its contract in a file of its own.

mod account;
mod actions;
mod backend_crashes;
mod backends;
mod backup_crashes;
mod backups;
mod batches;
mod bindings;
mod bounds;
mod breadth;
mod commands;
mod crashes;
mod ddl;
mod diagrams;
mod documents;
mod dry_runs;
mod durability;
mod edge;
mod errors;
mod expiry;
mod exports;
mod frontends;
mod guest_crashes;
mod guests;
mod guests_built_in;
mod guests_stored;
mod guides;
mod hostile;
mod hostile_guests;
mod hostile_sql;
mod hosting;
mod hosts;
mod house;
mod idempotency;
mod landing;
mod limits;
mod mcp;
mod migrations;
mod one_time;
mod openapi;
mod openapi_answers;
mod openapi_examples;
mod openapi_links;
mod openapi_parts;
mod openapi_recorded;
mod openapi_rules;
mod operations;
mod operators;
mod owners;
mod page_heads;
mod passwords;
mod projects;
mod property;
mod queries;
mod quick_share;
mod readme;
mod releases;
mod rendering;
mod restores;
mod rooms;
mod secrecy;
mod serving;
mod sharing;
mod sharing_crashes;
mod sound;
mod statements;
mod tidy;
mod tidy_order;
mod tidy_tables;
mod values;
mod visits;

/// The `svc` command that cargo built beside these tests.
fn svc() -> svc_tests::Binary {
    svc_tests::Binary::new(env!("CARGO_BIN_EXE_svc-server"))
}
