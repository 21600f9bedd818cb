//! Nodes that are killed at random, each disk thrown away, under writers at random nodes.

use std::time::Instant;

use http::Method;
use serde_json::json;

use super::print_times;
use crate::answer::ReadAnswer as _;
use crate::cluster::Writers;
use crate::process::Binary;
use crate::seeded_rng::SeededRng;
use crate::three_nodes::{NODES, ThreeNodes};

/// Kills one or two nodes a round, and starts them again. What was acknowledged is at each node then, once; the times until the others
/// have acknowledged a write and a page are printed.
///
/// # Panics
/// When something is lost or there twice.
pub async fn kill_nodes(binary: Binary, rounds: usize, seed: u64) {
    let mut nodes = ThreeNodes::start(binary, "").await;
    let mut rng = SeededRng::new(seed);
    let writers = Writers::start_at(&nodes.living());
    let (mut writes, mut pages) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        writers.wait_for(1 + round % 5 * 40).await;
        let first = rng.below(NODES);
        // Now and then two: the third one goes on alone.
        let count = 1 + usize::from(rng.below(4) == 0);
        let killed = Instant::now();
        for next in 0..count {
            nodes.kill((first + next) % NODES).await;
        }
        writers.turn_to_any(&nodes.living());
        let publishing = async {
            publish(&nodes, &mut rng, round).await;
            Instant::now()
        };
        let (written, published) = tokio::join!(writers.wait_for_answer(), publishing);
        writes.push(written.duration_since(killed));
        pages.push(published.duration_since(killed));
        nodes.restart().await;
        writers.turn_to_any(&nodes.living());
    }
    for round in 0..rounds {
        for node in nodes.living() {
            let page = nodes.request(node, Method::GET, &format!("/page-{round}"));
            let page = page.answer().await.expect(200);
            assert!(page.text().contains(&format!("of page-{round}")));
        }
    }
    writers.check_at(&nodes.cluster, &nodes.living()).await;
    print_times("first write after a kill", writes);
    print_times("first page after a kill", pages);
}

/// Publishes the page of a round, which each node that lives shows in the first request after the 201, or says that it cannot.
async fn publish(nodes: &ThreeNodes, rng: &mut SeededRng, round: usize) {
    let name = format!("page-{round}");
    let page = json!({ "content": format!("<p>of {name}</p>"), "name": name });
    let slug = nodes.publish(rng, &page, &name).await;
    assert_eq!(slug, name, "published twice");
    for node in nodes.living() {
        let shown = nodes.request(node, Method::GET, &format!("/{name}"));
        let shown = shown.answer().await;
        assert!(matches!(shown.status, 200 | 503), "{name}: {shown:?}");
    }
}
