//! Tables of the control database and of the counters: the owner of each, and which file it is in.
//!
//! A table is written by its owner alone (`tests/http/tidy_tables.rs`). The control database is one file with one writer, so that a
//! transaction may change any of its tables: a stored answer, an audit entry, a purge and a report are durable, and backed up,
//! together with their subject. Counters have a file of their own, which another machine need not have.

/// File of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableDatabaseFile {
    /// The control database: what the installation is, wherever it runs.
    Control,
    /// The counters: changed with every visit, and in no transaction of the control database.
    Counters,
}

#[derive(Clone, Copy, Debug)]
pub struct ControlTable {
    pub name: &'static str,
    /// The part of the host that alone writes it.
    pub owner: &'static str,
    pub file: TableDatabaseFile,
}

macro_rules! tables {
    ($($file:ident { $($owner:literal: $($name:literal)+;)+ })+) => {
        /// Every table of the control database and of the counters.
        pub const TABLES: &[ControlTable] = &[$($($(
            ControlTable { name: $name, owner: $owner, file: TableDatabaseFile::$file },
        )+)+)+];
    };
}

tables! {
    Control {
        "workspaces": "workspaces" "keys" "console_links" "users" "memberships" "subscriptions" "ended_workspaces";
        "projects": "projects" "resting_labels" "domains" "disabled_domains";
        "deployments": "deployments" "revisions" "releases" "ended_shares" "runtimes" "garbage" "rerender" "reports"
            "blobs" "file_objects" "file_owners" "file_totals" "former_revisions" "blocked" "visitor_files"
            "visitor_file_backends";
        "backends": "backends" "ledger" "actions" "ended_actions";
        "visitors": "visitors" "visitor_sessions" "passkey_accounts" "passkeys";
        "payments": "payment_products" "payment_prices" "payment_sessions" "payment_mirrors" "payment_endings"
            "payment_cookie_links";
        "stripe": "payment_events" "payment_references";
        "edge": "purges";
        "guests": "guests";
        "activity": "shared_project_hours" "shared_hour_flushes";
        "control": "audit" "secrets" "idempotency" "operator_events";
    }
    Counters {
        "control": "visits" "visit_flushes";
        "activity": "project_hours";
    }
}
