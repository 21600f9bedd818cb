//! The page `room` that clients write to, and what it has at the end.

use std::collections::BTreeMap;
use std::path::Path;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, Binary, Process, ReadAnswer, wait_until};

use super::client_context::ClientContext;
use super::edits::{EDITED, version};
use super::record::{Entry, PageState};

/// The table has no rule against the same entry twice: that is looked for.
const TABLE: &str = "CREATE TABLE entries (id INTEGER PRIMARY KEY, writer INTEGER, number INTEGER); \
    CREATE INDEX entries_by_writer ON entries (writer, number)";
const ADD: &str = "INSERT INTO entries (writer, number) VALUES (:writer, :number)";
const WRITTEN: &str = "SELECT number FROM entries WHERE writer = :writer AND number >= :first \
    ORDER BY number LIMIT 500";
const PAGE: &str = "SELECT id, writer, number FROM entries WHERE id > :after ORDER BY id LIMIT 500";

/// Makes the page, with its actions, and an owner who has a token.
pub(super) async fn make(context: &ClientContext, binary: &Binary, data: &Path, process: &Process) {
    let create = ["namespace", "create", "acme", "--json"];
    let made = binary.run(data, &create).await.json();
    let credential = made["credential"].as_str().unwrap();
    let owner = async |method: Method, path: &str, body: &Value| -> Answer {
        let url = process.url(&format!("/api/v1/projects{path}"));
        let request = process.client().request(method, url);
        request.bearer_auth(credential).json(body).answer().await
    };
    let house = json!({ "name": "House" });
    let project = owner(Method::POST, "", &house).await.expect(201).json();
    let id = project["id"].as_str().unwrap();
    id.clone_into(&mut context.record().project);
    let room = json!({ "type": "markdown", "content": "# Room", "requested_slug": "room" });
    let edited = json!({ "type": "html", "content": version(0), "requested_slug": EDITED });
    let actions = json!([
        { "name": "add", "sql": ADD }, { "name": "written", "sql": WRITTEN }, { "name": "page", "sql": PAGE },
    ]);
    let actions = json!({ "actions": actions });
    for (method, below, body, status) in [
        (Method::POST, "backend", json!({ "ddl": TABLE }), 201),
        (Method::PUT, "backend/actions", actions, 200),
        (Method::POST, "frontends", room, 201),
        (Method::POST, "frontends", edited, 201),
    ] {
        let path = format!("/{id}/{below}");
        owner(method, &path, &body).await.expect(status);
    }
    let me = process.client().get(process.url("/api/v1/me"));
    let me = me.bearer_auth(context.issuer.token_now("alice"));
    let me = me.answer().await.expect(200).json();
    let alice = me["user_id"].as_str().unwrap();
    let add = [
        "workspace",
        "member",
        "add",
        "acme",
        alice,
        "--role",
        "owner",
    ];
    let added = binary.run(data, &add).await;
    assert!(added.success, "{added:?}");
}

/// Migrates the backend, so that its database is where control is. `number` tells migrations apart.
pub(super) async fn migrate(context: &ClientContext, process: &Process, number: usize) {
    let project = context.record().project.clone();
    let url = process.url(&format!("/api/v1/projects/{project}/backend"));
    let table = json!({ "ddl": format!("CREATE TABLE later_{number} (x)") });
    wait_until("a migration", async || {
        let migrate = process.client().patch(&url).json(&table);
        let migrate = migrate.bearer_auth(context.issuer.token_now("alice"));
        let answer = migrate.answer().await;
        // One that was interrupted may have to be recorded yet.
        assert!(matches!(answer.status, 200 | 409 | 503), "{answer:?}");
        (answer.status == 200).then_some(())
    })
    .await;
}

/// Compares what clients know with what a node has.
pub(super) async fn check(context: &ClientContext, process: &Process) {
    let rows = rows(process).await;
    let (pages, readers) = {
        let mut record = context.record();
        record.compare_rows(&rows);
        println!("{} rows, {} pages", rows.len(), record.pages.len());
        (record.pages.clone(), record.readers.clone())
    };
    for (name, state) in pages {
        check_page(context, process, &name, state).await;
    }
    for (name, readers) in readers {
        let url = process.url(&format!("/{name}"));
        let opened = process.client().post(url).answer().await;
        if opened.status == 200 {
            let mut record = context.record();
            if readers > 0 {
                record.fault(format!("{name} was had by {readers} readers, and is there"));
            }
            record.readers.insert(name, readers + 1);
        }
    }
}

/// All rows, with how often each is there.
async fn rows(process: &Process) -> BTreeMap<Entry, usize> {
    let mut found = BTreeMap::new();
    let mut after = 0;
    loop {
        let page = json!({ "action": "page", "params": { "after": after } });
        let answer = process.json("/room/api/op", &page).await.expect(200);
        let answer = answer.json();
        let rows = answer["rows"].as_array().unwrap();
        for row in rows {
            let number = |name: &str| row[name].as_u64().unwrap();
            after = number("id");
            let entry = (number("writer"), number("number"));
            *found.entry(entry).or_insert(0) += 1;
        }
        if rows.is_empty() {
            return found;
        }
    }
}

/// Looks whether a page is there once, or not where it was deleted.
async fn check_page(context: &ClientContext, process: &Process, name: &str, state: PageState) {
    let page = process.get(&format!("/{name}")).await;
    let is_right = match page.status {
        200 => state != PageState::Gone && page.text().contains(&format!("of {name}")),
        404 => state != PageState::Published,
        _ => false,
    };
    if !is_right {
        let fault = format!("{name}, known as {state:?}: {page:?}");
        context.record().fault(fault);
    }
    // A second page that wants the name gets this one.
    let second = process.get(&format!("/{name}-2")).await;
    if second.status != 404 {
        let fault = format!("{name} was published twice: {second:?}");
        context.record().fault(fault);
    }
}
