//! Model of products, prices and sessions, and their errors.

use serde::Serialize;
use utoipa::ToSchema;

use super::verdict::SessionTerms;
use crate::control;
use crate::deployments::serving::PageLookupError;
use crate::stripe::BillingInterval;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId, SessionId};
use svc_base::random::RandomSourceError;

/// Maximum length of a product's name and of a price's label, in characters.
pub const MAX_NAME_CHARS: usize = 200;
/// Maximum length of a product's description, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 2_000;
/// Largest amount: the largest integer that every JSON reader represents exactly.
pub const MAX_AMOUNT: u64 = 9_007_199_254_740_991;
/// Maximum number of prices of a project.
pub const MAX_PRICES: u64 = 1_000;
/// Default number of listed sessions.
pub const DEFAULT_SESSIONS: u64 = 100;
/// Largest number of listed sessions.
pub const MAX_SESSIONS: u64 = 1_000;
/// Lifetime of a checkout cookie, in seconds.
pub const COOKIE_SECONDS: i64 = 30 * 24 * 3600;
/// Maximum number of sessions that a signed-in visitor of a project, or a browser on a frontend, begins within [`SESSION_LIMIT_SECONDS`].
pub const MAX_BUYER_SESSIONS: u32 = 50;
/// Time within which the sessions of a buyer are counted, in seconds.
pub const SESSION_LIMIT_SECONDS: i64 = 24 * 3600;

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
    pub const ALL: [Self; 5] = [
        Self::Open,
        Self::Paid,
        Self::Canceled,
        Self::Failed,
        Self::Refunded,
    ];

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

#[derive(Clone, Debug)]
pub struct Product {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Price {
    pub id: String,
    /// Name that the owner chose; unique among the active prices of a project.
    pub key: Option<String>,
    /// Part of the product that the price is for, or its duration.
    pub label: String,
    /// Amount in minor units.
    pub amount: i64,
    /// Currency code in lower case.
    pub currency: String,
    /// How often the price is paid; once, if none.
    pub interval: Option<BillingInterval>,
    /// Whether the price can be bought.
    pub active: bool,
    pub created_at: Timestamp,
    pub product: Product,
}

/// Price to create; its fields are within their bounds.
#[derive(Clone, Debug)]
pub struct NewPrice {
    /// Name by which a checkout may ask for the price.
    pub key: Option<String>,
    pub product_name: String,
    pub description: Option<String>,
    /// Part of the product that the price is for.
    pub label: String,
    /// Amount in minor units.
    pub amount: i64,
    /// Currency code in lower case.
    pub currency: String,
    /// How often the price is paid; once, if none.
    pub interval: Option<BillingInterval>,
    /// Identifier of the active price whose place this one takes.
    pub replaces: Option<String>,
}

/// Checkout session of a visitor.
#[derive(Clone, Debug)]
pub struct CheckoutSession {
    pub id: SessionId,
    /// Project that sells.
    pub project: ProjectId,
    /// Frontend on which the checkout began.
    pub deployment: DeploymentId,
    /// Identifier of the price.
    pub price: String,
    /// Label of the price when the checkout began.
    pub price_label: String,
    /// Amount in minor units.
    pub amount: i64,
    /// Currency code in lower case.
    pub currency: String,
    /// Whether the price is paid again and again.
    pub recurring: bool,
    /// URL that the provider leads the visitor back to.
    pub return_to: String,
    /// Identifier of the visitor, if signed in.
    pub user_id: Option<String>,
    /// SHA-256 of the checkout cookie's value.
    pub cookie: [u8; 32],
    /// Whether only the page's own host could set that cookie.
    pub host_cookie: bool,
    /// The provider's id of the hosted checkout.
    pub provider_id: Option<String>,
    /// URL of the hosted checkout.
    pub provider_url: Option<String>,
    /// Number of times that the provider failed to create a hosted checkout.
    pub attempt: u32,
    pub status: Status,
    /// E-mail address that the provider collected.
    pub email: Option<String>,
    pub created_at: Timestamp,
    /// When the status or the e-mail address last changed.
    pub updated_at: Timestamp,
}

impl CheckoutSession {
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

/// Returns an e-mail address in the form in which addresses are compared. Only ASCII letters are folded, because another letter may belong to
/// another person's address: the lower case of the Kelvin sign is `k`.
pub fn normalized_email(email: &str) -> String {
    email.trim_ascii().to_ascii_lowercase()
}

/// Error of an operation on payments.
#[derive(Debug, thiserror::Error)]
pub enum PaymentError {
    /// The project has no such price.
    #[error("there is no such price")]
    NoPrice,
    /// The price is no longer in the catalog.
    #[error("the price is inactive")]
    PriceInactive,
    /// Another active price of the project has the key.
    #[error("the key `{0}` is taken")]
    KeyTaken(String),
    /// The catalog has the maximum number of prices.
    #[error("the catalog is full")]
    CatalogFull,
    /// The browser sent several checkout cookies, and nobody is signed in.
    #[error("the browser sent several checkout cookies")]
    SeveralCookies,
    /// The visitor or the browser has begun the maximum number of sessions.
    #[error("the buyer has begun too many sessions")]
    TooManySessions,
    /// No provider is configured.
    #[error("payments are not configured")]
    Unconfigured,
    /// The provider refuses the amount, with its message.
    #[error("the provider refused the amount: {0}")]
    AmountRefused(String),
    /// The provider failed, or did not answer.
    #[error("the provider is unavailable: {0}")]
    Unavailable(String),
    /// The project no longer exists.
    #[error("the project is gone")]
    NoProject,
    /// The page does not exist, or is disabled.
    #[error(transparent)]
    Page(#[from] PageLookupError),
    /// The control database failed.
    #[error(transparent)]
    Store(#[from] control::Error),
    /// No id could be generated.
    #[error(transparent)]
    Random(#[from] RandomSourceError),
}
