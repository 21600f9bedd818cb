//! Checkouts and webhooks through nodes that have neither control nor the database.

use http::{Method, header};
use serde_json::{Value, json};
use svc_base::clock::Clock;
use svc_tests::cluster::{Cluster, ClusterNode};
use svc_tests::fake_stripe::{self, FakeStripe, SECRET};
use svc_tests::{Answer, ReadAnswer, wait_until};

use crate::several::databases;
use crate::svc;

/// Address of all nodes.
const BASE_URL: &str = "http://share.example.com";
const HOST: &str = "share.example.com";

/// Begins a checkout at a node, with the cookie of an earlier one.
async fn buy(node: &ClusterNode, price: &Value, cookie: &str) -> Answer {
    let url = node.process.url("/room/payments/checkout");
    let request = node.process.client().post(url);
    let request = request
        .header(header::HOST, HOST)
        .header(header::ACCEPT, "application/json")
        .header(header::COOKIE, cookie);
    request.json(&json!({ "price": price })).answer().await
}

/// Sends the event that a checkout was paid to a node.
async fn pay(node: &ClusterNode, checkout: &str) {
    let now = Clock::system().now();
    let paid = fake_stripe::checkout(checkout, "paid");
    let id = format!("evt_{checkout}");
    let event = fake_stripe::event(&id, "checkout.session.completed", now.0 / 1000, &paid);
    let body = event.to_string();
    let signature = svc::stripe::sign(SECRET, body.as_bytes(), now);
    let url = node.process.url("/_svc/webhooks/stripe");
    let request = node.process.client().post(url);
    let request = request.header("stripe-signature", signature).body(body);
    request.answer().await.expect(200);
}

/// Waits until a node shows so many rows of paid sessions in the project's own table.
async fn wait_for_rows(cluster: &Cluster, node: &ClusterNode, count: usize) {
    let sql = json!({ "sql": "SELECT status FROM svc_payments" });
    let expected = json!(vec![json!({ "status": "paid" }); count]);
    wait_until("the table of payments", async || {
        let request = node
            .process
            .client()
            .post(node.process.url("/room/api/query"));
        let request = request.bearer_auth(cluster.credential()).json(&sql);
        let rows = request.answer().await.expect(200).json()["rows"].clone();
        (rows == expected).then_some(())
    })
    .await;
}

/// Has a new visitor buy through two nodes in turn: one purchase, whoever is asked, and however often it is told. With it there are so
/// many `purchases`.
async fn check_purchase(
    (cluster, provider): (&Cluster, &FakeStripe),
    price: &Value,
    nodes: [&ClusterNode; 2],
    purchases: usize,
) {
    let [here, there] = nodes;
    let begun = buy(here, price, "").await.expect(200);
    let cookie = begun.header("set-cookie").unwrap().split(';').next();
    let cookie = cookie.unwrap().to_owned();
    let begun = begun.json();
    // The second click means the same purchase.
    let again = buy(there, price, &cookie).await.expect(200).json();
    assert_eq!(again["session_id"], begun["session_id"]);
    let calls = provider.calls();
    assert_eq!(calls.len(), purchases);
    // The visitor comes back to the address of all nodes.
    let back = format!("{BASE_URL}/room?checkout=success");
    assert_eq!(calls[purchases - 1].form["success_url"], back);
    let checkout = begun["url"].as_str().unwrap().rsplit('/').next().unwrap();
    for node in [here, there, here] {
        pay(node, checkout).await;
    }
    for node in nodes {
        let url = node.process.url("/room/payments/status");
        let status = node.process.client().get(url);
        let status = status.header(header::COOKIE, &cookie).answer().await;
        let payments = status.expect(200).json()["payments"].clone();
        assert_eq!(payments.as_array().unwrap().len(), 1, "{payments}");
        assert_eq!(payments[0]["status"], "paid");
        wait_for_rows(cluster, node, purchases).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purchase_counts_once_whichever_nodes_are_asked() {
    let provider = FakeStripe::start().await;
    let settings = format!("base_url = '{BASE_URL}'\n{}", provider.settings_file());
    let (cluster, before) = Cluster::with_room_and_settings(svc(), &settings).await;
    let owner = cluster.start("n2", false).await;
    owner.wait_until_ready().await;
    let price =
        json!({ "product_name": "Handbook", "label": "PDF", "amount": 900, "currency": "eur" });
    let path = "/payments/catalog";
    let made = cluster.ask(&owner, Method::POST, path, &price).await;
    let price = made.expect(201).json()["id"].clone();
    let shop = (&cluster, &provider);
    check_purchase(shop, &price, [&owner, &before], 1).await;
    // Then control is at one node, and the database at the other, which writes the table.
    assert!(cluster.promote(&owner).await.success);
    before.process.wait_for_exit().await;
    let follower = cluster.start("n3", false).await;
    follower.wait_until_ready().await;
    follower.add((1, 1)).await.expect(200);
    assert_eq!(databases(&cluster, &owner, "n3").await, 1);
    check_purchase(shop, &price, [&follower, &owner], 2).await;
    assert_eq!(databases(&cluster, &owner, "n3").await, 1);
}
