//! Two nodes that serve one installation: whichever is asked, the answer is the same.

use futures_util::future::join_all;
use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use svc_tests::cluster::{Cluster, ClusterNode, Writers};
use svc_tests::{ReadAnswer, Socket, SocketEvent, wait_until};

use crate::sockets::watch_entries;
use crate::svc;

/// Pages that are published at each node.
const PAGES: u64 = 8;

/// Starts an installation with the page `room`, its owner, and a node that follows.
pub(crate) async fn start_two() -> (Cluster, ClusterNode, ClusterNode) {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    let follower = cluster.start("n2", false).await;
    follower.wait_until_ready().await;
    (cluster, owner, follower)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_served_by_the_other_node_in_the_first_request_after_its_201() {
    let (_cluster, owner, follower) = start_two().await;
    for number in 0..PAGES {
        for (at, other) in [(&owner, &follower), (&follower, &owner)] {
            let name = format!("page-{number}-{}", at.process.address().port());
            let page = json!({ "content": format!("# Page {name}"), "name": name });
            let published = at.process.json("/api/v1/deploy", &page).await;
            published.expect(201);
            let path = format!("/{name}");
            let shown = other.process.get(&path).await.expect(200);
            let text = shown.text();
            assert!(text.contains(&format!("Page {name}")), "{text}");
            let again = at.process.get(&path).await.expect(200);
            assert_eq!(again.text(), text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_page_is_shown_by_both_nodes_in_the_first_request_after_its_answer() {
    let (cluster, owner, follower) = start_two().await;
    for (at, other) in [(&owner, &follower), (&follower, &owner)] {
        let slug = format!("page-{}", at.process.address().port());
        let below = format!("/frontends/{slug}");
        let show = async |status: u16, text: &str| {
            let path = format!("/{slug}");
            let there = other.process.get(&path).await.expect(status);
            let here = at.process.get(&path).await.expect(status);
            assert!(there.text().contains(text), "{there:?}");
            // An error names its request.
            assert!(status != 200 || there.is_same(&here), "{there:?} {here:?}");
        };
        let one = json!({ "type": "markdown", "content": "# Number one", "requested_slug": slug });
        let made = cluster.ask(at, Method::POST, "/frontends", &one).await;
        made.expect(201);
        show(200, "Number one").await;
        let two = json!({ "content": "# Number two" });
        cluster.ask(at, Method::PUT, &below, &two).await.expect(200);
        show(200, "Number two").await;

        let revisions = format!("/{}{below}/revisions", cluster.project());
        let revisions = cluster.owner_request(at, Method::GET, &revisions);
        let revisions = revisions.answer().await.expect(200).json();
        let (live, old) = (
            &revisions["active_revision_id"],
            &revisions["revisions"][1]["revision_id"],
        );
        for (release, (from, to), text) in [
            ("rollback", (live, old), "Number one"),
            ("promote", (old, live), "Number two"),
        ] {
            let body = json!({ "revision_id": to, "expected_active_revision_id": from });
            let path = format!("{below}/{release}");
            let released = cluster.ask(at, Method::POST, &path, &body).await;
            released.expect(200);
            show(200, text).await;
        }
        for (command, status) in [("disable", 403), ("enable", 200)] {
            let done = cluster.run(&at.data, &["deployment", command, &slug]).await;
            assert!(done.success, "{done:?}");
            show(status, "").await;
        }
        let path = format!("/{}{below}", cluster.project());
        let deleted = cluster.owner_request(at, Method::DELETE, &path);
        deleted.answer().await.expect(204);
        show(404, "").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_is_called_at_the_node_that_has_the_database_whoever_is_asked() {
    let (cluster, owner, follower) = start_two().await;
    for number in 0..4 {
        owner.add((1, number)).await.expect(200);
        follower.add((2, number)).await.expect(200);
        let [there, here] = [&follower, &owner].map(|node| cluster.entries(node));
        let (there, here) = (there.await, here.await);
        assert_eq!(there, here);
        assert_eq!(here.len() as u64, 2 * (number + 1));
    }
    // What needs control and the database runs where control is.
    let path = cluster.backend();
    let script = json!({ "ddl": "CREATE TABLE later (x)" });
    let migrate = cluster.owner_request(&follower, Method::PATCH, &path);
    migrate.json(&script).answer().await.expect(200);
    follower.add((2, 9)).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_refused_at_both_nodes_at_once() {
    let (cluster, owner, follower) = start_two().await;
    let made = ["key", "create", "acme", "--json"];
    for (at, other) in [(&owner, &follower), (&follower, &owner)] {
        let made = cluster.run(&at.data, &made).await.json();
        let credential = made["credential"].as_str().unwrap().to_owned();
        let key = made["key_id"].as_str().unwrap();
        let ask = async |node: &ClusterNode| {
            let request = node
                .process
                .client()
                .get(node.process.url("/api/v1/projects"));
            request.bearer_auth(&credential).answer().await.status
        };
        assert_eq!([ask(at).await, ask(other).await], [200, 200]);
        let revoked = cluster.run(&at.data, &["key", "revoke", "acme", key]).await;
        assert!(revoked.success, "{revoked:?}");
        assert_eq!([ask(other).await, ask(at).await], [401, 401]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_takes_over_in_the_running_process_and_loses_nothing() {
    let (cluster, owner, follower) = start_two().await;
    // In memory before the owner is gone.
    follower.process.get("/room").await.expect(200);
    let writers = Writers::start(&follower);
    writers.wait_for(50).await;
    owner.lose().await;
    follower.process.get("/room").await.expect(200);
    writers.wait_for(50).await;
    follower.wait_until_ready().await;
    let page = json!({ "content": "# Later", "name": "later" });
    wait_until("a page to be published", async || {
        let published = follower.process.json("/api/v1/deploy", &page).await;
        (published.status == 201).then_some(())
    })
    .await;
    writers.check(&cluster, &follower).await;
    // The one that comes back follows.
    let back = cluster.start("n1", false).await;
    back.wait_until_ready().await;
    back.process.get("/later").await.expect(200);
    back.add((99, 1)).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_hears_nothing_shows_open_pages_and_no_locked_source() {
    let (_cluster, owner, follower) = start_two().await;
    let safe = json!({ "content": "inside", "name": "safe", "password": "sesame" });
    let published = owner.process.json("/api/v1/deploy", &safe).await;
    published.expect(201);
    let password = json!({ "password": "sesame" });
    let unlocked = follower.process.json("/api/v1/auth/safe", &password).await;
    let unlocked = unlocked.expect(200);
    let cookie = unlocked.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let read = async |path: &str| {
        let request = follower.process.client().get(follower.process.url(path));
        request.header("cookie", cookie).answer().await.status
    };
    let paths = ["/room", "/safe", "/safe/raw"];
    for path in paths {
        assert_eq!(read(path).await, 200);
    }
    owner.process.signal(Signal::STOP);
    let is_stale = async || read("/readyz").await == 503;
    wait_until("a node that hears nothing", async || {
        is_stale().await.then_some(())
    })
    .await;
    let mut shown = Vec::new();
    for path in paths {
        shown.push(read(path).await);
    }
    // Soon it takes over, and knows.
    if is_stale().await {
        assert_eq!(shown, [200, 503, 503]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_has_a_node_that_follows_take_control() {
    let (cluster, owner, follower) = start_two().await;
    let promoted = cluster.promote(&follower).await.json();
    assert_eq!(promoted["had_control"], false);
    let (ended, _) = owner.process.wait_for_exit().await;
    assert_eq!(ended.code(), Some(3));
    follower.add((1, 1)).await.expect(200);
    let page = json!({ "content": "# Later", "name": "later" });
    let published = follower.process.json("/api/v1/deploy", &page).await;
    published.expect(201);
    let again = cluster.promote(&follower).await.json();
    assert_eq!(again["had_control"], true);
}

/// The node of this name, as another one lists it.
async fn listed(cluster: &Cluster, at: &ClusterNode, name: &str) -> Value {
    let mut nodes = cluster.nodes(at).await.into_iter();
    nodes.find(|node| node["name"] == name).unwrap()
}

/// Number of databases that a node has.
pub(crate) async fn databases(cluster: &Cluster, at: &ClusterNode, name: &str) -> u64 {
    let node = listed(cluster, at, name).await;
    node["databases"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_leaves_control_to_a_node_that_serves() {
    let (cluster, owner, follower) = start_two().await;
    let standby = cluster.start("n3", true).await;
    wait_until("a node that is listed as one that serves", async || {
        let node = listed(&cluster, &standby, "n2").await;
        (node["serves"] == true).then_some(())
    })
    .await;
    owner.lose().await;
    wait_until("a follower that has control", async || {
        let node = listed(&cluster, &standby, "n2").await;
        (node["control"] == true).then_some(())
    })
    .await;
    let node = listed(&cluster, &follower, "n3").await;
    assert_eq!(node["serves"], false, "{node}");
    // Nobody else is left.
    follower.lose().await;
    standby.wait_until_ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_moves_to_control_when_that_writes_it_and_its_sockets_come_along() {
    let (cluster, before, owner) = start_two().await;
    assert!(cluster.promote(&owner).await.success);
    before.process.wait_for_exit().await;
    let follower = cluster.start("n3", false).await;
    follower.wait_until_ready().await;
    // Nobody has it: who needs it first takes it.
    follower.add((1, 1)).await.expect(200);
    assert_eq!(listed(&cluster, &owner, "n3").await["databases"], 1);
    owner.add((1, 2)).await.expect(200);
    // Its owner is asked there, too, and what that changes in control is done where control is.
    for node in [&follower, &owner] {
        let shown = cluster.owner_request(node, Method::GET, &cluster.backend());
        shown.send().await.unwrap().error_for_status().unwrap();
    }
    let mut sockets = Vec::new();
    for node in [&follower, &owner] {
        let address = node.process.address();
        let opened = Socket::open(address, "/room/api/live", &[]).await;
        sockets.push(opened.unwrap());
    }
    let script = json!({ "ddl": "CREATE TABLE later (x)" });
    let migrate = cluster.owner_request(&follower, Method::PATCH, &cluster.backend());
    // Others come while it moves: each is refused, sent away, or told of what comes later.
    let coming = (0..16).map(|number: usize| {
        let address = [&follower, &owner][number % 2].process.address();
        async move {
            let mut socket = Socket::open(address, "/room/api/live", &[]).await.ok()?;
            watch_entries(&mut socket).await;
            Some(socket)
        }
    });
    let (migrated, coming) = tokio::join!(migrate.json(&script).answer(), join_all(coming));
    migrated.expect(200);
    for mut socket in sockets {
        assert_eq!(socket.wait_for_close().await, Some(1012));
    }
    assert_eq!(databases(&cluster, &owner, "n3").await, 0);
    follower.add((1, 3)).await.expect(200);
    assert_eq!(cluster.entries(&owner).await.len(), 3);
    for mut socket in coming.into_iter().flatten() {
        let closed = loop {
            match socket.next().await {
                SocketEvent::Closed(code) => break code,
                SocketEvent::Text(frame) if frame["result"]["rows"][2].is_object() => {
                    break Some(1012);
                }
                SocketEvent::Text(_) => {}
            }
        };
        assert_eq!(closed, Some(1012));
    }
    let address = follower.process.address();
    let again = Socket::open(address, "/room/api/live", &[]).await;
    assert!(again.is_ok());
}
