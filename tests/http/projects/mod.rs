//! Projects: what they are, what is refused, and how they end.

mod labels;
mod origins;

use http::Method;
use serde_json::{Value, json};
use svc::workspaces::Plan;
use svc_tests::{ReadAnswer, TestServer, wait_until};

use crate::owner::{Owner, text};

#[tokio::test]
async fn a_project_is_made_listed_changed_and_deleted() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let body = json!({ "name": "Web Shop!", "description": "Sells", "permanent": true });
    let made = owner.post(&server, "", &body).await.expect(201).json();
    let (id, workspace) = (text(&made["id"]), text(&made["workspace"]["id"]));
    let port = server.address().port();
    let whole = json!({
        "id": id, "name": "Web Shop!", "description": "Sells", "host_label": "web-shop-acme",
        "url": format!("http://web-shop-acme.localhost:{port}"),
        "workspace": { "id": workspace, "slug": "acme" }, "permanent": true,
        "created_at": "2026-11-20T12:00:00.000Z", "updated_at": "2026-11-20T12:00:00.000Z",
        "expires_at": null, "allowed_providers": null, "home": null, "backend": null,
    });
    assert_eq!(made, whole);
    assert_eq!(
        owner.get(&server, "").await.json(),
        json!({ "projects": [whole] })
    );
    let path = format!("/{id}");
    let detail = owner.get(&server, &path).await.expect(200).json();
    assert_eq!(
        (&detail["visits"], &detail["members"]),
        (&json!({ "total": 0 }), &json!([]))
    );

    server.advance(1);
    let changes = json!({ "name": "Shop", "description": "" });
    let changed = owner
        .send(&server, Method::PATCH, &path, &changes)
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&changed["name"], &changed["description"]),
        (&json!("Shop"), &Value::Null)
    );
    assert_eq!(
        changed["host_label"], "web-shop-acme",
        "structure never changes"
    );
    assert_eq!(changed["updated_at"], "2026-11-20T12:00:01.000Z");

    owner.frontend(&server, &id, "room").await;
    server.get("/room").answer().await.expect(200);
    owner.delete(&server, &path).await.expect(204);
    server.get("/room").answer().await.problem(404, "not_found");
    owner.get(&server, &path).await.problem(404, "not_found");
    owner.delete(&server, &path).await.expect(204);
    let free = async || {
        let again = owner.project(&server, "Again").await;
        let slug = text(&owner.frontend(&server, &again, "room").await["slug"]);
        owner
            .delete(&server, &format!("/{again}"))
            .await
            .expect(204);
        (slug == "room").then_some(())
    };
    wait_until("the slug to be free", free).await;
}

#[tokio::test]
async fn what_is_wrong_is_named_and_makes_nothing() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let long = "x".repeat(101);
    for (body, code, says) in [
        (json!({}), "invalid_request", "`name`"),
        (json!({ "name": "" }), "invalid_request", "`name`"),
        (json!({ "name": "  " }), "invalid_request", "`name`"),
        (json!({ "name": null }), "invalid_request", "name"),
        (json!({ "name": 7 }), "invalid_request", "name"),
        (json!({ "name": long }), "invalid_request", "`name`"),
        (
            json!({ "name": "a", "description": "x".repeat(2001) }),
            "invalid_request",
            "`description`",
        ),
        (
            json!({ "name": "a", "colour": "red" }),
            "invalid_request",
            "`colour`",
        ),
        (
            json!({ "name": "a", "ttl_seconds": 59 }),
            "invalid_request",
            "`ttl_seconds`",
        ),
        (
            json!({ "name": "a", "ttl_seconds": 315_360_001 }),
            "invalid_request",
            "`ttl_seconds`",
        ),
        (
            json!({ "name": "a", "ttl_seconds": -1 }),
            "invalid_request",
            "ttl_seconds",
        ),
        (
            json!({ "name": "a", "ttl_seconds": 60, "permanent": true }),
            "contradictory_expiry",
            "`permanent",
        ),
        (
            json!({ "name": "a", "permanent": false }),
            "contradictory_expiry",
            "`ttl_seconds`",
        ),
    ] {
        let problem = owner.post(&server, "", &body).await.problem(400, code);
        assert!(text(&problem["detail"]).contains(says), "{body}: {problem}");
    }
    assert_eq!(
        owner.get(&server, "").await.json(),
        json!({ "projects": [] })
    );

    let path = format!("/{}", owner.project(&server, "House").await);
    for (body, code) in [
        (json!({}), "nothing_to_update"),
        (
            json!({ "name": null, "description": null, "allowed_providers": null }),
            "nothing_to_update",
        ),
        (json!({ "name": "" }), "invalid_request"),
        (
            json!({ "description": "x".repeat(2001) }),
            "invalid_request",
        ),
        (json!({ "ttl_seconds": 60 }), "invalid_request"),
        (
            json!({ "allowed_providers": ["nobody"] }),
            "invalid_request",
        ),
    ] {
        owner
            .send(&server, Method::PATCH, &path, &body)
            .await
            .problem(400, code);
    }
    let all = json!({ "allowed_providers": [] });
    owner
        .send(&server, Method::PATCH, &path, &all)
        .await
        .expect(200);
}

#[tokio::test]
async fn host_labels_are_unique_and_usable() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    for (name, label) in [
        ("Shop", "shop-acme"),
        ("shop", "shop-acme-2"),
        ("日本", "project-acme"),
        ("xn--x", "xn-x-acme"),
    ] {
        let made = owner
            .post(&server, "", &json!({ "name": name }))
            .await
            .expect(201)
            .json();
        assert_eq!(made["host_label"], label, "{name}");
    }
}

#[tokio::test]
async fn plans_have_their_limits() {
    let server = TestServer::start().await;
    for (name, plan, most) in [("small", Plan::Free, 1), ("large", Plan::Pro, 5)] {
        let owner = Owner::with_plan(&server, name, plan).await;
        let mut last = String::new();
        for number in 0..most {
            last = owner.project(&server, &format!("Number {number}")).await;
        }
        let more = json!({ "name": "One more" });
        owner
            .post(&server, "", &more)
            .await
            .problem(403, "plan_limit");
        owner.delete(&server, &format!("/{last}")).await.expect(204);
        owner.post(&server, "", &more).await.expect(201);
    }
}

#[tokio::test]
async fn a_workspace_can_be_named() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    Owner::new(&server, "other").await;
    let made = owner
        .post(&server, "", &json!({ "name": "a", "workspace": "acme" }))
        .await;
    let id = text(&made.expect(201).json()["workspace"]["id"]);
    owner
        .post(&server, "", &json!({ "name": "b", "workspace": id }))
        .await
        .expect(201);
    // A slug that could be an id without its hyphens is a slug.
    let digits = "01a1fc500000700080000000000000ab";
    let odd = Owner::new(&server, digits).await;
    odd.post(&server, "", &json!({ "name": "a", "workspace": digits }))
        .await
        .expect(201);
    for (name, status, code) in [
        ("other", 403, "forbidden"),
        (digits, 403, "forbidden"),
        ("nobody", 404, "not_found"),
    ] {
        let body = json!({ "name": "c", "workspace": name });
        owner.post(&server, "", &body).await.problem(status, code);
        owner
            .get(&server, &format!("?workspace={name}"))
            .await
            .problem(status, code);
    }
    let listed = owner
        .get(&server, "?workspace=acme")
        .await
        .expect(200)
        .json();
    assert_eq!(listed["projects"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_project_ends_with_all_that_is_in_it() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let made = owner
        .post(&server, "", &json!({ "name": "Short", "ttl_seconds": 60 }))
        .await;
    let made = made.expect(201).json();
    assert_eq!(
        (&made["permanent"], &made["expires_at"]),
        (&json!(false), &json!("2026-11-20T12:01:00.000Z"))
    );
    let project = text(&made["id"]);
    owner.frontend(&server, &project, "room").await;
    server.advance(59);
    server.get("/room").answer().await.expect(200);
    server.advance(1);
    server.get("/room").answer().await.problem(404, "not_found");
    owner
        .get(&server, &format!("/{project}"))
        .await
        .problem(404, "not_found");
    let other = owner.project(&server, "Long").await;
    let free = async || {
        let made = owner.frontend(&server, &other, "room").await;
        (text(&made["slug"]) == "room").then_some(())
    };
    wait_until("the slug to be free", free).await;
}

#[tokio::test]
async fn a_repeated_request_makes_one_project() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let send_request = |body: Value| {
        let request = owner.request(&server, Method::POST, "/api/v1/projects");
        request.header("idempotency-key", "k").json(&body).answer()
    };
    let first = send_request(json!({ "name": "Once" })).await.expect(201);
    let again = send_request(json!({ "name": "Once" })).await.expect(201);
    assert_eq!(first.header("location"), first.json()["url"].as_str());
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(
        (again.json(), again.header("idempotency-replayed")),
        (first.json(), Some("true"))
    );
    send_request(json!({ "name": "Twice" }))
        .await
        .problem(409, "idempotency_conflict");
    assert_eq!(
        owner.get(&server, "").await.json()["projects"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
