//! The end of a backend.

use super::*;

/// A fixture whose guest book says something that is nowhere else.
async fn start_with_secret(server: TestServer, body: &Value) -> ProjectFixture {
    let owner = Owner::new(&server, "acme").await;
    let made = owner.post(&server, "", body).await.expect(201).json();
    let project = text(&made["id"]);
    let fixture = ProjectFixture {
        server,
        owner,
        project,
    };
    fixture.create(GUESTS).await.expect(201);
    fixture.publish("room").await;
    let add = "INSERT INTO guests (name) VALUES (:name)";
    fixture.define(&[("add", add)]).await;
    fixture
        .call_ok("add", &json!({ "name": "words-of-a-guest" }))
        .await;
    let held = disk::holding(fixture.server.data(), "words-of-a-guest");
    assert!(!held.is_empty());
    fixture
}

async fn wait_until_forgotten(fixture: &ProjectFixture) {
    let gone = async || {
        let held = disk::holding(fixture.server.data(), "words-of-a-guest");
        held.is_empty().then_some(())
    };
    wait_until("the data to be gone", gone).await;
}

#[tokio::test]
async fn a_deleted_backend_is_gone_and_its_pages_stay() {
    let fixture = start_with_secret(TestServer::start().await, &json!({ "name": "House" })).await;
    fixture.delete().await.expect(204);
    fixture.get().await.problem(404, "not_found");
    let add = json!({ "name": "late" });
    fixture
        .call_action("add", &add)
        .await
        .problem(404, "not_found");
    fixture
        .query("SELECT 1 AS one", &json!({}))
        .await
        .problem(404, "not_found");
    fixture.server.get("/room").answer().await.expect(200);
    fixture.delete().await.expect(204);
    wait_until_forgotten(&fixture).await;
}

#[tokio::test]
async fn a_project_takes_its_backend_with_it() {
    let fixture = start_with_secret(TestServer::start().await, &json!({ "name": "House" })).await;
    let path = format!("/{}", fixture.project);
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    let add = json!({ "name": "late" });
    fixture
        .call_action("add", &add)
        .await
        .problem(404, "not_found");
    fixture.get().await.problem(404, "not_found");
    wait_until_forgotten(&fixture).await;
}

#[tokio::test]
async fn a_project_that_expires_takes_its_backend_with_it() {
    let short = json!({ "name": "House", "ttl_seconds": 60 });
    let fixture = start_with_secret(TestServer::start().await, &short).await;
    let add = json!({ "name": "early" });
    fixture.server.advance(59);
    fixture.call_ok("add", &add).await;
    fixture.server.advance(1);
    fixture
        .call_action("add", &add)
        .await
        .problem(404, "not_found");
    fixture.get().await.problem(404, "not_found");
    wait_until_forgotten(&fixture).await;
}
