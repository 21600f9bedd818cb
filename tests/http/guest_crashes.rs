//! A process that dies while a guest is installed, or while pages are rendered again.

use serde_json::{Value, json};
use svc_tests::guests::{RendererBehaviour, renderer, write};
use svc_tests::wait_until;
use tempfile::TempDir;

use crate::crashes::{fault_group, fault_points};
use crate::guests::page_signature;
use crate::svc;

/// Deeds that lead to the points of this file.
pub(crate) const FAULT_GROUPS: [&str; 2] = ["install", "rerender"];

/// How many pages there are: the first one is where the process dies.
const PAGES: usize = 3;

fn fault_points_of(group: &str) -> Vec<String> {
    let found = fault_points()
        .into_iter()
        .filter(|point| fault_group(point) == group);
    let found: Vec<_> = found.collect();
    assert!(found.len() >= 2, "{found:?}");
    found
}

#[tokio::test]
async fn an_install_is_done_or_not_whatever_its_point_of_death() {
    let folder = TempDir::new().unwrap();
    let file = write(
        folder.path(),
        "new",
        &renderer("new", RendererBehaviour::Good),
    );
    let install = ["guest", "install", file.to_str().unwrap(), "--json"];
    for point in fault_points_of("install") {
        let data = TempDir::new().unwrap();
        let run = async |arguments: &[&str]| svc().run(data.path(), arguments).await;
        let died = svc().run_to_fault(&point, data.path(), &install).await;
        assert!(!died.success, "{point}: it did not die");
        let status = run(&["guest", "status", "--json"]).await.json();
        let done = point == "install.recorded";
        assert_eq!(status["render"]["built_in"], !done, "{point}");
        let installed = run(&install).await.json();
        let status = run(&["guest", "status", "--json"]).await.json();
        assert_eq!(status["render"]["digest"], installed["digest"], "{point}");
        let process = svc().serve(data.path(), &[]).await;
        let body = json!({ "type": "markdown", "content": "# x", "name": "page" });
        let published = async || {
            let answer = process.json("/api/v1/deploy", &body).await;
            (answer.status == 201).then_some(())
        };
        wait_until("the guests to be loaded", published).await;
        assert_eq!(
            page_signature(process.get("/page").await.text()),
            Some("new")
        );
        process.kill().await;
    }
}

/// The server makes the change where one runs, and may die of it: what it has written down holds, and the command says so.
#[tokio::test]
async fn an_install_that_the_server_dies_of_is_done() {
    let (folder, data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = write(
        folder.path(),
        "new",
        &renderer("new", RendererBehaviour::Good),
    );
    let install = ["guest", "install", file.to_str().unwrap(), "--json"];
    let dying = svc()
        .serve_to_fault(Some("install.recorded"), data.path(), &[])
        .await;
    let asked = svc().run(data.path(), &install).await;
    assert!(!asked.success, "{asked:?}");
    assert!(
        asked.stderr.contains("ended before it answered"),
        "{asked:?}"
    );
    let (status, _) = dying.wait_for_exit().await;
    assert!(!status.success(), "it did not die");
    let process = svc().serve(data.path(), &[]).await;
    let body = json!({ "type": "markdown", "content": "# x", "name": "page" });
    process.json("/api/v1/deploy", &body).await.expect(201);
    assert_eq!(
        page_signature(process.get("/page").await.text()),
        Some("new")
    );
    let again = svc().run(data.path(), &install).await.json();
    assert_eq!(again["effect"], "switched");
    process.kill().await;
}

#[tokio::test]
async fn a_rerender_goes_on_where_it_was_whatever_its_point_of_death() {
    let folder = TempDir::new().unwrap();
    let [old, new] = ["old", "new"].map(|sign| {
        write(
            folder.path(),
            sign,
            &renderer(sign, RendererBehaviour::Good),
        )
    });
    for point in fault_points_of("rerender") {
        let data = TempDir::new().unwrap();
        let run = async |arguments: &[&str]| svc().run(data.path(), arguments).await;
        run(&["guest", "install", old.to_str().unwrap(), "--json"])
            .await
            .json();
        let process = svc().serve(data.path(), &[]).await;
        for number in 0..PAGES {
            let name = format!("page-{number}");
            let body = json!({ "type": "markdown", "content": "# x", "name": name });
            process.json("/api/v1/deploy", &body).await.expect(201);
        }
        process.kill().await;
        run(&["guest", "install", new.to_str().unwrap(), "--json"])
            .await
            .json();
        let asked = run(&["guest", "rerender", "--json"]).await.json();
        assert_eq!(asked["server_running"], false);
        let waits = run(&["guest", "rerender", "--wait", "--json"]).await;
        assert!(!waits.success, "nobody finishes it: {waits:?}");
        let dying = svc().serve_to_fault(Some(&point), data.path(), &[]).await;
        let (status, _) = dying.wait_for_exit().await;
        assert!(!status.success(), "{point}: it did not die");

        let process = svc().serve(data.path(), &[]).await;
        let done = async || -> Option<Value> {
            let status = run(&["guest", "status", "--json"]).await.json();
            let rerender = status["rerender"].clone();
            rerender["finished_at"].is_string().then_some(rerender)
        };
        let done = wait_until("pages to be rendered again", done).await;
        assert_eq!(done["total"], PAGES, "{point}");
        assert_eq!(done["changed"], PAGES, "{point}: each once");
        for number in 0..PAGES {
            let page = process.get(&format!("/page-{number}")).await.expect(200);
            assert_eq!(page_signature(page.text()), Some("new"), "{point}");
        }
        let found = run(&["check", "--json"]).await.json();
        assert_eq!(found["errors"], json!([]), "{point}");
        process.kill().await;
    }
}
