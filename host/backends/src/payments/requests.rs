//! Requests about payments, and their checks: for REST and for tools alike.

use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::model::{
    DEFAULT_SESSIONS, MAX_AMOUNT, MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, MAX_SESSIONS, NewPrice,
};
use crate::http::extract::{check_characters, invalid_request};
use crate::http::problem::Problem;
use crate::stripe::{BillingInterval, currencies};
use svc_base::names::is_price_key;
use svc_base::numbers::{WholeNumber, optional_whole_number};

/// A price to put into the catalog.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddPrice {
    /// Name by which checkouts may ask for the price. It does not begin with `price_`, and no other active price of the project has it. A
    /// price that is off the catalog leaves its key to another.
    #[schema(pattern = "^[a-z][a-z0-9_-]{0,63}$", example = "handbook")]
    pub key: Option<String>,
    /// The product's name: prices with one name share a product.
    #[schema(min_length = 1, max_length = 200, example = "Handbook")]
    pub product_name: String,
    /// Description of the product; replaces the earlier one.
    #[schema(max_length = 2000)]
    pub description: Option<String>,
    /// Part of the product that the price is for, or its duration.
    #[schema(min_length = 1, max_length = 200, example = "PDF")]
    pub label: String,
    /// In minor units of the currency, such as cents.
    #[schema(value_type = i64, minimum = 1, maximum = 9_007_199_254_740_991_i64, example = 900)]
    pub amount: serde_json::Number,
    /// A currency of ISO 4217 that has a minor unit, in either case; any other is a 400.
    #[schema(pattern = "^[A-Za-z]{3}$", example = "eur")]
    pub currency: String,
    /// Whether it is paid again and again, as a subscription; otherwise once.
    pub recurring: Option<bool>,
    /// An extension. How often a recurring price is paid; every month, if absent.
    pub interval: Option<BillingInterval>,
    /// Id of the price whose place this one takes: it leaves the catalog in the same step, so that its `key` always means a price that can be
    /// bought. One that is off the catalog already is a 409 `price_inactive`, one that is not there a 404.
    #[schema(example = "price_2Wn3bQmZ0hXk81TtVd5sYc4L")]
    pub replaces: Option<String>,
}

/// Which sessions to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListSessions {
    /// How many at most.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub limit: Option<u64>,
}

/// Purchase that a visitor wants.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginCheckout {
    /// The price's id, or its key: a key means the active price that has it.
    #[schema(example = "price_2Wn3bQmZ0hXk81TtVd5sYc4L")]
    pub price: String,
    /// Where the visitor comes back to: a path below the page's own address; the page itself, if absent.
    #[schema(example = "/shop#thanks")]
    pub return_to: Option<String>,
}

impl AddPrice {
    /// Returns the requested price.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<NewPrice, Problem> {
        check_key(self.key.as_deref())?;
        check_name("product_name", &self.product_name)?;
        check_characters(
            "description",
            self.description.as_deref(),
            MAX_DESCRIPTION_CHARS,
        )?;
        check_name("label", &self.label)?;
        let amount = whole_amount(&self.amount)?;
        let interval = match (self.recurring, self.interval) {
            (Some(true), interval) => Some(interval.unwrap_or_default()),
            (_, None) => None,
            (_, Some(_)) => {
                return Err(invalid_request(
                    "`interval` says how often a recurring price is paid: send `recurring: true` with it.",
                ));
            }
        };
        let currency = self.currency.to_ascii_lowercase();
        if currencies::minor_unit_digits(&currency).is_none() {
            return Err(invalid_request(
                "`currency` must be a currency of ISO 4217 that has a minor unit, such as `eur`.",
            ));
        }
        Ok(NewPrice {
            key: self.key,
            product_name: self.product_name,
            description: self.description.filter(|text| !text.is_empty()),
            label: self.label,
            amount,
            currency,
            interval,
            replaces: self.replaces,
        })
    }
}

/// Returns an amount that is a positive whole number, in any notation of JSON.
fn whole_amount(number: &serde_json::Number) -> Result<i64, Problem> {
    let wrong = || {
        invalid_request(format!(
            "`amount` must be a whole number from 1 to {MAX_AMOUNT}, in minor units of the currency, such as cents."
        ))
    };
    let WholeNumber(amount) = WholeNumber::deserialize(number).map_err(|_| wrong())?;
    if !(1..=MAX_AMOUNT).contains(&amount) {
        return Err(wrong());
    }
    i64::try_from(amount).map_err(|_| wrong())
}

fn check_key(key: Option<&str>) -> Result<(), Problem> {
    match key {
        Some(key) if !is_price_key(key) => Err(invalid_request(
            "`key` must match `^[a-z][a-z0-9_-]{0,63}$` and not begin with `price_`, as the ids of prices do.",
        )),
        _ => Ok(()),
    }
}

fn check_name(field: &str, text: &str) -> Result<(), Problem> {
    if text.trim().is_empty() {
        return Err(invalid_request(format!(
            "`{field}` is empty: say what is sold."
        )));
    }
    check_characters(field, Some(text), MAX_NAME_CHARS)
}

impl ListSessions {
    /// Returns the number of sessions to list.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(&self) -> Result<u64, Problem> {
        let limit = self.limit.unwrap_or(DEFAULT_SESSIONS);
        if !(1..=MAX_SESSIONS).contains(&limit) {
            return Err(invalid_request(format!(
                "`limit` must be from 1 to {MAX_SESSIONS}."
            )));
        }
        Ok(limit)
    }
}
