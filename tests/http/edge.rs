//! The edge: what it is told to forget, and that it never stands in the way.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use svc::config::EdgeCacheSettings;
use svc_tests::{ReadAnswer, TestServer, wait_until};

use crate::owner::Owner;
use crate::svc;

/// A recording double of the purge API: the calls so far, and how the next ones are answered.
#[derive(Clone, Debug, Default)]
struct PurgeRecorder(Arc<Mutex<(Vec<Value>, Vec<u16>)>>);

impl PurgeRecorder {
    async fn start() -> (Self, EdgeCacheSettings) {
        let recorder = Self::default();
        let router = Router::new()
            .fallback(record_purge)
            .with_state(recorder.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let edge = EdgeCacheSettings {
            zone_id: "zone".into(),
            api_token: "token".into(),
            api_base: format!("http://{address}/client/v4").parse().unwrap(),
        };
        (recorder, edge)
    }

    /// How the next calls are answered, before all others are a 200.
    fn answer(&self, statuses: &[u16]) {
        self.0.lock().unwrap().1 = statuses.iter().rev().copied().collect();
    }

    fn calls(&self) -> Vec<Value> {
        self.0.lock().unwrap().0.clone()
    }

    /// Waits for so many calls; returns the prefixes of the last.
    async fn wait_for_calls(&self, count: usize) -> BTreeSet<String> {
        let there = async || self.calls().get(count - 1).cloned();
        let call = wait_until("the edge to be called", there).await;
        let prefixes = call["prefixes"].as_array().unwrap().iter();
        prefixes
            .map(|prefix| prefix.as_str().unwrap().to_owned())
            .collect()
    }
}

async fn record_purge(State(recorder): State<PurgeRecorder>, request: Request) -> StatusCode {
    assert_eq!(
        (request.method(), request.uri().path()),
        (&Method::POST, "/client/v4/zones/zone/purge_cache")
    );
    assert_eq!(request.headers()["authorization"], "Bearer token");
    let body = axum::body::to_bytes(request.into_body(), 1 << 20)
        .await
        .unwrap();
    let mut state = recorder.0.lock().unwrap();
    state.0.push(serde_json::from_slice(&body).unwrap());
    StatusCode::from_u16(state.1.pop().unwrap_or(200)).unwrap()
}

async fn start_with_edge(edge: EdgeCacheSettings) -> TestServer {
    TestServer::builder()
        .settings(|settings| settings.edge = Some(edge))
        .start()
        .await
}

/// Waits until what was sent is noted, so that the clock can be moved on from there.
async fn wait_until_noted(server: &TestServer) {
    let app = server.server().app();
    let none_due = async || {
        let now = app.clock.now();
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM purges WHERE due_at <= ?1)";
        let read = app
            .control
            .read(move |c| c.query_row(sql, [now], |row| row.get::<_, bool>(0)));
        read.await.unwrap().then_some(())
    };
    wait_until("the queue to be settled", none_due).await;
}

fn prefixes_of_both_hosts(server: &TestServer, slug: &str) -> BTreeSet<String> {
    let port = server.address().port();
    [
        format!("localhost:{port}/{slug}"),
        format!("house-acme.localhost:{port}/{slug}"),
    ]
    .into()
}

#[tokio::test]
async fn every_change_of_a_frontend_is_purged_twice() {
    let (recorder, edge) = PurgeRecorder::start().await;
    let server = start_with_edge(edge).await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let path = format!("/{project}/frontends/room");
    let mut calls = 0;
    let mut purged_twice = async |what: &str| {
        for _ in 0..2 {
            calls += 1;
            assert_eq!(
                recorder.wait_for_calls(calls).await,
                prefixes_of_both_hosts(&server, "room"),
                "{what}"
            );
            wait_until_noted(&server).await;
            server.advance(10);
        }
    };
    owner.frontend(&server, &project, "room").await;
    purged_twice("create").await;
    let two = json!({ "content": "# Two" });
    owner
        .send(&server, Method::PUT, &path, &two)
        .await
        .expect(200);
    purged_twice("republish").await;
    let history = owner
        .get(&server, &format!("{path}/revisions"))
        .await
        .json();
    let (live, old) = (
        &history["active_revision_id"],
        &history["revisions"][1]["revision_id"],
    );
    let release = json!({ "revision_id": old, "expected_active_revision_id": live });
    owner
        .post(&server, &format!("{path}/rollback"), &release)
        .await
        .expect(200);
    purged_twice("rollback").await;
    let release = json!({ "revision_id": live, "expected_active_revision_id": old });
    owner
        .post(&server, &format!("{path}/promote"), &release)
        .await
        .expect(200);
    purged_twice("promote").await;
    let done = server
        .command(&svc(), &["deployment", "disable", "room"])
        .await;
    assert!(done.success, "{done:?}");
    purged_twice("disable").await;
    let digest = svc::content::Digest::of(b"# Two").to_string();
    for command in ["block", "unblock"] {
        let done = server.command(&svc(), &["content", command, &digest]).await;
        assert!(done.success, "{done:?}");
        purged_twice(command).await;
    }
    owner.delete(&server, &path).await.expect(204);
    purged_twice("delete").await;
    server
        .publish_slug(&json!({ "content": "x", "name": "share" }))
        .await;
    let share = json!({ "content": "x", "name": "room" });
    let share = server.deploy(&share).await;
    let claim = json!({ "id": share["id"], "delete_token": share["delete_token"] });
    owner
        .post(&server, &format!("/{project}/frontends/claim"), &claim)
        .await
        .expect(201);
    purged_twice("claim, and no quick share").await;
    owner
        .delete(&server, &format!("/{project}"))
        .await
        .expect(204);
    purged_twice("the project's end").await;
}

#[tokio::test]
async fn an_edge_that_fails_delays_nobody_and_is_asked_again() {
    let (recorder, edge) = PurgeRecorder::start().await;
    recorder.answer(&[500, 429]);
    let server = start_with_edge(edge).await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    owner.frontend(&server, &project, "room").await;
    server.get("/room").answer().await.expect(200);
    for call in 1..=3 {
        assert_eq!(
            recorder.wait_for_calls(call).await,
            prefixes_of_both_hosts(&server, "room")
        );
        wait_until_noted(&server).await;
        server.advance(5);
    }
}

#[tokio::test]
async fn a_call_has_thirty_prefixes_at_most() {
    let (recorder, edge) = PurgeRecorder::start().await;
    let server = start_with_edge(edge).await;
    let owner = Owner::new(&server, "acme").await;
    let made = json!({ "name": "House", "ttl_seconds": 60 });
    let made = owner.post(&server, "", &made).await.expect(201).json();
    let project = made["id"].as_str().unwrap();
    let slugs: Vec<_> = (0..40).map(|number| format!("room-{number}")).collect();
    for slug in &slugs {
        owner.frontend(&server, project, slug).await;
    }
    let wanted: BTreeSet<_> = slugs
        .iter()
        .flat_map(|slug| prefixes_of_both_hosts(&server, slug))
        .collect();
    let all = async |from: usize| {
        let calls = recorder.calls();
        let prefixes = calls[from..]
            .iter()
            .flat_map(|call| call["prefixes"].as_array().unwrap());
        let seen: BTreeSet<_> = prefixes.map(|p| p.as_str().unwrap().to_owned()).collect();
        (seen == wanted).then_some(calls.len())
    };
    let before = wait_until("all to be purged", async || all(0).await).await;
    // The project's end purges them all at once.
    server.advance(60);
    wait_until("all to be purged again", async || all(before).await).await;
    for call in recorder.calls() {
        assert!(call["prefixes"].as_array().unwrap().len() <= 30);
    }
}

#[tokio::test]
async fn the_edge_may_keep_a_frontend_no_longer_than_its_project_lives() {
    let (_, edge) = PurgeRecorder::start().await;
    let server = start_with_edge(edge).await;
    let owner = Owner::new(&server, "acme").await;
    let sites = format!("localhost:{}", server.address().port());
    for (name, project, life) in [
        ("long", json!({ "name": "Long" }), "max-age=31536000"),
        (
            "short",
            json!({ "name": "Short", "ttl_seconds": 100 }),
            "max-age=100",
        ),
    ] {
        let made = owner.post(&server, "", &project).await.expect(201).json();
        owner
            .frontend(&server, made["id"].as_str().unwrap(), name)
            .await;
        for host in [&sites, &format!("{name}-acme.{sites}")] {
            let page = server.get_raw(host, &format!("/{name}")).await.expect(200);
            assert_eq!(page.header("cdn-cache-control"), Some(life), "{host}");
        }
    }
    server.advance(40);
    let page = server.get_raw(&sites, "/short").await.expect(200);
    assert_eq!(page.header("cdn-cache-control"), Some("max-age=60"));
    // Answers that are never purged must not be cached at the edge.
    let address = server.get("/short").answer().await.expect(200);
    assert_eq!(address.header("cdn-cache-control"), Some("no-store"));
    server
        .publish_slug(&json!({ "content": "x", "name": "share" }))
        .await;
    let share = server.get_raw(&sites, "/share").await.expect(200);
    assert_eq!(share.header("cdn-cache-control"), None);
}

#[tokio::test]
async fn the_api_host_is_no_edges_if_it_is_not_the_sites_host() {
    let (_, edge) = PurgeRecorder::start().await;
    let server = TestServer::builder()
        .settings(|settings| {
            settings.edge = Some(edge);
            settings.base_url = Some("https://api.example.com".parse().unwrap());
            settings.sites_url = Some("https://sites.example.com".parse().unwrap());
        })
        .start()
        .await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    owner.frontend(&server, &project, "room").await;
    for (host, life) in [
        ("api.example.com", Some("no-store")),
        ("sites.example.com", Some("max-age=31536000")),
    ] {
        let page = server.get_raw(host, "/room").await.expect(200);
        assert_eq!(page.header("cdn-cache-control"), life, "{host}");
    }
}

#[tokio::test]
async fn what_an_operator_does_while_no_server_runs_is_purged_by_the_next() {
    let (recorder, edge) = PurgeRecorder::start().await;
    let server = start_with_edge(edge).await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    owner.frontend(&server, &project, "room").await;
    for call in 1..=2 {
        assert_eq!(
            recorder.wait_for_calls(call).await,
            prefixes_of_both_hosts(&server, "room")
        );
        wait_until_noted(&server).await;
        server.advance(10);
    }
    let disable = async |data: &std::path::Path| {
        let done = svc().run(data, &["deployment", "disable", "room"]).await;
        assert!(done.success, "{done:?}");
    };
    let server = server.restart_after_change(disable).await;
    // However late it comes back.
    server.advance(7200);
    for call in 3..=4 {
        assert_eq!(
            recorder.wait_for_calls(call).await,
            prefixes_of_both_hosts(&server, "room")
        );
        wait_until_noted(&server).await;
        server.advance(10);
    }
    let server = server.restart().await;
    server.advance(60);
    server.get("/room").answer().await.expect(403);
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    assert_eq!(recorder.calls().len(), 4, "once is enough");
}

#[tokio::test]
async fn the_root_of_an_origin_is_purged_while_a_site_answers_there() {
    let (recorder, edge) = PurgeRecorder::start().await;
    let server = start_with_edge(edge).await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let port = server.address().port();
    let of_page = |slug: &str| prefixes_of_both_hosts(&server, slug);
    let mut of_root = of_page("site");
    of_root.insert(format!("house-acme.localhost:{port}/"));
    let mut calls = 0;
    let mut purged_twice = async |expected: &BTreeSet<String>, what: &str| {
        for _ in 0..2 {
            calls += 1;
            assert_eq!(&recorder.wait_for_calls(calls).await, expected, "{what}");
            wait_until_noted(&server).await;
            server.advance(10);
        }
    };
    let files = |text: &str| json!({ "index.html": { "text": text } });
    let site = json!({ "type": "site", "files": files("one"), "requested_slug": "site" });
    let path = format!("/{project}/frontends");
    owner.post(&server, &path, &site).await.expect(201);
    purged_twice(&of_root, "the first site").await;
    owner.frontend(&server, &project, "room").await;
    purged_twice(&of_page("room"), "a page beside it").await;
    let path = format!("/{project}/frontends/site");
    let two = json!({ "files": files("two") });
    let put = owner.send(&server, Method::PUT, &path, &two).await;
    put.expect(200);
    purged_twice(&of_root, "a release").await;
    let home = async |slug: &str| {
        let body = json!({ "home": slug });
        let path = format!("/{project}");
        let changed = owner.send(&server, Method::PATCH, &path, &body).await;
        changed.expect(200);
    };
    home("room").await;
    purged_twice(&of_root, "a page as home").await;
    let three = json!({ "files": files("three") });
    let put = owner.send(&server, Method::PUT, &path, &three).await;
    put.expect(200);
    purged_twice(&of_page("site"), "a release below the slug alone").await;
    home("site").await;
    purged_twice(&of_root, "the site as home").await;
    owner.delete(&server, &path).await.expect(204);
    purged_twice(&of_root, "the end of the site").await;
    home("").await;
    owner
        .delete(&server, &format!("/{project}/frontends/room"))
        .await
        .expect(204);
    purged_twice(&of_page("room"), "the end of the page").await;
    owner
        .post(&server, &format!("/{project}/frontends"), &site)
        .await
        .expect(201);
    purged_twice(&of_root, "another site").await;
    owner
        .delete(&server, &format!("/{project}"))
        .await
        .expect(204);
    purged_twice(&of_root, "the end of the project").await;
}
