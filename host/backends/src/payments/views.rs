//! Views of payments.

use serde::Serialize;
use utoipa::ToSchema;

use super::model::{CheckoutSession, Price, Product, Status};
use crate::stripe::BillingInterval;
use svc_base::clock::Timestamp;
use svc_base::ids::SessionId;

/// A project's catalog.
#[derive(Debug, Serialize, ToSchema)]
pub struct CatalogView {
    /// Oldest first.
    products: Vec<ProductView>,
}

/// A product with its prices.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProductView {
    /// Identifier of the product.
    #[schema(format = "uuid")]
    id: String,
    /// Name for people.
    name: String,
    /// Description of the product.
    description: Option<String>,
    /// Oldest first, inactive ones included.
    prices: Vec<PriceView>,
}

/// A price.
#[derive(Debug, Serialize, ToSchema)]
pub struct PriceView {
    /// Identifier of the price, which a checkout names.
    #[schema(pattern = "^price_[0-9A-Za-z]+$")]
    id: String,
    /// Name that a checkout takes in place of the id, if the owner gave it one.
    key: Option<String>,
    /// Part of the product that the price is for.
    label: String,
    /// In minor units.
    amount: i64,
    /// In lower case.
    currency: String,
    /// Whether it is paid again and again: every month, if no `interval` says otherwise.
    recurring: bool,
    /// How often it is paid, where that is not every month.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<BillingInterval>,
    /// Whether it can be bought.
    active: bool,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
}

/// A price with what it is a price of.
#[derive(Debug, Serialize, ToSchema)]
pub struct PricedView {
    #[serde(flatten)]
    price: PriceView,
    /// Product that the price belongs to.
    product: ProductRef,
}

/// A product.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProductRef {
    /// Identifier of the product.
    #[schema(format = "uuid")]
    id: String,
    /// Name for people.
    name: String,
    /// Description of the product.
    description: Option<String>,
}

/// Prices that a page's project sells for.
#[derive(Debug, Serialize, ToSchema)]
pub struct OfferList {
    /// Prices that can be bought, by product, oldest first.
    prices: Vec<OfferView>,
}

/// A price that can be bought.
#[derive(Debug, Serialize, ToSchema)]
pub struct OfferView {
    /// Identifier of the price.
    #[schema(pattern = "^price_[0-9A-Za-z]+$")]
    id: String,
    /// Name that a checkout takes in place of the id, if the owner gave it one.
    key: Option<String>,
    /// Name of the product.
    product: String,
    /// Description of the product.
    description: Option<String>,
    /// Part of the product that the price is for.
    label: String,
    /// In minor units.
    amount: i64,
    /// In lower case.
    currency: String,
    /// Whether it is paid again and again: every month, if no `interval` says otherwise.
    recurring: bool,
    /// How often it is paid, where that is not every month.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<BillingInterval>,
}

/// List of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionList {
    /// Newest first.
    sessions: Vec<SessionView>,
}

/// The checkout that a visitor began.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionView {
    /// Identifier of the session.
    #[schema(value_type = String, format = "uuid")]
    id: SessionId,
    /// The price.
    price: String,
    /// Label of the price, as it was then.
    price_label: String,
    /// In minor units.
    amount: i64,
    /// In lower case.
    currency: String,
    /// Whether it is paid every month.
    recurring: bool,
    /// Status of the session, by the provider's webhooks.
    status: Status,
    /// The visitor, if signed in.
    user_id: Option<String>,
    /// The address that the provider collected.
    email: Option<String>,
    /// When it was begun.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
    /// When its status or address last changed.
    #[schema(value_type = String, format = "date-time")]
    updated_at: Timestamp,
}

/// A hosted checkout that a visitor is to be sent to.
#[derive(Debug, Serialize, ToSchema)]
pub struct CheckoutView {
    /// Where the visitor pays.
    #[schema(format = "uri")]
    pub url: String,
    /// The session.
    #[schema(value_type = String, format = "uuid")]
    pub session_id: SessionId,
}

/// List of payments that a visitor has made and has now.
#[derive(Debug, Serialize, ToSchema)]
pub struct PaymentList {
    /// Newest first.
    payments: Vec<PaymentView>,
}

/// A payment that counts.
#[derive(Debug, Serialize, ToSchema)]
pub struct PaymentView {
    /// The price.
    price: String,
    /// Always `paid`.
    status: Status,
    /// In minor units.
    amount: i64,
    /// In lower case.
    currency: String,
    /// The visitor who was signed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    /// The address that the provider collected.
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    /// When it was begun.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
    /// By what the visitor was recognised.
    matched_by: MatchedBy,
}

/// By what a visitor is recognised as who has paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchedBy {
    /// They were signed in as the same visitor.
    UserId,
    /// Matched by the visitor's verified address, which is the one that was collected.
    Email,
    /// Matched by the cookie of the checkout in the visitor's browser.
    Cookie,
}

impl From<Product> for ProductRef {
    fn from(product: Product) -> Self {
        Self {
            id: product.id,
            name: product.name,
            description: product.description,
        }
    }
}

/// Returns an interval that is told: a recurring price is paid every month, unless it says otherwise.
fn unusual_interval(interval: Option<BillingInterval>) -> Option<BillingInterval> {
    interval.filter(|interval| *interval != BillingInterval::default())
}

impl From<&Price> for PriceView {
    fn from(price: &Price) -> Self {
        Self {
            id: price.id.clone(),
            key: price.key.clone(),
            label: price.label.clone(),
            amount: price.amount,
            currency: price.currency.clone(),
            recurring: price.interval.is_some(),
            interval: unusual_interval(price.interval),
            active: price.active,
            created_at: price.created_at,
        }
    }
}

impl From<&Price> for PricedView {
    fn from(price: &Price) -> Self {
        Self {
            price: price.into(),
            product: price.product.clone().into(),
        }
    }
}

impl CatalogView {
    /// Returns the view of a catalog; the prices must be in the order of their products.
    pub fn new(prices: Vec<Price>) -> Self {
        let mut products: Vec<ProductView> = Vec::new();
        for price in prices {
            let view = PriceView::from(&price);
            match products.last_mut().filter(|p| p.id == price.product.id) {
                Some(product) => product.prices.push(view),
                None => products.push(ProductView {
                    id: price.product.id,
                    name: price.product.name,
                    description: price.product.description,
                    prices: vec![view],
                }),
            }
        }
        Self { products }
    }
}

impl OfferList {
    /// Returns the view of prices that can be bought.
    pub fn new(prices: Vec<Price>) -> Self {
        Self {
            prices: prices.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Price> for OfferView {
    fn from(price: Price) -> Self {
        Self {
            id: price.id,
            key: price.key,
            product: price.product.name,
            description: price.product.description,
            label: price.label,
            amount: price.amount,
            currency: price.currency,
            recurring: price.interval.is_some(),
            interval: unusual_interval(price.interval),
        }
    }
}

impl SessionList {
    /// Returns the view of several sessions.
    pub fn new(sessions: Vec<CheckoutSession>) -> Self {
        Self {
            sessions: sessions.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<CheckoutSession> for SessionView {
    fn from(session: CheckoutSession) -> Self {
        Self {
            id: session.id,
            price: session.price,
            price_label: session.price_label,
            amount: session.amount,
            currency: session.currency,
            recurring: session.recurring,
            status: session.status,
            user_id: session.user_id,
            email: session.email,
            created_at: session.created_at,
            updated_at: session.updated_at,
        }
    }
}

impl PaymentList {
    /// Returns the view of payments, each with how it was matched to the visitor.
    pub fn new(payments: Vec<(CheckoutSession, MatchedBy)>) -> Self {
        let payments = payments.into_iter();
        Self {
            payments: payments
                .map(|(session, matched_by)| PaymentView::new(session, matched_by))
                .collect(),
        }
    }
}

impl PaymentView {
    fn new(session: CheckoutSession, matched_by: MatchedBy) -> Self {
        // The next person at the browser is not told who signed out before.
        let by_another = matched_by == MatchedBy::Cookie && session.user_id.is_some();
        Self {
            price: session.price,
            status: session.status,
            amount: session.amount,
            currency: session.currency,
            user_id: session.user_id.filter(|_| !by_another),
            email: session.email.filter(|_| !by_another),
            created_at: session.created_at,
            matched_by,
        }
    }
}
