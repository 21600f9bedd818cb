//! Death around the sync of a write: nobody is ever told of what is not durable.

use serde_json::{Value, json};
use svc_tests::{Process, Socket, TestServer};
use tempfile::TempDir;

use super::{ACTIONS, SCHEMA, subscribe};
use crate::account::text;
use crate::crashes::{Site, deed_of, points};
use crate::svc;

/// Deeds of visitors, as fault points are named.
pub(crate) const DEEDS: [&str; 1] = ["write"];

/// A socket that listens to how many votes there are, and has heard of none.
async fn listening(process: &Process) -> Socket {
    let mut socket = Socket::open(process.address(), "/room/api/live", &[])
        .await
        .unwrap();
    socket.send(subscribe("a", "total", &json!({}))).await;
    let frame = socket.envelope().await;
    assert_eq!(frame["result"]["rows"], json!([{ "n": 0 }]));
    socket
}

/// How many votes a socket has heard of when it ends.
async fn heard(mut socket: Socket) -> u64 {
    let mut most = 0;
    while let svc_tests::Heard::Text(frame) = socket.next().await {
        most = most.max(frame["result"]["rows"][0]["n"].as_u64().unwrap());
    }
    most
}

#[tokio::test]
async fn nobody_hears_of_what_a_crash_takes_back() {
    let points: Vec<_> = points()
        .into_iter()
        .filter(|point| DEEDS.contains(&deed_of(point)))
        .collect();
    assert_eq!(points, ["write.durable", "write.run", "write.told"]);
    for point in points {
        let data = TempDir::new().unwrap();
        let made = svc()
            .run(data.path(), &["namespace", "create", "acme", "--json"])
            .await
            .json();
        let credential = &*text(&made["credential"]);
        let site = Site {
            process: svc().serve_until(None, data.path(), &[]).await,
            credential,
        };
        let (_, project) = site.post("", json!({ "name": "House" })).await;
        let project = text(&project["id"]);
        let (status, _) = site
            .post(&format!("/{project}/backend"), json!({ "ddl": SCHEMA }))
            .await;
        assert_eq!(status, 201);
        let page = json!({ "type": "markdown", "content": "# One", "requested_slug": "room" });
        site.post(&format!("/{project}/frontends"), page).await;
        let actions: Vec<Value> = ACTIONS
            .iter()
            .map(|(name, sql)| json!({ "name": name, "sql": sql }))
            .collect();
        let path = format!("/{project}/backend/actions");
        let defined = site
            .ask(
                http::Method::PUT,
                &path,
                Some(json!({ "actions": actions })),
            )
            .await;
        assert_eq!(defined.unwrap().0, 200);
        site.process.kill().await;

        let dying = svc().serve_until(Some(&point), data.path(), &[]).await;
        let socket = listening(&dying).await;
        let vote = json!({ "action": "vote", "params": { "poll": 1, "choice": "tea" } });
        let url = dying.url("/room/api/op");
        let answered = dying.client().post(url).json(&vote).send().await.is_ok();
        let (status, _) = dying.ended().await;
        assert!(!status.success() && !answered, "{point}: it did not die");
        let heard = heard(socket).await;
        assert!(
            heard == 0 || point == "write.told",
            "{point}: {heard} votes were heard of"
        );

        let process = svc().serve_until(None, data.path(), &[]).await;
        let total = process
            .json("/room/api/op", &json!({ "action": "total" }))
            .await;
        let there = total.expect(200).json()["rows"][0]["n"].as_u64().unwrap();
        assert!(
            there >= heard,
            "{point}: {heard} votes were heard of, and {there} are there"
        );
        assert_eq!(there, u64::from(point != "write.run"), "{point}");
        process.kill().await;
    }
}

#[tokio::test]
async fn whoever_was_told_finds_it_after_any_kill() {
    let _warm = TestServer::start().await.stop().await;
    let data = TempDir::new().unwrap();
    let made = svc()
        .run(data.path(), &["namespace", "create", "acme", "--json"])
        .await
        .json();
    let credential = &*text(&made["credential"]);
    let limits = data.path().join("svc.toml");
    std::fs::write(
        &limits,
        "[limits]\nop_burst = 100000\nop_deployment_burst = 100000\nlive_per_second = 1000\n",
    )
    .unwrap();
    let arguments = ["--config", limits.to_str().unwrap()];
    let site = Site {
        process: svc().serve_until(None, data.path(), &arguments).await,
        credential,
    };
    let (_, project) = site.post("", json!({ "name": "House" })).await;
    let project = text(&project["id"]);
    site.post(&format!("/{project}/backend"), json!({ "ddl": SCHEMA }))
        .await;
    let page = json!({ "type": "markdown", "content": "# One", "requested_slug": "room" });
    site.post(&format!("/{project}/frontends"), page).await;
    let actions: Vec<Value> = ACTIONS
        .iter()
        .map(|(name, sql)| json!({ "name": name, "sql": sql }))
        .collect();
    let path = format!("/{project}/backend/actions");
    site.ask(
        http::Method::PUT,
        &path,
        Some(json!({ "actions": actions })),
    )
    .await
    .unwrap();
    let socket = listening(&site.process).await;
    let mut writers = Vec::new();
    for _ in 0..4 {
        let (client, url) = (
            site.process.client().clone(),
            site.process.url("/room/api/op"),
        );
        writers.push(tokio::spawn(async move {
            let vote = json!({ "action": "vote", "params": { "poll": 1, "choice": "tea" } });
            while client
                .post(&url)
                .json(&vote)
                .send()
                .await
                .is_ok_and(|answer| answer.status() == 200)
            {}
        }));
    }
    let listener = tokio::spawn(heard(socket));
    tokio::time::sleep(std::time::Duration::from_millis(800)).await;
    site.process.kill().await;
    for writer in writers {
        writer.await.unwrap();
    }
    let heard = listener.await.unwrap();
    assert!(heard > 0, "nothing was heard of");
    let process = svc().serve_until(None, data.path(), &arguments).await;
    let total = process
        .json("/room/api/op", &json!({ "action": "total" }))
        .await;
    let there = total.expect(200).json()["rows"][0]["n"].as_u64().unwrap();
    assert!(
        there >= heard,
        "{heard} votes were heard of, and {there} are there"
    );
    process.kill().await;
}
