//! `svc restore --from`: a cluster's installation on one machine, after all of its nodes are gone. And earlier moments of a backend,
//! after the node is gone that made them.

use http::Method;
use serde_json::{Value, json};
use svc_tests::cluster::{Cluster, ClusterNode, Writers};
use svc_tests::{ReadAnswer, wait_until};

use crate::svc;

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_with_the_ledger_has_everything_that_was_acknowledged() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    let secret = json!({ "content": "read once", "one_time": true });
    let published = owner.process.json("/api/v1/deploy", &secret).await;
    published.expect(201);
    let writers = Writers::start(&owner);
    writers.wait_for(100).await;
    owner.lose().await;

    let (data, restored) = cluster.restore(true).await;
    assert_eq!(restored["complete"], true);
    assert_eq!(restored["errors"], json!([]));
    assert_eq!(restored["one_time_left_out"], 1);
    let databases = restored["databases"].as_array().unwrap();
    assert_eq!(databases.len(), 2, "{restored}");
    for database in databases {
        // None is older than the others.
        assert_eq!(database.get("age_seconds"), None, "{database}");
        assert!(database["commit"].as_u64().unwrap() > 0, "{database}");
    }
    let alone = cluster.serve_alone(data).await;
    alone.process.get("/room").await.expect(200);
    writers.check(&cluster, &alone).await;
    // It goes on as any server of one machine does.
    alone.add((99, 1)).await.expect(200);
    assert!(cluster.entries(&alone).await.contains_key(&(99, 1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_without_the_ledger_says_how_old_each_database_is() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    owner.add((1, 1)).await.expect(200);
    owner.lose().await;
    let (data, restored) = cluster.restore(false).await;
    assert_eq!(restored["complete"], false);
    let databases = restored["databases"].as_array().unwrap();
    assert!(!databases.is_empty());
    for database in databases {
        assert!(database["stored_at"].is_string(), "{database}");
        assert!(database["age_seconds"].is_u64(), "{database}");
    }
    cluster.serve_alone(data).await;
}

/// Lists the moments of the backend, the newest first.
async fn moments(cluster: &Cluster, node: &ClusterNode) -> Vec<Value> {
    let path = format!("{}/history", cluster.backend());
    let listed = cluster
        .owner_request(node, Method::GET, &path)
        .answer()
        .await;
    let listed = listed.expect(200).json();
    let listed = listed["moments"].as_array().unwrap().iter();
    listed.map(|moment| moment["at"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn moments_before_a_kill_are_restored_at_the_next_node() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    let mut made = Vec::new();
    for number in 1..=5 {
        owner.add((1, number)).await.expect(200);
        made.push(moments(&cluster, &owner).await[0].clone());
    }
    let standby = cluster.start("n2", true).await;
    owner.lose().await;
    standby.wait_until_ready().await;
    wait_until("the moments of the node before", async || {
        let listed = moments(&cluster, &standby).await;
        made.iter().all(|at| listed.contains(at)).then_some(())
    })
    .await;
    let path = format!("{}/restore", cluster.backend());
    let at = json!({ "at": made[2] });
    let restore = cluster.owner_request(&standby, Method::POST, &path);
    restore.json(&at).answer().await.expect(200);
    let entries = cluster.entries(&standby).await;
    assert!(entries.keys().eq(&[(1, 1), (1, 2), (1, 3)]), "{entries:?}");
}
