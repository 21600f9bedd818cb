//! Releases of a project: pages, actions and migrations in one call, beside the rendering of the slowest page alone.

use serde_json::{Value, json};

use super::owner::{Owner, text};
use super::report::{Goals, median, print_line, print_title, quantile};
use super::server::Bench;
use super::source_generator::SourceGenerator;

const PAGES: usize = 20;
const ACTIONS: usize = 50;
const MIGRATIONS: usize = 3;
const ROUNDS: usize = 15;
const BYTES: usize = 8 * 1024;
/// Size of the page that takes longest.
const LARGEST_BYTES: usize = 256 * 1024;

/// Measures releases. What a release may take is 1.2 times its slowest rendering, and 30 ms.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    let (svc, credential) = bench.start_owned("project-releases")?;
    let mut author = SourceGenerator::new(12);
    let mut owner = Owner::new(&svc, &credential)?;
    owner.create_project("Bench")?;
    print_title(&format!(
        "Releasing {PAGES} pages, {ACTIONS} actions and {MIGRATIONS} migrations, {ROUNDS} times"
    ))?;
    let mut live = vec![Value::Null; PAGES];
    let (mut rendered, mut released) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let pages: Vec<Value> = (0..PAGES)
            .zip(&live)
            .map(|(number, live)| page(&mut author, number, live))
            .collect();
        // A trial of a new page renders it, stores nothing, and compares it with nothing.
        let mut alone = pages[0].clone();
        alone["slug"] = "not-released".into();
        alone["expected_active_revision_id"] = Value::Null;
        let trial = json!({ "pages": [alone], "dry_run": true });
        let (_, alone) = owner.send("POST", "/release", &trial)?;
        let release = json!({
            "migrations": migrations(round),
            "actions": actions(round),
            "pages": pages,
        });
        let (made, whole) = owner.send("POST", "/release", &release)?;
        for (live, page) in live
            .iter_mut()
            .zip(made["pages"].as_array().into_iter().flatten())
        {
            *live = text(page, "revision_id")?.into();
        }
        // The first one makes the backend, too.
        if round > 0 {
            rendered.push(alone);
            released.push(whole);
        }
    }
    print_line(&format!("{:16} {:>8} {:>8}", "", "p50 ms", "p99 ms"))?;
    for (what, took) in [("slowest render", &rendered), ("release", &released)] {
        print_line(&format!(
            "{what:16} {:>8.1} {:>8.1}",
            quantile(took, 0.5),
            quantile(took, 0.99)
        ))?;
    }
    let bound = 1.2 * median(&rendered) + 30.0;
    goals.at_most("a release: p50, ms", median(&released), bound);
    Ok(())
}

fn page(author: &mut SourceGenerator, number: usize, live: &Value) -> Value {
    let bytes = match number {
        0 => LARGEST_BYTES,
        _ => BYTES,
    };
    json!({
        "slug": format!("released-{number}"),
        "type": "markdown",
        "content": author.markdown(bytes),
        "expected_active_revision_id": live,
    })
}

fn migrations(round: usize) -> Vec<Value> {
    let tables = (0..MIGRATIONS).map(|number| {
        let ddl =
            format!("CREATE TABLE round_{round}_{number} (id INTEGER PRIMARY KEY, name TEXT)");
        json!({ "ddl": ddl })
    });
    tables.collect()
}

fn actions(round: usize) -> Vec<Value> {
    let actions = (0..ACTIONS).map(|number| {
        let sql = format!(
            "SELECT id, name FROM round_{round}_{} WHERE id > :after ORDER BY id LIMIT {}",
            number % MIGRATIONS,
            number + 1
        );
        json!({ "name": format!("action_{number}"), "sql": sql })
    });
    actions.collect()
}
