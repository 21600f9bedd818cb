//! Death between the two steps of each commit of the control database: what was answered is there, and what was not is there wholly
//! or not at all.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Process, wait_until};
use tempfile::TempDir;

use crate::crashes::{OwnerProcess, fault_group, fault_points};
use crate::owner::text;
use crate::svc;

/// Deeds that lead to the points here: every one.
pub(crate) const FAULT_GROUPS: [&str; 1] = ["commit"];

/// Steps of an owner and of a stranger, in their order.
const STEPS: [&str; 10] = [
    "project",
    "backend",
    "actions",
    "frontend",
    "draft",
    "promote",
    "republish",
    "share",
    "second frontend",
    "delete",
];

/// Ids that steps have made, for those after them.
#[derive(Default)]
struct CreatedIds {
    project: String,
    live: String,
    draft: String,
}

/// Takes a step; `None` if the server died instead of answering.
async fn take_step(step: &str, site: &OwnerProcess<'_>, made: &mut CreatedIds) -> Option<()> {
    let project = format!("/{}", made.project);
    let room = format!("{project}/frontends/room");
    let (method, path, body) = match step {
        "project" => (Method::POST, String::new(), json!({ "name": "House" })),
        "backend" => {
            let ddl = json!({ "ddl": "CREATE TABLE guests (name)" });
            (Method::POST, format!("{project}/backend"), ddl)
        }
        "actions" => {
            let actions =
                json!({ "actions": [{ "name": "all", "sql": "SELECT name FROM guests" }] });
            (Method::PUT, format!("{project}/backend/actions"), actions)
        }
        "frontend" | "second frontend" => {
            let slug = if step == "frontend" { "room" } else { "hall" };
            let page = json!({ "type": "markdown", "content": "# One", "requested_slug": slug });
            (Method::POST, format!("{project}/frontends"), page)
        }
        "draft" => {
            let draft = json!({ "base_revision_id": made.live, "content": "# Two" });
            (Method::POST, format!("{room}/revisions"), draft)
        }
        "promote" => {
            let promote =
                json!({ "revision_id": made.draft, "expected_active_revision_id": made.live });
            (Method::POST, format!("{room}/promote"), promote)
        }
        "republish" => (Method::PUT, room.clone(), json!({ "content": "# Three" })),
        "share" => return publish_share(&site.process).await,
        "delete" => (
            Method::DELETE,
            format!("{project}/frontends/hall"),
            json!({}),
        ),
        other => panic!("nobody knows {other}"),
    };
    let (status, answer) = site.send_request(method, &path, Some(body)).await?;
    assert!((200..300).contains(&status), "{step}: {status} {answer}");
    match step {
        "project" => made.project = text(&answer["id"]),
        "frontend" => {
            let revisions = format!("{room}/revisions");
            let (_, list) = site.send_request(Method::GET, &revisions, None).await?;
            made.live = text(&list["active_revision_id"]);
        }
        "draft" => made.draft = text(&answer["revision"]["revision_id"]),
        _ => {}
    }
    Some(())
}

async fn publish_share(process: &Process) -> Option<()> {
    let page = json!({ "type": "markdown", "content": "# Quick", "name": "quick" });
    let request = process.client().post(process.url("/api/v1/deploy"));
    let answer = request.json(&page).send().await.ok()?;
    answer.bytes().await.ok().map(drop)
}

/// Takes steps until the server dies; returns how many were answered.
async fn take_all_steps(site: &OwnerProcess<'_>) -> usize {
    let mut made = CreatedIds::default();
    for (number, step) in STEPS.iter().enumerate() {
        if take_step(step, site, &mut made).await.is_none() {
            return number;
        }
    }
    STEPS.len()
}

/// All that can be seen of what the steps do, without ids and times.
async fn observable_state(site: &OwnerProcess<'_>) -> Value {
    let mut seen = Vec::new();
    for page in ["/room", "/hall", "/quick"] {
        let answer = site.process.get(page).await;
        let words = ["One", "Two", "Three", "Quick"];
        let shown = words.map(|word| answer.text().contains(&format!(">{word}<")));
        seen.push(json!([page, answer.status, shown]));
    }
    let (_, projects) = site.get("").await;
    for project in projects["projects"].as_array().unwrap() {
        let id = text(&project["id"]);
        let (_, list) = site.get(&format!("/{id}/frontends")).await;
        for frontend in list["frontends"].as_array().unwrap() {
            let slug = text(&frontend["slug"]);
            let (_, list) = site.get(&format!("/{id}/frontends/{slug}/revisions")).await;
            let revisions = list["revisions"].as_array().unwrap().iter();
            let revisions: Vec<_> = revisions.map(|one| [&one["kind"], &one["state"]]).collect();
            seen.push(json!([slug, frontend["state"], revisions]));
        }
        let (status, backend) = site.get(&format!("/{id}/backend")).await;
        let actions = backend["actions"].as_array().into_iter().flatten();
        let actions: Vec<_> = actions.map(|action| &action["name"]).collect();
        seen.push(json!([project["name"], status, actions]));
    }
    Value::Array(seen)
}

/// A data directory with a workspace, and its credential.
async fn populate() -> (TempDir, String) {
    let data = TempDir::new().unwrap();
    let create = ["namespace", "create", "acme", "--json"];
    let made = svc().run(data.path(), &create).await.json();
    (data, text(&made["credential"]))
}

/// States that are seen before the first step and after each.
async fn expected_states() -> Vec<Value> {
    let (data, credential) = populate().await;
    let process = svc().serve(data.path(), &[]).await;
    let credential = credential.as_str();
    let site = OwnerProcess {
        process,
        credential,
    };
    let (mut made, mut states) = (CreatedIds::default(), vec![observable_state(&site).await]);
    for step in STEPS {
        take_step(step, &site, &mut made).await.unwrap();
        states.push(observable_state(&site).await);
        assert_ne!(states[states.len() - 2], states[states.len() - 1], "{step}");
    }
    site.process.kill().await;
    states
}

#[tokio::test]
async fn whatever_the_commit_of_death_what_was_answered_is_there() {
    let states = expected_states().await;
    for point in fault_points()
        .into_iter()
        .filter(|p| FAULT_GROUPS.contains(&fault_group(p)))
    {
        let mut deaths = 0;
        loop {
            let (data, credential) = populate().await;
            let fault = format!("{point}@{}", deaths + 1);
            let (credential, mut answered) = (credential.as_str(), 0);
            // A start commits, too.
            if let Ok(process) = svc()
                .try_serve_to_fault(Some(&fault), data.path(), &[])
                .await
            {
                let dying = OwnerProcess {
                    process,
                    credential,
                };
                answered = take_all_steps(&dying).await;
                if answered == STEPS.len() {
                    dying.process.kill().await;
                    break;
                }
                let (status, _) = dying.process.wait_for_exit().await;
                assert!(!status.success(), "{fault}: it did not die");
            }
            deaths += 1;

            let process = svc().serve(data.path(), &[]).await;
            let site = OwnerProcess {
                process,
                credential,
            };
            let whole = async || {
                let now = observable_state(&site).await;
                states[answered..=answered + 1].contains(&now).then_some(())
            };
            wait_until(&format!("{fault}: a whole state"), whole).await;
            let found = svc().run(data.path(), &["check", "--json"]).await.json();
            assert_eq!(found["errors"], json!([]), "{fault}");
            site.process.kill().await;
        }
        assert!(deaths >= STEPS.len(), "{point}: {deaths}");
    }
}
