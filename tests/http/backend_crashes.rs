//! Death at every fault point of a backend's life: what follows is the state before or after, and a repetition
//! leads to the state after.

use std::path::Path;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Process, wait_until};
use tempfile::TempDir;

use crate::crashes::{OwnerProcess, fault_group, fault_points};
use crate::owner::text;
use crate::project_fixture::{GUESTS, named, names};
use crate::svc;

/// Groups of fault points in an owner's requests to a backend: `provision` of `provision.committed`.
pub(crate) const FAULT_GROUPS: [&str; 9] = [
    "provision",
    "migrate",
    "define",
    "rollback_action",
    "delete_action",
    "raze",
    "history",
    "rewind",
    "settle",
];

const MORE: &str = "CREATE TABLE more (a); INSERT INTO more VALUES (1), (2)";

/// As many random bytes as begin another copy of the database where little history is kept.
const BULK: &str = "CREATE TABLE bulk (a); WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 300)
    INSERT INTO bulk SELECT hex(randomblob(500)) FROM c";

/// Rows that fill a log: what it holds is taken and copied beside the writer. Their history is small.
const LONG: &str = "CREATE TABLE long (a); WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1100)
    INSERT INTO long SELECT zeroblob(3900) FROM c";

/// Arguments of a server with little history, so that rare events of it happen.
fn arguments(data: &Path) -> [String; 2] {
    let config = data.join("svc.toml");
    if !config.exists() {
        std::fs::write(&config, "[limits]\nhistory_bytes = 1048576\n").unwrap();
    }
    ["--config".to_owned(), config.to_str().unwrap().to_owned()]
}

/// A server on a data directory, which ends at a point if one is named.
async fn serve(data: &Path, fault: Option<&str>) -> Process {
    let arguments = arguments(data);
    let arguments = arguments.each_ref().map(String::as_str);
    svc().serve_to_fault(fault, data, &arguments).await
}

/// Creates a project with a page, and with a backend unless the group creates one; returns the backend's path.
async fn populate(data: &Path, credential: &str, group: &str) -> String {
    let process = serve(data, None).await;
    let site = OwnerProcess {
        process,
        credential,
    };
    let (status, project) = site.post("", json!({ "name": "House" })).await;
    assert_eq!(status, 201, "{project}");
    let project = text(&project["id"]);
    let room = json!({ "type": "markdown", "content": "# One", "requested_slug": "room" });
    let (status, made) = site.post(&format!("/{project}/frontends"), room).await;
    assert_eq!(status, 201, "{made}");
    let backend = format!("/{project}/backend");
    if group != "provision" {
        let (status, made) = site.post(&backend, json!({ "ddl": GUESTS })).await;
        assert_eq!(status, 201, "{made}");
        define(&site, &backend, 1).await;
    }
    if group == "rollback_action" {
        define(&site, &backend, 2).await;
    }
    let script = match group {
        "history" => Some(BULK),
        "rewind" => Some(MORE),
        _ => None,
    };
    if let Some(script) = script {
        let ddl = Some(json!({ "ddl": script }));
        let (status, done) = site
            .send_request(Method::PATCH, &backend, ddl)
            .await
            .unwrap();
        assert_eq!(status, 200, "{done}");
    }
    site.process.kill().await;
    backend
}

/// The moment when the backend was made.
async fn first_moment(site: &OwnerProcess<'_>, backend: &str) -> Value {
    let (status, history) = site.get(&format!("{backend}/history")).await;
    assert_eq!(status, 200, "{history}");
    let moments = history["moments"].as_array().unwrap();
    moments.last().expect("it was made").clone()
}

/// Returns the number of rows of a table.
#[track_caller]
fn row_count(detail: &Value, table: &str) -> u64 {
    let table = named(&detail["inventory"]["tables"], table);
    table["rows"].as_u64().unwrap()
}

/// Asserts that a restore happened wholly or not at all, and that it can be repeated and undone.
async fn assert_restore_follows(site: &OwnerProcess<'_>, point: &str, backend: &str) {
    let table = if fault_group(point) == "history" {
        "bulk"
    } else {
        "more"
    };
    let all = if table == "bulk" { 300 } else { 2 };
    let (_, before) = site.get(backend).await;
    let restored = matches!(point, "rewind.committed" | "rewind.recording");
    assert_eq!(
        row_count(&before, table),
        if restored { 0 } else { all },
        "{point}"
    );
    assert_eq!(before["warnings"], json!([]), "{point}");
    let ledger = before["migrations"].as_array().unwrap().len();
    assert_eq!(ledger, if restored { 3 } else { 2 }, "{point}");
    let first = first_moment(site, backend).await;
    let restore = format!("{backend}/restore");
    let (status, done) = site.post(&restore, first).await;
    assert_eq!(status, 200, "{point}: {done}");
    let (_, after) = site.get(backend).await;
    assert_eq!(row_count(&after, table), 0, "{point}");
    assert_eq!(after["warnings"], json!([]), "{point}");
    let undo = json!({ "at": done["previous"] });
    let (status, undone) = site.post(&restore, undo).await;
    assert_eq!(status, 200, "{point}: {undone}");
    let (_, undone) = site.get(backend).await;
    assert_eq!(
        row_count(&undone, table),
        row_count(&before, table),
        "{point}"
    );
}

/// The body that defines an action which says a number.
fn constant_action(n: u64) -> Value {
    json!({ "actions": [{ "name": "say", "sql": format!("SELECT {n} AS n") }] })
}

async fn define(site: &OwnerProcess<'_>, backend: &str, n: u64) -> Value {
    let path = format!("{backend}/actions");
    let answer = site
        .send_request(Method::PUT, &path, Some(constant_action(n)))
        .await;
    let (status, answer) = answer.expect("the server answers");
    assert_eq!(status, 200, "{answer}");
    named(&answer["actions"], "say").clone()
}

/// Returns the request of a group, which is sent before and after the crash.
fn request_of_group(group: &str, backend: &str, first: &Value) -> (Method, String, Option<Value>) {
    let (method, below, body) = match group {
        // The first request for the history takes the committed frames.
        "history" => (Method::GET, "/history", None),
        "rewind" => (Method::POST, "/restore", Some(first.clone())),
        "provision" => (Method::POST, "", Some(json!({ "ddl": GUESTS }))),
        "migrate" => (Method::PATCH, "", Some(json!({ "ddl": MORE }))),
        "settle" => (Method::PATCH, "", Some(json!({ "ddl": LONG }))),
        "define" => (Method::PUT, "/actions", Some(constant_action(2))),
        "rollback_action" => {
            let body = json!({ "version": 1 });
            (Method::POST, "/actions/say/rollback", Some(body))
        }
        "delete_action" => (Method::DELETE, "/actions/say", None),
        "raze" => (Method::DELETE, "", None),
        other => panic!("nobody does {other}"),
    };
    (method, format!("{backend}{below}"), body)
}

/// Asks the page for its number; `None` without a backend.
async fn call_constant(site: &OwnerProcess<'_>) -> Option<Value> {
    let answer = site
        .process
        .json("/room/api/op", &json!({ "action": "say" }))
        .await;
    if answer.status == 404 {
        return None;
    }
    Some(answer.expect(200).json()["rows"][0]["n"].take())
}

/// Asserts that the file and its ledger agree or that the detail warns; returns whether they agree.
#[track_caller]
fn file_matches_ledger(detail: &Value) -> bool {
    let migrated = names(&detail["schema"]["tables"]).contains(&"more".to_owned());
    let ledger = detail["migrations"].as_array().unwrap();
    let recorded = ledger.iter().filter(|entry| entry["sql"] == MORE).count();
    assert!(recorded <= usize::from(migrated), "{detail}");
    let agree = recorded == usize::from(migrated);
    let warnings = detail["warnings"].as_array().unwrap();
    let codes: Vec<_> = warnings
        .iter()
        .map(|warning| text(&warning["code"]))
        .collect();
    let expected: &[&str] = if agree {
        &[]
    } else {
        &["schema_ahead_of_ledger"]
    };
    assert_eq!(codes, expected, "{detail}");
    agree
}

/// Asserts that the rows that filled the log are there once, and that history has the states before and after.
async fn assert_settling_follows(site: &OwnerProcess<'_>, point: &str, backend: &str) {
    let ddl = Some(json!({ "ddl": LONG }));
    let again = site.send_request(Method::PATCH, backend, ddl).await;
    let (status, again) = again.expect("the server answers");
    assert_eq!(status, 200, "{point}: {again}");
    assert_ne!(again["status"], "applied", "{point}: it was committed");
    let (_, detail) = site.get(backend).await;
    assert_eq!(row_count(&detail, "long"), 1100, "{point}");
    let (status, history) = site.get(&format!("{backend}/history")).await;
    assert_eq!(status, 200, "{point}: {history}");
    let moments = history["moments"].as_array().unwrap();
    assert!(moments.len() >= 2, "{point}: {history}");
    let first = moments.last().unwrap().clone();
    let restore = format!("{backend}/restore");
    let (status, done) = site.post(&restore, first).await;
    assert_eq!(status, 200, "{point}: {done}");
    let (_, detail) = site.get(backend).await;
    assert_eq!(row_count(&detail, "long"), 0, "{point}");
    let undo = json!({ "at": done["previous"] });
    let (status, undone) = site.post(&restore, undo).await;
    assert_eq!(status, 200, "{point}: {undone}");
    let (_, detail) = site.get(backend).await;
    assert_eq!(row_count(&detail, "long"), 1100, "{point}");
}

/// The state after a death, that repeating the deed leads on, and the state then.
async fn assert_state_follows(site: &OwnerProcess<'_>, point: &str, backend: &str) {
    let (there, before) = site.get(backend).await;
    assert!(matches!(there, 200 | 404), "{point}: {before}");
    let ahead = there == 200 && !file_matches_ledger(&before);
    if ahead {
        // Going back would lose what could not be applied again: the ledger does not have it yet.
        let first = first_moment(site, backend).await;
        let restore = format!("{backend}/restore");
        let refused = site.send_request(Method::POST, &restore, Some(first)).await;
        let (status, refused) = refused.expect("the server answers");
        assert_eq!(status, 409, "{point}: {refused}");
        assert_eq!(refused["code"], "migration_not_recorded", "{point}");
    }
    let kind = fault_group(point);
    let (method, path, body) = request_of_group(kind, backend, &Value::Null);
    let again = site.send_request(method, &path, body).await;
    let (status, again) = again.expect("the server answers");
    match kind {
        "provision" => assert_eq!(
            status,
            if there == 200 { 409 } else { 201 },
            "{point}: {again}"
        ),
        "migrate" => {
            let status = text(&again["status"]);
            assert_eq!(status == "healed", ahead, "{point}: {again}");
            assert_eq!(again["version"], 2, "{point}");
        }
        "define" => assert_eq!(named(&again["actions"], "say")["version"], 2, "{point}"),
        "rollback_action" => assert_eq!(again["version"], 3, "{point}: once, not twice"),
        _ => assert_eq!(status, 204, "{point}"),
    }
    let (there, after) = site.get(backend).await;
    if kind == "raze" {
        assert_eq!((there, call_constant(site).await), (404, None), "{point}");
        return;
    }
    assert!(
        there == 200 && file_matches_ledger(&after),
        "{point}: {after}"
    );
    match kind {
        "provision" => {
            define(site, backend, 1).await;
            assert_eq!(call_constant(site).await, Some(json!(1)), "{point}");
        }
        "migrate" => {
            let more = named(&after["inventory"]["tables"], "more");
            assert_eq!(more["rows"], 2, "{point}: seeds are sown once");
        }
        "rollback_action" => assert_eq!(call_constant(site).await, Some(json!(1)), "{point}"),
        "delete_action" => {
            assert_eq!(call_constant(site).await, None, "{point}");
            let again = define(site, backend, 2).await;
            assert_eq!(again["version"], 2, "{point}: the count went on");
        }
        _ => assert_eq!(call_constant(site).await, Some(json!(2)), "{point}"),
    }
}

#[tokio::test]
async fn whatever_the_point_of_a_backends_death_it_can_be_gone_on_with() {
    let points = fault_points().into_iter();
    let points: Vec<_> = points
        .filter(|point| FAULT_GROUPS.contains(&fault_group(point)))
        .collect();
    for group in FAULT_GROUPS {
        let named = points.iter().any(|point| fault_group(point) == group);
        assert!(named, "no fault point is on the way of {group}");
    }
    for point in points {
        let data = TempDir::new().unwrap();
        let create = ["namespace", "create", "acme", "--json"];
        let made = svc().run(data.path(), &create).await.json();
        let credential = &*text(&made["credential"]);
        if fault_group(&point) == "settle" {
            // A copy of the database is not to be larger than its history.
            let more = "[limits]\nhistory_bytes = 67108864\n";
            std::fs::write(data.path().join("svc.toml"), more).unwrap();
        }
        let backend = populate(data.path(), credential, fault_group(&point)).await;

        let mut first = Value::Null;
        if fault_group(&point) == "rewind" {
            let process = serve(data.path(), None).await;
            let site = OwnerProcess {
                process,
                credential,
            };
            first = first_moment(&site, &backend).await;
            site.process.kill().await;
        }
        let process = serve(data.path(), Some(&point)).await;
        let dying = OwnerProcess {
            process,
            credential,
        };
        let (method, path, body) = request_of_group(fault_group(&point), &backend, &first);
        // The answer may have been sent before the server dies.
        let _ = dying.send_request(method, &path, body).await;
        let (status, _) = dying.process.wait_for_exit().await;
        assert!(!status.success(), "{point}: it did not die");

        let process = serve(data.path(), None).await;
        let site = OwnerProcess {
            process,
            credential,
        };
        site.process.get("/room").await.expect(200);
        if matches!(fault_group(&point), "history" | "rewind") {
            assert_restore_follows(&site, &point, &backend).await;
        } else if fault_group(&point) == "settle" {
            assert_settling_follows(&site, &point, &backend).await;
        } else {
            assert_state_follows(&site, &point, &backend).await;
        }
        let whole = async || {
            let found = svc().run(data.path(), &["check", "--json"]).await.json();
            assert_eq!(found["errors"], json!([]), "{point}");
            (found["leftovers"] == json!([])).then_some(())
        };
        wait_until("nothing to be left over", whole).await;
        site.process.kill().await;
    }
}
