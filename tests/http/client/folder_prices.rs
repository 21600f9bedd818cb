//! `[[prices]]` of a folder.

use serde_json::{Value, json};

use super::ClientFixture;

const MANIFEST: &str = "project = \"Shop\"\n[pages]\nshop = \"shop.md\"\n";

fn price(key: &str, amount: u64) -> String {
    format!(
        "[[prices]]\nkey = \"{key}\"\nproduct = \"Club\"\nlabel = \"Monthly\"\namount = {amount}\ncurrency = \"EUR\"\nrecurring = \"month\"\n"
    )
}

/// Keys, amounts and states of all prices.
async fn prices(fixture: &ClientFixture) -> Vec<(Value, Value, Value)> {
    let catalog = fixture.json(&["price", "list"]).await;
    let products = catalog["products"].as_array().unwrap().clone();
    let prices = products
        .iter()
        .flat_map(|product| product["prices"].as_array().unwrap().clone());
    prices
        .map(|price| {
            (
                price["key"].clone(),
                price["amount"].clone(),
                price["active"].clone(),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_price_that_differs_takes_the_place_of_the_other() {
    let fixture = ClientFixture::new().await;
    fixture.write("shop.md", "# Shop\n");
    fixture.write("svc.toml", &format!("{MANIFEST}{}", price("pro", 500)));
    let output = fixture.run(&["apply"]).await;
    assert!(
        output.stderr.contains("+ price     pro (500 eur)"),
        "{output:?}"
    );
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert_eq!(fixture.json(&["apply"]).await["plan"], json!([]));
    fixture.write(
        "svc.toml",
        &format!("{MANIFEST}{}{}", price("pro", 700), price("max", 900)),
    );
    let plan = fixture.json(&["apply", "--yes"]).await;
    assert_eq!(
        plan["plan"],
        json!([
            {"change": "update", "kind": "price", "name": "pro"},
            {"change": "create", "kind": "price", "name": "max"},
        ])
    );
    let of = |key: &str, amount: u64, active: bool| (json!(key), json!(amount), json!(active));
    assert_eq!(
        prices(&fixture).await,
        [
            of("pro", 500, false),
            of("pro", 700, true),
            of("max", 900, true)
        ]
    );
    // Somebody else changes one: the folder's is not put over it.
    fixture.run_for_stdout(&["price", "withdraw", "max"]).await;
    let added = [
        "price",
        "add",
        "max",
        "--product",
        "Club",
        "--label",
        "Monthly",
        "--amount",
        "950",
        "--currency",
        "eur",
        "--recurring",
        "month",
    ];
    fixture.run_for_stdout(&added).await;
    let plan = fixture.json(&["apply", "--yes"]).await;
    let detail = plan["plan"][0]["detail"].as_str().unwrap();
    assert!(detail.starts_with("server is newer"), "{plan}");
    fixture.write(
        "svc.toml",
        &format!("{MANIFEST}{}{}", price("pro", 700), price("max", 990)),
    );
    let refused = fixture.run_for_failure(5, &["apply", "--yes"]).await;
    assert!(
        refused.contains("price max: both have changed it"),
        "{refused}"
    );
    let pulled = fixture.run(&["pull", "--yes"]).await;
    assert!(pulled.stderr.contains("950 eur"), "{pulled:?}");
    fixture.run_for_stdout(&["apply", "--yes", "--force"]).await;
    // A price that has left is withdrawn only when it is pruned.
    fixture.write("svc.toml", &format!("{MANIFEST}{}", price("pro", 700)));
    let plan = fixture.json(&["apply", "--yes"]).await;
    assert_eq!(plan["plan"][0]["change"], "keep", "{plan}");
    fixture.run_for_stdout(&["apply", "--yes", "--prune"]).await;
    let active: Vec<_> = prices(&fixture).await;
    let active: Vec<_> = active.iter().filter(|price| price.2 == true).collect();
    assert_eq!(active, [&of("pro", 700, true)]);
    // A folder that begins with a pull has the prices.
    fixture
        .run_for_stdout(&["pull", "copy", "--project", "Shop"])
        .await;
    assert!(fixture.read("copy/svc.toml").contains("key = \"pro\""));
    assert_eq!(fixture.json(&["apply", "copy"]).await["plan"], json!([]));
}
