//! Death around the sync of a write: nobody is ever told of what is not durable.

use http::Method;
use serde_json::json;
use svc_tests::{Process, Socket, SocketEvent, TestServer};
use tempfile::TempDir;

use super::{ACTIONS, SCHEMA, subscribe};
use crate::crashes::{OwnerProcess, fault_group, fault_points};
use crate::owner::text;
use crate::svc;

/// Deeds of visitors, as fault points are named.
pub(crate) const FAULT_GROUPS: [&str; 1] = ["write"];

/// Limits that votes do not meet.
const LIMITS: &str =
    "[limits]\nop_burst = 100000\nop_deployment_burst = 100000\nlive_per_second = 1000\n";

/// An owner's server on a data directory of its own, whose page `room` has the polls.
pub(super) struct PollInstallation {
    pub(super) data: TempDir,
    credential: String,
}

impl PollInstallation {
    /// An empty data directory.
    pub(super) async fn new() -> Self {
        let data = TempDir::new().unwrap();
        std::fs::write(data.path().join("svc.toml"), LIMITS).unwrap();
        let create = ["namespace", "create", "acme", "--json"];
        let made = svc().run(data.path(), &create).await.json();
        Self {
            data,
            credential: text(&made["credential"]),
        }
    }

    /// Serves it, with variables of its environment.
    pub(super) async fn serve(&self, with: &[(&str, &str)]) -> Process {
        let config = self.data.path().join("svc.toml");
        let arguments = ["--config", config.to_str().unwrap()];
        svc()
            .serve_with_environment(with, &[], self.data.path(), &arguments)
            .await
    }

    /// The owner of a server of this place.
    pub(super) fn owner_process(&self, process: Process) -> OwnerProcess<'_> {
        OwnerProcess {
            process,
            credential: &self.credential,
        }
    }

    /// Makes the polls and the page; answers the project.
    pub(super) async fn create_polls(&self, site: &OwnerProcess<'_>) -> String {
        let (_, project) = site.post("", json!({ "name": "House" })).await;
        let project = text(&project["id"]);
        let actions = ACTIONS.map(|(name, sql)| json!({ "name": name, "sql": sql }));
        let (backend, actions) = (json!({ "ddl": SCHEMA }), json!({ "actions": actions }));
        let page = json!({ "type": "markdown", "content": "# One", "requested_slug": "room" });
        for (method, below, body, status) in [
            (Method::POST, "backend", backend, 201),
            (Method::POST, "frontends", page, 201),
            (Method::PUT, "backend/actions", actions, 200),
        ] {
            let path = format!("/{project}/{below}");
            let (found, answer) = site.send_request(method, &path, Some(body)).await.unwrap();
            assert_eq!(found, status, "{below}: {answer}");
        }
        project
    }
}

/// A visitor who votes.
#[derive(Clone)]
pub(super) struct Voter {
    client: reqwest::Client,
    url: String,
}

impl Voter {
    /// One of a server.
    pub(super) fn for_process(process: &Process) -> Self {
        Self {
            client: process.client().clone(),
            url: process.url("/room/api/op"),
        }
    }

    /// Votes; answers the status, if the server lived to say it.
    pub(super) async fn vote(&self) -> Option<u16> {
        let vote = json!({ "action": "vote", "params": { "poll": 1, "choice": "tea" } });
        let answer = self.client.post(&self.url).json(&vote).send().await.ok()?;
        Some(answer.status().as_u16())
    }
}

/// How many votes a call says there are.
pub(super) async fn count_votes(process: &Process) -> u64 {
    let call = json!({ "action": "total" });
    let total = process.json("/room/api/op", &call).await;
    total.expect(200).json()["rows"][0]["n"].as_u64().unwrap()
}

/// A socket that listens to how many votes there are, and has heard of none.
pub(super) async fn subscribe_to_votes(process: &Process) -> Socket {
    let mut socket = Socket::open(process.address(), "/room/api/live", &[])
        .await
        .unwrap();
    socket.send(subscribe("a", "total", &json!({}))).await;
    let frame = socket.envelope().await;
    assert_eq!(frame["result"]["rows"], json!([{ "n": 0 }]));
    socket
}

/// How many votes a socket has heard of when it ends.
pub(super) async fn last_heard_count(mut socket: Socket) -> u64 {
    let mut most = 0;
    while let SocketEvent::Text(frame) = socket.next().await {
        most = most.max(frame["result"]["rows"][0]["n"].as_u64().unwrap());
    }
    most
}

#[tokio::test]
async fn nobody_hears_of_what_a_crash_takes_back() {
    let points: Vec<_> = fault_points()
        .into_iter()
        .filter(|point| FAULT_GROUPS.contains(&fault_group(point)))
        .collect();
    assert_eq!(points, ["write.durable", "write.run", "write.told"]);
    for point in points {
        let installation = PollInstallation::new().await;
        let site = installation.owner_process(installation.serve(&[]).await);
        installation.create_polls(&site).await;
        site.process.kill().await;

        let dying = installation.serve(&[("SVC_FAULT", &point)]).await;
        let socket = subscribe_to_votes(&dying).await;
        let answered = Voter::for_process(&dying).vote().await;
        let (status, _) = dying.wait_for_exit().await;
        assert!(!status.success(), "{point}: it did not die");
        assert_eq!(answered, None, "{point}");
        let heard = last_heard_count(socket).await;
        assert!(
            heard == 0 || point == "write.told",
            "{point}: {heard} votes were heard of"
        );

        let process = installation.serve(&[]).await;
        let there = count_votes(&process).await;
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
    let installation = PollInstallation::new().await;
    let site = installation.owner_process(installation.serve(&[]).await);
    installation.create_polls(&site).await;
    let listener = tokio::spawn(last_heard_count(subscribe_to_votes(&site.process).await));
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let voter = Voter::for_process(&site.process);
            tokio::spawn(async move { while voter.vote().await == Some(200) {} })
        })
        .collect();
    tokio::time::sleep(std::time::Duration::from_millis(800)).await;
    site.process.kill().await;
    for writer in writers {
        writer.await.unwrap();
    }
    let heard = listener.await.unwrap();
    assert!(heard > 0, "nothing was heard of");
    let process = installation.serve(&[]).await;
    let there = count_votes(&process).await;
    assert!(
        there >= heard,
        "{heard} votes were heard of, and {there} are there"
    );
    process.kill().await;
}
