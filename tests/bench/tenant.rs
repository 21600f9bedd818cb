//! A tenant: a project with a database of items, its actions, and a page to call them through.

use anyhow::ensure;
use serde_json::{Value, json};

use super::items;
use super::owner::Owner;
use super::server::Running;

/// Actions that every tenant has.
const ACTIONS: [(&str, &str); 4] = [
    ("row", items::SELECT_ROW),
    ("range", items::SELECT_RANGE),
    ("insert", items::INSERT),
    ("undo", items::DELETE_NEW_ROWS),
];

/// Creates a tenant whose page has this slug, with further actions beside the usual ones.
pub(crate) fn create_tenant(
    owner: &mut Owner,
    slug: &str,
    own: &[(&str, &str)],
) -> anyhow::Result<()> {
    owner.create_project(slug)?;
    let ddl = format!("{}\n{}", items::SCHEMA, items::SEED);
    owner.send("POST", "/backend", &json!({ "ddl": ddl }))?;
    let action = |(name, sql): &(&str, &str)| json!({ "name": name, "sql": sql });
    let actions: Vec<Value> = ACTIONS.iter().chain(own).map(action).collect();
    owner.send("PUT", "/backend/actions", &json!({ "actions": actions }))?;
    let page = json!({ "type": "html", "content": "<h1>Items</h1>", "requested_slug": slug });
    let (page, _) = owner.send("POST", "/frontends", &page)?;
    ensure!(page["slug"] == slug, "another slug: {page}");
    Ok(())
}

/// Returns the answer of a call.
pub(crate) fn call_json(server: &Running, call: &[u8]) -> anyhow::Result<Value> {
    let answer = server.client()?.send(call)?;
    let said = String::from_utf8_lossy(&answer.body);
    ensure!(answer.status == 200, "{said}");
    Ok(serde_json::from_slice(&answer.body)?)
}
