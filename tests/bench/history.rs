//! Cost of keeping the history of a database for its writes, and the time that going back and trying a change take.

use serde_json::json;

use super::items::{self, Operation};
use super::owner::{Owner, text};
use super::report::{Goals, median, print_line, print_title, quantile};
use super::rounds::{Contender, ROUND, ROUNDS, compare, print_head, print_ratio};
use super::server::Bench;
use super::tenant;

/// Connections that write: a single one, whose every write is a commit, and many, which share commits.
const CONNECTIONS: [usize; 2] = [1, 64];
const SLUG: &str = "kept";
/// Number of restores, and of changes between them.
const RESTORES: usize = 20;
/// Rows to add, so that the database has 5 MB, and the operations on it then.
pub(crate) const FILL: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3800)
    INSERT INTO items (name, note) SELECT 'Filler ' || i, hex(randomblob(500)) FROM n";
const CHANGE: &str =
    "UPDATE items SET note = hex(randomblob(500)) WHERE id > 10000 AND id % 10 = :part";

/// Measures writes, restores and dry runs.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Durable inserts with and without history, {ROUNDS} alternating rounds of {} ms",
        ROUND.as_millis()
    ))?;
    let (with, credential) = bench.start_owned("history")?;
    tenant::create_tenant(
        &mut Owner::new(&with, &credential)?,
        SLUG,
        &[("fill", FILL), ("change", CHANGE)],
    )?;
    let (without, other) = bench.start_owned_with("no-history", "history_bytes = 0\n")?;
    tenant::create_tenant(&mut Owner::new(&without, &other)?, SLUG, &[])?;
    print_head("connections")?;
    for connections in CONNECTIONS {
        let calls = [&with, &without].map(|server| {
            let calls = Operation::Insert.calls(server.address, SLUG);
            (calls, items::undo_request(server.address, SLUG))
        });
        let contenders = [
            Contender::new(&with, &calls[0].0).with_undo(&calls[0].1),
            Contender::new(&without, &calls[1].0).with_undo(&calls[1].1),
        ];
        let [kept, bare] = compare(&contenders, connections)?;
        kept.print(&connections.to_string(), "with")?;
        bare.print("", "without")?;
        print_ratio(&kept, &bare, "ratio")?;
        let what =
            format!("inserts over {connections}: what one with history costs, of one without");
        goals.at_most(&what, 1.0 / kept.ratio(&bare), 1.3);
    }
    drop(without);

    let mut owner = Owner::new(&with, &credential)?;
    owner.select_first_project()?;
    let call = |action, params| {
        tenant::call_json(&with, &items::call(with.address, SLUG, action, &params)).map(|_| ())
    };
    call("fill", json!({}))?;
    let (history, _) = owner.send("GET", "/backend/history?limit=1", &json!({}))?;
    let mut at = text(&history, "newest")?;
    for part in 0..10 {
        call("change", json!({ "part": part }))?;
    }
    let (detail, _) = owner.send("GET", "/backend", &json!({}))?;
    let mut took = Vec::new();
    for _ in 0..RESTORES {
        let restore = json!({ "at": at });
        let (restored, millis) = owner.send("POST", "/backend/restore", &restore)?;
        at = text(&restored, "previous")?;
        took.push(millis);
    }
    let (history, _) = owner.send("GET", "/backend/history?limit=1", &json!({}))?;
    print_line(&format!(
        "\nRestore of {} bytes: p50 {:.1} ms, worst {:.1} ms; the history has {} bytes.",
        detail["database"]["bytes"],
        median(&took),
        quantile(&took, 1.0),
        history["bytes"],
    ))?;
    goals.at_most("restore of 5 MB: p50, ms", median(&took), 100.0);

    let mut took = Vec::new();
    for _ in 0..RESTORES {
        let ddl = json!({ "ddl": "CREATE TABLE more (id INTEGER PRIMARY KEY, note TEXT)" });
        let (_, millis) = owner.send("PATCH", "/backend?dry_run=true", &ddl)?;
        took.push(millis);
    }
    print_line(&format!(
        "Dry run of a migration of it: p50 {:.1} ms, worst {:.1} ms.",
        median(&took),
        quantile(&took, 1.0),
    ))?;
    goals.at_most("dry run at 5 MB: p50, ms", median(&took), 50.0);
    Ok(())
}
