//! Operators: commands beside a running server, settings, signals, and what is printed where.

mod checks;
mod failures;
mod namespaces;
mod process;
mod settings;

use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer, wait_until};

use crate::svc;

#[track_caller]
fn keys(document: &Value) -> Vec<&str> {
    document
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[tokio::test]
async fn disabling_and_enabling_take_effect_while_the_server_runs() {
    let server = TestServer::builder().system_clock().start().await;
    for body in [
        json!({ "content": "x", "name": "page" }),
        json!({ "content": "x", "name": "once", "one_time": true }),
        json!({ "content": "x", "name": "safe", "password": "p" }),
    ] {
        server.publish_slug(&body).await;
    }
    let cookie = server.unlock("safe", "p").await;
    for slug in ["page", "once", "safe"] {
        server.get(&format!("/{slug}")).answer().await;
        let output = server
            .command(&svc(), &["deployment", "disable", slug])
            .await;
        assert!(output.success, "{output:?}");
        let path = format!("/{slug}");
        let disabled = async || (server.get(&path).answer().await.status == 403).then_some(());
        wait_until("the page to be disabled", disabled).await;
        for accept in ["text/html", "*/*"] {
            for path in [path.clone(), format!("{path}/")] {
                let request = server.get(&path).header("accept", accept);
                let answer = request.header("cookie", &cookie).answer().await.expect(403);
                assert!(answer.html().contains("disabled"));
                assert!(answer.header("cache-control").unwrap().contains("no-store"));
            }
            let raw = server.get(&format!("{path}/raw")).header("accept", accept);
            raw.answer().await.problem(403, "disabled");
        }
        assert_eq!(server.post(&path).answer().await.status, 403);
        let unlock = server.json(&format!("/api/v1/auth/{slug}"), &json!({ "password": "p" }));
        unlock.answer().await.problem(403, "disabled");
        let report = json!({ "slug": slug, "reason": "other" });
        server
            .json("/api/v1/reports", &report)
            .answer()
            .await
            .expect(202);

        let command = ["deployment", "enable", slug, "--json"];
        let output = server.command(&svc(), &command).await.json();
        assert_eq!(output, json!({ "slug": slug, "disabled": false }));
        let enabled = async || (server.get(&path).answer().await.status != 403).then_some(());
        wait_until("the page to be enabled", enabled).await;
    }
    server.post("/once").answer().await.expect(200);
    let output = server
        .command(&svc(), &["deployment", "disable", "nothing"])
        .await;
    assert!(
        !output.success && output.stderr.contains("nothing"),
        "{output:?}"
    );
}

#[tokio::test]
async fn a_ban_survives_a_restart() {
    let server = TestServer::start().await;
    server
        .publish_slug(&json!({ "content": "x", "name": "page" }))
        .await;
    server
        .command(&svc(), &["deployment", "disable", "page"])
        .await;
    let server = server.restart().await;
    server.get("/page").answer().await.expect(403);
}

#[tokio::test]
async fn reports_are_listed() {
    let server = TestServer::start().await;
    let none = server
        .command(&svc(), &["report", "list", "--json"])
        .await
        .json();
    assert_eq!(none, json!({ "reports": [] }));
    server
        .publish_slug(&json!({ "content": "x", "name": "bad" }))
        .await;
    let full = json!({
        "slug": "bad", "reason": "malware", "details": "it\u{1b}[31m bites", "contact": "me@example.com",
    });
    let first = server
        .json("/api/v1/reports", &full)
        .answer()
        .await
        .expect(202)
        .json();
    server.advance(1);
    let bare = json!({ "slug": "bad", "reason": "other" });
    let second = server
        .json("/api/v1/reports", &bare)
        .answer()
        .await
        .expect(202)
        .json();
    let listed = server
        .command(&svc(), &["report", "list", "--json"])
        .await
        .json();
    assert_eq!(
        listed,
        json!({ "reports": [
            {
                "id": second["id"], "slug": "bad", "reason": "other", "details": null, "contact": null,
                "created_at": "2026-11-20T12:00:01.000Z",
            },
            {
                "id": first["id"], "slug": "bad", "reason": "malware", "details": "it\u{1b}[31m bites",
                "contact": "me@example.com", "created_at": "2026-11-20T12:00:00.000Z",
            },
        ] })
    );
    let text = server.command(&svc(), &["report", "list"]).await;
    assert!(text.stdout.contains("me@example.com"), "{text:?}");
    assert!(!text.stdout.contains('\u{1b}'), "a terminal is not steered");
}
