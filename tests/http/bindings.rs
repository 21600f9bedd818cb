//! Which pages reach which backend: a publish binds, and a backend that is made again revives nobody.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture};

const SELECT_ONE: (&str, &str) = ("one", "SELECT 1 AS one");

/// The pages among these through which the backend answers.
async fn bound_pages(fixture: &ProjectFixture, slugs: &[&'static str]) -> Vec<&'static str> {
    let mut bound = Vec::new();
    for slug in slugs {
        let answer = fixture.call(slug, &json!({ "action": "one" })).await;
        if answer.status == 200 {
            bound.push(*slug);
        } else {
            answer.problem(404, "not_found");
        }
    }
    bound
}

async fn republish(fixture: &ProjectFixture, slug: &str) {
    let path = format!("/{}/frontends/{slug}", fixture.project);
    let body = json!({ "content": "# Again" });
    let answer = fixture
        .owner
        .send(&fixture.server, Method::PUT, &path, &body);
    answer.await.expect(200);
}

#[tokio::test]
async fn pages_are_bound_by_publishing_and_once_by_the_first_backend() {
    const PAGES: [&str; 3] = ["early", "late", "between"];
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    fixture.publish("early").await;
    assert_eq!(bound_pages(&fixture, &PAGES).await, [""; 0]);
    fixture.create(GUESTS).await.expect(201);
    fixture.define(&[SELECT_ONE]).await;
    fixture.publish("late").await;
    assert_eq!(bound_pages(&fixture, &PAGES).await, ["early", "late"]);

    fixture.delete().await.expect(204);
    fixture.publish("between").await;
    assert_eq!(bound_pages(&fixture, &PAGES).await, [""; 0]);
    fixture.create(GUESTS).await.expect(201);
    assert_eq!(
        fixture.detail().await["actions"],
        json!([]),
        "actions end with it"
    );
    fixture.define(&[SELECT_ONE]).await;
    assert_eq!(
        bound_pages(&fixture, &PAGES).await,
        ["between"],
        "it never had one"
    );
    for page in PAGES {
        fixture
            .server
            .get(&format!("/{page}"))
            .answer()
            .await
            .expect(200);
    }
    republish(&fixture, "late").await;
    assert_eq!(bound_pages(&fixture, &PAGES).await, ["late", "between"]);
    republish(&fixture, "early").await;
    assert_eq!(bound_pages(&fixture, &PAGES).await, PAGES);
}

#[tokio::test]
async fn a_binding_lasts_through_changes_and_restarts() {
    let mut fixture = ProjectFixture::new(GUESTS).await;
    fixture.define(&[SELECT_ONE]).await;
    republish(&fixture, "room").await;
    fixture.migrate("CREATE TABLE more (a)").await.expect(200);
    assert_eq!(bound_pages(&fixture, &["room"]).await, ["room"]);
    fixture.server = fixture.server.restart().await;
    assert_eq!(bound_pages(&fixture, &["room"]).await, ["room"]);
    let path = format!("/{}/frontends/room", fixture.project);
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    assert_eq!(bound_pages(&fixture, &["room"]).await, [""; 0]);
}

#[tokio::test]
async fn a_page_reaches_its_own_projects_backend_alone() {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture.define(&[SELECT_ONE]).await;
    let shop = fixture.owner.project(&fixture.server, "Shop").await;
    fixture.owner.frontend(&fixture.server, &shop, "till").await;
    let share = json!({ "content": "x", "name": "share" });
    fixture.server.publish_slug(&share).await;
    let locked = json!({ "content": "x", "name": "locked", "password": "p" });
    fixture.server.publish_slug(&locked).await;
    let pages = ["room", "till", "share", "locked", "nothing"];
    assert_eq!(bound_pages(&fixture, &pages).await, ["room"]);
    let backend = json!({ "ddl": GUESTS });
    let path = format!("/{shop}/backend");
    fixture
        .owner
        .post(&fixture.server, &path, &backend)
        .await
        .expect(201);
    // The shop's backend has no action of that name: the answer is a 404 of another kind.
    assert_eq!(bound_pages(&fixture, &pages).await, ["room"]);
    let body = json!({ "actions": [{ "name": "one", "sql": "SELECT 2 AS one" }] });
    let path = format!("/{shop}/backend/actions");
    let put = fixture
        .owner
        .send(&fixture.server, Method::PUT, &path, &body);
    put.await.expect(200);
    for (slug, one) in [("room", 1), ("till", 2)] {
        let answer = fixture.call(slug, &json!({ "action": "one" })).await;
        assert_eq!(answer.expect(200).json()["rows"], json!([{ "one": one }]));
    }
}

#[tokio::test]
async fn a_project_names_its_backend() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    let backend = async || {
        let path = format!("/{}", fixture.project);
        let one = fixture
            .owner
            .get(&fixture.server, &path)
            .await
            .expect(200)
            .json();
        let all = fixture
            .owner
            .get(&fixture.server, "")
            .await
            .expect(200)
            .json();
        assert_eq!(all["projects"][0]["backend"], one["backend"]);
        one["backend"].clone()
    };
    assert_eq!(backend().await, Value::Null);
    let made = fixture.create(GUESTS).await.expect(201).json();
    assert_eq!(backend().await, json!({ "id": made["id"] }));
    fixture.delete().await.expect(204);
    assert_eq!(backend().await, Value::Null);
    let again = fixture.create(GUESTS).await.expect(201).json();
    assert_ne!(text(&again["id"]), text(&made["id"]));
    assert_eq!(backend().await, json!({ "id": again["id"] }));
}
