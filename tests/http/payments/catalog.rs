//! The catalog: prices, their products, and what is wrong with others.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use crate::owner::{Owner, text};

fn tea_price() -> Value {
    json!({ "product_name": "Tea", "label": "Pot", "amount": 300, "currency": "EUR" })
}

#[tokio::test]
async fn a_catalog_needs_neither_a_backend_nor_a_provider() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Shop").await;
    let path = format!("/{project}/payments/catalog");
    let empty = owner.get(&server, &path).await.expect(200).json();
    assert_eq!(empty, json!({ "products": [] }));

    let made = owner
        .post(&server, &path, &tea_price())
        .await
        .expect(201)
        .json();
    let id = text(&made["id"]);
    assert!(id.starts_with("price_") && id.len() > 20, "{id}");
    let product = text(&made["product"]["id"]);
    assert_eq!(
        made,
        json!({
            "id": id, "key": null, "label": "Pot", "amount": 300, "currency": "eur", "recurring": false, "active": true,
            "created_at": "2026-11-20T12:00:00.000Z",
            "product": { "id": product, "name": "Tea", "description": null },
        })
    );
    let club = json!({ "product_name": "Tea", "description": "Leaves", "label": "Club", "amount": 1, "currency": "jpy", "recurring": true });
    let club = owner.post(&server, &path, &club).await.expect(201).json();
    assert_eq!(club["product"]["id"], json!(product));
    let other = json!({ "product_name": "Cake", "label": "Slice", "amount": 1, "currency": "kwd" });
    owner.post(&server, &path, &other).await.expect(201);

    let gone = owner
        .delete(&server, &format!("{path}/{id}"))
        .await
        .expect(200)
        .json();
    assert_eq!((&gone["id"], &gone["active"]), (&json!(id), &json!(false)));
    let again = owner
        .delete(&server, &format!("{path}/{id}"))
        .await
        .expect(200);
    assert_eq!(again.json(), gone);
    let listed = owner.get(&server, &path).await.expect(200).json();
    let products = listed["products"].as_array().unwrap();
    let names: Vec<&Value> = products.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["Tea", "Cake"]);
    assert_eq!(products[0]["description"], "Leaves");
    let active: Vec<&Value> = products[0]["prices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|price| &price["active"])
        .collect();
    assert_eq!(active, [false, true]);
}

#[tokio::test]
async fn what_cannot_be_a_price_is_refused() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Shop").await;
    let path = format!("/{project}/payments/catalog");
    for (field, value, says) in [
        ("amount", json!(0), "amount"),
        ("amount", json!(-5), "amount"),
        ("amount", json!(9.5), "amount"),
        ("amount", json!("900"), "amount"),
        ("amount", json!(9_007_199_254_740_992_u64), "amount"),
        ("amount", json!(1e300), "amount"),
        ("amount", Value::Null, "amount"),
        ("currency", json!("euro"), "currency"),
        ("currency", json!("xxx"), "currency"),
        ("currency", json!("xau"), "currency"),
        ("currency", json!(""), "currency"),
        ("label", json!(""), "label"),
        ("label", json!("  "), "label"),
        ("label", Value::Null, "label"),
        ("label", json!("x".repeat(201)), "label"),
        ("product_name", json!(""), "product_name"),
        ("description", json!("x".repeat(2_001)), "description"),
        ("colour", json!("red"), "colour"),
    ] {
        let mut body = tea_price();
        body[field] = value.clone();
        let refused = owner.post(&server, &path, &body).await;
        let problem = refused.problem(400, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{field} {value}: {detail}");
    }
    let whole = json!({ "product_name": "Tea", "label": "Pot", "amount": 3e2, "currency": "usd" });
    let made = owner.post(&server, &path, &whole).await.expect(201);
    assert_eq!(made.json()["amount"], 300);
    let listed = owner.get(&server, &path).await.expect(200).json();
    assert_eq!(listed["products"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn only_who_may_sees_and_sells() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let stranger = Owner::new(&server, "other").await;
    let project = owner.project(&server, "Shop").await;
    let price = owner
        .post(
            &server,
            &format!("/{project}/payments/catalog"),
            &tea_price(),
        )
        .await;
    let price = text(&price.expect(201).json()["id"]);
    let free = "00000000-0000-7000-8000-000000000000";
    let none = "01900000-0000-7000-8000-000000000000";
    for (method, rest) in [
        (Method::GET, "catalog".to_owned()),
        (Method::POST, "catalog".to_owned()),
        (Method::DELETE, format!("catalog/{price}")),
        (Method::GET, "sessions".to_owned()),
    ] {
        let path = |project: &str| format!("/{project}/payments/{rest}");
        let send = async |by: &Owner, project: &str| {
            by.send(&server, method.clone(), &path(project), &tea_price())
                .await
        };
        send(&stranger, &project).await.problem(403, "forbidden");
        send(&owner, free).await.problem(403, "forbidden");
        send(&owner, none).await.problem(404, "not_found");
        let nobody = server.request(
            method.clone(),
            &format!("/api/v1/projects{}", path(&project)),
        );
        nobody
            .json(&tea_price())
            .answer()
            .await
            .problem(401, "unauthorized");
    }
    let missing = format!("/{project}/payments/catalog/price_none");
    owner
        .delete(&server, &missing)
        .await
        .problem(404, "not_found");
    // A price of another project of one's own is none of this one's.
    let other = owner.project(&server, "Other").await;
    let foreign = format!("/{other}/payments/catalog/{price}");
    owner
        .delete(&server, &foreign)
        .await
        .problem(404, "not_found");
    for limit in ["0", "1001", "-1", "x"] {
        let path = format!("/{project}/payments/sessions?limit={limit}");
        owner
            .get(&server, &path)
            .await
            .problem(400, "invalid_request");
    }
    let path = format!("/{project}/payments/sessions");
    let sessions = owner.get(&server, &path).await.expect(200).json();
    assert_eq!(sessions, json!({ "sessions": [] }));
}

#[tokio::test]
async fn a_repeated_price_is_made_once() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Shop").await;
    let path = format!("/api/v1/projects/{project}/payments/catalog");
    let send = async |body: &Value| {
        let post = owner.request(&server, Method::POST, &path);
        post.header("Idempotency-Key", "k")
            .json(body)
            .answer()
            .await
    };
    let first = send(&tea_price()).await.expect(201);
    let again = send(&tea_price()).await.expect(201);
    assert_eq!(first.json(), again.json());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let mut other = tea_price();
    other["amount"] = json!(301);
    send(&other).await.problem(409, "idempotency_conflict");
}
