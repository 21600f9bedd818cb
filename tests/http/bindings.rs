//! Which pages reach which backend: a publish binds, and a backend that is made again revives nobody.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use crate::account::text;
use crate::house::{GUESTS, House};

const ONE: (&str, &str) = ("one", "SELECT 1 AS one");

/// The pages among these through which the backend answers.
async fn bound(house: &House, slugs: &[&'static str]) -> Vec<&'static str> {
    let mut bound = Vec::new();
    for slug in slugs {
        let answer = house.call(slug, &json!({ "action": "one" })).await;
        if answer.status == 200 {
            bound.push(*slug);
        } else {
            answer.problem(404, "not_found");
        }
    }
    bound
}

async fn republish(house: &House, slug: &str) {
    let path = format!("/{}/frontends/{slug}", house.project);
    let body = json!({ "content": "# Again" });
    let answer = house.owner.send(&house.server, Method::PUT, &path, &body);
    answer.await.expect(200);
}

#[tokio::test]
async fn pages_are_bound_by_publishing_and_once_by_the_first_backend() {
    const PAGES: [&str; 3] = ["early", "late", "between"];
    let house = House::empty(TestServer::start().await).await;
    house.publish("early").await;
    assert_eq!(bound(&house, &PAGES).await, [""; 0]);
    house.create(GUESTS).await.expect(201);
    house.define(&[ONE]).await;
    house.publish("late").await;
    assert_eq!(bound(&house, &PAGES).await, ["early", "late"]);

    house.delete().await.expect(204);
    house.publish("between").await;
    assert_eq!(bound(&house, &PAGES).await, [""; 0]);
    house.create(GUESTS).await.expect(201);
    assert_eq!(
        house.detail().await["actions"],
        json!([]),
        "actions end with it"
    );
    house.define(&[ONE]).await;
    assert_eq!(bound(&house, &PAGES).await, ["between"], "it never had one");
    for page in PAGES {
        house
            .server
            .get(&format!("/{page}"))
            .answer()
            .await
            .expect(200);
    }
    republish(&house, "late").await;
    assert_eq!(bound(&house, &PAGES).await, ["late", "between"]);
    republish(&house, "early").await;
    assert_eq!(bound(&house, &PAGES).await, PAGES);
}

#[tokio::test]
async fn a_binding_lasts_through_changes_and_restarts() {
    let mut house = House::new(GUESTS).await;
    house.define(&[ONE]).await;
    republish(&house, "room").await;
    house.migrate("CREATE TABLE more (a)").await.expect(200);
    assert_eq!(bound(&house, &["room"]).await, ["room"]);
    house.server = house.server.restart().await;
    assert_eq!(bound(&house, &["room"]).await, ["room"]);
    let path = format!("/{}/frontends/room", house.project);
    house.owner.delete(&house.server, &path).await.expect(204);
    assert_eq!(bound(&house, &["room"]).await, [""; 0]);
}

#[tokio::test]
async fn a_page_reaches_its_own_projects_backend_alone() {
    let house = House::new(GUESTS).await;
    house.define(&[ONE]).await;
    let shop = house.owner.project(&house.server, "Shop").await;
    house.owner.frontend(&house.server, &shop, "till").await;
    let share = json!({ "content": "x", "name": "share" });
    house.server.publish_slug(&share).await;
    let locked = json!({ "content": "x", "name": "locked", "password": "p" });
    house.server.publish_slug(&locked).await;
    let pages = ["room", "till", "share", "locked", "nothing"];
    assert_eq!(bound(&house, &pages).await, ["room"]);
    let backend = json!({ "ddl": GUESTS });
    let path = format!("/{shop}/backend");
    house
        .owner
        .post(&house.server, &path, &backend)
        .await
        .expect(201);
    // The shop's backend has no action of that name: the answer is a 404 of another kind.
    assert_eq!(bound(&house, &pages).await, ["room"]);
    let body = json!({ "actions": [{ "name": "one", "sql": "SELECT 2 AS one" }] });
    let path = format!("/{shop}/backend/actions");
    let put = house.owner.send(&house.server, Method::PUT, &path, &body);
    put.await.expect(200);
    for (slug, one) in [("room", 1), ("till", 2)] {
        let answer = house.call(slug, &json!({ "action": "one" })).await;
        assert_eq!(answer.expect(200).json()["rows"], json!([{ "one": one }]));
    }
}

#[tokio::test]
async fn a_project_names_its_backend() {
    let house = House::empty(TestServer::start().await).await;
    let backend = async || {
        let path = format!("/{}", house.project);
        let one = house
            .owner
            .get(&house.server, &path)
            .await
            .expect(200)
            .json();
        let all = house.owner.get(&house.server, "").await.expect(200).json();
        assert_eq!(all["projects"][0]["backend"], one["backend"]);
        one["backend"].clone()
    };
    assert_eq!(backend().await, Value::Null);
    let made = house.create(GUESTS).await.expect(201).json();
    assert_eq!(backend().await, json!({ "id": made["id"] }));
    house.delete().await.expect(204);
    assert_eq!(backend().await, Value::Null);
    let again = house.create(GUESTS).await.expect(201).json();
    assert_ne!(text(&again["id"]), text(&made["id"]));
    assert_eq!(backend().await, json!({ "id": again["id"] }));
}
