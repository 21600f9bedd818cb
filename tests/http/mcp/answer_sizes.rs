//! Size of the answers to a change: a model pays for every byte of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::client::Client;
use crate::owner::{Owner, text};

/// The most bytes of all answers to a change of one line.
const CHANGE_ANSWERS_BYTES: usize = 2_048;

/// A page of about a megabyte with a thousand different headings.
fn large_page() -> String {
    let filler = "<p>Nothing of this is what anybody looks for here.</p>\n".repeat(18);
    let sections = (0..1_000).map(|n| format!("<h2>Section {n}</h2>\n{filler}"));
    let page: String = sections.collect();
    assert!(page.len() > 1_000_000 && page.len() < 1_048_576);
    page
}

#[tokio::test]
async fn a_change_of_one_line_of_a_large_page_costs_two_kilobytes() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let client = Client::with_credential(&server, &owner.credential);
    let page = large_page();
    let new = json!({ "type": "html", "content": page, "requested_slug": "large" });
    let path = format!("/{project}/frontends");
    owner.post(&server, &path, &new).await.expect(201);
    let mut spent = Vec::new();
    let mut send_request = async |action: &str, more: Value| {
        let mut arguments = more;
        arguments["action"] = action.into();
        arguments["project_id"] = project.as_str().into();
        arguments["slug"] = "large".into();
        let answer = client.call_ok("manage_frontend", arguments).await;
        spent.push((action.to_owned(), answer.to_string().len()));
        answer
    };
    let line = "<h2>Section 567</h2>";
    let found = send_request("content", json!({ "find": line })).await;
    assert_eq!(found["occurrences"], 1);
    assert_eq!(found["found"][0]["line"], 567 * 19 + 1);
    let shown = text(&found["found"][0]["content"]);
    assert!(shown.contains(line) && page.contains(&shown), "{shown}");
    // The first that is asked for begins the history, so that there is an id to go on with.
    let active = text(&found["revision_id"]);
    let edits = json!([{ "find": line, "replace": "<h2>Another</h2>" }]);
    let base = json!({ "base_revision_id": active, "edits": edits });
    let drafted = send_request("create_revision", base).await;
    let draft = text(&drafted["revision"]["revision_id"]);
    let release = json!({ "revision_id": draft, "expected_active_revision_id": active });
    let live = send_request("promote", release).await;
    assert_eq!(live["note"], Value::Null, "nothing was dropped");
    let all: usize = spent.iter().map(|(_, bytes)| bytes).sum();
    println!("{spent:?}: {all} bytes");
    assert!(all <= CHANGE_ANSWERS_BYTES, "{spent:?}: {all} bytes");
    let raw = server.get("/large/raw").answer().await.expect(200);
    assert_eq!(raw.text(), page.replace(line, "<h2>Another</h2>"));
}

#[tokio::test]
async fn a_place_is_found_by_a_text_or_by_its_line() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let client = Client::with_credential(&server, &owner.credential);
    let content = "one\ntwo\nthree\nfour\nfive\nsix";
    let new = json!({ "type": "markdown", "content": content, "requested_slug": "room" });
    let path = format!("/{project}/frontends");
    owner.post(&server, &path, &new).await.expect(201);
    let arguments = |more: &Value| {
        let mut arguments = more.clone();
        arguments["action"] = "content".into();
        arguments["project_id"] = project.as_str().into();
        arguments["slug"] = "room".into();
        arguments
    };
    for find in [json!("four"), json!(4)] {
        let found = client
            .call_ok("manage_frontend", arguments(&json!({ "find": find })))
            .await;
        let place = json!({ "line": 4, "from_line": 2, "offset": 4, "content": "two\nthree\nfour\nfive\nsix" });
        assert_eq!(found["found"], json!([place]), "{find}");
        assert_eq!(
            (&found["type"], &found["lines"]),
            (&json!("markdown"), &json!(6))
        );
        assert!(found["content"].is_null() && found["revision_id"].is_string());
    }
    let nothing = arguments(&json!({ "find": "Four" }));
    let nothing = client.call_ok("manage_frontend", nothing).await;
    assert_eq!(
        (&nothing["occurrences"], &nothing["found"]),
        (&json!(0), &json!([]))
    );
    for (wrong, says) in [
        (json!({ "find": "" }), "`find` is empty"),
        (json!({ "find": 0 }), "lines 1 to 6"),
        (json!({ "find": 7 }), "lines 1 to 6"),
        (json!({ "find": -1 }), "the number of a line"),
        (json!({ "find": ["four"] }), "the number of a line"),
        (json!({ "find": "four", "offset": 1 }), "without `offset`"),
        (json!({ "find": "four", "limit": 1 }), "without `offset`"),
    ] {
        let problem = client
            .call_refused("manage_frontend", arguments(&wrong), "invalid_request")
            .await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{wrong}: {detail}");
    }
}

#[tokio::test]
async fn five_revisions_are_listed_unless_more_are_asked_for() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let client = Client::with_credential(&server, &owner.credential);
    owner.frontend(&server, &project, "room").await;
    let list = async |more: Value| {
        let mut arguments = more;
        arguments["action"] = "list_revisions".into();
        arguments["project_id"] = project.as_str().into();
        arguments["slug"] = "room".into();
        client.call_ok("manage_frontend", arguments).await
    };
    let few = list(json!({})).await;
    assert_eq!(
        (&few["next_cursor"], &few["note"]),
        (&Value::Null, &Value::Null)
    );
    let path = format!("/{project}/frontends/room/revisions");
    for n in 0..6 {
        let draft =
            json!({ "base_revision_id": few["active_revision_id"], "content": format!("# {n}") });
        owner.post(&server, &path, &draft).await.expect(200);
    }
    let listed = list(json!({})).await;
    assert_eq!(listed["revisions"].as_array().unwrap().len(), 5);
    let note = listed["note"].as_str().unwrap();
    assert!(
        note.contains("next_cursor") && note.contains("limit"),
        "{note}"
    );
    let rest = list(json!({ "cursor": listed["next_cursor"] })).await;
    assert_eq!(rest["revisions"].as_array().unwrap().len(), 2);
    assert_eq!(rest["note"], Value::Null);
    // With an explicit limit the tool answers as REST does.
    for limit in [1, 5, 50] {
        let rest = owner.get(&server, &format!("{path}?limit={limit}")).await;
        assert_eq!(list(json!({ "limit": limit })).await, rest.json());
    }
}

#[tokio::test]
async fn the_sql_of_actions_that_a_call_did_not_name_is_left_out() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let client = Client::with_credential(&server, &owner.credential);
    let send_request = async |more: Value| {
        let mut arguments = more;
        arguments["project_id"] = project.as_str().into();
        client.call_ok("manage_backend", arguments).await
    };
    send_request(json!({ "action": "create", "ddl": "CREATE TABLE t (n)" })).await;
    let action = |name: &str, sql: &str| json!({ "name": name, "sql": sql });
    let (one, two) = (
        action("one", "SELECT 1 AS one"),
        action("two", "SELECT 2 AS two"),
    );
    let all = send_request(json!({ "action": "update", "actions": [one, two] })).await;
    assert_eq!(all["note"], Value::Null);
    assert_eq!(all["actions"][1]["sql"], "SELECT 2 AS two");
    let one = action("one", "SELECT 1 AS uno");
    let defined = send_request(json!({ "action": "update", "actions": [one] })).await;
    let [one, two] = defined["actions"].as_array().unwrap().as_slice() else {
        panic!("{defined}");
    };
    assert_eq!(one["sql"], "SELECT 1 AS uno");
    assert_eq!((&two["name"], &two["sql"]), (&json!("two"), &Value::Null));
    let note = defined["note"].as_str().unwrap();
    assert!(note.contains("`sql` of 1 action "), "{note}");
    // As the note says, it is there.
    let part = send_request(json!({ "action": "get", "part": "actions" })).await;
    assert_eq!(part["actions"][1]["sql"], "SELECT 2 AS two");
}

#[tokio::test]
async fn what_owners_see_comes_in_pages_that_fit() {
    let limits = TestServer::builder().limits(|limits| {
        limits.op_burst = 1_000;
        limits.op_deployment_burst = 1_000;
    });
    let server = limits.start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let client = Client::with_credential(&server, &owner.credential);
    let new = json!({ "type": "html", "content": "<p>Room", "requested_slug": "room" });
    let path = format!("/{project}/frontends");
    owner.post(&server, &path, &new).await.expect(201);
    let count = 120;
    for _ in 0..count {
        let call = json!({ "action": "a_name_that_nobody_has_defined" });
        server
            .json("/room/api/op", &call)
            .answer()
            .await
            .expect(404);
    }
    let ask = async |more: Value| {
        let mut arguments = more;
        arguments["project_id"] = project.as_str().into();
        client.call_ok("manage_project", arguments).await
    };
    let (mut seen, mut pages, mut before) = (BTreeSet::new(), 0, Value::Null);
    loop {
        let mut arguments = json!({ "action": "log", "limit": 500 });
        if before.is_string() {
            arguments["before"] = before;
        }
        let page = ask(arguments).await;
        assert_eq!(page["truncated"], Value::Null, "{page}");
        let entries = page["entries"].as_array().unwrap();
        assert!(entries.iter().all(|entry| seen.insert(text(&entry["id"]))));
        pages += 1;
        before = page["next_before"].clone();
        if before.is_null() {
            break;
        }
    }
    assert_eq!(seen.len(), count);
    assert!(pages > 1, "all of it fits");
    let from = "2026-11-10T00:00:00Z";
    let hours = ask(json!({ "action": "stats", "step": "hour", "from": from })).await;
    let series = hours["series"].as_array().unwrap();
    let left_out = hours["series_left_out"].as_u64().unwrap();
    assert_eq!(series.len() as u64 + left_out, 10 * 24 + 12, "{hours}");
    assert_eq!(series.last().unwrap()["at"], "2026-11-20T11:00:00.000Z");
    assert!(text(&hours["note"]).contains("oldest"), "{hours}");
}
