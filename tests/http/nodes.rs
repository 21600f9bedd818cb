//! Several nodes in the place of one server: that the suite can be run against them, and what is left out then (`SVC_TEST_NODES=2`).

use std::path::Path;

use serde_json::json;
use svc_tests::{ONE_MACHINE, ReadAnswer, TestServer, wait_until};

/// Requests for a page, of which each node gets some.
const VIEWS: u64 = 40;

/// Views the page. A machine with much to do may be late with the news of another.
async fn view(server: &TestServer) {
    wait_until("the page", async || {
        let answer = server.get("/page").answer().await;
        (answer.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn each_request_reaches_a_node_that_chance_names() {
    let server = TestServer::builder().nodes(2).start().await;
    let page = json!({ "content": "words", "name": "page" });
    let publish = async || {
        let answer = server.json("/api/v1/deploy", &page).answer().await;
        (answer.status == 201).then_some(())
    };
    wait_until("the page to be published", publish).await;
    for _ in 0..VIEWS {
        view(&server).await;
    }
    assert_eq!(server.visits("page").await, VIEWS);
    let metrics = server.server().app().metrics.encode().unwrap();
    let counter = "svc_http_requests_total{route=\"/{slug}\",status=\"200\"} ";
    let mut lines = metrics.lines();
    let here: u64 = lines
        .find_map(|line| line.strip_prefix(counter))
        .map_or(0, |count| count.parse().unwrap());
    assert!((1..VIEWS).contains(&here), "{here} of {VIEWS}");

    view(&server.restart().await).await;
}

#[test]
fn what_is_left_out_is_there_and_has_few_reasons() {
    assert!(ONE_MACHINE.len() <= 10);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("http");
    let names = ONE_MACHINE.iter().flat_map(|(_, names)| *names);
    for name in names {
        let (module, function) = name.rsplit_once("::").unwrap();
        let path = tests.join(module.replace("::", "/"));
        let file = [path.with_extension("rs"), path.join("mod.rs")];
        let file = file.into_iter().find(|file| file.exists());
        let file = file.unwrap_or_else(|| panic!("there is no module of {name}"));
        let text = std::fs::read_to_string(file).unwrap();
        let is_there = function.is_empty() || text.contains(&format!("async fn {function}"));
        assert!(is_there, "there is no test {name}");
    }
}
