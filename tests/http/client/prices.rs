//! `svc price`.

use serde_json::json;

use super::ClientFixture;
use crate::owner::text;

/// Puts a price on sale, with a description and a subscription.
const ADD: [&str; 15] = [
    "price",
    "add",
    "pro",
    "--product",
    "Club",
    "--label",
    "Monthly",
    "--amount",
    "500",
    "--currency",
    "EUR",
    "--recurring",
    "month",
    "--description",
    "For members",
];

#[tokio::test]
async fn prices_are_added_listed_and_withdrawn_by_their_keys() {
    let fixture = ClientFixture::new().await;
    fixture.run_for_stdout(&["project", "create", "Shop"]).await;
    assert_eq!(fixture.run_for_stdout(&["price", "list"]).await, "");
    let first = fixture.run_for_stdout(&ADD).await;
    let first = first.trim_end();
    assert!(first.starts_with("price_"), "{first}");
    let listed = fixture.run_for_stdout(&["price", "list"]).await;
    for part in ["key", "pro", first, "Club", "Monthly", "500", "eur", "true"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let taken = fixture.run_for_failure(5, &ADD).await;
    assert!(taken.contains("`pro`"), "{taken}");

    let gone = fixture.run_for_stdout(&["price", "withdraw", "pro"]).await;
    assert_eq!(gone, format!("{first} is off the catalog\n"));
    let missing = fixture
        .run_for_failure(4, &["price", "withdraw", "pro"])
        .await;
    assert!(missing.contains("svc price list"), "{missing}");
    // A price of the same product that is paid once takes the key over.
    let once = [&ADD[..11], &["--project", "Shop"]].concat();
    let second = fixture.json(&once).await;
    assert_eq!(
        (&second["recurring"], &second["product"]["description"]),
        (&json!(false), &json!("For members"))
    );
    let second = text(&second["id"]);
    let catalog = fixture.json(&["price", "list"]).await;
    assert_eq!(catalog["products"].as_array().unwrap().len(), 1);
    let prices = catalog["products"][0]["prices"].as_array().unwrap();
    let prices: Vec<_> = prices
        .iter()
        .map(|price| (text(&price["id"]), price["active"] == true))
        .collect();
    assert_eq!(prices, [(first.to_owned(), false), (second.clone(), true)]);

    let gone = fixture.json(&["price", "withdraw", &second]).await;
    assert_eq!(
        (&gone["id"], &gone["active"]),
        (&json!(second), &json!(false))
    );
    fixture
        .run_for_failure(4, &["price", "withdraw", "price_none"])
        .await;
}

#[tokio::test]
async fn what_cannot_be_a_price_is_refused_with_the_reason() {
    let fixture = ClientFixture::new().await;
    fixture.run_for_stdout(&["project", "create", "Shop"]).await;
    for (place, value, says) in [
        (2, "price_pro", "`key`"),
        (8, "0", "`amount`"),
        (10, "xxx", "`currency`"),
    ] {
        let mut words = ADD;
        words[place] = value;
        let refused = fixture.run_for_failure(1, &words).await;
        assert!(refused.contains(says), "{value}: {refused}");
    }
    let mut weekly = ADD;
    weekly[12] = "week";
    let refused = fixture.run(&weekly).await;
    assert!(
        !refused.success && refused.stderr.contains("month, year"),
        "{refused:?}"
    );
    assert_eq!(fixture.run_for_stdout(&["price", "list"]).await, "");
    let mut yearly = ADD;
    yearly[12] = "year";
    fixture.run_for_stdout(&yearly).await;
    let listed = fixture.json(&["price", "list"]).await;
    assert_eq!(
        listed["products"][0]["prices"][0]["interval"], "year",
        "{listed}"
    );
}
