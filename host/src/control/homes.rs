//! Where each table is at home, and whose it is.
//!
//! An installation that passes one machine divides its rows by home: what every node must know, what goes where its project
//! goes, and what a node has to itself. So no statement, no foreign key and no cascade is about tables of two homes. Debug
//! builds refuse such a statement (`crossing.rs`), and `tests/http/tidy_tables.rs` looks at references and owners.

/// Where rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Home {
    /// Every node needs it to answer a page, or to decide who may.
    Global,
    /// It is needed where its project is.
    Project,
    /// It is a node's own: it changes often, and matters little elsewhere.
    Node,
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name of the table.
    pub name: &'static str,
    /// The part of the host that writes it.
    pub owner: &'static str,
    /// Where its rows are.
    pub home: Home,
}

macro_rules! tables {
    ($($home:ident { $($owner:literal: $($name:literal)+;)+ })+) => {
        /// Every table of the control database and of the counters.
        pub const TABLES: &[Table] = &[$($($(
            Table { name: $name, owner: $owner, home: Home::$home },
        )+)+)+];
    };
}

tables! {
    Global {
        "workspaces": "workspaces" "keys" "users" "memberships" "subscriptions" "ended_workspaces";
        "projects": "projects";
        "deployments": "deployments" "ended_shares" "runtimes";
        "backends": "backends";
        "payments": "payment_endings";
        "stripe": "payment_events" "payment_references";
        "control": "audit" "secrets";
    }
    Project {
        "deployments": "revisions" "releases";
        "backends": "ledger" "actions";
        "visitors": "visitors" "visitor_sessions";
        "payments": "payment_products" "payment_prices" "payment_sessions" "payment_mirrors";
    }
    Node {
        "deployments": "garbage" "rerender" "reports";
        "edge": "purges";
        "control": "idempotency" "operator_events" "visits" "visit_flushes";
    }
}
