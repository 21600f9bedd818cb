//! The end of a backend.

use super::*;

/// A house whose guest book says something that is nowhere else.
async fn with_secret(server: TestServer, body: &Value) -> House {
    let owner = Owner::new(&server, "acme").await;
    let made = owner.post(&server, "", body).await.expect(201).json();
    let project = text(&made["id"]);
    let house = House {
        server,
        owner,
        project,
    };
    house.create(GUESTS).await.expect(201);
    house.publish("room").await;
    let add = "INSERT INTO guests (name) VALUES (:name)";
    house.define(&[("add", add)]).await;
    house
        .done("add", &json!({ "name": "words-of-a-guest" }))
        .await;
    let held = disk::holding(house.server.data(), "words-of-a-guest");
    assert!(!held.is_empty());
    house
}

async fn forgotten(house: &House) {
    let gone = async || {
        let held = disk::holding(house.server.data(), "words-of-a-guest");
        held.is_empty().then_some(())
    };
    wait_until("the data to be gone", gone).await;
}

#[tokio::test]
async fn a_deleted_backend_is_gone_and_its_pages_stay() {
    let house = with_secret(TestServer::start().await, &json!({ "name": "House" })).await;
    house.delete().await.expect(204);
    house.get().await.problem(404, "not_found");
    let add = json!({ "name": "late" });
    house.op("add", &add).await.problem(404, "not_found");
    house
        .query("SELECT 1 AS one", &json!({}))
        .await
        .problem(404, "not_found");
    house.server.get("/room").answer().await.expect(200);
    house.delete().await.expect(204);
    forgotten(&house).await;
}

#[tokio::test]
async fn a_project_takes_its_backend_with_it() {
    let house = with_secret(TestServer::start().await, &json!({ "name": "House" })).await;
    let path = format!("/{}", house.project);
    house.owner.delete(&house.server, &path).await.expect(204);
    let add = json!({ "name": "late" });
    house.op("add", &add).await.problem(404, "not_found");
    house.get().await.problem(404, "not_found");
    forgotten(&house).await;
}

#[tokio::test]
async fn a_project_that_expires_takes_its_backend_with_it() {
    let short = json!({ "name": "House", "ttl_seconds": 60 });
    let house = with_secret(TestServer::start().await, &short).await;
    let add = json!({ "name": "early" });
    house.server.advance(59);
    house.done("add", &add).await;
    house.server.advance(1);
    house.op("add", &add).await.problem(404, "not_found");
    house.get().await.problem(404, "not_found");
    forgotten(&house).await;
}
