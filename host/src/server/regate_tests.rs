//! Tests that actions are judged again when another gate is installed.

use std::path::Path;

use serde_json::Value;

use super::Server;
use crate::backends::NewBackend;
use crate::backends::model::{NewAction, QueryAccess, ReadOnlyReason};
use crate::config::Settings;
use crate::control::kept_answers::AnswerRecorder;
use crate::projects::model::NewProject;
use crate::workspaces::Plan;
use svc_base::clock::{Clock, Timestamp};
use svc_base::random::Random;

/// Returns the built-in gate with another digest, by adding an empty custom section.
fn another_gate() -> Vec<u8> {
    let mut gate = svc_sandbox::built_in_component(svc_sandbox::World::Gate).to_vec();
    gate.extend([0, 3, 1, b'x', b'y']);
    gate
}

async fn server(data: &Path) -> Server {
    let settings = Settings {
        data: Some(data.join("data")),
        cache: Some(data.join("cache")),
        listen: Some("127.0.0.1:0".parse().unwrap()),
        ..Settings::default()
    };
    let clock = Clock::manual(Timestamp(1_795_262_400_000));
    Server::start(settings, clock, Random::system())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_gate_judges_what_the_last_one_did() {
    let directory = tempfile::tempdir().unwrap();
    let first = server(directory.path()).await;
    let app = first.app();
    app.workspaces.create("acme", Plan::Free).await.unwrap();
    let workspace = app.workspaces.list().await.unwrap().remove(0).id;
    let new = NewProject {
        name: "House".to_owned(),
        description: None,
        ttl_seconds: None,
    };
    let project = app
        .projects
        .create(workspace, new, AnswerRecorder::none())
        .await
        .unwrap();
    let new = NewBackend {
        ddl: "CREATE TABLE a (x)".to_owned(),
        realtime: false,
    };
    let made = app.backends.create(&project, new, AnswerRecorder::none());
    let id = made.await.unwrap().backend.id;
    let action = NewAction {
        name: "count".to_owned(),
        sql: "SELECT count(*) AS n FROM a".to_owned(),
        note: None,
        defaults: Vec::new(),
        files: None,
        expected_version: None,
    };
    let define = app.definitions.define(project.id, vec![action], false);
    define.await.unwrap();
    let defined = app.backends.detail(project.id).await.unwrap().actions;
    first.stop().await.unwrap();

    let guests = directory.path().join("data/guests/gate");
    std::fs::create_dir_all(&guests).unwrap();
    std::fs::write(guests.join("another.wasm"), another_gate()).unwrap();
    let second = server(directory.path()).await;
    let (backends, actions) = (&second.app().backends, &second.app().action_calls);
    // Waits until the gate is loaded; calls find it serving then.
    actions
        .query(
            id,
            "SELECT 1 AS x".to_owned(),
            Vec::new(),
            QueryAccess::Read(ReadOnlyReason::ViewerRole),
        )
        .await
        .unwrap();
    let answer = actions
        .call_action(id, "count", Vec::new(), None)
        .await
        .unwrap();
    let answer: Value = serde_json::from_slice(&answer.json).unwrap();
    assert_eq!(answer["rows"][0]["n"], 0);
    let judged = backends.detail(project.id).await.unwrap().actions.remove(0);
    assert_ne!(judged.gate, defined[0].gate);
    assert_eq!(judged.verdict, defined[0].verdict);
    assert_eq!(judged.version, 1);
    second.stop().await.unwrap();
}
