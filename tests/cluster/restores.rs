//! `svc restore --from`: a cluster's installation on one machine, after all of its nodes are gone.

use serde_json::json;
use svc_tests::cluster::{Cluster, Writers};

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
