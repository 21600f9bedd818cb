//! Maps errors of payments to problems.

use super::PaymentError;
use super::model::{MAX_BUYER_SESSIONS, MAX_PRICES, SESSION_LIMIT_SECONDS};
use crate::http::extract::invalid_request;
use crate::http::problem::{Problem, ProblemCode};
use crate::stripe::routes::unconfigured;

impl From<PaymentError> for Problem {
    fn from(error: PaymentError) -> Self {
        match error {
            PaymentError::NoPrice => Self::new(
                ProblemCode::NotFound,
                "There is no such price in this project: send the `id` or the `key` of one in its catalog.",
            ),
            PaymentError::PriceInactive => Self::new(
                ProblemCode::PriceInactive,
                "The price was taken off the catalog: offer another price of it.",
            ),
            PaymentError::KeyTaken(key) => Self::new(
                ProblemCode::PriceKeyTaken,
                format!(
                    "An active price of the project has the key `{key}`: take it off the catalog first, or choose another key."
                ),
            ),
            PaymentError::CatalogFull => invalid_request(format!(
                "The catalog has {MAX_PRICES} prices, which is the most, inactive ones included."
            )),
            PaymentError::SeveralCookies => invalid_request(
                "The browser sent several checkout cookies of this page: another site of its domain has set one. What is bought now could not be \
                 recognised later. Sign in first, or delete the cookies that other sites have set.",
            ),
            PaymentError::TooManySessions => Self::new(
                ProblemCode::RateLimited,
                format!(
                    "This visitor or browser has begun {MAX_BUYER_SESSIONS} checkouts within {} hours, which is the most. Try again later.",
                    SESSION_LIMIT_SECONDS / 3600
                ),
            ),
            PaymentError::Unconfigured => unconfigured(),
            PaymentError::AmountRefused(words) => {
                invalid_request(format!("The payment provider refuses the amount: {words}"))
            }
            PaymentError::Unavailable(why) => {
                tracing::warn!(error = why, "a checkout could not be begun");
                Self::new(
                    ProblemCode::ProviderUnavailable,
                    "The payment provider did not take the request. Nothing was charged: try again in a minute.",
                )
            }
            PaymentError::NoProject => Self::new(
                ProblemCode::NotFound,
                "There is no such project: it was deleted, has expired, or never was.",
            ),
            PaymentError::Page(error) => error.into(),
            PaymentError::Store(error) => error.into(),
            PaymentError::Random(error) => Self::internal(&error),
        }
    }
}
