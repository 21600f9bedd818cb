//! Guests of a cluster: the choice of an operator at one node is that of all, over joins, takeovers and restores.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use svc_tests::cluster::{Cluster, ClusterNode};
use svc_tests::guests::{RendererBehaviour, renderer, write};
use svc_tests::wait_until;

use crate::svc;

/// Writes a renderer that signs its pages.
fn renderer_file(cluster: &Cluster, sign: &str, behaviour: RendererBehaviour) -> PathBuf {
    let folder = cluster.new_data("guests");
    std::fs::create_dir(&folder).unwrap();
    write(&folder, sign, &renderer(sign, behaviour))
}

/// Installs a guest; returns its digest.
async fn install(cluster: &Cluster, data: &Path, file: &Path, effect: &str) -> String {
    let file = file.to_str().unwrap();
    let install = ["guest", "install", file, "--no-replay", "--json"];
    let installed = cluster.run(data, &install).await.json();
    assert_eq!(installed["effect"], effect, "{installed}");
    installed["digest"].as_str().unwrap().to_owned()
}

/// Returns what `svc guest status` says of the renderer.
async fn status(cluster: &Cluster, data: &Path) -> Value {
    let shown = cluster.run(data, &["guest", "status", "--json"]).await;
    shown.json()["render"].take()
}

/// Waits until a node has loaded a renderer that is installed there.
async fn wait_for_guest(cluster: &Cluster, node: &ClusterNode, digest: &str) {
    wait_until("a node that follows", async || {
        let render = status(cluster, &node.data).await;
        (render["digest"] == digest && render["serving"] == digest).then_some(())
    })
    .await;
}

/// Publishes a page, and returns it as another node shows it.
async fn publish(at: &ClusterNode, other: &ClusterNode, name: &str, content: &str) -> String {
    let page = json!({ "type": "markdown", "content": content, "name": name });
    wait_until("a page to be published", async || {
        let published = at.process.json("/api/v1/deploy", &page).await;
        (published.status == 201).then_some(())
    })
    .await;
    let shown = other.process.get(&format!("/{name}")).await.expect(200);
    shown.text().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_is_installed_at_one_node_serves_at_all_and_stays_over_a_takeover() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    let follower = cluster.start("n2", false).await;
    follower.wait_until_ready().await;
    let file = renderer_file(&cluster, "one", RendererBehaviour::Good);
    let digest = install(&cluster, &follower.data, &file, "switched").await;
    // Pages are rendered where control is, whoever is asked.
    for (name, at, other) in [("a", &owner, &follower), ("b", &follower, &owner)] {
        let page = publish(at, other, name, "# Page").await;
        assert!(page.contains("begun by one"), "{page}");
    }
    let audit = cluster.run(&owner.data, &["audit", "--json"]).await.json();
    assert!(audit.to_string().contains("guest.switch"), "{audit}");
    // The command is repeated where the node runs that has control.
    install(&cluster, &owner.data, &file, "switched").await;
    let third = cluster.start("n3", false).await;
    third.wait_until_ready().await;
    for node in [&owner, &follower, &third] {
        wait_for_guest(&cluster, node, &digest).await;
    }

    assert!(cluster.promote(&third).await.success);
    owner.process.wait_for_exit().await;
    let page = publish(&follower, &third, "c", "# Page").await;
    assert!(page.contains("begun by one"), "{page}");
    let roll_back = ["guest", "rollback", "render", "--json"];
    let back = cluster.run(&follower.data, &roll_back).await.json();
    assert_eq!(back["effect"], "switched", "{back}");
    let built_in = back["digest"].as_str().unwrap();
    let page = publish(&follower, &third, "d", "# Page").await;
    assert!(!page.contains("begun by"), "{page}");
    for node in [&follower, &third] {
        wait_for_guest(&cluster, node, built_in).await;
    }
    let again = cluster.run(&follower.data, &roll_back).await;
    assert!(!again.success, "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_falls_at_one_node_is_left_by_all() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    let follower = cluster.start("n2", false).await;
    follower.wait_until_ready().await;
    let good = renderer_file(&cluster, "good", RendererBehaviour::Good);
    let good = install(&cluster, &owner.data, &good, "switched").await;
    let bad = renderer_file(&cluster, "bad", RendererBehaviour::Bad);
    let bad = install(&cluster, &follower.data, &bad, "switched").await;
    wait_for_guest(&cluster, &follower, &bad).await;
    let page = publish(&follower, &owner, "rescued", "trap me").await;
    assert!(page.contains("begun by good"), "{page}");
    for node in [&owner, &follower] {
        wait_for_guest(&cluster, node, &good).await;
        let render = status(&cluster, &node.data).await;
        let latest = render["history"].as_array().unwrap().last().unwrap();
        assert_eq!(latest["kind"], "automatic", "{render}");
    }
    // A disk that is thrown away takes nothing with it.
    follower.lose().await;
    let back = cluster.start("n2", false).await;
    back.wait_until_ready().await;
    wait_for_guest(&cluster, &back, &good).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_founding_and_a_restore_bring_the_guests_along() {
    let mut cluster = Cluster::unfounded(svc()).await;
    let data = cluster.installation(&[]).await;
    let file = renderer_file(&cluster, "one", RendererBehaviour::Good);
    let digest = install(&cluster, &data, &file, "next_start").await;
    let founded = cluster.found_with(&data, None).await;
    assert!(founded.success, "{founded:?}");
    let node = cluster.start("n1", false).await;
    node.wait_until_ready().await;
    wait_for_guest(&cluster, &node, &digest).await;
    let page = publish(&node, &node, "page", "# Page").await;
    assert!(page.contains("begun by one"), "{page}");
    node.lose().await;

    let (data, restored) = cluster.restore(true).await;
    assert_eq!(restored["errors"], json!([]));
    assert_eq!(status(&cluster, &data).await["digest"], digest);
    let alone = cluster.serve_alone(data).await;
    let page = publish(&alone, &alone, "later", "# Page").await;
    assert!(page.contains("begun by one"), "{page}");
    // It is one machine again: its folder decides.
    let roll_back = ["guest", "rollback", "render", "--json"];
    let back = cluster.run(&alone.data, &roll_back).await.json();
    assert_eq!(back["effect"], "switched", "{back}");
}
