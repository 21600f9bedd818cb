//! A node that stands by, and what operators ask of it.

use rustix::process::Signal;
use svc_tests::ReadAnswer;
use svc_tests::cluster::Cluster;

use crate::svc;

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_answers_probes_and_operators() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    let standby = cluster.start("n2", true).await;
    let process = &standby.process;
    assert_eq!(process.get("/healthz").await.expect(200).text(), "ok\n");
    let probe = process.get("/readyz").await.expect(503);
    assert_eq!(probe.text(), "standby\n");
    assert_eq!(probe.header("retry-after"), Some("1"));
    for path in ["/room", "/", "/api/v1/projects"] {
        let refused = process.get(path).await;
        refused.problem(503, "capacity_reached");
        assert_eq!(refused.header("retry-after"), Some("1"), "{path}");
    }
    standby.add((1, 1)).await.problem(503, "capacity_reached");
    let listed = cluster.run(&standby.data, &["namespace", "list"]).await;
    assert!(listed.success, "{listed:?}");

    for data in [&owner.data, &standby.data] {
        let listed = cluster.run(data, &["node", "list", "--json"]).await.json();
        let nodes = listed["nodes"].as_array().unwrap();
        let live = nodes.iter().filter(|node| node["live"] == true);
        let shown: Vec<_> = live
            .map(|node| (node["name"].as_str().unwrap(), node["control"] == true))
            .collect();
        assert_eq!(shown, [("n1", true), ("n2", false)], "{listed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_has_a_standby_take_over() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    owner.add((1, 1)).await.expect(200);
    let standby = cluster.start("n2", true).await;
    let promoted = cluster.run(&standby.data, &["promote", "--json"]).await;
    assert_eq!(promoted.json()["had_control"], false);
    standby.add((1, 2)).await.expect(200);
    let (ended, _) = owner.process.wait_for_exit().await;
    assert_eq!(ended.code(), Some(3));
    let entries = cluster.entries(&standby).await;
    assert!(entries.keys().eq(&[(1, 1), (1, 2)]), "{entries:?}");
    let again = cluster.run(&standby.data, &["promote", "--json"]).await;
    assert_eq!(again.json()["had_control"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_stopped_hands_over() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    owner.add((1, 1)).await.expect(200);
    let standby = cluster.start("n2", true).await;
    let other = cluster.start("n3", true).await;
    // A standby that is stopped leaves, too.
    other.process.signal(Signal::TERM);
    let (ended, said) = other.process.wait_for_exit().await;
    assert!(ended.success() && said.starts_with("standby "), "{said}");
    owner.process.signal(Signal::TERM);
    let (ended, _) = owner.process.wait_for_exit().await;
    assert_eq!(ended.code(), Some(0));
    standby.wait_until_ready().await;
    standby.add((1, 2)).await.expect(200);
    assert_eq!(cluster.entries(&standby).await.len(), 2);
    // The same directory again: nothing of its databases is believed.
    standby.process.signal(Signal::TERM);
    let (_, said) = standby.process.wait_for_exit().await;
    let lines: Vec<_> = said.lines().collect();
    assert!(
        lines[0].starts_with("standby ") && lines[1].starts_with("ready "),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_join_says_why() {
    let unfounded = Cluster::unfounded(svc()).await;
    let refused = unfounded.try_start("n1", false).await.unwrap_err();
    assert!(refused.contains("svc cluster found"), "{refused}");

    let (cluster, owner) = Cluster::with_room(svc()).await;
    let refused = cluster.try_start("n1", true).await.unwrap_err();
    assert!(refused.contains("another node named \"n1\""), "{refused}");
    let url = owner.process.url("/room");
    let page = owner.process.client().get(url).answer().await;
    page.expect(200);
}
