//! Keys of prices, and what visitors see of a catalog.

use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

use super::PaymentsFixture;
use crate::owner::{Owner, text};

fn keyed_price(key: &str) -> Value {
    json!({ "key": key, "product_name": "Club", "label": "Monthly", "amount": 500, "currency": "eur", "recurring": true })
}

async fn add(server: &TestServer, owner: &Owner, project: &str, key: &str) -> Answer {
    let path = format!("/{project}/payments/catalog");
    owner.post(server, &path, &keyed_price(key)).await
}

async fn withdraw(server: &TestServer, owner: &Owner, project: &str, id: &str) {
    let path = format!("/{project}/payments/catalog/{id}");
    owner.delete(server, &path).await.expect(200);
}

/// The prices that visitors of a page see.
async fn offers(server: &TestServer, slug: &str) -> Vec<Value> {
    let path = format!("/{slug}/payments/catalog");
    let answer = server.get(&path).answer().await.expect(200).json();
    answer["prices"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_key_is_a_short_name_and_no_id() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Shop").await;
    let longest = "k".repeat(64);
    for good in ["a", "pro", "pro-2026", "a_", "price", "prices_", &longest] {
        let made = add(&server, &owner, &project, good).await.expect(201);
        assert_eq!(made.json()["key"], good);
    }
    let longer = "k".repeat(65);
    for bad in [
        "",
        "A",
        "Pro",
        "1a",
        "_a",
        "-a",
        "a.b",
        "ä",
        "a b",
        "a\n",
        "price_",
        "price_pro",
        &longer,
    ] {
        let refused = add(&server, &owner, &project, bad).await;
        let problem = refused.problem(400, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("`key`"), "{bad:?}: {detail}");
    }
    let path = format!("/{project}/payments/catalog");
    let mut number = keyed_price("seven");
    number["key"] = json!(7);
    let refused = owner.post(&server, &path, &number).await;
    refused.problem(400, "invalid_request");
    // Prices without a key do not stand in each other's way.
    for _ in 0..2 {
        let mut body = keyed_price("none");
        body["key"] = Value::Null;
        let made = owner.post(&server, &path, &body).await.expect(201);
        assert_eq!(made.json()["key"], Value::Null);
    }
}

#[tokio::test]
async fn a_key_is_taken_while_its_price_is_on_sale() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Shop").await;
    let first = add(&server, &owner, &project, "pro").await.expect(201);
    let first = text(&first.json()["id"]);
    let refused = add(&server, &owner, &project, "pro").await;
    let problem = refused.problem(409, "price_key_taken");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("`pro`"), "{detail}");
    // Another project has keys of its own.
    let other = owner.project(&server, "Other").await;
    add(&server, &owner, &other, "pro").await.expect(201);

    withdraw(&server, &owner, &project, &first).await;
    let second = add(&server, &owner, &project, "pro").await.expect(201);
    assert_ne!(second.json()["id"], first.as_str());
    add(&server, &owner, &project, "pro")
        .await
        .problem(409, "price_key_taken");
    let path = format!("/{project}/payments/catalog");
    let listed = owner.get(&server, &path).await.expect(200).json();
    let prices = listed["products"][0]["prices"].as_array().unwrap();
    let keys: Vec<_> = prices
        .iter()
        .map(|price| (&price["key"], &price["active"]))
        .collect();
    let pro = json!("pro");
    assert_eq!(keys, [(&pro, &json!(false)), (&pro, &json!(true))]);
}

#[tokio::test]
async fn a_price_takes_the_place_of_another_in_one_step() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Shop").await;
    let first = add(&server, &owner, &project, "pro").await.expect(201);
    let first = text(&first.json()["id"]);
    let path = format!("/{project}/payments/catalog");
    let replace = async |key: &str, replaced: &str| {
        let mut body = keyed_price(key);
        (body["amount"], body["replaces"]) = (json!(700), json!(replaced));
        owner.post(&server, &path, &body).await
    };
    let active = async || {
        let listed = owner.get(&server, &path).await.expect(200).json();
        let prices = listed["products"][0]["prices"].as_array().unwrap().clone();
        let active = prices.iter().filter(|price| price["active"] == true);
        active.map(|price| text(&price["id"])).collect::<Vec<_>>()
    };
    let second = replace("pro", &first).await.expect(201);
    let second = text(&second.json()["id"]);
    assert_eq!(active().await, std::slice::from_ref(&second));
    // Who is late, and who means another price, changes nothing.
    replace("pro", &first).await.problem(409, "price_inactive");
    replace("pro", "price_none").await.problem(404, "not_found");
    let other = owner.project(&server, "Other").await;
    let foreign = add(&server, &owner, &other, "pro").await.expect(201);
    let foreign = text(&foreign.json()["id"]);
    replace("pro", &foreign).await.problem(404, "not_found");
    // A refusal of the new price leaves the old one on sale.
    let third = add(&server, &owner, &project, "max").await.expect(201);
    let third = text(&third.json()["id"]);
    replace("pro", &third).await.problem(409, "price_key_taken");
    assert_eq!(active().await, [second, third]);
}

#[tokio::test]
async fn of_two_prices_that_want_a_key_at_once_one_gets_it() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Shop").await;
    for round in 0..5 {
        let key = format!("pro-{round}");
        let (one, other) = tokio::join!(
            add(&server, &owner, &project, &key),
            add(&server, &owner, &project, &key)
        );
        let (made, refused) = match one.status {
            201 => (one, other),
            _ => (other, one),
        };
        made.expect(201);
        refused.problem(409, "price_key_taken");
    }
    let path = format!("/{project}/payments/catalog");
    let listed = owner.get(&server, &path).await.expect(200).json();
    let prices = listed["products"][0]["prices"].as_array().unwrap();
    assert_eq!(prices.len(), 5);
}

#[tokio::test]
async fn a_checkout_by_a_key_sells_the_price_that_has_it_now() {
    let shop = PaymentsFixture::start().await;
    let first = shop.add_price(json!({ "key": "pro" })).await;
    let begun = shop.begin_checkout("pro").await;
    let session = shop.session(&begun.session).await;
    assert_eq!(
        (&session["price"], &session["amount"]),
        (&json!(first), &json!(900))
    );

    withdraw(&shop.server, &shop.owner, &shop.project, &first).await;
    let by_key = json!({ "price": "pro" });
    let refused = shop.send_request(&by_key, "").await;
    refused.problem(409, "price_inactive");
    let second = shop
        .add_price(json!({ "key": "pro", "amount": 1100 }))
        .await;
    let begun = shop.begin_checkout("pro").await;
    let session = shop.session(&begun.session).await;
    assert_eq!(
        (&session["price"], &session["amount"]),
        (&json!(second), &json!(1100))
    );
    // An id still means its own price.
    let by_id = json!({ "price": first });
    let refused = shop.send_request(&by_id, "").await;
    refused.problem(409, "price_inactive");
    shop.begin_checkout(&second).await;

    let other = shop.owner.project(&shop.server, "Other").await;
    add(&shop.server, &shop.owner, &other, "foreign")
        .await
        .expect(201);
    for unknown in ["foreign", "none", "", "PRO"] {
        let refused = shop.send_request(&json!({ "price": unknown }), "").await;
        refused.problem(404, "not_found");
    }
}

#[tokio::test]
async fn visitors_see_what_is_on_sale_and_nothing_else() {
    // There is neither a backend nor a provider.
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Shop").await;
    owner.frontend(&server, &project, "shop").await;
    assert_eq!(offers(&server, "shop").await, Vec::<Value>::new());

    let path = format!("/{project}/payments/catalog");
    let tea = json!({ "product_name": "Tea", "description": "Leaves", "label": "Pot", "amount": 300, "currency": "EUR" });
    let tea = owner.post(&server, &path, &tea).await.expect(201).json();
    let club = add(&server, &owner, &project, "club").await.expect(201);
    let club = club.json();
    let cup = json!({ "key": "cup", "product_name": "Tea", "label": "Cup", "amount": 100, "currency": "eur" });
    let cup = owner.post(&server, &path, &cup).await.expect(201).json();
    let other = owner.project(&server, "Other").await;
    add(&server, &owner, &other, "foreign").await.expect(201);
    let sold_cup = json!({
        "id": cup["id"], "key": "cup", "product": "Tea", "description": "Leaves", "label": "Cup",
        "amount": 100, "currency": "eur", "recurring": false,
    });
    let sold_club = json!({
        "id": club["id"], "key": "club", "product": "Club", "description": null, "label": "Monthly",
        "amount": 500, "currency": "eur", "recurring": true,
    });
    let mut sold_pot = sold_cup.clone();
    sold_pot["id"] = tea["id"].clone();
    sold_pot["key"] = Value::Null;
    sold_pot["label"] = json!("Pot");
    sold_pot["amount"] = json!(300);
    // By product, each in the order in which it was made.
    let all = [sold_pot, sold_cup.clone(), sold_club.clone()];
    assert_eq!(offers(&server, "shop").await, all);

    withdraw(&server, &owner, &project, &text(&tea["id"])).await;
    let answer = server
        .get("/shop/payments/catalog")
        .header("origin", "https://a.example")
        .answer()
        .await
        .expect(200);
    assert_eq!(answer.json(), json!({ "prices": [sold_cup, sold_club] }));
    assert_eq!(answer.header("cache-control"), Some("private, no-store"));
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn only_a_page_of_a_project_has_a_catalog() {
    let server = TestServer::start().await;
    let share = json!({ "content": "# Share", "name": "share" });
    server.publish_slug(&share).await;
    for slug in ["share", "nothing"] {
        let path = format!("/{slug}/payments/catalog");
        let answer = server.get(&path).answer().await;
        answer.problem(404, "not_found");
    }
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Shop").await;
    owner.frontend(&server, &project, "shop").await;
    add(&server, &owner, &project, "pro").await.expect(201);
    assert_eq!(offers(&server, "shop").await.len(), 1);
    owner
        .delete(&server, &format!("/{project}"))
        .await
        .expect(204);
    let answer = server.get("/shop/payments/catalog").answer().await;
    answer.problem(404, "not_found");
}
