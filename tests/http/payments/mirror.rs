//! The table `svc_payments`: it follows, catches up, and is made anew.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer, wait_until};

use super::PaymentsFixture;
use super::fake_stripe::{charge, checkout, event};
use crate::svc;

#[tokio::test]
async fn actions_see_who_has_paid_and_write_none_of_it() {
    let shop = PaymentsFixture::start().await;
    let actions = json!({ "actions": [{ "name": "paid", "sql": "SELECT count(*) AS n FROM svc_payments WHERE status = 'paid'" }] });
    let path = format!("/{}/backend/actions", shop.project);
    shop.owner
        .send(&shop.server, Method::PUT, &path, &actions)
        .await
        .expect(200);
    let price = shop.add_price(json!({})).await;
    let bought = shop.begin_checkout(&price).await;
    assert_eq!(
        shop.wait_for_mirrored_rows().await.len(),
        1,
        "open ones too"
    );
    shop.send_accepted_event(&event(
        "evt_1",
        "checkout.session.completed",
        1,
        &checkout(&bought.checkout, "paid"),
    ))
    .await;
    let rows = shop.wait_for_mirrored_rows().await;
    assert_eq!(rows[0]["email"], "Ada@Example.com");
    let counted = shop
        .server
        .json("/shop/api/op", &json!({ "action": "paid" }));
    assert_eq!(
        counted.answer().await.expect(200).json()["rows"],
        json!([{ "n": 1 }])
    );
}

#[tokio::test]
async fn another_backend_has_everything_and_a_restore_keeps_what_is_true_now() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let first = shop.begin_checkout(&price).await;
    shop.send_accepted_event(&event(
        "evt_1",
        "checkout.session.completed",
        1,
        &checkout(&first.checkout, "paid"),
    ))
    .await;
    shop.wait_for_mirrored_rows().await;
    let history = format!("/{}/backend/history", shop.project);
    let moments = async || {
        let found = shop
            .owner
            .get(&shop.server, &history)
            .await
            .expect(200)
            .json();
        found["moments"].as_array().unwrap().clone()
    };
    let paid = moments().await[0]["at"].clone();
    shop.server.advance(10);
    shop.send_accepted_event(&event(
        "evt_2",
        "charge.refunded",
        2,
        &charge(&first.checkout, 900),
    ))
    .await;
    shop.begin_checkout(&price).await;
    let now = shop.wait_for_mirrored_rows().await;
    let restore = format!("/{}/backend/restore", shop.project);
    shop.owner
        .post(&shop.server, &restore, &json!({ "at": paid }))
        .await
        .expect(200);
    assert_eq!(shop.rows().await, now, "the ledger of now wins");

    let backend = format!("/{}/backend", shop.project);
    shop.owner.delete(&shop.server, &backend).await.expect(204);
    let third = shop.begin_checkout(&price).await;
    shop.send_accepted_event(&event(
        "evt_3",
        "checkout.session.completed",
        3,
        &checkout(&third.checkout, "paid"),
    ))
    .await;
    assert_eq!(
        shop.owned_purchases(&third.cookie).await.len(),
        1,
        "who has paid needs no backend"
    );
    let ddl = json!({ "ddl": "CREATE TABLE other (text)" });
    shop.owner
        .post(&shop.server, &backend, &ddl)
        .await
        .expect(201);
    let page = json!({ "content": "# Two" });
    let path = format!("/{}/frontends/shop", shop.project);
    shop.owner
        .send(&shop.server, Method::PUT, &path, &page)
        .await
        .expect(200);
    assert_eq!(shop.wait_for_mirrored_rows().await.len(), 3);
}

#[tokio::test]
async fn a_full_database_is_behind_says_so_and_catches_up() {
    let small = TestServer::builder()
        .limits(|limits| limits.database_bytes = 131_072)
        .system_clock();
    let shop = PaymentsFixture::with_builder(small).await;
    let price = shop.add_price(json!({})).await;
    let query = async |sql: &str| {
        let post = shop
            .owner
            .request(&shop.server, Method::POST, "/shop/api/query");
        post.json(&json!({ "sql": sql })).answer().await
    };
    // Large pieces first, then what still fits.
    for bytes in [20_000, 1_000, 10] {
        let sql = format!("INSERT INTO notes VALUES (hex(zeroblob({bytes})))");
        while query(&sql).await.status == 200 {}
    }
    for _ in 0..40 {
        shop.begin_checkout(&price).await;
    }
    let path = format!("/{}/backend", shop.project);
    let warnings = async || {
        let detail = shop.owner.get(&shop.server, &path).await.expect(200).json();
        let warnings = detail["warnings"].as_array().unwrap().clone();
        warnings
            .into_iter()
            .find(|one| one["code"] == "payments_mirror_behind")
    };
    let warning = wait_until("the detail to warn", warnings).await;
    assert!(
        warning["detail"]
            .as_str()
            .unwrap()
            .contains("as large as it may be"),
        "{warning}"
    );
    query("DELETE FROM notes").await.expect(200);
    assert_eq!(shop.wait_for_mirrored_rows().await.len(), 40);
    let quiet = async || warnings().await.is_none().then_some(());
    wait_until("the warning to go", quiet).await;
}

#[tokio::test]
async fn deriving_anew_puts_right_what_was_wrong() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let bought = shop.begin_checkout(&price).await;
    shop.send_accepted_event(&event(
        "evt_1",
        "checkout.session.completed",
        1,
        &checkout(&bought.checkout, "paid"),
    ))
    .await;
    let right = shop.wait_for_mirrored_rows().await;
    let app = shop.server.server().app();
    let write = app.control.write(|tx| {
        tx.execute(
            "UPDATE payment_sessions SET status = 'failed', email = NULL",
            [],
        )
        .map_err(svc::control::Error::from)
    });
    write.await.unwrap();
    let payment = svc_database::PaymentMirrorRow {
        session_id: "of nobody".into(),
        price_id: String::new(),
        price_label: String::new(),
        amount: 1,
        currency: String::new(),
        user_id: None,
        email: None,
        status: "paid".into(),
        created_at: svc_tests::NOW,
    };
    let project = shop.project.parse().unwrap();
    let backend = app
        .backends
        .find_by_project(project)
        .await
        .unwrap()
        .unwrap()
        .id;
    app.backends
        .mirror(backend, vec![payment], false)
        .await
        .unwrap();
    assert_eq!(shop.rows().await.len(), 2);
    let rebuild = ["payments", "rebuild", "shop-acme", "--json"];
    let rebuilt = shop.server.command(&svc(), &rebuild).await.json();
    assert_eq!(rebuilt["changed"], 1);
    let same = async || (shop.rows().await == right).then_some(());
    wait_until("the table to be right", same).await;
    let none: Vec<Value> = Vec::new();
    assert_ne!(shop.owned_purchases(&bought.cookie).await, none);
}
