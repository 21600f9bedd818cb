//! Model of products, prices and sessions, and their errors.

use serde::Serialize;
use utoipa::ToSchema;

use super::verdict::SessionTerms;
use crate::control;
use crate::deployments::serving::LookupError;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId, SessionId};
use svc_base::random::NoRandomness;

/// The longest name of a product, and label of a price, in characters.
pub const MAX_NAME_CHARS: usize = 200;
/// The longest description of a product, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 2_000;
/// The largest amount: what every JSON reader takes for the same number.
pub const MAX_AMOUNT: u64 = 9_007_199_254_740_991;
/// The most prices of a project.
pub const MAX_PRICES: u64 = 1_000;
/// Sessions that are listed by default.
pub const DEFAULT_SESSIONS: u64 = 100;
/// Most sessions that can be listed.
pub const MAX_SESSIONS: u64 = 1_000;
/// How long a checkout cookie is recognised, in seconds.
pub const COOKIE_SECONDS: i64 = 30 * 24 * 3600;

/// Status of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = PaymentStatus)]
pub enum Status {
    /// Nobody has paid yet.
    Open,
    /// It is paid, and the buyer has it.
    Paid,
    /// Nobody paid in time, or the subscription has ended.
    Canceled,
    /// The payment has failed.
    Failed,
    /// The money went back.
    Refunded,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Open,
        Self::Paid,
        Self::Canceled,
        Self::Failed,
        Self::Refunded,
    ];

    /// As it is written everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paid => "paid",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
            Self::Refunded => "refunded",
        }
    }
}

/// A product, of which there are prices.
#[derive(Clone, Debug)]
pub struct Product {
    /// Identifier of the product.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Description of the product.
    pub description: Option<String>,
}

/// A price.
#[derive(Clone, Debug)]
pub struct Price {
    /// Identifier of the price.
    pub id: String,
    /// Part of the product that the price is for, or its duration.
    pub label: String,
    /// In minor units.
    pub amount: i64,
    /// In lower case.
    pub currency: String,
    /// Whether it is paid every month.
    pub recurring: bool,
    /// Whether it can be bought.
    pub active: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// Product that the price belongs to.
    pub product: Product,
}

/// A price to make; its fields are within their bounds.
#[derive(Clone, Debug)]
pub struct NewPrice {
    /// The product's name.
    pub product_name: String,
    /// Description of the product.
    pub description: Option<String>,
    /// Part of the product that the price is for.
    pub label: String,
    /// In minor units.
    pub amount: i64,
    /// In lower case.
    pub currency: String,
    /// Whether it is paid every month.
    pub recurring: bool,
}

/// The checkout that a visitor began.
#[derive(Clone, Debug)]
pub struct Session {
    /// Identifier of the session.
    pub id: SessionId,
    /// Project that sells.
    pub project: ProjectId,
    /// The frontend that it was begun on.
    pub deployment: DeploymentId,
    /// The price, as it was then.
    pub price: String,
    /// Label of the price.
    pub price_label: String,
    /// In minor units.
    pub amount: i64,
    /// In lower case.
    pub currency: String,
    /// Whether it is paid every month.
    pub recurring: bool,
    /// Where the visitor comes back to.
    pub return_to: String,
    /// The visitor, if signed in.
    pub user_id: Option<String>,
    /// SHA-256 of the checkout cookie's value.
    pub cookie: [u8; 32],
    /// Whether only the page's own host could set that cookie.
    pub host_cookie: bool,
    /// The provider's hosted checkout.
    pub provider_id: Option<String>,
    /// Where the visitor pays.
    pub provider_url: Option<String>,
    /// How often the provider has failed to make a hosted checkout.
    pub attempt: u32,
    /// Status of the session.
    pub status: Status,
    /// The address that was collected.
    pub email: Option<String>,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When its status or address last changed.
    pub updated_at: Timestamp,
}

impl Session {
    /// Returns the terms that events are compared with.
    pub fn terms(&self) -> SessionTerms {
        SessionTerms {
            id: self.id.to_string(),
            provider_id: self.provider_id.clone(),
            amount: self.amount,
            currency: self.currency.clone(),
        }
    }
}

/// Returns an address as it is compared: people write it in either case. ASCII's alone, because a letter of another alphabet may be
/// somebody else's: the lower case of the Kelvin sign is `k`.
pub fn normalized_email(email: &str) -> String {
    email.trim_ascii().to_ascii_lowercase()
}

/// Why something about payments cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PaymentError {
    /// There is no such price in the project.
    #[error("there is no such price")]
    NoPrice,
    /// It was taken off the catalog.
    #[error("the price is inactive")]
    PriceInactive,
    /// The catalog has as many prices as it may.
    #[error("the catalog is full")]
    CatalogFull,
    /// There is no provider.
    #[error("payments are not configured")]
    Unconfigured,
    /// The provider takes no such amount, in its words.
    #[error("the provider refused the amount: {0}")]
    AmountRefused(String),
    /// The provider failed, or did not answer.
    #[error("the provider is unavailable: {0}")]
    Unavailable(String),
    /// The project is gone.
    #[error("the project is gone")]
    NoProject,
    /// The page is not there, or disabled.
    #[error(transparent)]
    Page(#[from] LookupError),
    /// The database's.
    #[error(transparent)]
    Store(#[from] control::Error),
    /// No id could be made.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}
