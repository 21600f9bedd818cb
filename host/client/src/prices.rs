//! `svc price …`: what a project sells.

use serde_json::{Value, json};

use super::backends::{BackendTargetArgs, ProjectHandle};
use super::endpoints;
use super::error::{CliFailure, FailureExitCode, Result};
use super::output::{escape_line, member_text, table_of};
use svc_base::names::is_price_id;

/// Columns of the table of prices.
const COLUMNS: [&str; 8] = [
    "key",
    "id",
    "product",
    "label",
    "amount",
    "currency",
    "recurring",
    "active",
];

/// Lists, adds and withdraws prices.
#[derive(Debug, clap::Subcommand)]
pub enum PriceCommand {
    /// List the prices of a project, those that were withdrawn included
    List {
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Put a price on sale; a page names it by its key
    Add(PriceAddCommand),
    /// Take a price off the catalog; what was bought stays bought
    Withdraw {
        /// Key of the price, or its id
        #[arg(value_name = "KEY|ID")]
        price: String,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
}

/// A price to put on sale.
#[derive(Debug, clap::Args)]
pub struct PriceAddCommand {
    /// Name that a checkout takes, such as `pro`
    key: String,
    /// Name of the product: prices with one name share it
    #[arg(long, value_name = "NAME")]
    product: String,
    /// Part of the product that the price is for, or its duration
    #[arg(long, value_name = "TEXT")]
    label: String,
    /// Amount in minor units of the currency, such as cents
    #[arg(long, value_name = "MINOR_UNITS")]
    amount: u64,
    /// Currency of ISO 4217, such as `eur`
    #[arg(long, value_name = "CODE")]
    currency: String,
    /// Bill it again each time, as a subscription [default: it is paid once]
    #[arg(long, value_parser = ["month", "year"])]
    recurring: Option<String>,
    /// Description of the product; replaces the earlier one
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    #[command(flatten)]
    args: BackendTargetArgs,
}

impl PriceCommand {
    pub(super) async fn run(self) -> Result<()> {
        match self {
            Self::List { args } => {
                let catalog = fetch_catalog(&args.find().await?).await?;
                let text = table_of(&listed_prices(&catalog), &COLUMNS);
                args.output().print_answer(&catalog, &text)
            }
            Self::Add(add) => add.run().await,
            Self::Withdraw { price, args } => withdraw(price, &args).await,
        }
    }
}

impl PriceAddCommand {
    async fn run(self) -> Result<()> {
        let body = json!({
            "key": self.key, "product_name": self.product, "description": self.description, "label": self.label,
            "amount": self.amount, "currency": self.currency, "recurring": self.recurring.as_ref().map(|_| true), "interval": self.recurring,
        });
        let at = self.args.find().await?;
        let made = at.send(&endpoints::ADD_PRICE, body).await?;
        self.args
            .output()
            .print_answer(&made, &member_text(&made, "id"))
    }
}

async fn withdraw(named: String, args: &BackendTargetArgs) -> Result<()> {
    let at = args.find().await?;
    let id = price_id(&at, named).await?;
    let parts = [at.project.id.as_str(), &id];
    let done = at.api.call(&endpoints::WITHDRAW_PRICE, &parts);
    let done = done.send().await?;
    let text = format!("{} is off the catalog", member_text(&done, "id"));
    args.output().print_answer(&done, &text)
}

async fn fetch_catalog(at: &ProjectHandle) -> Result<Value> {
    at.api
        .call(&endpoints::CATALOG, &at.path_parts())
        .send()
        .await
}

/// Lists the prices of a catalog, each with the name of its product.
fn listed_prices(catalog: &Value) -> Value {
    let products = catalog["products"].as_array().into_iter().flatten();
    let prices = products.flat_map(|product| {
        let prices = product["prices"].as_array().into_iter().flatten();
        prices.filter(|price| price.is_object()).map(|price| {
            let mut price = price.clone();
            price["product"] = product["name"].clone();
            price
        })
    });
    prices.collect()
}

/// Returns the id of a price that is named by its id, or by the key of an active one.
async fn price_id(at: &ProjectHandle, named: String) -> Result<String> {
    if is_price_id(&named) {
        return Ok(named);
    }
    let prices = listed_prices(&fetch_catalog(at).await?);
    find_by_key(&prices, &named).ok_or_else(|| {
        let detail = format!(
            "`{}` sells nothing with the key `{}`: `svc price list` has what it sells.",
            escape_line(&at.project.name),
            escape_line(&named)
        );
        CliFailure::new(FailureExitCode::NotFound, "No such price", detail)
    })
}

/// Finds the id of the active price with a key.
fn find_by_key(prices: &Value, key: &str) -> Option<String> {
    let mut prices = prices.as_array()?.iter();
    let found = prices.find(|price| price["key"] == key && price["active"] == true)?;
    found["id"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_means_the_active_price() {
        let catalog = json!({ "products": [
            { "name": "Club", "prices": [
                { "id": "price_a", "key": "pro", "active": false },
                { "id": "price_b", "key": null, "active": true },
            ]},
            { "name": "Tea", "prices": [{ "id": "price_c", "key": "pro", "active": true }, 7] },
            { "name": "Cake" },
        ]});
        let prices = listed_prices(&catalog);
        assert_eq!(prices.as_array().unwrap().len(), 3);
        assert_eq!(prices[2]["product"], "Tea");
        assert_eq!(find_by_key(&prices, "pro").as_deref(), Some("price_c"));
        assert_eq!(find_by_key(&prices, "price_b"), None);
        assert_eq!(find_by_key(&prices, ""), None);
        assert_eq!(listed_prices(&json!({})), json!([]));
    }
}
